"""Which assignments are sure enough, held against every assignment there is."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tfcompare.compare.matching.guesses import MARGIN, assign, names_apart

LIMIT = 0.5


@st.composite
def differences(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    cells = draw(st.lists(st.integers(0, 10), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.array(cells).reshape(shape) / 20  # none beyond the limit, so that every assignment is allowed


def assignments(apart: np.ndarray) -> list[tuple[float, set[tuple[int, int]]]]:
    """Every assignment of the shorter side, with its total."""
    rows, columns = apart.shape
    if rows > columns:
        return [(total, {(i, j) for j, i in pairs}) for total, pairs in assignments(apart.T)]
    all_pairs = [set(enumerate(chosen)) for chosen in permutations(range(columns), rows)]
    return [(float(sum(apart[i, j] for i, j in pairs)), pairs) for pairs in all_pairs]


@law(40)
@given(differences())
def test_a_pair_counts_if_every_assignment_without_it_is_worse(apart: np.ndarray) -> None:
    rows, columns = apart.shape
    names = [f"a{i}" for i in range(rows)], [f"b{j}" for j in range(columns)]
    every = assignments(apart)
    best = min(total for total, _ in every)
    sure = {
        (i, j)
        for i in range(rows)
        for j in range(columns)
        if min((total for total, pairs in every if (i, j) not in pairs), default=np.inf) >= best + MARGIN - 1e-9
    }
    assert set(assign(apart, names, LIMIT)) == sure
    assert {(i, j) for j, i in assign(apart.T, names[::-1], LIMIT)} == sure


def test_what_is_too_far_apart_is_no_pair() -> None:
    assert assign(np.array([[0.6]]), (["a"], ["b"]), LIMIT) == []
    assert assign(np.array([[0.1, 0.6], [0.6, 0.7]]), (["a", "b"], ["c", "d"]), LIMIT) == [(0, 0)]


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("dense/MatMul", "dense_7/MatMul", 0.0),
        ("encoder_outer", "enc_outer", 0.5),
        ("query", "key", 1.0),
        ("BatchNorm", "batch_norm", 0.0),
        ("123", "456", 1.0),
    ],
)
def test_names_are_apart_by_the_words_they_do_not_share(one: str, other: str, apart: float) -> None:
    assert names_apart([one], [other]).tolist() == [[apart]]
