"""Per-step tables as series: the time of each row in each step."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare.frames.grouping import combinations
from tfcompare.schema.arrays import Floats, Int64
from tfcompare.tables.step_times import StepCells


def step_series(keys: pd.DataFrame, cells: StepCells, steps: Int64) -> Floats:
    """The time of each row of `keys` in each step of `steps`, as an array (rows, steps); 0 if it did not run.

    `keys` has columns of the cells' keys. Rows of the cells that are equal in these columns are summed. `steps` holds
    step numbers.
    """
    by_row = _by_row(cells, "time_us", steps)
    values = [np.concatenate([rows[name].to_numpy(object) for rows in (keys, cells.keys)]) for name in keys]
    _, code = combinations(*(pd.factorize(each)[0] for each in values))
    by_code = np.zeros((int(code.max(initial=-1)) + 1, len(steps)))
    np.add.at(by_code, code[len(keys) :], by_row)
    return by_code[code[: len(keys)]]


def usual_step(cells: StepCells, steps: Int64) -> tuple[Floats, Floats]:
    """For each row of the cells, its time in all of these steps, and how often it occurs in the usual one: the lower
    median."""
    occurrences = _by_row(cells, "occurrences", steps)
    usual = np.quantile(occurrences, 0.5, axis=1, method="lower") if len(steps) else np.zeros(len(occurrences))
    counted = cells.cells[cells.cells["step"].isin(steps)]
    time_us: Floats = np.bincount(counted["row"], counted["time_us"], minlength=len(cells.keys)).astype(np.float64)
    return time_us, usual


def _by_row(cells: StepCells, column: str, steps: Int64) -> Floats:
    """The values of a column of the cells as an array (rows, steps); 0 where a row did not run."""
    by_row = np.zeros((len(cells.keys), len(steps)))
    if not len(steps):
        return by_row
    numbers, order = cells.cells["step"].to_numpy(np.int64), np.argsort(steps, kind="stable")
    position = order[np.minimum(np.searchsorted(steps[order], numbers), len(steps) - 1)]
    counts = steps[position] == numbers
    row, values = cells.cells["row"].to_numpy(np.int64), cells.cells[column].to_numpy(np.float64)
    np.add.at(by_row, (row[counts], position[counts]), values[counts])
    return by_row
