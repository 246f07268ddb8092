"""Traces are JSON that trace viewers draw without loss: exact times, no overlaps, pairs of flows."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import EACH_KIND, loaded_run, run_path
from tests.ui.hostile_profile import EVIL, hostile
from tests.xspace_builder import PS_PER_US, event, line, plane, space
from tfcompare.cli import main
from tfcompare.errors import TfcompareError
from tfcompare.run import Run, load
from tfcompare.schema import IDLE
from tfcompare.views.hosts.clocks import clocks
from tfcompare.views.timeline.run_timeline import Alignment, timelines, typical_step, within
from tfcompare.views.timeline.trace import MOST_SUBLANES, Traced, chrome_trace, sublanes

TYPICAL = Alignment()
UNLIKE = ("filters_16_8", "jax_tpu", "workers_slow_input")


def trace(*runs: Run, align: Alignment = TYPICAL) -> list[dict[str, Any]]:
    hosts = [
        Traced(run.name, timeline, run.table("memory_timeline", host=timeline.host))
        for run in runs
        for timeline in timelines(run, align)
    ]
    events: list[dict[str, Any]] = json.loads("".join(chrome_trace(hosts)), parse_float=Decimal)["traceEvents"]
    return events


def spans(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in UNLIKE else pytest.mark.thorough) for name in EACH_KIND]
)
def test_spans_of_a_thread_nest_or_follow_each_other(name: str) -> None:
    place = lambda e: (e["pid"], e["tid"])  # noqa: E731
    every = sorted(spans(trace(loaded_run(name))), key=lambda e: (*place(e), e["ts"], -e["dur"]))
    for _, here in groupby(every, key=place):
        ends: list[Decimal] = []
        for span in here:
            while ends and ends[-1] <= span["ts"]:
                ends.pop()
            assert not ends or span["ts"] + span["dur"] <= ends[-1]
            ends.append(span["ts"] + span["dur"])


def test_two_runs_have_processes_of_their_own_and_lose_nothing() -> None:
    runs = [loaded_run("gpu_filters_512_128"), loaded_run("gpu_filters_16_8")]
    events = trace(*runs)
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert len(set(names.values())) == len(names)
    for run in runs:
        of_run = {pid for pid, name in names.items() if name.startswith(f"{run.name} · ")}
        shown = [span for span in spans(events) if span["pid"] in of_run]
        _, expected = run.tables.timeline(run.host_names[0])
        assert len(shown) == len(expected)
        assert sum(span["dur"] for span in shown) * 1_000_000 == int(expected["duration_ps"].sum())


def test_time_0_is_the_start_of_the_typical_step_or_of_what_was_chosen() -> None:
    run = loaded_run("filters_16_8")
    number = typical_step(run.table("steps").assign(kind=""))
    for align, step in ((Alignment(), number), (Alignment(step=12), 12)):
        marked = [span for span in spans(trace(run, align=align)) if span["args"].get("step") == step]
        assert min(span["ts"] for span in marked) == 0
    ops = run.table("op_stats")
    name = str(ops.loc[ops["op_type"] != IDLE, "op_name"].iloc[0])
    found = [span["ts"] for span in spans(trace(run, align=Alignment(op=name))) if span["args"].get("op") == name]
    assert min(found) == 0


def test_each_launch_is_a_flow_to_the_device_and_memory_in_use_is_a_counter() -> None:
    run = loaded_run("gpu_filters_16_8")
    events = trace(run)
    starts, ends = ({e["id"]: e for e in events if e["ph"] == kind} for kind in "sf")
    assert len(starts) > 1500
    assert starts.keys() == ends.keys()
    assert all(starts[flow]["ts"] <= ends[flow]["ts"] and starts[flow]["pid"] != ends[flow]["pid"] for flow in starts)
    in_use = [event["args"]["in use (bytes)"] for event in events if event["ph"] == "C"]
    assert in_use == run.table("memory_timeline")["in_use_bytes"].tolist()


def test_names_of_profiles_are_data(tmp_path) -> None:
    (tmp_path / "a.xplane.pb").write_bytes(hostile(1))
    names = {span["name"] for span in spans(trace(load(tmp_path)))}
    assert any(EVIL.translate({0: "", ord("\n"): " "}) in name for name in names)


def test_a_window_keeps_whole_spans_and_the_launches_within() -> None:
    (whole,) = timelines(loaded_run("gpu_filters_16_8"))
    part = within(whole, 0.0, 3_000.0)
    begin = part.spans["start_ps"] - whole.zero_ps
    assert 0 < len(part.spans) < len(whole.spans)
    assert (begin + part.spans["duration_ps"]).min() >= 0
    assert begin.max() <= 3_000_000_000
    launched = part.spans[part.spans["launch"] >= 0]
    sources = part.spans.loc[launched["launch"], "name"].astype("str")
    assert len(launched) > 100
    assert sources.str.contains("Launch|Memcpy|Memset", regex=True).all()


@pytest.mark.parametrize(
    "text", ["step:x", "op:", "12", "step:²", "collective:", "collective:x", "step:--5", "step:" + "9" * 5000]
)
def test_what_is_no_alignment_is_answered(text: str) -> None:
    with pytest.raises(TfcompareError, match="is no alignment; expected step:NUMBER"):
        Alignment.from_text(text)


def test_an_alignment_that_a_run_lacks_is_answered() -> None:
    with pytest.raises(TfcompareError, match="it marks no steps, so there is no collective"):
        timelines(loaded_run("jax_conv_08"), Alignment(is_collective=True))
    run = loaded_run("filters_16_8")
    with pytest.raises(TfcompareError, match="there is no step 99; steps are"):
        timelines(run, Alignment(step=99))
    with pytest.raises(TfcompareError, match=r"no op or event is named 'adam/Sqr'.*did you mean"):
        timelines(run, Alignment(op="adam/Sqr"))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
def test_sublanes_never_overlap_in_part(times: list[tuple[int, int]]) -> None:
    ordered = sorted(times, key=lambda t: (t[0], -t[1]))
    start, duration = (np.array([t[i] for t in ordered], np.int64) for i in (0, 1))
    rows = sublanes(start, duration)
    assert rows.max(initial=0) < MOST_SUBLANES
    for i in range(len(ordered)):
        for j in range(i):
            if rows[i] == rows[j] and start[i] < start[j] + duration[j]:
                assert start[i] + duration[i] <= start[j] + duration[j]


def test_flows_of_two_captures_of_one_program_do_not_mix(tmp_path) -> None:
    for name in ("x", "y"):
        shutil.copytree(run_path("gpu_filters_16_8"), tmp_path / name / "run")
    out = tmp_path / "trace.json"
    assert main(["trace", str(tmp_path / "x" / "run"), str(tmp_path / "y" / "run"), "-o", str(out)]) == 0
    events = json.loads(out.read_text(encoding="utf-8"))["traceEvents"]
    starts = [(event["cat"], event["id"]) for event in events if event["ph"] == "s"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert (len(set(starts)), len(set(names))) == (len(starts), len(names))


def test_all_hosts_of_a_run_are_aligned_at_the_same_step(tmp_path) -> None:
    for host, factor in (("a", 1), ("b", 3)):
        steps = [event("train", 1000 * i, 500 + 10 * (factor * i % 7), _r=1, step_num=i) for i in range(9)]
        ops = [event("MatMul:MatMul", 1000 * i + 10, 100) for i in range(9)]
        data = space(plane("/host:CPU", line("t", *steps, *ops, id=1)), hostnames=[host])
        (tmp_path / f"{host}.xplane.pb").write_bytes(data)
    run = load(tmp_path)
    zeros = []
    for timeline in timelines(run):
        steps_of_host = run.table("steps", host=timeline.host)
        zeros.append(steps_of_host.loc[steps_of_host["start_us"] * 1e6 == timeline.zero_ps, "step"].tolist())
    of_each_host = {typical_step(run.table("steps", host=host).assign(kind="")) for host in ("a", "b")}
    assert len(of_each_host) == 2
    assert zeros[0] == zeros[1] != []


@pytest.mark.parametrize("text", ["collective", "collective:20"])
def test_hosts_aligned_at_a_collective_are_on_one_clock_and_the_slow_one_comes_last(text: str) -> None:
    run = loaded_run("workers_slow_input")
    known = clocks(run)
    assert known is not None
    alignment = Alignment.from_text(text)
    step = typical_step(run.steps.assign(kind="")) if alignment.step is None else alignment.step
    aligned = timelines(run, alignment)
    zeros = {timeline.host: timeline.zero_ps / PS_PER_US for timeline in aligned}
    offsets = [zeros[host] - zeros["worker0"] for host in known.offsets["host"]]
    assert offsets == pytest.approx(known.offsets["offset_us"].tolist(), abs=1e-5)
    starts, ends = {}, {}
    for timeline in aligned:
        spans = timeline.spans[(timeline.spans["op_type"] == "CollectiveReduceV2") & (timeline.spans["step"] == step)]
        start, duration = (int(spans[name].iloc[0]) / PS_PER_US for name in ("start_ps", "duration_ps"))
        starts[timeline.host] = start - zeros[timeline.host]
        ends[timeline.host] = starts[timeline.host] + duration
    assert ends["worker0"] == pytest.approx(0, abs=1e-5)
    assert max(map(abs, ends.values())) < 2 * known.offsets["error_us"].max()
    assert starts["worker1"] - max(starts["worker0"], starts["worker2"]) > 2 * known.offsets["error_us"].max()
