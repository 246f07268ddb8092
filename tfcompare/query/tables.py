"""The tables of runs as queries see them: the rows of all runs concatenated, with a first column `run`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from tfcompare import schema
from tfcompare.errors import TfcompareError
from tfcompare.run import Run
from tfcompare.schema.columns import Column, Table, column, columns
from tfcompare.units import format_bytes

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 2 << 30
"""The memory that a table of all runs may take, if it is derived for the query."""

DIFF = "_diff"
"""The end of the names of diffs."""

BASELINE, CANDIDATE, REPEAT = "baseline", "candidate", "repeat"

RUN = column("run key | Run | The run's identity: its path relative to the place it was found under.")

RUNS = Table(
    "runs",
    "One row for each run that is asked about.",
    (
        RUN,
        *columns(f"""
            name text | Name | The run's name as pages show it.
            role text | Role | `{BASELINE}`, `{CANDIDATE}` or `{REPEAT}`: what the run is in the comparison.
            position level int64 | Position | 0 for the baseline, from 1 for candidates, then replicates.
        """),
    ),
)

_TYPES = {
    "str": "VARCHAR",
    "float64": "DOUBLE",
    "Float64": "DOUBLE",
    "int64": "BIGINT",
    "Int64": "BIGINT",
    "bool": "BOOLEAN",
    "boolean": "BOOLEAN",
    "datetime64[us, UTC]": "TIMESTAMP WITH TIME ZONE",
}
"""The DuckDB type of each column dtype. Missing values of any kind are NULL."""


def every_table() -> dict[str, Table]:
    """All tables that a query can read, by name, with their columns."""
    tables = {RUNS.name: RUNS}
    for name, table in schema.TABLES.items():
        columns = table.columns if RUN.name in table.keys else (RUN, *table.columns)
        tables[name] = Table(name, table.meaning, columns, table.headline, table.has_diff)
    return tables


def type_of(column: Column) -> str:
    """The column's type in SQL."""
    return _TYPES[column.dtype]


class Diffs(Protocol):
    """The diffs of a comparison, as `tools.diff_tables.DiffTables` makes them."""

    @property
    def dtypes(self) -> dict[str, dict[str, str]]:
        """The columns of each diff by its name, with their dtypes."""

    def table(self, name: str) -> pd.DataFrame:
        """The diff of this name."""


@dataclass(frozen=True)
class RunTables:
    """The tables of some runs, made on demand. `roles`: the role of each run in the comparison; `diffs`: theirs."""

    runs: tuple[Run, ...]
    roles: tuple[str, ...]
    most_bytes: int = MOST_BYTES
    diffs: Diffs | None = None

    @classmethod
    def of(cls, runs: Sequence[Run], diffs: Diffs | None = None) -> RunTables:
        """The first run as the baseline, the others as candidates."""
        return cls(tuple(runs), (BASELINE, *[CANDIDATE] * (len(runs) - 1)), diffs=diffs)

    def columns(self) -> dict[str, dict[str, str]]:
        """The columns of each table with their types."""
        tables = {name: {c.name: type_of(c) for c in table.columns} for name, table in every_table().items()}
        for name, dtypes in self.diffs.dtypes.items() if self.diffs is not None else ():
            tables[name] = {column: _TYPES[dtype] for column, dtype in dtypes.items()}
        return tables

    def table(self, name: str) -> pa.Table:
        """The rows of all runs. Raises `Unknown` for an unknown table, `TfcompareError` for one that is too large."""
        if name == RUNS.name:
            return _as_arrow([self._runs()])
        is_diff = self.diffs is not None and name in self.diffs.dtypes
        of_runs = name.removesuffix(DIFF) if is_diff else name
        schema.table(of_runs)
        size = sum(run.tables.derived_bytes(of_runs) for run in self.runs)
        if size > self.most_bytes:
            raise TfcompareError(
                f"The table {name} of these runs takes {format_bytes(size)}, and a query may read "
                f"{format_bytes(self.most_bytes)} of it: choose fewer runs or a range of steps."
            )
        return _as_arrow([self.diffs.table(name)] if is_diff and self.diffs else self._of_each(name))

    def _runs(self) -> pd.DataFrame:
        first = 0 if BASELINE in self.roles else 1
        roles = enumerate(zip(self.runs, self.roles, strict=True), first)
        rows = [(run.id, run.name, role, position) for position, (run, role) in roles]
        return RUNS.conform(pd.DataFrame(rows, columns=RUNS.column_names))

    def _of_each(self, name: str) -> Iterator[pd.DataFrame]:
        for run in self.runs:
            frame = run.table(name)
            if RUN.name not in frame:
                frame.insert(0, RUN.name, pd.Series(run.id, frame.index, dtype="str"))
            yield frame


def _as_arrow(frames: Iterable[pd.DataFrame]) -> pa.Table:
    """The rows of all frames, each of which is dropped before the next one is made."""
    import pyarrow as pa

    parts = [pa.Table.from_pandas(f, preserve_index=False).replace_schema_metadata(None) for f in frames]
    fields = [pa.field(f.name, pa.string()) if pa.types.is_large_string(f.type) else f for f in parts[0].schema]
    if all(part.nbytes < 2**31 for part in parts):
        parts = [part.cast(pa.schema(fields)) for part in parts]
    return pa.concat_tables(parts)
