"""Keys of the rows of a table, as they stand in a page's address."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import pandas as pd


def row_keys(rows: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """A key for each row, short enough for a URL; rows that differ in the columns `names` have different keys."""
    cells = zip(*(rows[name].astype("str").fillna("") for name in names), strict=True)
    digests = [blake2b("\n".join(row).encode(), digest_size=6).hexdigest() for row in cells]
    return pd.Series(digests, rows.index, dtype="str")
