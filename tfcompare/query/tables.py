"""The tables of runs as queries see them: the rows of all runs concatenated, with a first column `run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare import schema
from tfcompare.run import Run
from tfcompare.schema.columns import Column, Table, key, level, text

if TYPE_CHECKING:
    import pyarrow as pa

BASELINE, CANDIDATE, REPEAT = "baseline", "candidate", "repeat"

RUN = key("run", "Run", "The run's identity: its path relative to the place it was found under.")

RUNS = Table(
    "runs",
    "One row for each run that is asked about.",
    (
        RUN,
        text("name", "Name", "The run's name as pages show it."),
        text("role", "Role", f"`{BASELINE}`, `{CANDIDATE}` or `{REPEAT}`: what the run is in the comparison."),
        level("position", "", "Position", "0 for the baseline, from 1 on for candidates, then repeats.", "int64"),
    ),
)

_TYPES = {
    "str": "VARCHAR",
    "float64": "DOUBLE",
    "Float64": "DOUBLE",
    "int64": "BIGINT",
    "Int64": "BIGINT",
    "bool": "BOOLEAN",
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


@dataclass(frozen=True)
class RunTables:
    """The tables of some runs, made on demand. `roles`: the role of each run in the comparison."""

    runs: tuple[Run, ...]
    roles: tuple[str, ...]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> RunTables:
        """The first run as the baseline, the others as candidates."""
        return cls(tuple(runs), (BASELINE, *[CANDIDATE] * (len(runs) - 1)))

    def columns(self) -> dict[str, dict[str, str]]:
        """The columns of each table with their types."""
        return {name: {c.name: type_of(c) for c in table.columns} for name, table in every_table().items()}

    def table(self, name: str) -> pa.Table:
        """The rows of all runs; raises `Unknown` for an unknown table."""
        import pyarrow as pa

        frame = self._runs() if name == RUNS.name else self._of_each(name)
        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        plain = [pa.field(f.name, pa.string()) if pa.types.is_large_string(f.type) else f for f in table.schema]
        return table.cast(pa.schema(plain)) if table.nbytes < 2**31 else table

    def _runs(self) -> pd.DataFrame:
        first = 0 if BASELINE in self.roles else 1
        roles = enumerate(zip(self.runs, self.roles, strict=True), first)
        rows = [(run.id, run.name, role, position) for position, (run, role) in roles]
        return RUNS.conform(pd.DataFrame(rows, columns=RUNS.column_names))

    def _of_each(self, name: str) -> pd.DataFrame:
        schema.table(name)
        frames = []
        for run in self.runs:
            frame = run.table(name)
            frames.append(frame if RUN.name in frame else _with_run(frame, run.id))
        return pd.concat(frames, ignore_index=True)


def _with_run(frame: pd.DataFrame, run_id: str) -> pd.DataFrame:
    frame.insert(0, RUN.name, pd.Series(run_id, frame.index, dtype="str"))
    return frame
