"""The timeline holds every event of the raw file, and its spans add up to the tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.frames.tables import DIALECTS, host, run_with
from tests.profiles import loaded_run
from tests.xspace_builder import U64, Event, event, line, meta, plane
from tfcompare import schema
from tfcompare.frames.planes import HOST_PLANE
from tfcompare.xspace import read

OP = ["host_or_device", "op_type", "op_name"]


@pytest.mark.parametrize("name", [*DIALECTS, "tf_gpu", "workers_slow_input"])
def test_the_spans_of_each_op_add_up_to_its_total_time(name: str) -> None:
    run = loaded_run(name)
    for name_of_host in run.host_names:
        lanes, spans = run.tables.timeline(name_of_host)
        ops = spans[spans["op_name"] != ""]
        on_host = (lanes["plane"] == HOST_PLANE).to_numpy()[ops["lane"]]
        keyed = ops.assign(host_or_device=np.where(on_host, schema.HOST, schema.DEVICE)).astype(
            dict.fromkeys(OP, "str")
        )
        found = keyed.groupby(OP)["duration_ps"].sum() / 1e6
        table = run.table("op_stats", host=name_of_host)
        expected = table[table["op_type"] != schema.IDLE].set_index(OP)["total_time_us"]
        pd.testing.assert_series_equal(found.sort_index(), expected.sort_index(), check_names=False, rtol=1e-9)


@pytest.mark.parametrize("name", [*DIALECTS, "tf_gpu", "workers_slow_input"])
def test_each_lane_has_the_events_of_its_line(name: str) -> None:
    run = loaded_run(name)
    for file in run.found.files:
        raw = read(file.path).space
        lanes, spans = (
            one.astype(dict.fromkeys(one.select_dtypes("category"), "str")) for one in run.tables.timeline(file.host)
        )
        key = (lanes["plane"] + " " + lanes["line_id"]).tolist()
        found = dict(zip(key, np.bincount(spans["lane"], minlength=len(lanes)).tolist(), strict=True))
        counts = {
            f"{raw.planes[int(p)].name} {line_id}": int((raw.events.occurrences[first : first + count] <= 0).sum())
            for p, line_id, first, count in zip(
                raw.lines.plane, raw.lines.id, raw.lines.first_event, raw.lines.event_count, strict=True
            )
        }
        assert found == {lane: counts[lane] for lane in found}


def spans_of(*planes: bytes) -> pd.DataFrame:
    return run_with(*planes).tables.timeline("a")[1]


def test_spans_have_their_step_op_and_launch() -> None:
    python = host(
        event("train", 0, 100, _r=1, step_num=7),
        event("model/MatMul:MatMul", 10, 20),
        event("cudaLaunchKernel", 12, 2, correlation_id=5),
    )
    kernel = event("gemm", 40, 30, correlation_id=5, tf_op="model/MatMul:MatMul")
    spans = spans_of(python, plane("/device:GPU:0", line("Stream #1", kernel, id=1)))
    columns = ["name", "op_name", "op_type", "step", "launch", "start_ps"]
    assert spans[columns].astype({"op_name": "str", "op_type": "str", "name": "str"}).to_numpy().tolist() == [
        ["train", "", "", 7, -1, 0],
        ["model/MatMul:MatMul", "model/MatMul", "MatMul", 7, -1, 10_000_000],
        ["cudaLaunchKernel", "", "", 7, -1, 12_000_000],
        ["gemm", "model/MatMul", "MatMul", 7, 2, 40_000_000],
    ]


def test_without_steps_spans_have_none() -> None:
    assert spans_of(host(event("first", 0, 1)))["step"].tolist() == [-1]


def tpu_core(number: int, *modules: Event, ops: list[Event]) -> bytes:
    return plane(f"/device:TPU:{number}", line("XLA Modules", *modules, id=2), line("XLA Ops", *ops, id=3))


def test_programs_on_tpu_cores_and_their_ops_have_the_host_event_that_started_them() -> None:
    op = meta("%a.1", tf_op="a:A", program_id=U64(5), symbol_id=U64(9))
    calls = [
        event("DoEnqueueProgram", 0, 2, run_id=1, device_ordinal=0, _pt=12, _p=-100),
        event("DoEnqueueProgram", 5, 2, run_id=1, device_ordinal=1, _pt=12, _p=101),
        event("CompleteCallbacks", 35, 1, _ct=12, _c=101),
    ]
    first = event("jit_f(1)", 10, 20, run_id=1, _ct=12, _c=-100)
    second = event("jit_g(2)", 10, 20, run_id=1, _ct=12, _c=101)
    unknown = event("jit_g(2)", 40, 10, run_id=1, _ct=12, _c=102)
    cores = [
        tpu_core(0, first, ops=[event(op, 12, 5), event(op, 30, 5)]),
        tpu_core(1, second, unknown, ops=[event(op, 10, 5), event(op, 45, 5)]),
    ]
    spans = spans_of(host(*calls), *cores)
    on_cores = spans[spans["lane"] > 0]
    assert list(zip(on_cores["lane"], on_cores["name"], on_cores["launch"], strict=True)) == [
        (1, "jit_f(1)", 0),
        (2, "%a.1", 0),
        (2, "%a.1", -1),
        (3, "jit_g(2)", 1),
        (3, "jit_g(2)", -1),
        (4, "%a.1", 1),
        (4, "%a.1", -1),
    ]
    assert set(spans.loc[spans["lane"] == 0, "launch"]) == {-1}


def test_longer_spans_come_before_those_that_start_with_them() -> None:
    spans = spans_of(host(event("inner", 5, 1), event("outer", 5, 9), event("first", 0, 1)))
    assert spans["name"].tolist() == ["first", "outer", "inner"]


def test_a_profile_without_events_has_an_empty_timeline() -> None:
    lanes, spans = run_with(plane("/host:CPU")).tables.timeline("a")
    assert lanes.empty
    assert spans.empty
