"""Verdicts on real recordings of one program: how claims are counted, and what docs/verdicts.md says came of it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import tfcompare as tfc
from benchmarks import real_recordings
from benchmarks.calibration import PAGE
from benchmarks.page import section
from benchmarks.real_recordings import claims_between, claims_of_pairs, claims_of_repeats
from tests.profiles import SAMPLES


@pytest.fixture(scope="module")
def alike() -> list[tfc.Run]:
    return [tfc.load(SAMPLES / "autoencoder" / name) for name in ("filters_16_8", "filters_16_8_again")]


def test_nothing_is_claimed_between_two_recordings_of_one_program(alike) -> None:
    found = claims_of_pairs(alike)
    assert (found.pairs, found.step_time, found.any_op, found.ops) == (1, 0, 0, 0)
    assert found.tested_ops > 5


def test_what_is_claimed_between_two_programs_is_counted(alike) -> None:
    other = tfc.load(SAMPLES / "autoencoder" / "filters_512_128")
    found = claims_between([tfc.compare(other, alike[0]), tfc.compare(alike[0], alike[1])])
    assert (found.pairs, found.step_time, found.any_op) == (2, 1, 1)
    assert 1 < found.ops < found.tested_ops


def test_five_recordings_are_held_against_five_others_drawn_the_same_way_for_the_same_seed(alike, monkeypatch) -> None:
    drawn: list[tuple[set[str], ...]] = []
    with_itself = tfc.compare(alike[0], alike[0])

    def compare(ours, theirs, repeats):
        drawn.append(tuple({run.id, *(r.id for r in repeats[run.id])} for run in (ours, theirs)))
        return with_itself

    runs = [replace(alike[0], id=f"run {i}") for i in range(12)]
    monkeypatch.setattr(real_recordings.tfc, "compare", compare)
    claims_of_repeats(runs, 3, seed=3)
    claims_of_repeats(runs, 3, seed=3)
    assert drawn[:3] == drawn[3:]
    assert all(len(ours) == len(theirs) == 5 and not ours & theirs for ours, theirs in drawn)


def test_the_page_says_how_many_recordings_and_that_at_most_one_claim_in_twenty_is_false() -> None:
    figures = section(PAGE, "real_recordings")
    rows = [line.split("|")[1:-1] for line in figures.splitlines() if line.startswith("| `")]
    assert [row[0].strip(" `") for row in rows] == list(real_recordings.VARIANTS)
    for row in rows:
        recordings, pairs = int(row[1]), int(row[4])
        assert recordings >= 12
        assert pairs == recordings * (recordings - 1) // 2
        shares = [float(share) for share in re.findall(r"\((\d+\.\d) %\)", "|".join(row))]
        assert len(shares) == 5
        assert max(shares) <= 5.0
