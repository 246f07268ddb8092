"""Which runs go by one name: recordings of one program, and never two programs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.profiles import SAMPLES
from tfcompare.sources.logdir import FoundRun, HostFile, find_runs
from tfcompare.sources.replicates import (
    is_copy,
    is_one_program,
    program_name,
    program_names,
    replicate_names,
    suggest,
)

STAMPS = ("2026_11_20_10_17_24", "2026_11_20_10_19_00", "2026_11_21_08_00_01")


def found(name: str, *, readable: bool = True) -> FoundRun:
    """A run below `/logs`."""
    path = Path("/logs") / name
    file = HostFile("vm", path / "vm.xplane.pb", 10, 1)
    return FoundRun(name, name, path, (file,) if readable else (), (), datetime(2026, 1, 1, tzinfo=UTC), "profile")


def grouped(*names: str) -> list[set[str]]:
    """The names that go by one name, where several do."""
    programs: dict[tuple[str, ...], set[str]] = {}
    for name, program in program_names({name: tuple(name.split("/")) for name in names}).items():
        programs.setdefault(program, set()).add(name)
    return [group for group in programs.values() if len(group) > 1]


@pytest.mark.parametrize(
    "names",
    [
        ("filters_16_8", "filters_16_8_again"),
        ("filters_16_8", "filters_16_8 again 2", "filters_16_8-repeat", "filters_16_8_rep3", "filters_16_8_rerun"),
        ("before_run1", "before_run2", "before-run-12"),
        ("before", "before (1)", "before (2)"),
        (f"before/{STAMPS[0]}", f"before/{STAMPS[1]}"),
        (f"before_{STAMPS[0]}", "before_20261120-101900", "before_2026-11-20T10:19:00.123", "before"),
        ("before_1", "before_2", "before_3"),
        ("before", "before.1"),
        ("filters_16_8", "filters_16_8_01", "filters_16_8_02"),
        ("rec/00/filters_16_8", "rec/01/filters_16_8", "rec/02/filters_16_8"),
        ("fit/20261120-101900/train", "fit/20261121-101900/train"),
    ],
)
def test_recordings_of_one_program_go_by_one_name(names: tuple[str, ...]) -> None:
    assert grouped(*names) == [set(names)]
    assert grouped(*names[::-1]) == [set(names)]


@pytest.mark.parametrize(
    "names",
    [
        ("filters_16_8", "filters_512_128"),
        ("filters_16_8", "filters_16_16", "filters_16_32"),
        ("filters_16_1", "filters_16_2"),
        ("filters_16_8", "filters_16_8_better_input"),
        ("batch/1", "batch/2", "batch/3"),
        ("layers_1", "layers_2", "layers_3"),
        ("model_v1", "model_v2"),
        ("trial_0", "trial_1"),
        ("run_wide", "run_narrow"),
        ("dry", "dry_run"),
        ("00/wide", "01/narrow"),
        ("before/again", "after/again"),
        ("vm1.xplane.pb", "vm2.xplane.pb"),
        ("train", "validation"),
    ],
)
def test_two_programs_never_go_by_one_name(names: tuple[str, ...]) -> None:
    assert grouped(*names) == []


def test_of_two_counted_programs_each_is_its_own() -> None:
    before, after = {"before_1", "before_2", "before_3"}, {"after_1", "after_2", "after_3"}
    assert sorted(map(sorted, grouped(*before, *after))) == [sorted(after), sorted(before)]


def test_recordings_are_suggested_for_the_runs_that_are_compared() -> None:
    runs = [found(n) for n in ("before_1", "before_2", "after", "after_again", "other", "other_again")]
    assert suggest(runs, "before_1", ["after"]) == {"before_1": ("before_2",), "after": ("after_again",)}
    assert suggest(runs, "after", ["before_2"]) == {"before_2": ("before_1",), "after": ("after_again",)}
    assert suggest(runs, None, ["after"]) == {"after": ("after_again",)}


def test_a_capture_time_alone_is_no_repetition() -> None:
    runs = [found(f"{logdir}/plugins/profile/{stamp}") for logdir in ("a", "b") for stamp in STAMPS[:2]]
    ids = [run.id for run in runs]
    assert suggest(runs, ids[0], [ids[2]]) == {}
    fits = [found(f"fit/{stamp}/train/plugins/profile/{stamp}") for stamp in STAMPS]
    assert suggest(fits, fits[0].id, [fits[1].id]) == {}
    assert not is_one_program(fits) and not is_one_program(runs[:2])
    repeated = [found(f"a/run-{i}/plugins/profile/{stamp}") for i, stamp in enumerate(STAMPS, start=1)]
    assert is_one_program(repeated), "the time of each is no reason against it"
    assert is_one_program([found(f"a_{STAMPS[0]}"), found(f"a_{STAMPS[1]}_again")])
    twice = found(f"a/run-1/plugins/profile/{STAMPS[2]}")
    paths = {run.id: tuple(run.id.split("/")) for run in (*repeated, twice)}
    names = replicate_names(paths)
    assert len(set(names.values())) == 3, "which of the two is run-1 is not known"
    named = [found(f"a/plugins/profile/{name}") for name in ("wide", "narrow", "deep")]
    assert suggest(named, named[0].id, [named[1].id]) == {}


def test_whose_a_recording_is_must_be_known() -> None:
    runs = [found(n) for n in ("before", "after_2", "after_1", "after_3")]
    assert suggest(runs, "before", ["after_3", "after_1"]) == {"after_3": ("after_2", "after_1")}
    stamped = [found(f"logs/plugins/profile/{stamp}") for stamp in STAMPS]
    assert suggest(stamped, stamped[0].id, [stamped[1].id]) == {}
    assert suggest([found("a"), found("a_again", readable=False), found("b")], "a", ["b"]) == {}


def test_copies_are_not_suggested(tmp_path: Path) -> None:
    for name, content in {"a": b"1", "a_again": b"1", "a_again_2": b"2", "a_again_3": b"2", "b": b"3"}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "vm.xplane.pb").write_bytes(b"\x0a\x03" + content * 3)
    runs = {run.path.name: run for run in find_runs(tmp_path)}
    assert is_copy(runs["a"], runs["a_again"])
    assert not is_copy(runs["a"], runs["b"])
    found_ones = suggest(list(runs.values()), runs["a"].id, [runs["b"].id])
    assert list(found_ones) == [runs["a"].id]
    assert len(found_ones[runs["a"].id]) == 1, "of the two that are alike, one"


def test_on_the_samples_the_second_recording_alone_is_suggested() -> None:
    runs = find_runs(SAMPLES)
    ids = {run.name: run.id for run in runs}
    expected = {ids["filters_16_8"]: (ids["filters_16_8_again"],)}
    assert suggest(runs, ids["filters_512_128"], [ids["filters_16_8"]]) == expected
    assert suggest(runs, ids["filters_16_8"], [ids["filters_512_128"]]) == expected
    assert suggest(runs, ids["filters_16_8"], [ids["filters_16_8_again"]]) == {}


@pytest.mark.parametrize(
    ("names", "called"),
    [
        (["h100_16_8_run-1", "h100_16_8_run-2"], "h100_16_8"),
        (["filters_16_8", "filters_16_8_again"], "filters_16_8"),
        (["before/run-1", "before/run-2"], "before"),
        (["run-1", "run-2"], "run-1"),
        (["filters_16_8", "filters_512_128"], "filters_16_8"),
    ],
)
def test_captures_are_called_by_their_program_or_else_by_the_first(names: list[str], called: str) -> None:
    assert program_name(names) == called
