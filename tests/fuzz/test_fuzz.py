"""Some hostile profiles, stores and archives, and every crowd; `python -m tests.fuzz` makes as many as one likes."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import archives, campaign, chain, inputs, kills, runs, stores
from tests.fuzz.crowds import CROWDS
from tests.fuzz.grammar import generated
from tests.fuzz.tree import encode, take_apart
from tests.xspace import fuzz_inputs
from tests.xspace.plain import Plain, by_columns, by_protobuf
from tfcompare.frames import load_loops
from tfcompare.views import NAMES
from tfcompare.xspace import parse
from tfcompare.xspace.texts import text_of

LAW_FACTOR = int(os.environ.get("LAW_FACTOR", "1"))
DENSEST = ("empty events", "empty event metadata", "a long name in many steps", "a long name of many iterators")
REFUSED = ("empty planes",)


def often(few: int, many: int) -> pytest.MarkDecorator:
    """How many inputs are tried: few of one seed, and thoroughly many of several."""
    more = [pytest.param(many, seed, marks=pytest.mark.thorough) for seed in range(3, 3 + LAW_FACTOR)]
    return pytest.mark.parametrize(("count", "seed"), [(few, 2), *more])


def assert_fine(outcomes: list[chain.Outcome]) -> None:
    assert [f"{o.number}: {o.result}: {o.detail}" for o in outcomes if not o.is_fine] == []


@often(8, 75)
def test_only_our_own_errors_come_out(count: int, seed: int, tmp_path: Path) -> None:
    path, numbers = tmp_path / "vm.xplane.pb", range(1001, 1001 + count)
    outcomes = [chain.attempt(inputs.made(seed, n).data, path, n, watch_memory=False) for n in numbers]
    assert_fine(outcomes)
    assert sum(o.result == "read" for o in outcomes) > count // 4


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_profile_that_breaks_off_anywhere_is_refused_by_name_and_byte(every: int, tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    outcomes = [chain.attempt(data, path, watch_memory=False, comparing=False) for data in inputs.cuts()[::every]]
    assert len(outcomes) > 100 / every
    refused = [o for o in outcomes if o.result == "NotAProfile"]
    assert len(refused) > 0.8 * len(outcomes)
    assert all(o.detail.startswith(f"{path}: not a readable profile: at byte ") for o in refused)
    assert_fine(outcomes)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.thorough] * (i % 3 > 0)) for i, kind in enumerate(CROWDS)]
)
def test_a_crowd_is_read_or_refused(tmp_path: Path, kind: str) -> None:
    outcome = chain.attempt(CROWDS[kind](2_000), tmp_path / "vm.xplane.pb", watch_memory=False, comparing=False)
    assert_fine([outcome])
    assert outcome.result == ("NotAProfile" if kind in REFUSED else "read")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is watched through Linux's /proc")
@pytest.mark.parametrize(
    "kind", [DENSEST[0], *(pytest.param(kind, marks=pytest.mark.thorough) for kind in DENSEST[1:])]
)
def test_a_million_messages_take_seconds_and_a_multiple_of_the_file(tmp_path: Path, kind: str) -> None:
    load_loops()  # compiling them is no part of what is measured
    data = CROWDS[kind](1_000_000)
    outcome = chain.attempt(data, tmp_path / "vm.xplane.pb", comparing=False)
    assert (outcome.result, outcome.detail) == ("read", "")
    assert outcome.peak_bytes <= chain.BYTES_ALLOWED + chain.BYTES_ALLOWED_PER_BYTE * len(data)
    assert outcome.seconds < chain.SECONDS_ALLOWED


@often(10, 40)
def test_a_forged_file_of_a_store_is_read_right_or_refused(count: int, seed: int, tmp_path: Path) -> None:
    yard = stores.Yard(tmp_path, fuzz_inputs.built()[:: 3 if count < 40 else 1])
    outcomes = [stores.attempt(yard, seed, number, watch_memory=False) for number in range(count)]
    assert_fine(outcomes)
    assert len({o.kind for o in outcomes}) > 3
    assert sum(o.result == "read" for o in outcomes) > count / 8


ODD = [14, *(pytest.param(number, marks=pytest.mark.thorough) for number in (3, 7, 8, 22, 26, 34, 40, 52))]
"""Pairs with several hosts, of different numbers of steps: some with strays, ranges or kinds of steps."""


@pytest.mark.parametrize("number", ODD)
def test_every_view_shows_odd_runs(number: int, tmp_path: Path) -> None:
    outcome = runs.attempt(1, number, tmp_path)
    assert outcome.wrong == ()
    assert outcome.shown + outcome.refused == len(NAMES)
    assert outcome.shown > outcome.refused


@often(40, 150)
def test_archives_are_stored_or_refused_and_leave_nothing_else(count: int, seed: int) -> None:
    outcomes = archives.run(seed, range(count))
    assert [outcome for outcome in outcomes if not outcome.is_fine] == []
    assert {outcome.result for outcome in outcomes} >= {"stored", "refused"}


@pytest.mark.thorough
def test_ingests_that_are_killed_leave_a_store_that_can_be_read() -> None:
    assert kills.main(seed=1, count=5) == 0


def test_the_same_number_makes_the_same_input_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = range(12)
    profiles, packed = [inputs.made(3, 120 + n) for n in numbers], [archives.made(5, n) for n in numbers]
    monkeypatch.setattr(time, "time", lambda: 1e9)
    assert profiles == [inputs.made(3, 120 + n) for n in numbers]
    assert packed == [archives.made(5, n) for n in numbers]
    assert inputs.made(3, 139) != inputs.made(4, 139)


def test_what_the_grammar_makes_is_read_as_the_protobuf_library_reads_it() -> None:
    for seed in range(60):
        data = generated(random.Random(seed))
        assert without_times(by_columns(parse(data))) == without_times(by_protobuf(data)), seed


def without_times(space: Plain) -> Plain:
    """Without what is put right where it cannot be; texts shortened; a stat of a plane without a value counts as 0."""
    space = as_decoded(space)
    for plane in space["planes"]:
        plane["stats"] = {name: repr(value or 0) for name, value in plane["stats"].items()}
        plane["metadata"] = {key: repr(value) for key, value in plane["metadata"].items()}
        for line in plane["lines"]:
            line["events"] = [(name, repr(stats)) for name, _, _, _, stats in line["events"]]
    return space


def as_decoded(value: Any) -> Any:
    """With each text in it as `text_of` decodes it."""
    if isinstance(value, str):
        return text_of(memoryview(value.encode()))
    if isinstance(value, dict):
        return {as_decoded(key): as_decoded(one) for key, one in value.items()}
    return type(value)(map(as_decoded, value)) if isinstance(value, list | tuple) else value


def test_taking_apart_and_putting_together_changes_nothing() -> None:
    for data in inputs.bases():
        assert encode(take_apart(data)) == data


def test_a_run_goes_on_after_the_last_outcome_and_names_what_went_wrong(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert campaign.next_number(log) == 0
    log.write_text('0\n{"number": 0}\n1\n{"number": 1}\n2\n')
    assert campaign.next_number(log) == 2
    assert campaign.begun(log, 2) and not campaign.begun(log, 3)
    bad = {"number": 3, "kind": "edited", "size": 100, "result": "exception", "is_fine": False}
    bad |= {"detail": "…\nValueError: no", "seconds": 0.3, "peak_bytes": 3_000_000}
    said = campaign.told([bad])
    assert "1 × exception, such as number 3 (edited, 100 bytes, 0.30 s, 3 MB)" in said and "ValueError: no" in said
