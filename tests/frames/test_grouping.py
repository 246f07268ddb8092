"""Combinations of integer columns are numbered in order of appearance."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tfcompare.frames.grouping import combinations

NUMBERS = st.sampled_from([0, 1, 2, 5, -1, 10**15, 2**63 - 1, -(2**63), 1 << 50, 1 << 62])


@law(60)
@given(rows=st.lists(st.tuples(NUMBERS, st.integers(0, 3), NUMBERS), max_size=30))
def test_each_combination_has_a_number_and_its_first_row(rows: list[tuple[int, int, int]]) -> None:
    firsts, code = combinations(*np.array(rows, np.int64).reshape(-1, 3).T)
    distinct = list(dict.fromkeys(rows))
    assert code.tolist() == [distinct.index(row) for row in rows]
    assert firsts.tolist() == [rows.index(row) for row in distinct]
