"""More recordings of one program: which of them count, and what verdicts then rest on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.compare import compare_runs
from tests.compare.compare_runs import FakeRun, op_stats, steps
from tfcompare import schema
from tfcompare.compare import compare
from tfcompare.compare.repeats import accept_replicates, with_names_of
from tfcompare.tables.step_cells import StepCells

STEPS = 20
OPS = ("model/conv2d/Conv2D", "model/dense/MatMul")


def recording(
    run_id: str,
    step_ms: float = 10.0,
    *,
    ops: tuple[str, ...] = OPS,
    device_type: str = "CPU",
    content: str | None = None,
    number: int = STEPS,
    hosts: tuple[str, ...] = ("worker",),
) -> FakeRun:
    """A run whose steps take about so long: its first op half of them, its second a tenth."""
    rng = np.random.default_rng(len(run_id) + int(step_ms * 1000))
    durations = step_ms * 1000 * np.exp(0.01 * rng.standard_normal(number))
    shares = dict(zip(ops, (0.5, 0.1), strict=True))
    frame = op_stats(
        [("Host", op.rpartition("/")[2], op, number, share * durations.sum()) for op, share in shares.items()]
    )
    run = compare_runs.run(
        run_id, frame, step_count=number, step_ms=step_ms, steps_included=number, device_type=device_type,
        content=content, step_frame=steps(list(durations)), hosts=hosts,
    )  # fmt: skip
    keys = frame[list(schema.OP_STATS.keys)]
    row, step = (axis.ravel() for axis in np.indices((len(frame), number)))
    time_us = np.array(list(shares.values()))[row] * durations[step]
    run.cells["op_stats"] = StepCells(
        keys, pd.DataFrame({"row": row, "step": step, "occurrences": 1, "time_us": time_us})
    )
    return run


def group(name: str, *step_ms: float, ops: tuple[str, ...] = OPS) -> tuple[FakeRun, list[FakeRun]]:
    """A run and its repeats."""
    first, *others = (recording(f"{name}{i}", ms, ops=ops) for i, ms in enumerate(step_ms))
    return first, others


# --- what counts


def test_a_copy_adds_nothing_wherever_it_lies() -> None:
    before, after, more = recording("before"), recording("after"), recording("more")
    copies = [
        recording("copy_of_before", content="before"),
        recording("copy_of_after", content="after"),
        more,
        recording("copy_of_more", content="more"),
    ]
    found = accept_replicates([before, after], {"before": copies})
    assert found.repeats == {"before": (more,)}
    assert found.refused == (
        "copy_of_before is not counted as a replicate of before: it is a copy of before, so it adds nothing.",
        "copy_of_after is not counted as a replicate of before: it is a copy of after, so it adds nothing.",
        "copy_of_more is not counted as a replicate of before: it is a copy of more, so it adds nothing.",
    )


def test_what_was_recorded_otherwise_is_no_repeat() -> None:
    gpu, short = recording("gpu", device_type="GPU"), recording("short", number=5)
    found = accept_replicates([recording("before"), recording("after")], {"after": [gpu, short]})
    assert found.repeats == {}
    assert found.refused == (
        "gpu is not counted as a replicate of after: the two differ in device type (CPU and GPU).",
        "short is not counted as a replicate of after: it has 5 included steps, and a verdict takes 9 of each capture.",
    )


def test_a_recording_counts_for_one_side_only() -> None:
    more = recording("more")
    found = accept_replicates([recording("before"), recording("after")], {"before": [more], "after": [more]})
    assert found.repeats == {"before": (more,)}
    assert found.refused == ("more is not counted as a replicate of after: it is compared, or counted, already.",)


def test_runs_of_one_name_are_told_apart_by_their_paths() -> None:
    found = accept_replicates([recording("a/x"), recording("after")], {"a/x": [recording("b/x", device_type="GPU")]})
    assert found.refused[0].startswith("/logs/b/x is not counted as a replicate of /logs/a/x: ")


# --- step time


def test_with_three_recordings_a_side_the_spread_is_measured() -> None:
    (before, its), (after, their) = group("b", 10.0, 10.1, 9.9), group("a", 10.5, 10.6, 10.4)
    alone = compare(before, after).verdict[after.id]
    both = compare(before, after, repeats={before.id: its, after.id: their}).verdict[after.id]
    assert (alone.word, both.word) == ("unclear", "slower")
    assert "CPU default" in alone.reason
    assert "from 60 and 60 steps" in both.reason
    assert "Run-to-run variation is measured: " in both.reason


def test_copies_among_the_repeats_do_not_make_a_verdict_surer() -> None:
    before, after = recording("before"), recording("after", 10.5)
    copies = [recording(f"copy{i}", 10.0, content="before") for i in range(4)]
    assert compare(before, after, repeats={before.id: copies}).verdict == compare(before, after).verdict


def test_the_order_of_the_repeats_does_not_matter() -> None:
    (before, its), (after, their) = group("b", 10.0, 10.3, 9.8, 10.1), group("a", 10.5, 10.6, 10.4)
    one = compare(before, after, repeats={before.id: its, after.id: their})
    other = compare(before, after, repeats={after.id: their[::-1], before.id: its[::-1]})
    assert one.verdict == other.verdict
    pd.testing.assert_frame_equal(one.table("op_stats"), other.table("op_stats"))


def test_swapped_sides_are_mirror_images() -> None:
    (before, its), (after, their) = group("b", 10.0, 10.3, 9.8, 10.1), group("a", 10.5, 10.6, 10.4)
    repeats = {before.id: its, after.id: their}
    forth, back = compare(before, after, repeats=repeats), compare(after, before, repeats=repeats)
    there, here = forth.verdict[after.id], back.verdict[before.id]
    assert {there.word, here.word} == {"slower", "faster"}
    assert (there.ratio, there.low, there.high) == pytest.approx((1 / here.ratio, 1 / here.high, 1 / here.low))
    ops, spo = (c.table("op_stats").sort_values("op_name", ignore_index=True) for c in (forth, back))
    mirrored = {"slower": "faster", "faster": "slower"}
    assert ops["verdict"].tolist() == [mirrored.get(word, word) for word in spo["verdict"]]
    assert ops["interval_low"].to_numpy() == pytest.approx(1 / spo["interval_high"].to_numpy())


# --- ops


def test_ops_are_judged_by_all_recordings() -> None:
    (before, its), (after, their) = group("b", 10.0, 10.1, 9.9), group("a", 10.5, 10.6, 10.4)
    alone = compare(before, after).table("op_stats")
    both = compare(before, after, repeats={before.id: its, after.id: their}).table("op_stats")
    assert set(alone["verdict"]) == {"unclear"}
    assert set(both["verdict"]) == {"slower"}


@pytest.mark.parametrize("renamed", ["before", "after"])
def test_a_repeat_that_numbers_its_ops_otherwise_says_the_same(renamed: str) -> None:
    again = ("model/conv2d_1/Conv2D", "model/dense_7/MatMul")
    times = {"before": (10.0, 10.1, 9.9), "after": (10.5, 10.6, 10.4)}
    plain = {side: group(side, *ms) for side, ms in times.items()}
    numbered = {side: (first, list(more)) for side, (first, more) in plain.items()}
    numbered[renamed] = (plain[renamed][0], group(renamed, *times[renamed], ops=again)[1])

    def ops(groups: dict[str, tuple[FakeRun, list[FakeRun]]]) -> pd.DataFrame:
        (before, its), (after, their) = groups["before"], groups["after"]
        return compare(before, after, repeats={before.id: its, after.id: their}).table("op_stats")

    assert set(ops(plain)["verdict"]) == {"slower"}
    pd.testing.assert_frame_equal(ops(numbered), ops(plain))


@pytest.mark.parametrize("side", ["before", "after"])
def test_what_a_repeat_does_not_do_is_not_tested(side: str) -> None:
    (before, its), (after, their) = group("b", 10.0, 10.1, 9.9), group("a", 10.5, 10.6, 10.4)
    other = recording("other", 10.2, ops=("model/conv2d/Conv2D", "elsewhere/deep/down/Softmax"))
    (its if side == "before" else their).append(other)
    found = compare(before, after, repeats={before.id: its, after.id: their}).table("op_stats")
    assert dict(zip(found["op_name"], found["verdict"], strict=True)) == {OPS[0]: "slower", OPS[1]: "untested"}


def test_the_rows_of_a_repeat_stand_under_the_names_of_the_run() -> None:
    run, same = recording("run"), recording("same")
    numbered = recording("numbered", ops=("model/conv2d_3/Conv2D", "model/dense/MatMul"))
    assert with_names_of(run, None, same, None, "op_stats") is same.cells["op_stats"]
    found = with_names_of(run, None, numbered, None, "op_stats")
    assert found.keys["op_name"].tolist() == list(OPS)
    assert found.keys.dtypes.equals(numbered.cells["op_stats"].keys.dtypes)
    assert found.cells is numbered.cells["op_stats"].cells


def test_kernels_of_a_repeat_are_found_by_the_ops_that_launched_them() -> None:
    def launching(run_id: str, *ops: str) -> FakeRun:
        run = recording(run_id)
        frame = pd.DataFrame({"kernel_name": ["gemm", "gemm", "relu"], "op_name": ops, "total_duration_us": 1.0})
        defaults = {"str": "", "int64": 0, "float64": 0.0, "bool": False}
        others = [c for c in schema.KERNEL_STATS.columns if c.name not in frame]
        frame = frame.assign(**{c.name: pd.Series([defaults.get(c.dtype)] * 3, dtype=c.dtype) for c in others})
        run.frames["kernel_stats"] = schema.KERNEL_STATS.conform(frame.assign(host="worker"))
        cells = pd.DataFrame({"row": [0, 1, 2], "step": 0, "occurrences": 1, "time_us": 1.0})
        run.cells["kernel_stats"] = StepCells(run.frames["kernel_stats"][list(schema.KERNEL_STATS.keys)], cells)
        return run

    run = launching("run", "net/dense/MatMul", "net/dense_1/MatMul", "net/dense/Relu")
    numbered = launching("numbered", "net/dense_2/MatMul", "net/dense_3/MatMul", "net/dense_2/Relu")
    assert run.frames["kernel_stats"]["registers_per_thread"].isna().all(), "keys may be missing"
    found = with_names_of(run, None, numbered, None, "kernel_stats").keys
    pd.testing.assert_frame_equal(found, run.cells["kernel_stats"].keys)


# --- hosts


def test_on_one_host_a_repeat_counts_by_the_counterpart_of_that_host() -> None:
    runs = {
        name: recording(name, ms, hosts=hosts)
        for name, ms, hosts in (
            ("before", 10.0, ("a", "b")),
            ("after", 10.5, ("a", "b")),
            ("elsewhere", 10.1, ("x", "y")),
            ("smaller", 10.2, ("b",)),
        )
    }
    for run in runs.values():
        run.by_host = {host: {"op_stats": run.frames["op_stats"].assign(host=host)} for host in run.host_names}
        run.frames["steps"] = pd.concat([run.frames["steps"].assign(host=host) for host in run.host_names])
    comparison = compare(
        runs["before"], runs["after"], host="a", repeats={"before": [runs["elsewhere"], runs["smaller"]]}
    )
    assert [run.id for run in comparison.repeats_of(runs["before"])] == ["elsewhere"], "the other has no such host"
    assert "from 40 and 20 steps" in comparison.verdict["after"].reason
