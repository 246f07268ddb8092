"""Tables by name, in memory or read from a file when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

ALL_ROWS = slice(None)


class Tables(Mapping[str, pd.DataFrame]):
    """Tables by name."""

    @abstractmethod
    def read(self, name: str, columns: Sequence[str] | None = None, rows: slice = ALL_ROWS) -> pd.DataFrame:
        """Some columns (None: all) and a range of rows of a table, which are counted from 0 then."""


class LoadedTables(Tables):
    """Tables in memory."""

    def __init__(self, frames: dict[str, pd.DataFrame]) -> None:
        self._frames = frames

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def read(self, name: str, columns: Sequence[str] | None = None, rows: slice = ALL_ROWS) -> pd.DataFrame:
        """See `Tables`."""
        frame = self[name].iloc[rows].reset_index(drop=True)
        return frame if columns is None else frame[list(columns)]
