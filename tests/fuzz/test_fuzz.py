"""A few hundred hostile profiles, and every crowd; `python -m tests.fuzz` makes as many as one likes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz import campaign, chain, inputs, runs, stores
from tests.fuzz.branches import Branches, subset
from tests.fuzz.crowds import CROWDS
from tests.fuzz.grammar import generated
from tests.fuzz.tree import encode, take_apart
from tests.xspace.plain import Plain, by_columns, by_protobuf
from tfcompare.frames import load_loops
from tfcompare.views import NAMES
from tfcompare.xspace import parse
from tfcompare.xspace.texts import text_of

PER_TEST = 25
DENSEST = ("empty events", "empty event metadata", "a long name in many steps", "a long name of many iterators")
REFUSED = ("empty planes",)


@pytest.mark.parametrize("first", range(1000, 1000 + 3 * PER_TEST, PER_TEST))
def test_only_our_own_errors_come_out(tmp_path: Path, first: int) -> None:
    outcomes = [
        chain.attempt(inputs.made(2, n).data, tmp_path / "vm.xplane.pb", n, watch_memory=False)
        for n in range(first + 1, first + PER_TEST)
    ]
    assert [f"{o.number}: {o.result}: {o.detail}" for o in outcomes if not o.is_fine] == []
    assert sum(o.result == "read" for o in outcomes) > PER_TEST // 4


def test_a_profile_that_breaks_off_anywhere_is_refused_by_name_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    outcomes = [chain.attempt(data, path, watch_memory=False, comparing=False) for data in inputs.cuts()]
    assert len(outcomes) > 100
    refused = [o for o in outcomes if o.result == "NotAProfile"]
    assert len(refused) > 0.9 * len(outcomes)
    assert all(o.detail.startswith(f"{path}: not a readable profile: at byte ") for o in refused)
    assert all(o.is_fine for o in outcomes)


@pytest.mark.parametrize("kind", CROWDS)
def test_a_crowd_is_read_or_refused(tmp_path: Path, kind: str) -> None:
    outcome = chain.attempt(CROWDS[kind](5_000), tmp_path / "vm.xplane.pb", watch_memory=False, comparing=False)
    assert outcome.is_fine, outcome.detail
    assert outcome.result == ("NotAProfile" if kind in REFUSED else "read")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is watched through Linux's /proc")
@pytest.mark.parametrize("kind", DENSEST)
def test_a_million_messages_take_seconds_and_a_multiple_of_the_file(tmp_path: Path, kind: str) -> None:
    load_loops()  # compiling them is no part of what is measured
    data = CROWDS[kind](1_000_000)
    outcome = chain.attempt(data, tmp_path / "vm.xplane.pb", comparing=False)
    assert (outcome.result, outcome.detail) == ("read", "")
    assert outcome.peak_bytes <= chain.BYTES_ALLOWED + chain.BYTES_ALLOWED_PER_BYTE * len(data)
    assert outcome.seconds < chain.SECONDS_ALLOWED


def test_a_forged_file_of_a_store_is_read_right_or_refused(tmp_path: Path) -> None:
    yard = stores.Yard(tmp_path)
    outcomes = [stores.attempt(yard, 2, number, watch_memory=False) for number in range(40)]
    assert [f"{o.number}: {o.result}: {o.detail}" for o in outcomes if not o.is_fine] == []
    assert {o.kind for o in outcomes} == set(stores.KINDS)
    assert sum(o.result == "read" for o in outcomes) > 5


@pytest.mark.parametrize("number", [3, 7, 8, 14, 22, 26, 34, 40, 52])
def test_every_view_shows_odd_runs(number: int, tmp_path: Path) -> None:
    """Pairs with several hosts, of different numbers of steps: some with strays, ranges or kinds of steps."""
    outcome = runs.attempt(1, number, tmp_path)
    assert outcome.wrong == ()
    assert outcome.shown + outcome.refused == len(NAMES)
    assert outcome.shown > outcome.refused


def test_what_the_grammar_makes_is_read_as_the_protobuf_library_reads_it() -> None:
    for seed in range(60):
        data = generated(random.Random(seed))
        assert without_times(by_columns(parse(data))) == without_times(by_protobuf(data)), seed


def without_times(space: Plain) -> Plain:
    """Without what is put right where it cannot be; texts shortened; a stat of a plane without a value counts as 0."""
    for kind in ("hostnames", "errors", "warnings"):
        space[kind] = [shortened(text) for text in space[kind]]
    for plane in space["planes"]:
        plane["stats"] = {name: repr(shortened(value) or 0) for name, value in plane["stats"].items()}
        plane["metadata"] = {key: repr(value) for key, value in plane["metadata"].items()}
        for line in plane["lines"]:
            line["events"] = [(name, repr(stats)) for name, _, _, _, stats in line["events"]]
    return space


def shortened(value: object) -> object:
    return text_of(memoryview(value.encode())) if isinstance(value, str) else value


def test_the_same_number_makes_the_same_input() -> None:
    assert [inputs.made(3, n) for n in range(120, 140)] == [inputs.made(3, n) for n in range(120, 140)]
    assert inputs.made(3, 139) != inputs.made(4, 139)


def test_taking_apart_and_putting_together_changes_nothing() -> None:
    for data in inputs.bases():
        assert encode(take_apart(data)) == data


def outcome(number: int, result: str = "read", **more: object) -> campaign.Outcome:
    fine = {"number": number, "kind": "edited", "size": 100, "result": result, "is_fine": result == "read"}
    return fine | {"detail": "", "seconds": number / 10, "waited": 1.0, "peak_bytes": number * 1000} | more


def test_the_account_of_a_long_run_replaces_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "fuzzing.md"
    path.write_text(f"before\n{campaign.BEGIN}\nold\n{campaign.END}\nafter\n")
    outcomes = [outcome(0), outcome(7), outcome(3, "exception", detail="…\nValueError: no")]
    campaign.write_log(path, 5, outcomes, Branches(2, 9, 10, ("wire.py: 3 -> 5",)), corpus=False)
    text = path.read_text()
    assert text.startswith(f"before\n{campaign.BEGIN}\n") and text.endswith(f"{campaign.END}\nafter\n")
    assert "old" not in text
    assert "| command | `python -m tests.fuzz --seed 5 --count 3` |" in text
    assert "| crashes, hangs, wrong answers, beyond the bounds | 1 |" in text
    assert "number 7 (edited, 100 bytes, 0.70 s, 0 MB)" in text
    assert "9 of 10 (90.0%), by 2 of the inputs" in text and "wire.py: 3 -> 5" in text
    assert "1 × exception, such as number 3" in campaign.told(outcomes)


def test_a_run_goes_on_after_the_last_outcome(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert campaign.next_number(log) == 0
    log.write_text('0\n{"number": 0}\n1\n{"number": 1}\n2\n')
    assert campaign.next_number(log) == 2
    assert campaign.begun(log, 2) and not campaign.begun(log, 3)


def test_branches_are_measured_on_inputs_from_all_over() -> None:
    chosen = subset(20_000, 600)
    assert 590 <= len(chosen) <= 610
    assert chosen[0] == 0 and chosen[-1] > 19_900
