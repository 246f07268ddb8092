"""Distinct combinations of several integer columns, so that work on them is done once per combination."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


_MAX_DENSE_RATIO = 4  # a column is factorized if its value range exceeds its length by more than this factor


def combinations(*columns: Int32 | Int64) -> tuple[Int64, Int64]:
    """(row of the first occurrence of each distinct combination, in order of appearance; the combination of each
    row)."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes, size = _codes(column)
        if size > 1:
            code = pd.factorize(code * size + codes)[0].astype(np.int64, copy=False)
    rows = np.empty(code.max(initial=-1) + 1, np.int64)
    rows[code[::-1]] = np.arange(len(code))[::-1]
    return rows, code


def _codes(column: Int32 | Int64) -> tuple[Int32 | Int64, int]:
    """(a code from 0 for each row, the number of possible codes)."""
    least, most = int(column.min(initial=0)), int(column.max(initial=0))
    if most - least <= _MAX_DENSE_RATIO * len(column):
        return column - least, most - least + 1
    codes, found = pd.factorize(column)
    return codes.astype(np.int64, copy=False), len(found)
