"""Names, tags and hidden marks of runs: what is stored, what is refused, and how they reach the runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ui.found_runs import found
from tfcompare.errors import TfcompareError
from tfcompare.sources.logdir import FoundRun
from tfcompare.store.annotations import (
    Annotation,
    annotations_by_run,
    path_in,
    read_annotations,
    renamed,
    write_annotation,
)

ONE, OTHER = "1" * 32, "2" * 32
SMALL = Annotation("Small model", ("cnn", "tuned"), is_hidden=True, stat_keys=("a" * 32,))


def names(*runs: FoundRun, **given: str) -> list[str]:
    annotations = {run_id: Annotation(name) for run_id, name in given.items()}
    return [run.name for run in renamed(runs, annotations)]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert read_annotations(data) == {}
    write_annotation(data, ONE, SMALL)
    write_annotation(data, OTHER, Annotation("Other"))
    assert read_annotations(data) == {ONE: SMALL, OTHER: Annotation("Other")}
    assert [file.name for file in data.iterdir()] == ["annotations.json"]
    assert data.stat().st_mode & 0o077 == 0


def test_an_annotation_that_says_nothing_is_removed(tmp_path: Path) -> None:
    write_annotation(tmp_path, ONE, SMALL)
    write_annotation(tmp_path, ONE, Annotation(stat_keys=SMALL.stat_keys))
    assert read_annotations(tmp_path) == {}


def test_only_the_latest_places_of_a_run_are_remembered(tmp_path: Path) -> None:
    keys = tuple(f"{number:032x}" for number in range(50))
    write_annotation(tmp_path, ONE, Annotation("x", stat_keys=keys))
    assert read_annotations(tmp_path)[ONE].stat_keys == keys[-16:]


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (Annotation("x" * 81), "a name has more than 80 characters"),
        (Annotation("a\nb"), "is not printable"),
        (Annotation("x", ("t" * 31,)), "one of more than 30 characters"),
        (Annotation("x", ("",)), "a run has more than 10 tags, or one of"),
        (Annotation("x", tuple(f"t{number}" for number in range(11))), "more than 10 tags"),
    ],
)
def test_what_is_too_large_is_refused_and_the_rest_stays(tmp_path: Path, annotation: Annotation, why: str) -> None:
    write_annotation(tmp_path, ONE, SMALL)
    with pytest.raises(TfcompareError, match=why):
        write_annotation(tmp_path, ONE, annotation)
    assert read_annotations(tmp_path) == {ONE: SMALL}


def of_one(**fields: object) -> bytes:
    """A file with an annotation of one run that has these fields."""
    run = fields.pop("run", ONE)
    return json.dumps({"runs": {run: {"name": "", "tags": [], "is_hidden": True, "stat_keys": []} | fields}}).encode()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"[]", r"something else in it \(Expected `object`, got `array`\)"),
        (b'{"runs": {}, "more": 1}', "has other fields"),
        (json.dumps({"runs": {ONE: {"name": "x"}}}).encode(), "has other fields"),
        (of_one(name=1), "Expected `str`"),
        (of_one(run="../x"), "does not identify a run"),
        (of_one(name="\x1b[31m"), "not printable"),
        (b" " * (9 << 20), "is larger than 8.39 MB"),
    ],
)
def test_a_damaged_file_is_one_sentence_and_stays_as_it_is(tmp_path: Path, content: bytes, why: str) -> None:
    path_in(tmp_path).write_bytes(content)
    for use in (lambda: read_annotations(tmp_path), lambda: write_annotation(tmp_path, ONE, SMALL)):
        with pytest.raises(TfcompareError, match=why) as error:
            use()
        assert "until the file is repaired, moved or deleted" in str(error.value)
    assert path_in(tmp_path).read_bytes() == content
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    write_annotation(tmp_path, ONE, SMALL)
    tmp_path.chmod(0o777)
    with pytest.raises(TfcompareError, match="not used, since other users can write to it"):
        read_annotations(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TfcompareError, match=r"file/annotations\.json: cannot be"):
        write_annotation(tmp_path / "file", ONE, SMALL)


def test_runs_are_recognized_by_their_files_and_copies_by_their_content() -> None:
    run, copy, other = (found(name) for name in "abc")
    annotations = {ONE: replace(SMALL, stat_keys=(run.stat_key,))}
    assert annotations_by_run([run, copy, other], annotations, {}) == {"a": annotations[ONE]}
    read = {copy.stat_key: ONE, other.stat_key: OTHER}
    assert set(annotations_by_run([run, copy, other], annotations, read)) == {"a", "b"}


def test_names_stay_unique() -> None:
    runs = [found(name) for name in "abc"]
    assert names(*runs, a="x") == ["x", "b", "c"]
    assert names(*runs, a="b") == ["b (a)", "b", "c"], "another run has that name"
    assert names(*runs, a="x", b="x") == ["x", "x (b)", "c"]
    assert names(*runs, a="b", b="a") == ["b", "a", "c"], "they may trade names"
    assert names(found("x"), found("y"), found("x (y)"), y="x") == ["x", "y", "x (y)"]
