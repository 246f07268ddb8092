"""Verdicts on ops: what they took in every step, and what is made of that."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tfcompare.compare.stats.change_test import ChangeTest, identical_rows
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.spread import OF_HOSTS, Spread
from tfcompare.compare.stats.step_series import step_series
from tfcompare.tables.step_cells import StepCells, concat_cells

CELLS = StepCells(
    pd.DataFrame({"host": "all", "op_name": ["a", "b", "b"]}),
    pd.DataFrame({"row": [0, 0, 1, 2, 2], "step": [7, 9, 7, 7, 8], "occurrences": 1, "time_us": [1.0, 2, 10, 20, 30]}),
)


def series(*rows: tuple[float, float], steps: int = 20, seed: int = 5):
    """Rows of (mean, noise as a share)."""
    rng = np.random.default_rng(seed)
    return Times(np.array([mean * np.exp(noise * rng.standard_normal(steps)) for mean, noise in rows]))


def with_spread(share: float) -> ChangeTest:
    return ChangeTest(Spread(share, "declared for this test"))


def test_a_row_is_laid_out_over_the_steps_that_count_and_rows_of_one_name_add_up() -> None:
    found = step_series(pd.DataFrame({"op_name": ["b", "a", "c"]}), CELLS, np.array([9, 7]))
    assert found.tolist() == [[0, 30], [2, 1], [0, 0]]
    assert step_series(pd.DataFrame({"op_name": ["a"]}), CELLS, np.array([], np.int64)).shape == (1, 0)


def test_cells_of_several_hosts_stand_below_one_another() -> None:
    both = concat_cells([CELLS, CELLS])
    assert both.cells["row"].tolist() == [0, 0, 1, 2, 2, 3, 3, 4, 5, 5]
    assert both.frame().columns.tolist() == ["host", "op_name", "step", "occurrences", "time_us"]
    assert both.frame()["op_name"].tolist() == ["a", "a", "b", "b", "b"] * 2


def test_rows_have_a_verdict_and_an_interval_around_the_change_of_their_mean() -> None:
    before, after = series((100.0, 0.02), (100.0, 0.02), (0.1, 0.02)), series((50.0, 0.02), (100.0, 0.3), (9.0, 0.02))
    found = with_spread(0.01).rows([before], [after])
    assert found["verdict"].tolist() == ["faster", "unclear", "slower"]
    ratio = after.included.mean(axis=1) / before.included.mean(axis=1)
    assert (found["interval_low"] < ratio).all()
    assert (ratio < found["interval_high"]).all()


def test_small_rows_and_rows_of_one_side_are_not_tested() -> None:
    before, after = series((100.0, 0.02), (0.1, 0.02), (0.0, 0.0)), series((50.0, 0.02), (0.2, 0.02), (40.0, 0.02))
    found = with_spread(0.01).rows([before], [after])
    assert found["verdict"].tolist() == ["faster", "untested", "untested"]
    assert found["interval_low"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize("steps", [0, 8])
def test_too_few_steps_test_nothing(steps: int) -> None:
    found = with_spread(0.01).rows([series((100.0, 0.02), steps=steps)], [series((50.0, 0.02))])
    assert found["verdict"].tolist() == ["untested"]


def test_one_chance_claim_among_many_is_taken_back() -> None:
    """A row whose own interval is clear of 1, but not clear enough to be the only one of a hundred."""
    quiet, again = series(*[(1.0, 0.1)] * 100), series(*[(1.0, 0.1)] * 100, seed=6)
    for factor in np.arange(1.0, 1.5, 0.005):
        moved = Times(np.vstack([again.included[:1] * factor, again.included[1:]]))
        if with_spread(0.0).rows([quiet.rows([0])], [moved.rows([0])])["verdict"][0] == "slower":
            break
    among = with_spread(0.0).rows([quiet], [moved])
    assert among["verdict"][0] == "unclear"
    assert among["interval_low"][0] > 1


def test_each_row_has_the_spread_of_where_it_runs_and_how_long_it_takes() -> None:
    before, after = series((1e6, 0.01), (1e6, 0.01), (2e4, 0.01)), series((1.3e6, 0.01), (1.3e6, 0.01), (2.4e4, 0.01))
    found = with_spread(0.01).rows([before], [after], spreads=[Spread(0.01, "a device"), OF_HOSTS, OF_HOSTS])
    assert found["verdict"].tolist() == ["slower", "slower", "unclear"]
    width = found["interval_high"] / found["interval_low"]
    assert width[0] < width[1] < width[2]


def test_copies_of_one_recording_are_the_same() -> None:
    assert identical_rows(2)["verdict"].tolist() == ["same", "same"]
