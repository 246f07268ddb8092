"""More captures of one program, named one by one or in one folder: which count, and what verdicts then rest on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from tests.compare.compare_runs import FakeRun, cells_of, run_of_series, steps, table
from tests.step_programs import capture, even
from tfcompare import compare, load, schema
from tfcompare.compare.repeats import accept_replicates
from tfcompare.compare.side import Side
from tfcompare.tables.step_times import StepCells

if TYPE_CHECKING:
    pass

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
    made = run_of_series(run_id, {("Host", op.rpartition("/")[2], op): by * durations for op, by in shares.items()})
    made.info.step_time_ms_median, made.info.steps_included, made.info.device_type = step_ms, number, device_type
    made.frames["steps"] = steps(list(durations))
    return replace(made, content_id=content or run_id, host_names=hosts)


def group(name: str, *step_ms: float, ops: tuple[str, ...] = OPS) -> tuple[FakeRun, list[FakeRun]]:
    """A run and its repeats."""
    first, *others = (recording(f"{name}{i}", ms, ops=ops) for i, ms in enumerate(step_ms))
    return first, others


# --- what counts


def test_copies_what_was_recorded_otherwise_and_what_counts_already_are_no_replicates() -> None:
    more = recording("more")
    copies = [recording(f"copy_of_{name}", content=name) for name in ("before", "after", "more")]
    others = [recording("gpu", device_type="GPU"), recording("short", number=5), more]
    found = accept_replicates([recording("before"), recording("after")], {"before": [more, *copies], "after": others})
    assert found.repeats == {"before": (more,)}
    assert found.refused == (
        *(
            f"copy_of_{name} is not counted as a replicate of before: it is a copy of {name}, so it adds nothing."
            for name in ("before", "after", "more")
        ),
        "gpu is not counted as a replicate of after: the two differ in device type (CPU and GPU).",
        "short is not counted as a replicate of after: it has 5 included steps, and a verdict takes 9 of each capture.",
        "more is not counted as a replicate of after: it is compared, or counted, already.",
    )


def test_runs_of_one_name_are_told_apart_by_their_paths() -> None:
    found = accept_replicates([recording("a/x"), recording("after")], {"a/x": [recording("b/x", device_type="GPU")]})
    assert found.refused[0].startswith("/logs/b/x is not counted as a replicate of /logs/a/x: ")


# --- step time


def test_a_side_of_several_captures_is_called_by_their_program_unless_the_other_is_of_the_same() -> None:
    (large, _), (small, more) = group("large_run-", 20.0), group("small_run-", 10.0, 10.1, 10.2, 10.3)
    found = compare(large, small, repeats={small.id: more})
    assert [side.name for side in found.sides] == ["large_run-0", "small"]
    assert "`small` is " in found.headline() and "than `large_run-0` (" in found.headline()
    again = compare(small, more[1], repeats={small.id: more[:1], more[1].id: more[2:]})
    assert [side.name for side in again.sides] == ["small_run-0", "small_run-2"]


def test_with_three_recordings_a_side_the_spread_is_measured_of_the_steps_and_of_ops() -> None:
    (before, its), (after, their) = group("b", 10.0, 10.1, 9.9), group("a", 10.5, 10.6, 10.4)
    alone, both = compare(before, after), compare(before, after, repeats={before.id: its, after.id: their})
    words = [(found.verdict[after.id].word, set(found.table("op_stats")["verdict"])) for found in (alone, both)]
    assert words == [("unclear", {"unclear"}), ("slower", {"slower"})]
    assert "CPU default" in alone.verdict[after.id].reason
    assert "from 60 steps per side" in both.verdict[after.id].reason
    assert "Run-to-run variation is measured: " in both.verdict[after.id].reason


def test_copies_among_the_repeats_do_not_make_a_verdict_surer() -> None:
    before, after = recording("before"), recording("after", 10.5)
    copies = [recording(f"copy{i}", 10.0, content="before") for i in range(4)]
    assert compare(before, after, repeats={before.id: copies}).verdict == compare(before, after).verdict


def test_the_order_of_the_repeats_does_not_matter_and_swapped_sides_are_mirror_images() -> None:
    (before, its), (after, their) = group("b", 10.0, 10.3, 9.8, 10.1), group("a", 10.5, 10.6, 10.4)
    forth = compare(before, after, repeats={before.id: its, after.id: their})
    other = compare(before, after, repeats={after.id: their[::-1], before.id: its[::-1]})
    assert forth.verdict == other.verdict
    pd.testing.assert_frame_equal(forth.table("op_stats"), other.table("op_stats"))
    back = compare(after, before, repeats={before.id: its, after.id: their})
    there, here = forth.verdict[after.id], back.verdict[before.id]
    assert {there.word, here.word} == {"slower", "faster"}
    assert (there.ratio, there.low, there.high) == pytest.approx((1 / here.ratio, 1 / here.high, 1 / here.low))
    ops, spo = (c.table("op_stats").sort_values("op_name", ignore_index=True) for c in (forth, back))
    mirrored = {"slower": "faster", "faster": "slower"}
    assert ops["verdict"].tolist() == [mirrored.get(word, word) for word in spo["verdict"]]
    assert ops["interval_low"].to_numpy() == pytest.approx(1 / spo["interval_high"].to_numpy())


# --- ops


def test_a_repeat_that_numbers_its_ops_otherwise_says_the_same() -> None:
    again = ("model/conv2d_1/Conv2D", "model/dense_7/MatMul")
    times = {"before": (10.0, 10.1, 9.9), "after": (10.5, 10.6, 10.4)}
    plain = {side: group(side, *ms) for side, ms in times.items()}

    def ops(groups: dict[str, tuple[FakeRun, list[FakeRun]]]) -> pd.DataFrame:
        (before, its), (after, their) = groups["before"], groups["after"]
        return compare(before, after, repeats={before.id: its, after.id: their}).table("op_stats")

    expected = ops(plain)
    assert set(expected["verdict"]) == {"slower"}
    for renamed, ms in times.items():
        numbered = plain | {renamed: (plain[renamed][0], group(renamed, *ms, ops=again)[1])}
        pd.testing.assert_frame_equal(ops(numbered), expected)


@pytest.mark.parametrize("side", ["before", "after"])
def test_what_a_repeat_does_not_do_is_not_tested(side: str) -> None:
    (before, its), (after, their) = group("b", 10.0, 10.1, 9.9), group("a", 10.5, 10.6, 10.4)
    other = recording("other", 10.2, ops=("model/conv2d/Conv2D", "elsewhere/deep/down/Softmax"))
    (its if side == "before" else their).append(other)
    found = compare(before, after, repeats={before.id: its, after.id: their}).table("op_stats")
    verdicts = dict(zip(found["op_name"], found["verdict"], strict=True))
    assert (verdicts[OPS[0]], verdicts[OPS[1]]) == ("slower", "untested")


def cells_of_second(first: FakeRun, second: FakeRun, name: str) -> StepCells:
    """The step cells of the second of two captures."""
    return Side("first", 0, 2, (first, second), (None, None)).cells(1, name)  # type: ignore[arg-type]


def test_the_rows_of_a_repeat_stand_under_the_names_of_the_run() -> None:
    run, same = recording("run"), recording("same")
    numbered = recording("numbered", ops=("model/conv2d_3/Conv2D", "model/dense/MatMul"))
    pd.testing.assert_frame_equal(cells_of_second(run, same, "op_stats").keys, same.cells["op_stats"].keys)
    found = cells_of_second(run, numbered, "op_stats")
    assert found.keys["op_name"].tolist() == list(OPS)
    assert found.keys.dtypes.equals(numbered.cells["op_stats"].keys.dtypes)
    assert found.cells is numbered.cells["op_stats"].cells


def test_kernels_of_a_repeat_are_found_by_the_ops_that_launched_them() -> None:
    def launching(run_id: str, *ops: str) -> FakeRun:
        run = recording(run_id)
        rows = table("kernel_stats", kernel_name=["gemm", "gemm", "relu"], op_name=list(ops))
        run.frames["kernel_stats"] = rows.assign(host="worker")
        run.cells["kernel_stats"] = cells_of(rows.assign(host="worker"), [np.ones(1)] * 3, schema.KERNEL_STATS)
        return run

    run = launching("run", "net/dense/MatMul", "net/dense_1/MatMul", "net/dense/Relu")
    numbered = launching("numbered", "net/dense_2/MatMul", "net/dense_3/MatMul", "net/dense_2/Relu")
    assert run.frames["kernel_stats"]["registers_per_thread"].isna().all(), "keys may be missing"
    found = cells_of_second(run, numbered, "kernel_stats").keys
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
    assert [run.id for run in comparison.sides[0].runs[1:]] == ["elsewhere"], "the other has no such host"
    assert "from 40 and 20 steps" in comparison.verdict["after"].reason


def folder(path: Path, *step_ms: float) -> Path:
    """A folder with run-1, run-2, … of steps of these lengths."""
    for number, ms in enumerate(step_ms, start=1):
        capture(path / f"run-{number}", even(ms))
    return path


def test_a_folder_of_three_captures_is_a_run_with_three(tmp_path: Path) -> None:
    run = load(folder(tmp_path / "before", 4.0, 4.1, 4.2))
    assert [one.name for one in run.captures] == ["run-1", "run-2", "run-3"]
    assert run.captures[0] is run
    assert run.remarks[-1] == "the first of 3 captures of one program, by their names; comparisons use all of them"
    alone = load(tmp_path / "before" / "run-1")
    assert alone.captures == (alone,) and not alone.remarks
    assert run.table("steps").equals(alone.table("steps"))
    assert run.memory_bytes > 2 * alone.memory_bytes
    assert run.only(*run.host_names).replicates == ()


def test_folders_of_captures_are_compared_by_all_of_them(tmp_path: Path) -> None:
    places = [folder(tmp_path / "before" / "logs", 4.0, 4.1, 4.2), folder(tmp_path / "after" / "logs", 2.0, 2.1, 2.2)]
    before, after = map(load, places)
    assert before.id == after.id, "the captures are nevertheless of their own folder's run"
    comparison = compare(before, after)
    assert [len(comparison.side_of(run).runs[1:]) for run in (comparison.baseline, *comparison.candidates)] == [2, 2]
    assert comparison.headline().startswith("`after` is ")
    assert comparison.notes[0].endswith(" nearest to the mean step: run-2 for before and run-2 for after.")
    given = compare(before, load(places[1] / "run-1"), repeats={})
    assert [len(given.side_of(run).runs[1:]) for run in (given.baseline, *given.candidates)] == [2, 0]
    alone = compare(before, load(places[0]))
    assert alone.is_single and len(alone.side_of(alone.baseline).runs[1:]) == 2
    assert not [note for note in alone.notes if "is not counted" in note]


def test_a_copy_among_the_captures_is_not_counted(tmp_path: Path) -> None:
    place = folder(tmp_path / "before", 4.0, 4.1)
    shutil.copytree(place / "run-1", place / "run-3")
    run = load(place)
    (note,) = (note for note in compare(run, run).notes if "is not counted" in note)
    assert note == "run-3 is not counted as a replicate of run-1: it is a copy of run-1, so it adds nothing."
