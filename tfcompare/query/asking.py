"""SQL over the tables of runs: `ask("SELECT …", RunTables(runs), Limits())` returns an `Answer`.

DuckDB runs in a child process (`tfcompare.query.process`).
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from tfcompare.child import Child, Exceeded, FairSemaphore, OutOfTime
from tfcompare.errors import TfcompareError
from tfcompare.query.tables import RunTables

AT_ONCE = 4
"""The number of queries that run at the same time in one process; others wait."""

_PROCESS = "tfcompare.query.process"
_MOST_DIGITS = 18
_MOST_DIGITS_OF_FLOATS = 15
"""Integers of up to this many digits, and other numbers with up to this many, fit into 64 bits."""

_WHOLE = frozenset({"HUGEINT", "UHUGEINT"})
_DECIMAL = re.compile(r"DECIMAL\(\d+,\d+\)")
_turns = FairSemaphore(AT_ONCE)

_ROOM, _ROOM_OF_THREADS = 1.5, 2**29
"""The memory that a query may use in addition to that of its process: a multiple of DuckDB's own limit, and what
threads reserve without using it."""


@dataclass(frozen=True)
class Limits:
    """The limits on a query's processor time and memory, and on the rows and bytes of its result after the first
    `offset` rows, which are left out; None: no limit.

    `waiting_seconds`: how long it may wait until fewer than `AT_ONCE` others are running.
    """

    seconds: float = 30
    memory_bytes: int = 2**30
    rows: int | None = None
    result_bytes: int | None = None
    waiting_seconds: float | None = None
    offset: int = 0


@dataclass(frozen=True)
class Answer:
    """The result of a query: booleans, numbers, and everything else as text.

    `frame`: its columns are called `0`, `1`, …; `names`: their names in the query, possibly with duplicates; `types`:
    their SQL types; `seconds`: the time DuckDB took; `cut`: which limit cut off further rows, `rows`, `bytes` or none.
    """

    frame: pd.DataFrame
    names: tuple[str, ...]
    types: tuple[str, ...]
    seconds: float
    cut: str

    @property
    def is_plan(self) -> bool:
        """Whether it is the output of EXPLAIN: multi-line texts."""
        return self.names == ("explain_key", "explain_value")

    def named(self) -> pd.DataFrame:
        """The frame with the names in the query; duplicates are numbered."""
        return self.frame.set_axis(unique(self.names), axis=1)


class QueryFailed(TfcompareError):
    """A query was refused, is invalid, or exceeded a limit. Further lines contain DuckDB's position of an error."""


def unique(names: tuple[str, ...]) -> list[str]:
    """The names made unique: a second `a` becomes `a (2)`."""
    seen: set[str] = set()
    out = []
    for name in names:
        number, different = 1, name
        while different in seen:
            number += 1
            different = f"{name} ({number})"
        seen.add(different)
        out.append(different)
    return out


def ask(sql: str, tables: RunTables, limits: Limits | None = None) -> Answer:
    """The answer to a statement, which can only access these tables; raises `QueryFailed`."""
    return Asked(sql, tables, limits or Limits()).answer()


class Asked:
    """A query that can be stopped: `answer` waits for the result; another thread may call `stop`."""

    def __init__(self, sql: str, tables: RunTables, limits: Limits) -> None:
        self._sql = sql
        self._tables = tables
        self._limits = limits
        self._why_ended = ""
        self._child: Child | None = None
        self.is_waiting = False
        """Whether others have to end before it starts."""

    def stop(self) -> None:
        """Stop the query; `answer` then raises `QueryFailed`."""
        self._why_ended = self._why_ended or "The query was stopped."
        if self._child is not None:
            self._child.kill()

    def answer(self) -> Answer:
        """Wait for the result. The time for making the tables does not count towards the query's limit."""
        since = time.monotonic()
        with _turns.turn(meanwhile=lambda: self._wait(time.monotonic() - since)):
            self.is_waiting = False
            child = self._child = Child(_environment(), subprocess.DEVNULL)
            try:
                return self._answer(child)
            finally:
                child.end()
                pa.default_memory_pool().release_unused()  # or Arrow keeps the memory of the tables that were sent

    def _wait(self, seconds: float) -> None:
        """Raises `QueryFailed` if it was stopped, or has waited for its turn for too long."""
        self.is_waiting, longest = True, self._limits.waiting_seconds
        if longest is not None and seconds >= longest:
            others = f"{AT_ONCE} other queries are running, the most at a time"
            raise QueryFailed(f"{others}, and none of them ended within {longest:g} s. Run yours again in a moment.")
        if self._why_ended:
            raise QueryFailed(self._why_ended)

    def _answer(self, child: Child) -> Answer:
        """Send the tables that the query reads, and fetch the rows."""
        limits = self._limits
        of_result = limits.rows, limits.result_bytes, limits.offset
        reply = self._call(child, "begin", self._sql, self._tables.columns(), limits.memory_bytes, *of_result)
        while isinstance(reply, str):
            reply = self._call(child, "add", reply, self._tables.table(reply))
        names, types = reply
        parts, end = [], None
        while end is None:
            data, end, seconds = self._call(child, "part")
            parts.append(pa.ipc.open_stream(data).read_all())
        return Answer(_as_frame(pa.concat_tables(parts), types), tuple(names), tuple(types), seconds, end)

    def _call(self, child: Child, function: str, *arguments: Any) -> Any:
        """The result of this function of the process; raises `QueryFailed`."""
        limits = self._limits
        try:
            if not self._why_ended:
                memory = limits.memory_bytes * _ROOM + _ROOM_OF_THREADS
                seconds = limits.seconds - child.processor_seconds
                child.begin(f"{_PROCESS}:{function}", *arguments, memory_bytes=memory, seconds=seconds)
                return child.result()
        except OutOfTime:
            late = f"The query was stopped after {limits.seconds:g} s of processor time, the most that one may take."
            self._why_ended = self._why_ended or late
        except Exceeded as exceeded:
            remedy = "It may take less memory with fewer rows or shorter texts."
            self._why_ended = self._why_ended or f"The query {exceeded}; nothing else is harmed. {remedy}"
        except TfcompareError as error:
            raise QueryFailed(str(error)) from None
        raise QueryFailed(self._why_ended)


def _as_frame(rows: pa.Table, types: list[str]) -> pd.DataFrame:
    """The rows with nullable integers, `str` texts, and large integers as numbers if they fit."""
    columns = {}
    for name, column, kind in zip(rows.column_names, rows.columns, types, strict=True):
        values = column.to_pandas(types_mapper=_DTYPES.get)
        if kind in _WHOLE and _most_digits(values) <= _MOST_DIGITS:
            values = values.astype("Int64")
        elif _DECIMAL.fullmatch(kind) and values.dtype == "str" and _most_digits(values) <= _MOST_DIGITS_OF_FLOATS:
            values = values.astype("float64")
        columns[name] = values
    return pd.DataFrame(columns, index=pd.RangeIndex(rows.num_rows))


def _most_digits(numbers: pd.Series) -> int:
    digits = numbers.dropna().str.replace(r"[-.]", "", regex=True).str.lstrip("0").str.len()
    return int(digits.max()) if len(digits) else 0


_DTYPES: dict[pa.DataType, Any] = {
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype(na_value=float("nan")),
    **{kind: pd.Int64Dtype() for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{kind: pd.Int64Dtype() for kind in (pa.uint8(), pa.uint16(), pa.uint32())},
    pa.uint64(): pd.UInt64Dtype(),
}


def _environment() -> dict[str, str]:
    """The environment of the process: only what is needed to find packages."""
    passed = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    return passed | {"HOME": os.sep, "LANG": "C.UTF-8"}
