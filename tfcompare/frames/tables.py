"""Tables by name, in memory or read from a file when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd


class Tables(Mapping[str, pd.DataFrame]):
    """Tables by name."""


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
