"""Runs one query in DuckDB, in a separate process that cannot affect the caller.

DuckDB's memory limit covers what it buffers, but not the strings and lists that functions create
(`repeat('x', 2000000000)` used 2 GB despite a limit of 256 MB). An internal error can end the process, and DuckDB
cannot share a process with xprof's libraries. Starting this process takes 0.2 s, passing a million rows to it 0.1 s.

`python -m tfcompare.query.process` exchanges lines of JSON and Arrow streams with its caller over stdin and stdout:

    in   {"sql", "tables": {name: {column: type}}, "memory_bytes", "rows", "bytes"}
    out  {"wants": name}                 for each table that the statement reads, when DuckDB reports it missing
    in   {"bytes"}, Arrow stream         that table
    out  {"names", "types"}, Arrow stream, {"seconds", "cut"}
    out  {"error"}                       instead of any of those lines

No other module imports DuckDB.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

CLOSED = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "threads": "2",
}
"""No files, network, extensions, Python variables or disk use. Locked before a query is read."""

READS = "a SELECT (or WITH, FROM, VALUES, PIVOT, …), DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of one"
_READING = frozenset({"SELECT", "MULTI"})  # MULTI: PIVOT, which DuckDB runs as several statements
_ABOUT_SCHEMAS = frozenset({"describe", "desc", "show"})
_PLAIN_TYPES = frozenset(
    {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "DOUBLE"}
    | {"VARCHAR"}
)
MOST_COLUMNS = 5_000
_LONGEST_ERROR = 4_000
_EXACT_DIGITS = 15
"""A decimal of at most this many digits is exact as DOUBLE."""

_MISSING = re.compile(r'Table with name "?(?P<name>\w+)"? does not exist')
_LINE = re.compile(r"\n\nLINE (?P<number>\d+): (?P<text>.*)(?P<pointer>\n *\^+)?")
_ADVICE = re.compile(r"\n\nPossible solutions:|\nDatabase is launched in in-memory mode")
"""Begins the part of an error message about settings, which users cannot change here."""

_BATCH_ROWS = 2048
_ROOM = 1.5
_ROOM_OF_THREADS = 2**29
"""The memory that a query may use in addition to that of the process at its start: a multiple of DuckDB's own limit,
and what threads reserve without using it."""
_ROOM_FOR_TABLES = 3
"""The same per byte of a table."""

Ask = Callable[[str], pa.Table]


class Refused(Exception):
    """The statement is not allowed."""


def main() -> None:
    """Answer the request on stdin."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.readline())
    memory = _MemoryLimit(request["memory_bytes"] * _ROOM + _ROOM_OF_THREADS)
    try:
        request["sql"].encode()
        end = _answer(request, out, memory)
    except Refused as refused:
        end = {"error": str(refused)}
    except UnicodeError:
        end = {"error": "The query is no text that can be written in UTF-8."}
    except MemoryError:
        end = {"error": "Out of Memory Error: the query takes more memory than it may"}
    except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
        end = {"error": error_text(str(error), request["sql"])}
    _write(out, end)
    os._exit(0)


def _write(out: BinaryIO, message: Mapping[str, Any]) -> None:
    out.write(json.dumps(message).encode() + b"\n")
    out.flush()


def _answer(request: Mapping[str, Any], out: BinaryIO, memory: _MemoryLimit) -> dict[str, Any]:
    connection = connect(request["memory_bytes"])
    since, waited = time.monotonic(), 0.0

    def ask(name: str) -> pa.Table:
        nonlocal waited
        asked = time.monotonic()
        _write(out, {"wants": name})
        memory.raise_by(json.loads(sys.stdin.buffer.readline())["bytes"] * _ROOM_FOR_TABLES)
        table = pa.ipc.open_stream(sys.stdin.buffer).read_all()
        waited += time.monotonic() - asked
        return table

    relation = bound(connection, request["sql"], request["tables"], ask)
    threading.Thread(target=_end_with_caller, daemon=True).start()
    if len(relation.columns) > MOST_COLUMNS:
        raise Refused(f"A result has at most {MOST_COLUMNS:,} columns; this one has {len(relation.columns):,}.")
    reader = as_simple_types(relation).to_arrow_reader(_BATCH_ROWS)
    _write(out, {"names": relation.columns, "types": [str(kind) for kind in relation.types]})
    schema = pa.schema([pa.field(str(i), field.type) for i, field in enumerate(reader.schema)])
    with pa.ipc.new_stream(out, schema) as stream:
        try:
            cut = _copy(reader, stream, schema, request["rows"], request["bytes"])
            return {"cut": cut, "seconds": time.monotonic() - since - waited}
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # a query may fail after some rows
            return {"error": error_text(str(error), request["sql"])}


def connect(memory_bytes: int) -> DuckDBPyConnection:
    """A new in-memory database without access to anything else; times are shown in UTC."""
    connection = duckdb.connect(":memory:", config={**CLOSED, "memory_limit": f"{memory_bytes // 2**20}MiB"})
    with suppress(duckdb.Error):  # without its time zone extension, DuckDB supports no other zone
        connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    return connection


def bound(
    connection: DuckDBPyConnection, sql: str, tables: Mapping[str, Mapping[str, str]], ask: Ask
) -> DuckDBPyRelation:
    """The single statement in `sql`, with those of the `tables` (columns and types by name) that it reads.

    `ask` is called for a table when DuckDB reports it missing, since the text alone does not show what `query_table(…)`
    reads. DESCRIBE and SHOW read no tables. Raises `Refused`, or DuckDB's errors.
    """
    statement, first = only_statement(connection, sql)
    if first in _ABOUT_SCHEMAS:
        _declare(connection, tables)
        return connection.sql(f"FROM ({' '.join(_words(sql))})")
    unread = {name.lower(): name for name in tables}
    while True:
        try:
            return connection.sql(statement)
        except duckdb.CatalogException as error:
            missing = _MISSING.search(str(error))
            if missing is None:
                raise
            name = unread.pop(missing["name"].lower(), None)
            if name is not None:
                connection.register(name, ask(name))
                continue
        _declare(connection, {name: tables[name] for name in unread.values()})  # so that DuckDB can suggest one of them
        _raise_with_tables(connection, statement, tables)


def _raise_with_tables(connection: DuckDBPyConnection, statement: Any, tables: Mapping[str, Any]) -> None:
    try:
        connection.sql(statement)
    except duckdb.CatalogException as error:
        if _MISSING.search(str(error)):
            raise Refused(f"{error_text(str(error), statement.query)}\n\nTables: {', '.join(tables)}") from error
        raise


def _declare(connection: DuckDBPyConnection, tables: Mapping[str, Mapping[str, str]]) -> None:
    for name, columns in tables.items():
        declared = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
        connection.execute(f'CREATE TABLE "{name}" ({declared})')


def only_statement(connection: DuckDBPyConnection, sql: str) -> tuple[Any, str]:
    """(the statement, its first word in lower case); raises `Refused` unless there is exactly one, which only reads."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        found = f"{len(statements)} statements" if statements else "nothing"
        raise Refused(f"A query is one statement, {READS}; found {found}.")
    kind = statements[0].type.name
    if kind == "EXPLAIN":
        only_statement(connection, _explained(sql))
    elif kind not in _READING:
        raise Refused(f"Only what reads is run: {READS}; this is {kind.replace('_', ' ')}.")
    return statements[0], _words(sql)[0].lower() if kind == "SELECT" else ""


def _words(sql: str) -> list[str]:
    """The tokens of the text from DuckDB's tokenizer, without comments and the final semicolon."""
    text = sql.encode()  # DuckDB's positions are in bytes
    starts = [at for at, _ in duckdb.tokenize(sql)]
    parts = zip(starts, [*starts[1:], len(text)], duckdb.tokenize(sql), strict=True)
    words = [text[at:end].decode().strip() for at, end, (_, kind) in parts if kind != duckdb.token_type.comment]
    return words[:-1] if words[-1] == ";" else words


def _explained(sql: str) -> str:
    """The statement after EXPLAIN, ANALYZE and options in parentheses."""
    words = _words(sql)[1:]
    if words and words[0].lower() == "analyze":
        words = words[1:]
    if words and words[0] == "(" and ")" in words and words[1].lower() in ("format", "analyze", "codegen", "verbose"):
        words = words[words.index(")") + 1 :]
    return " ".join(words)


def as_simple_types(relation: DuckDBPyRelation) -> DuckDBPyRelation:
    """The relation with all values except booleans and numbers as text, as DuckDB formats them."""
    casts = [_cast(f"#{i}", str(kind)) for i, kind in enumerate(relation.types, 1)]
    if not any("::" in cast for cast in casts):
        return relation
    return relation.project(", ".join(casts))


def _cast(column: str, kind: str) -> str:
    if kind in _PLAIN_TYPES:
        return column
    if kind == "FLOAT":
        return f"{column}::VARCHAR::DOUBLE"  # 0.1 stays 0.1
    digits = re.fullmatch(r"DECIMAL\((\d+),\d+\)", kind)
    return f"{column}::DOUBLE" if digits and int(digits[1]) <= _EXACT_DIGITS else f"{column}::VARCHAR"


def _copy(reader: pa.RecordBatchReader, stream: Any, schema: pa.Schema, rows: int | None, size: int | None) -> str:
    """Copy rows up to these limits; returns which one cut off the rest: `rows`, `bytes`, or nothing."""
    for batch in reader:
        batch = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        fitting, cut = len(batch), ""
        if rows is not None and fitting > rows:
            fitting, cut = rows, "rows"
        if size is not None and batch.nbytes > size:
            of_size = int(fitting * size / batch.nbytes)
            fitting, cut = min(fitting, of_size), "bytes"
        stream.write_batch(batch.slice(0, fitting))
        if cut:
            return cut
        rows = None if rows is None else rows - fitting
        size = None if size is None else size - batch.nbytes
    return ""


def error_text(message: str, sql: str) -> str:
    """DuckDB's message, with the number of the shown line in `sql`, since DuckDB may count lines added before it."""
    lines = sql.split("\n")

    def numbered(found: re.Match[str]) -> str:
        shown = found["text"].strip(" .")
        matching = [number for number, line in enumerate(lines, 1) if shown and shown in line]
        if not matching:
            return ""
        number = found["number"] if int(found["number"]) in matching else str(matching[0])
        fewer = len(found["number"]) - len(number)
        pointer = (found["pointer"] or "").replace("\n" + " " * fewer, "\n", 1)
        return f"\n\nLINE {number}: {found['text']}{pointer}"

    text = _ADVICE.split(message)[0].rstrip()
    return _LINE.sub(numbered, text[:_LONGEST_ERROR] + (" …" if len(text) > _LONGEST_ERROR else ""))


class _MemoryLimit:
    """The memory limit of this process. If the system does not support one, only DuckDB's own limit applies."""

    def __init__(self, more: float) -> None:
        self._limit = 0
        with suppress(OSError):
            ctypes.CDLL("libgcc_s.so.1")  # needed to throw C++ errors: load it while there is still memory
        with suppress(ImportError, OSError):
            import resource

            self._limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        self.raise_by(more)

    def raise_by(self, more: float) -> None:
        """Raise the limit by that many bytes."""
        if self._limit:
            import resource

            self._limit += int(more)
            with suppress(ValueError):  # the system's limit is already lower
                resource.setrlimit(resource.RLIMIT_AS, (self._limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _end_with_caller() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
