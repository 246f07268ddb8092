"""Runs one query in DuckDB, in a child process that cannot affect the caller.

DuckDB's memory limit covers what it buffers, but not the strings and lists that functions create
(`repeat('x', 2000000000)` used 2 GB despite a limit of 256 MB). An internal error can end the process, and DuckDB
cannot share a process with xprof's libraries. Starting this process takes 0.3 s, passing a million rows to it 0.1 s.

The caller calls `begin` in it, `add` for each table that the query reads, and `part` until the result is complete. No
other module imports DuckDB.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from tfcompare.errors import TfcompareError

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
_PART_BYTES = 2**26
"""More than a page shows, whose result is thus one part, and one call in whose memory limit it stays."""


class Refused(TfcompareError):
    """The statement is not allowed."""


@dataclass
class _Query:
    """The query of this process, the tables that it was given, and the time that DuckDB took for it."""

    connection: DuckDBPyConnection
    sql: str
    tables: Mapping[str, Mapping[str, str]]
    given: set[str]
    rows: int | None
    bytes: int | None
    offset: int
    seconds: float = 0.0
    reader: pa.RecordBatchReader | None = None


_query: _Query


def begin(
    sql: str,
    tables: Mapping[str, Mapping[str, str]],
    memory_bytes: int,
    rows: int | None,
    size: int | None,
    offset: int,
) -> str | tuple[list[str], list[str]]:
    """Start a query of `tables` (columns and types by name), whose result begins after `offset` rows, and is cut off
    after so many rows or bytes.

    Returns the name of a table that it reads, which `add` is to be called with; or (names, types) of the result's
    columns. This function and the others raise `TfcompareError` if the query fails.
    """
    global _query
    with suppress(OSError):
        ctypes.CDLL("libgcc_s.so.1")  # needed to throw C++ errors: load it while there is still memory
    try:
        sql.encode()
    except UnicodeError:
        raise TfcompareError("The query is no text that can be written in UTF-8.") from None
    _query = _Query(connect(memory_bytes), sql, tables, set(), rows, size, offset)
    return _bind()


def add(name: str, table: pa.Table) -> str | tuple[list[str], list[str]]:
    """Add the table that the query reads; returns what `begin` returns."""
    _query.connection.register(name, table)
    _query.given.add(name)
    return _bind()


def part() -> tuple[bytes, str | None, float]:
    """(the next rows as an Arrow stream, what the result ends with, the seconds that DuckDB took so far).

    The result ends with `rows` or `bytes` if that limit cut off further rows, with an empty text if it is complete, and
    with None if a further part follows.
    """
    query, out = _query, pa.BufferOutputStream()
    assert query.reader is not None
    schema = pa.schema([pa.field(str(i), field.type) for i, field in enumerate(query.reader.schema)])
    with _running(), pa.ipc.new_stream(out, schema) as stream:
        end = _copy(query, query.reader, stream, schema)
    return out.getvalue().to_pybytes(), end, query.seconds


def _bind() -> str | tuple[list[str], list[str]]:
    query = _query
    with _running():
        found = bound(query.connection, query.sql, query.tables, query.given)
        if isinstance(found, str):
            return found
        if len(found.columns) > MOST_COLUMNS:
            raise Refused(f"A result has at most {MOST_COLUMNS:,} columns; this one has {len(found.columns):,}.")
        query.reader = as_simple_types(found).to_arrow_reader(_BATCH_ROWS)
        return found.columns, [str(kind) for kind in found.types]


@contextmanager
def _running() -> Iterator[None]:
    """Count the time, and raise DuckDB's errors as `TfcompareError`."""
    since = time.monotonic()
    try:
        yield
    except (duckdb.Error, pa.ArrowException, RuntimeError, OSError) as error:
        raise TfcompareError(error_text(str(error), _query.sql)) from None
    finally:
        _query.seconds += time.monotonic() - since


def connect(memory_bytes: int) -> DuckDBPyConnection:
    """A new in-memory database without access to anything else; times are shown in UTC."""
    connection = duckdb.connect(":memory:", config={**CLOSED, "memory_limit": f"{memory_bytes // 2**20}MiB"})
    with suppress(duckdb.Error):  # without its time zone extension, DuckDB supports no other zone
        connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    return connection


def bound(
    connection: DuckDBPyConnection, sql: str, tables: Mapping[str, Mapping[str, str]], given: Set[str]
) -> DuckDBPyRelation | str:
    """The single statement in `sql`, or the name of another one of the `tables` (columns and types by name) it reads.

    A table must be `given` to the connection when DuckDB reports it missing, since the text alone does not show what
    `query_table(…)` reads. DESCRIBE and SHOW read no tables; tables that are not read are declared without rows,
    so that `information_schema` lists them, too. Raises `Refused`, or DuckDB's errors.
    """
    statement, first = only_statement(connection, sql)
    unread = {name.lower(): name for name in tables if name not in given}
    others = {name: tables[name] for name in unread.values()}  # what DuckDB describes, lists and can suggest
    try:
        if first not in _ABOUT_SCHEMAS:
            found = connection.sql(statement)
            _declare(connection, others)
            return found
    except duckdb.CatalogException as error:
        missing = _MISSING.search(str(error))
        if missing is None:
            raise
        if (name := missing["name"].lower()) in unread:
            return unread[name]
    _declare(connection, others)
    try:
        return connection.sql(f"FROM ({' '.join(_words(sql))})" if first in _ABOUT_SCHEMAS else statement)
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
        only_statement(connection, _explain_error(sql))
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


def _explain_error(sql: str) -> str:
    """The statement after EXPLAIN, ANALYZE and options in parentheses."""
    words = _words(sql)[1:]
    if words and words[0].lower() == "analyze":
        words = words[1:]
    if words and words[0] == "(" and ")" in words and words[1].lower() in ("format", "analyze", "codegen", "verbose"):
        words = words[words.index(")") + 1 :]
    return " ".join(words)


def as_simple_types(relation: DuckDBPyRelation) -> DuckDBPyRelation:
    """The relation with all values except booleans and numbers as text, as DuckDB formats them."""
    casts = []
    for kind in map(str, relation.types):
        digits = re.fullmatch(r"DECIMAL\((\d+),\d+\)", kind)
        if kind in _PLAIN_TYPES:
            casts.append("")
        elif kind == "FLOAT":
            casts.append("::VARCHAR::DOUBLE")  # 0.1 stays 0.1
        else:
            casts.append("::DOUBLE" if digits and int(digits[1]) <= _EXACT_DIGITS else "::VARCHAR")
    return relation.project(", ".join(f"#{i}{cast}" for i, cast in enumerate(casts, 1))) if any(casts) else relation


def _copy(query: _Query, reader: pa.RecordBatchReader, stream: Any, schema: pa.Schema) -> str | None:
    """Write the next rows to the stream; returns what `part` says that the result ends with."""
    size = 0
    for batch in reader:
        whole = len(batch)
        batch = pa.RecordBatch.from_arrays(batch.columns, schema=schema).slice(query.offset)
        query.offset = max(query.offset - whole, 0)
        fitting, cut = len(batch), ""
        if query.rows is not None and fitting > query.rows:
            fitting, cut = query.rows, "rows"
        if query.bytes is not None and batch.nbytes > query.bytes:
            of_size = int(fitting * query.bytes / batch.nbytes)
            fitting, cut = min(fitting, of_size), "bytes"
        stream.write_batch(batch.slice(0, fitting))
        if cut:
            return cut
        query.rows = None if query.rows is None else query.rows - fitting
        query.bytes = None if query.bytes is None else query.bytes - batch.nbytes
        size += batch.nbytes
        if size > _PART_BYTES:
            return None
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
