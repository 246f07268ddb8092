"""How many comparisons a server holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from tfcompare.comparison import Comparison
from tfcompare.run import Run
from tfcompare.ui.frame.run_cache import MAX_COMPARISONS, Comparisons


@dataclass(frozen=True)
class FakeRun:
    id: str
    memory_bytes: int = 10
    content_id: str = "content"
    name: str = "name"


def runs(names: str, each: int = 10) -> list[Run]:
    return [cast(Run, FakeRun(name, each)) for name in names]


def nothing(_: Comparison) -> int:
    return 0


class Made:
    """Counts what had to be made."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def of(self, held: Comparisons, names: str, said: object = None, each: int = 10) -> object:
        def make() -> Comparison:
            self.names.append(names)
            return cast(Comparison, object())

        return held.of([known.setdefault((n, each), *runs(n, each)) for n in names], said, make)


known: dict[tuple[str, int], Run] = {}


def test_a_comparison_is_made_once_for_the_same_runs_and_wishes() -> None:
    held, made = Comparisons(1000, nothing), Made()
    first = made.of(held, "ab", "per step")
    assert made.of(held, "ab", "per step") is first
    assert made.of(held, "ab", "per run") is not first
    assert made.of(held, "ba", "per step") is not first
    assert made.names == ["ab", "ab", "ba"]


def test_runs_that_many_comparisons_share_count_once_and_the_oldest_comparison_goes_first() -> None:
    held, made = Comparisons(40, nothing), Made()
    for names in ("ab", "ac", "ad", "ab"):
        made.of(held, names)
    assert made.names == ["ab", "ac", "ad"]
    made.of(held, "ae")  # five runs are too much: `ac`, not used for longest, goes
    for names in ("ab", "ad", "ae", "ac"):
        made.of(held, names)
    assert made.names == ["ab", "ac", "ad", "ae", "ac"]


def test_the_last_one_is_kept_however_large_it_is() -> None:
    held, made = Comparisons(40, nothing), Made()
    for _ in range(3):
        made.of(held, "xy", each=1000)
    assert made.names == ["xy"]
    made.of(held, "ab")
    made.of(held, "xy", each=1000)
    assert made.names == ["xy", "ab", "xy"]


def test_not_more_than_so_many_are_kept() -> None:
    held, made = Comparisons(10**9, nothing), Made()
    for number in range(MAX_COMPARISONS + 1):
        made.of(held, "ab", number)
    made.of(held, "ab", MAX_COMPARISONS)
    assert len(made.names) == MAX_COMPARISONS + 1
    made.of(held, "ab", 0)
    assert len(made.names) == MAX_COMPARISONS + 2


def test_what_pages_derived_from_a_comparison_counts_at_each_request() -> None:
    derived: dict[int, int] = {}
    held, made = Comparisons(100, lambda comparison: derived.get(id(comparison), 0)), Made()
    for names in ("ab", "cd", "ab", "cd"):
        last = made.of(held, names)
    assert made.names == ["ab", "cd"]
    derived[id(last)] = 90  # together with the four runs too much
    for names in ("cd", "ab"):
        made.of(held, names)
    assert made.names == ["ab", "cd", "ab"]


def test_what_could_not_be_made_is_tried_again() -> None:
    held, made = Comparisons(40, nothing), Made()

    def fail() -> Comparison:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            held.of([known.setdefault((n, 10), *runs(n)) for n in "ab"], None, fail)
    made.of(held, "ab")
    assert made.names == ["ab"]
