"""Sends a query to a separate process (`tfcompare.query.process`), and returns its answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from tfcompare.errors import TfcompareError
from tfcompare.query.tables import RunTables
from tfcompare.settings import python_path

AT_ONCE = 4
"""The number of queries that run at the same time in one process; others wait."""

_PROCESS = "tfcompare.query.process"
_TURN_S = 0.1
_MOST_DIGITS = 18
_MOST_DIGITS_OF_FLOATS = 15
"""Integers of up to this many digits, and other numbers with up to this many, fit into 64 bits."""

_WHOLE = frozenset({"HUGEINT", "UHUGEINT"})
_DECIMAL = re.compile(r"DECIMAL\(\d+,\d+\)")
_turns = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True)
class Limits:
    """The limits on a query's time and memory, and on the rows and bytes of its result; None: no limit.

    `waiting_seconds`: how long it may wait until fewer than `AT_ONCE` others are running.
    """

    seconds: float = 30
    memory_bytes: int = 2**30
    rows: int | None = None
    result_bytes: int | None = None
    waiting_seconds: float | None = None


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
        self._seconds_left = limits.seconds
        self._why_ended = ""
        self._process: subprocess.Popen[bytes] | None = None
        self.is_waiting = False
        """Whether others have to end before it starts."""

    def stop(self) -> None:
        """Stop the query; `answer` then raises `QueryFailed`."""
        self._end("The query was stopped.")

    def answer(self) -> Answer:
        """Wait for the result. The time for making the tables does not count towards the query's limit."""
        self._wait_for_turn()
        try:
            return self._answer()
        finally:
            pa.default_memory_pool().release_unused()  # or Arrow keeps the memory of the tables that were sent
            _turns.release()

    def _wait_for_turn(self) -> None:
        since, longest = time.monotonic(), self._limits.waiting_seconds
        while not _turns.acquire(timeout=_TURN_S):
            self.is_waiting = True
            if longest is not None and time.monotonic() - since >= longest:
                self._end(
                    f"{AT_ONCE} other queries are running, the most at a time, and none of them ended within "
                    f"{longest:g} s. Run yours again in a moment."
                )
            if self._why_ended:
                raise QueryFailed(self._why_ended)
        self.is_waiting = False

    def _answer(self) -> Answer:
        process = self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _PROCESS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(),
        )  # fmt: skip
        try:
            if self._why_ended:
                process.kill()
            return self._converse(process)
        finally:
            process.kill()
            with suppress(BrokenPipeError), process:
                pass  # wait until it has exited, and close the pipes

    def _converse(self, process: subprocess.Popen[bytes]) -> Answer:
        """Send the tables that the process asks for, and read the answer."""
        limits = self._limits
        request = {
            "sql": self._sql, "tables": self._tables.columns(), "memory_bytes": limits.memory_bytes,
            "rows": limits.rows, "bytes": limits.result_bytes,
        }  # fmt: skip
        with self._limited(process):
            reply = _exchange(process, request)
        while wanted := reply.get("wants"):
            table = self._tables.table(wanted)
            with self._limited(process):
                reply = _exchange(process, {"bytes": table.nbytes}, table)
        _raise_if_failed(reply)
        with self._limited(process):
            rows = pa.ipc.open_stream(process.stdout).read_all()
            end = _read(process)
        _raise_if_failed(end)
        names, types = reply["names"], reply["types"]
        return Answer(_as_frame(rows, types), tuple(names), tuple(types), end["seconds"], end["cut"])

    @contextmanager
    def _limited(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Kill the process when the query's time is up; raises `QueryFailed` if it exits here."""
        started = time.monotonic()
        late = f"The query was stopped after {self._limits.seconds:g} s, the most that one may take."
        timer = threading.Timer(max(0.0, self._seconds_left), self._end, (late,))
        timer.daemon = True
        timer.start()
        try:
            yield
        except (OSError, ValueError, pa.ArrowException):  # from a broken pipe, or an incomplete message
            raise QueryFailed(self._why_ended or _crash(process)) from None
        finally:
            timer.cancel()
            self._seconds_left -= time.monotonic() - started

    def _end(self, why: str) -> None:
        self._why_ended = self._why_ended or why
        if self._process is not None:
            self._process.kill()


def _exchange(process: subprocess.Popen[bytes], message: dict[str, Any], table: pa.Table | None = None) -> Any:
    """Send a message, optionally followed by a table; returns the reply."""
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    if table is not None:
        with pa.ipc.new_stream(process.stdin, table.schema) as stream:
            stream.write_table(table)
    process.stdin.flush()
    return _read(process)


def _read(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def _crash(process: subprocess.Popen[bytes]) -> str:
    status = process.wait()
    return (
        f"The query ended DuckDB's process ({f'signal {-status}' if status < 0 else f'status {status}'}); "
        "nothing else is harmed. It may take less memory with fewer rows or shorter texts."
    )


def _raise_if_failed(message: dict[str, Any]) -> None:
    if error := message.get("error"):
        raise QueryFailed(error)


def _as_frame(rows: pa.Table, types: list[str]) -> pd.DataFrame:
    """The rows with nullable integers, `str` texts, and large integers as numbers if they fit."""
    columns = {}
    for name, column, kind in zip(rows.column_names, rows.columns, types, strict=True):
        values = column.to_pandas(types_mapper=_DTYPES.get)
        columns[name] = _as_numbers(values, kind)
    return pd.DataFrame(columns, index=pd.RangeIndex(rows.num_rows))


def _as_numbers(values: pd.Series, kind: str) -> pd.Series:
    """Integers and decimals sent as text, converted to numbers if all of them fit into 64 bits."""
    if kind in _WHOLE and _most_digits(values) <= _MOST_DIGITS:
        return values.astype("Int64")
    if _DECIMAL.fullmatch(kind) and values.dtype == "str" and _most_digits(values) <= _MOST_DIGITS_OF_FLOATS:
        return values.astype("float64")
    return values


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
    return passed | {"PYTHONPATH": python_path(), "HOME": os.sep, "LANG": "C.UTF-8"}
