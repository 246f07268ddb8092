"""A table step by step, with its texts once a row and not once a cell: what verdicts on its rows are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True, eq=False)
class StepCells:
    """`keys`: the columns that tell rows apart; `cells`: `row` (a position in `keys`), `step` (its number),
    `occurrences` and `time_us`, one for each row in each step in which it ran."""

    keys: pd.DataFrame
    cells: pd.DataFrame

    def frame(self) -> pd.DataFrame:
        """Keys and cells side by side."""
        keys = self.keys.iloc[self.cells["row"].to_numpy()].reset_index(drop=True)
        return pd.concat([keys, self.cells.drop(columns="row").reset_index(drop=True)], axis=1)


def concat(parts: Sequence[StepCells]) -> StepCells:
    """The rows of all of them; equal ones stay apart."""
    firsts = [0]
    for part in parts:
        firsts.append(firsts[-1] + len(part.keys))
    cells = [part.cells.assign(row=part.cells["row"] + first) for part, first in zip(parts, firsts, strict=False)]
    return StepCells(pd.concat([p.keys for p in parts], ignore_index=True), pd.concat(cells, ignore_index=True))
