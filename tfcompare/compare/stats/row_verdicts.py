"""Verdicts on the rows of a diff, from what each row took in every step: ops and kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.stats.estimates import (
    FEWEST_REPEATS,
    FEWEST_STEPS,
    Changes,
    Sides,
    changes_of_family,
    plain_sides,
)
from tfcompare.compare.stats.series_verdict import Spread
from tfcompare.compare.stats.verdict import (
    FASTER,
    SAME,
    SLOWER,
    UNCLEAR,
    UNTESTED,
    claimed_together,
    evidence_of,
    words,
)
from tfcompare.frames.steps.step_cells import StepCells

Floats = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

_ROUNDING = 1e-9

SMALLEST_SHARE = 0.005
"""Rows that take less of the time on either side are not tested: there are many, and nobody asks about them."""


def step_series(keys: pd.DataFrame, cells: StepCells, steps: Int64) -> Floats:
    """What each row of `keys` (columns and values of the cells' keys) took in each of these steps, by their numbers:
    (rows, steps), 0 where it did not run. Rows of the cells that agree in these keys add up."""
    names = list(keys.columns)
    position, counts = _positions(cells.cells["step"].to_numpy(np.int64), steps)
    by_row = np.zeros((len(cells.keys), len(steps)))
    row, time_us = cells.cells["row"].to_numpy(np.int64), cells.cells["time_us"].to_numpy(np.float64)
    np.add.at(by_row, (row[counts], position[counts]), time_us[counts])
    wanted = keys.reset_index(drop=True).rename_axis("wanted").reset_index()
    pairs = wanted.merge(cells.keys[names].assign(row=np.arange(len(cells.keys))), on=names)
    series = np.zeros((len(keys), len(steps)))
    np.add.at(series, pairs["wanted"].to_numpy(np.int64), by_row[pairs["row"].to_numpy(np.int64)])
    return series


def verdicts_on_rows(
    baseline: Sequence[Floats],
    candidate: Sequence[Floats],
    spreads: Sequence[Spread],
    displayed: Floats | None = None,
) -> pd.DataFrame:
    """`verdict`, its `evidence` (missing without a test), and `interval_low` and `interval_high` of candidate ÷
    baseline (NaN without one), a row each.

    Each side holds the series (rows, steps) of one capture or, of the same program, of several; the first is the one
    on display. `spreads` is each row's spread between recordings. `displayed` is candidate ÷ baseline of each row's
    time per step as it is displayed, where that is made of more than these steps. Rows below `SMALLEST_SHARE`, all rows
    where a capture has too few steps, and rows whose displayed ratio lies outside the interval are `untested`; the
    rate of false claims is controlled over all rows together.
    """
    result = untested_rows(len(baseline[0]))
    if min(series.shape[1] for series in (*baseline, *candidate)) < FEWEST_STEPS:
        return result
    means = [np.mean([series.mean(axis=1) for series in side], axis=0) for side in (baseline, candidate)]
    tested = np.flatnonzero(np.all([mean > 0 for mean in means], axis=0) & np.any([_share(m) for m in means], axis=0))
    if not tested.size:
        return result
    ours, theirs = ([plain_sides(series[tested]) for series in side] for side in (baseline, candidate))
    spread_of_rows = [spreads[int(row)] for row in tested]
    found = changes_of_family(ours, theirs, lambda typical_us: _spread(spread_of_rows, typical_us))
    word = words(found, measured_spread=min(len(ours), len(theirs)) >= FEWEST_REPEATS)
    word[np.isin(word, [FASTER, SLOWER]) & ~claimed_together(found.p)] = UNCLEAR
    known = np.isfinite(found.low) & _holds_displayed(found, (ours[0], theirs[0]), displayed, tested)
    result.loc[tested[known], "verdict"] = word[known]
    result.loc[tested[known], "interval_low"] = found.low[known]
    result.loc[tested[known], "interval_high"] = found.high[known]
    result.loc[tested[known], "evidence"] = evidence_of((len(ours), len(theirs)))
    return result


def _holds_displayed(
    found: Changes, shown: tuple[Sides, Sides], displayed: Floats | None, tested: Int64
) -> npt.NDArray[np.bool_]:
    """Whether the ratio on display lies in the interval, for each row that is tested.

    The displayed number also counts excluded steps and what ran between steps; where that is much, the steps say
    nothing about it. With several captures the interval is of all of them and the displayed ratio of the one that is
    shown, so it is compared with that one's steps.
    """
    if displayed is None:
        return np.ones(len(tested), np.bool_)
    ours, theirs = (side.location for side in shown)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = found.ratio * displayed[tested] / (theirs / ours)
        inside: npt.NDArray[np.bool_] = (ratio >= found.low * (1 - _ROUNDING)) & (ratio <= found.high * (1 + _ROUNDING))
    return inside


def identical_rows(rows: int) -> pd.DataFrame:
    """As `verdicts_on_rows`, for two copies of one capture."""
    return _without_interval(rows, SAME)


def untested_rows(rows: int) -> pd.DataFrame:
    """As `verdicts_on_rows`, where nothing is known step by step."""
    return _without_interval(rows, UNTESTED)


def _without_interval(rows: int, word: str) -> pd.DataFrame:
    cells = {"verdict": pd.Series(word, index=range(rows), dtype="str")}
    evidence = pd.Series(None, index=range(rows), dtype="str")
    return pd.DataFrame(cells).assign(evidence=evidence, interval_low=np.nan, interval_high=np.nan)


def _spread(spreads: Sequence[Spread], typical_us: Floats) -> Floats:
    return np.array([spread.of(us) for spread, us in zip(spreads, typical_us, strict=True)])


def _share(means: Floats) -> npt.NDArray[np.bool_]:
    """Whether each row takes enough of the time to be tested."""
    enough: npt.NDArray[np.bool_] = means >= SMALLEST_SHARE * means.sum()
    return enough


def _positions(numbers: Int64, steps: Int64) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """(for each step number its position among `steps`, whether it is one of them)."""
    if not len(steps):
        return np.zeros_like(numbers), np.zeros(len(numbers), np.bool_)
    order = np.argsort(steps, kind="stable")
    place = np.minimum(np.searchsorted(steps[order], numbers), len(steps) - 1)
    position: Int64 = order[place]
    return position, steps[position] == numbers
