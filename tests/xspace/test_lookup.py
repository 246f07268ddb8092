"""Stats are found as by looking through all of them, in whatever order they are asked for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tfcompare.xspace import lookup


@pytest.mark.parametrize("order", ["sorted", "shuffled", "backwards"])
@pytest.mark.parametrize("kinds", [0b0110, 0b1000, -1])
def test_the_last_stat_of_each_owner(order: str, kinds: int) -> None:
    random = np.random.default_rng(7)
    for owners in (1, 3, 40, 400):
        owner = np.sort(random.integers(0, owners, 300)).astype(np.int32)
        kind = random.integers(1, 4, len(owner)).astype(np.uint8)
        stats = np.flatnonzero(random.random(len(owner)) < 0.6).astype(np.int32)
        wanted = np.sort(random.integers(-1, owners + 2, 200)).astype(np.int32)
        if order != "sorted":
            wanted = random.permutation(wanted) if order == "shuffled" else wanted[::-1].copy()
        out = np.empty(len(wanted), np.int32)
        lookup.last_of_each(stats, owner, kind, wanted, kinds, out)
        own = {int(owner[stat]): int(stat) for stat in stats if kinds >> int(kind[stat]) & 1}
        assert out.tolist() == [own.get(int(which), -1) for which in wanted]


def test_rows_are_grouped_by_code_and_those_of_none_left_out() -> None:
    first, rows = lookup.grouped(np.array([2, 0, -1, 2, 0, 2], np.int32), 4)
    assert [rows[a:b].tolist() for a, b in pairwise(first.tolist())] == [[1, 4], [], [0, 3, 5], []]
