"""A query to a process of its own (`tfcompare.query.process`), and what it answers."""

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
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tfcompare.errors import TfcompareError
from tfcompare.query.tables import RunTables

AT_ONCE = 2
"""Queries that run at the same time; others wait for their turn."""

_PROCESS = "tfcompare.query.process"
_TURN_S = 0.1
_MOST_DIGITS = 18
_MOST_DIGITS_OF_FLOATS = 15
"""Whole numbers and others of so many digits fit into 64 bits."""

_WHOLE = frozenset({"HUGEINT", "UHUGEINT"})
_DECIMAL = re.compile(r"DECIMAL\(\d+,\d+\)")
_turns = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True)
class Limits:
    """How much a query may take, and of its result, how many rows and bytes are kept; None: all."""

    seconds: float = 30
    memory_bytes: int = 2**30
    rows: int | None = None
    result_bytes: int | None = None


@dataclass(frozen=True)
class Answer:
    """The result of a query: flags, numbers, and all else as text.

    `frame`: its columns are called `0`, `1`, …; `names`: what the query calls them, which may be alike; `types`: as SQL
    has them; `seconds`: how long DuckDB took; `cut`: what left further rows out, `rows`, `bytes` or nothing.
    """

    frame: pd.DataFrame
    names: tuple[str, ...]
    types: tuple[str, ...]
    seconds: float
    cut: str

    @property
    def is_plan(self) -> bool:
        """Whether it is what EXPLAIN tells: texts of several lines."""
        return self.names == ("explain_key", "explain_value")

    def named(self) -> pd.DataFrame:
        """The frame with the names of the query, those alike told apart by a number."""
        return self.frame.set_axis(told_apart(self.names), axis=1)


class QueryFailed(TfcompareError):
    """A query that was refused, is wrong, or took too much. DuckDB points at what is wrong on further lines."""


def told_apart(names: tuple[str, ...]) -> list[str]:
    """The names, each one once: a second `a` is `a (2)`."""
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
    """What the statement gives, which sees nothing but these tables; raises `QueryFailed`."""
    return Asked(sql, tables, limits or Limits()).answer()


class Asked:
    """A query that can be stopped. `answer` waits for it; `stop` is called from another thread."""

    def __init__(self, sql: str, tables: RunTables, limits: Limits) -> None:
        self._sql = sql
        self._tables = tables
        self._limits = limits
        self._is_stopped = threading.Event()
        self._is_late = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """End the query; `answer` then raises `QueryFailed`."""
        self._is_stopped.set()
        if self._process is not None:
            self._process.kill()

    def answer(self) -> Answer:
        """The result, once it is there. The time in which the tables are made does not count as the query's."""
        while not _turns.acquire(timeout=_TURN_S):
            if self._is_stopped.is_set():
                raise QueryFailed("The query was stopped.")
        try:
            return self._answer()
        finally:
            _turns.release()

    def _answer(self) -> Answer:
        process = self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _PROCESS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(),
        )  # fmt: skip
        clock = _Clock(self._limits.seconds, self._late)
        try:
            if self._is_stopped.is_set():
                process.kill()
            return self._converse(process, clock)
        except _Ended:
            raise QueryFailed(self._why_it_ended(process)) from None
        finally:
            clock.stop()
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(BrokenPipeError):
                    pipe.close()  # type: ignore[union-attr]

    def _converse(self, process: subprocess.Popen[bytes], clock: _Clock) -> Answer:
        """Hand out the tables that are asked for, and take the answer."""
        limits = self._limits
        clock.start()
        _say(process, {
            "sql": self._sql, "tables": self._tables.columns(), "memory_bytes": limits.memory_bytes,
            "rows": limits.rows, "bytes": limits.result_bytes,
        })  # fmt: skip
        while wanted := (heard := _hear(process)).get("wants"):
            clock.stop()
            table = self._tables.table(wanted)
            clock.start()
            _say(process, {"bytes": table.nbytes})
            _send(process, table)
        _raise_if_failed(heard)
        rows = _receive(process)
        end = _hear(process)
        _raise_if_failed(end)
        head = heard["result"]
        return Answer(
            _as_frame(rows, head["types"]), tuple(head["names"]), tuple(head["types"]), end["seconds"], end["cut"]
        )

    def _late(self) -> None:
        self._is_late.set()
        if self._process is not None:
            self._process.kill()

    def _why_it_ended(self, process: subprocess.Popen[bytes]) -> str:
        if self._is_stopped.is_set():
            return "The query was stopped."
        if self._is_late.is_set():
            return f"The query was stopped after {self._limits.seconds:g} s, the most that one may take."
        status = process.wait()
        return (
            f"The query ended DuckDB's process ({f'signal {-status}' if status < 0 else f'status {status}'}); "
            "nothing else is harmed. It may take less memory with fewer rows or shorter texts."
        )


class _Ended(Exception):
    """The process is there no more."""


class _Clock:
    """Counts the seconds between `start` and `stop`; when they are used up it calls `late`."""

    def __init__(self, seconds: float, late: Any) -> None:
        self.seconds = 0.0
        self._most = seconds
        self._late = late
        self._timer: threading.Timer | None = None
        self._since = 0.0

    def start(self) -> None:
        self._since = time.monotonic()
        self._timer = threading.Timer(max(0.0, self._most - self.seconds), self._late)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.seconds += time.monotonic() - self._since


@contextmanager
def _talking() -> Iterator[None]:
    """What goes wrong with a pipe, or with what comes through it, is the end of the process at its other end."""
    try:
        yield
    except (OSError, ValueError, pa.ArrowException):
        raise _Ended from None


def _say(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    with _talking():
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()


def _send(process: subprocess.Popen[bytes], table: pa.Table) -> None:
    assert process.stdin is not None
    with _talking():
        with pa.ipc.new_stream(process.stdin, table.schema) as stream:
            stream.write_table(table)
        process.stdin.flush()


def _hear(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    with _talking():
        heard: dict[str, Any] = json.loads(process.stdout.readline())
    return heard


def _receive(process: subprocess.Popen[bytes]) -> pa.Table:
    with _talking():
        return pa.ipc.open_stream(process.stdout).read_all()


def _raise_if_failed(heard: dict[str, Any]) -> None:
    if error := heard.get("error"):
        raise QueryFailed(error)


def _as_frame(rows: pa.Table, types: list[str]) -> pd.DataFrame:
    """The rows with integers that can be missing, `str` texts, and large integers as such where they fit."""
    columns = {}
    for name, column, kind in zip(rows.column_names, rows.columns, types, strict=True):
        values = column.to_pandas(types_mapper=_DTYPES.get)
        columns[name] = _as_numbers(values, kind)
    return pd.DataFrame(columns, index=pd.RangeIndex(rows.num_rows))


def _as_numbers(values: pd.Series, kind: str) -> pd.Series:
    """Whole numbers and decimals that came as text, as numbers where 64 bits hold every one of them."""
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
    """All that the process is told of this one: where packages are."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "HOME": os.sep, "LANG": "C.UTF-8"}
