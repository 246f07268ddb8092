"""Different runs of one id: those in folders of one name that are loaded one by one, or two choices of steps of one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.profiles import run_path
from tests.step_programs import capture, even
from tfcompare import compare, load
from tfcompare.errors import TfcompareError


def test_runs_of_one_id_in_different_folders_are_compared_by_the_names_of_these(tmp_path: Path) -> None:
    before, after = (load(capture(tmp_path / name / "run-1", even(ms))) for name, ms in (("before", 4), ("after", 2)))
    assert before.id == after.id
    comparison = compare(before, after)
    assert not comparison.is_single
    assert comparison.headline().startswith("`after` is 2.0× faster than `before` ")
    assert comparison.verdict[after.id].ratio == pytest.approx(0.5, rel=0.02)
    assert comparison.step_time_us(comparison.baseline) == pytest.approx(4_000, rel=0.02)
    back = compare(after, before)
    assert back.headline().startswith("`before` is 2.0× slower than `after` ")
    with pytest.raises(TfcompareError, match=r"^2 runs have the id 'run-1', so it is unclear whose replicates these"):
        compare(before, after, repeats={before.id: [after]})
    ranges = compare(before, after, load(before.path, steps="2:10"))
    names = [run.name for run in (ranges.baseline, *ranges.candidates)]
    assert names == ["before (all steps)", "after (all steps)", "before (steps 2:10)"]


def test_two_choices_of_steps_of_one_capture_are_compared() -> None:
    whole, first, last = (load(run_path("filters_16_8"), steps=steps) for steps in (None, "2:10", "11:20"))
    comparison = compare(first, last)
    assert not comparison.is_single
    assert "`filters_16_8 (steps 11:20)` vs `filters_16_8 (steps 2:10)`" in comparison.headline()
    assert "`filters_16_8 (all steps)` vs `filters_16_8 (steps 2:10)`" in compare(first, whole).headline()
    assert compare(whole, load(run_path("filters_16_8"))).is_single, "it is that run alone"


def test_candidates_of_one_id_have_ids_of_their_own(tmp_path: Path) -> None:
    times = {"first": 4, "second": 2, "third": 8}
    runs = [load(capture(tmp_path / name / "run-1", even(ms))) for name, ms in times.items()]
    comparison = compare(*runs)
    assert [run.id for run in comparison.candidates] == ["run-1 (second)", "run-1 (third)"]
    assert [verdict.word for verdict in comparison.verdict.values()] == ["faster", "slower"]
    with pytest.raises(TfcompareError, match="the candidate 'run-1' was given twice; name each candidate once"):
        compare(runs[0], runs[1], load(tmp_path / "second" / "run-1"))


def test_folders_with_odd_names_give_printable_names(tmp_path: Path) -> None:
    names = [b"caf\xe9", b"\x1b[31mred"]
    runs = [
        load(capture(tmp_path / os.fsdecode(name) / "run-1", even(ms))) for name, ms in zip(names, (4, 2), strict=True)
    ]
    comparison = compare(*runs)
    assert b"\x1b" not in comparison.headline().encode(), "it can be encoded, and has no control characters"
    assert "\x1b" not in "".join(run.name + run.id for run in (comparison.baseline, *comparison.candidates))


def test_a_kind_of_step_is_compared_with_another_of_one_capture() -> None:
    place = run_path("h100_store_activations")
    train, evaluate = (load(place, step_kind=kind) for kind in ("train_step", "evaluate"))
    comparison = compare(train, evaluate)
    assert comparison.headline().startswith("`h100_store_activations_run-1 (evaluate)` is ")
