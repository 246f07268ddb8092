"""A table by step, with the texts of each row stored once: the input of verdicts on rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tfcompare.tables.frames import frame_bytes

_BYTES_OF_NUMBER = 8
"""Also of a text's position."""


@dataclass(frozen=True, eq=False)
class StepCells:
    """A table in two parts: the key columns of its rows, and the values of each row in each step.

    `keys` has one row per table row. `cells` has the columns `row` (a position in `keys`), `step` (its number),
    `occurrences` and `time_us`, one row per step in which the table row ran.
    """

    keys: pd.DataFrame
    cells: pd.DataFrame

    @cached_property
    def memory_bytes(self) -> int:
        """Memory used by both parts, in bytes."""
        return frame_bytes(self.keys) + frame_bytes(self.cells)

    @property
    def joined_bytes(self) -> int:
        """Roughly the memory that `frame` would take, in bytes: the texts of a row are repeated in each step."""
        length = np.zeros(len(self.keys), np.int64)
        for name in self.keys:
            if self.keys[name].dtype == "str":
                length += self.keys[name].str.len().to_numpy(np.int64)
        numbers = _BYTES_OF_NUMBER * (len(self.keys.columns) + len(self.cells.columns)) * len(self.cells)
        return int(length[self.cells["row"].to_numpy()].sum()) + numbers

    def frame(self) -> pd.DataFrame:
        """Keys and cells joined into one frame."""
        keys = self.keys.iloc[self.cells["row"].to_numpy()].reset_index(drop=True)
        return pd.concat([keys, self.cells.drop(columns="row").reset_index(drop=True)], axis=1)
