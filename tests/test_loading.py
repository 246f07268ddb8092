"""From a question to its answer: what is searched and read, and what is said about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.step_programs import capture, even
from tfcompare import loading
from tfcompare.errors import TfcompareError
from tfcompare.loading import Question, answer, first_captures, runs_below
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun, runs


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """`before` with three captures, `after` with one, and a copy of a capture in `more`."""
    for number in (1, 2, 3):
        capture(tmp_path / "before" / f"run-{number}", even(4 + number / 10))
    capture(tmp_path / "after" / "run-1", even(2))
    shutil.copytree(tmp_path / "before" / "run-1", tmp_path / "more" / "run-1")
    return tmp_path


def places(logs: Path, *names: str) -> tuple[str, ...]:
    return tuple(str(logs / name) for name in names)


def test_a_place_is_searched_once_and_a_run_read_once(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Path] = []
    walk = runs.walk
    monkeypatch.setattr(runs, "walk", lambda path, *more: searched.append(path) or walk(path, *more))
    read: list[str] = []
    question = Question(places(logs, "before", "after"), repeats=(places(logs, "before"), ()))
    comparison, notes = answer(question, lambda found: read.append(found.id))
    assert sorted(searched) == [logs / "after", logs / "before"]
    assert sorted(read) == ["after/run-1", "before/run-1", "before/run-2", "before/run-3"]
    assert len(comparison.side_of(comparison.baseline).runs[1:]) == 2
    assert notes == [f"{logs / 'before'}: 3 captures of one program, by their names"]


def test_all_places_are_located_before_a_run_is_read(logs: Path) -> None:
    def read(found: FoundRun) -> None:
        raise AssertionError(found.id)

    with pytest.raises(TfcompareError, match=r"aftr: there is no such file or folder"):
        answer(Question(places(logs, "before", "aftr")), read)
    with pytest.raises(TfcompareError, match=r"mroe: there is no such file or folder"):
        answer(Question(places(logs, "before", "after"), repeats=((), places(logs, "mroe"))), read)


def test_equal_names_are_told_apart(logs: Path) -> None:
    comparison, notes = answer(Question(places(logs, "before/run-1", "after/run-1"), repeats=(places(logs, "more"),)))
    assert [run.id for run in (comparison.baseline, *comparison.candidates)] == ["before/run-1", "after/run-1"]
    (refused,) = notes
    assert "is not counted as a replicate of" in refused and "it is a copy of" in refused
    sides = [(loading.read(runs.find_run(logs / name / "run-1")),) for name in ("before", "after")]
    assert sides[0][0].id == sides[1][0].id, "they were found one by one"
    named, _ = loading.compared(Question(()), sides)
    assert [run.name for run in (named.baseline, *named.candidates)] == ["before", "after"]


def test_a_place_alone_is_all_of_its_captures_and_says_which_is_shown(logs: Path) -> None:
    comparison, notes = answer(Question(places(logs, "before")))
    assert comparison.is_single and len(comparison.side_of(comparison.baseline).runs[1:]) == 2
    (shown,), same = first_captures(Question(places(logs, "before")))
    told = f"{logs / 'before'}: 3 captures of one program, by their names"
    assert (notes, same) == ([told], [f"{told}; shown is {shown.name}"])


def test_what_cannot_be_read_is_left_out_and_said(logs: Path) -> None:
    (logs / "more" / "run-2").mkdir()
    (logs / "more" / "run-2" / "vm.xplane.pb").write_bytes(b"")
    loaded, notes = runs_below(Question(places(logs, "more", "after")))
    assert [run.id for run in loaded if isinstance(run, Run)] == ["more/run-1", "after/run-1"]
    (note,) = notes
    assert note.startswith("left out: ") and "run-2" in note
    shutil.rmtree(logs / "more" / "run-1")
    with pytest.raises(TfcompareError, match=r"none of the runs there can be read: .*run-2"):
        answer(Question(places(logs, "before", "after"), repeats=((), places(logs, "more"))))
