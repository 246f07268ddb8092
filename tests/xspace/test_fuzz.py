"""A few hundred damaged profiles; `python -m tests.xspace.fuzz` makes as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.xspace import fuzz

PER_TEST = 60


@pytest.mark.parametrize("first", range(1000, 1000 + 6 * PER_TEST, PER_TEST))
def test_only_our_own_errors_come_out(tmp_path: Path, first: int) -> None:
    outcomes = [
        fuzz.attempt(seed, fuzz.damaged(seed), tmp_path / "vm.xplane.pb", watch_memory=False)
        for seed in range(first, first + PER_TEST)
    ]
    assert [f"seed {o.seed}: {o.result}: {o.detail}" for o in outcomes if not o.is_fine] == []
    assert sum(o.result == "read" for o in outcomes) > PER_TEST // 4


def test_the_same_seed_makes_the_same_input() -> None:
    assert [fuzz.damaged(seed) for seed in range(20)] == [fuzz.damaged(seed) for seed in range(20)]


def test_taking_apart_and_putting_together_changes_nothing() -> None:
    for data in fuzz.bases(with_corpus=False):
        assert fuzz.encode(fuzz.take_apart(data)) == data
