"""A folder of several captures of one program is one run with all of them, and `compare` uses them."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.step_programs import capture, even
from tfcompare import compare, load


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
    assert comparison.notes[0].startswith("Figures are of 3 captures of before and 3 captures of after. ")
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
