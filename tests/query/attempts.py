"""A process that tries statements, each on a closed connection of its own, and tells what became of them.

DuckDB is not loaded into the tests' own process, where xprof's libraries may be.
"""

from __future__ import annotations

import json
import sys

import pyarrow as pa

from tfcompare.query import process as query_process

secret_frame = pa.table({"word": ["variable-secret"]})
"""What a query would find if it could read Python's variables."""

TABLES = {
    "steps": {"run": "VARCHAR", "duration_us": "DOUBLE"},
    "op_steps": {"run": "VARCHAR", "self_time_us": "DOUBLE"},
}
STEPS = pa.table({"run": ["a", "b"], "duration_us": [1.5, None]})


def outcome(sql: str) -> dict[str, object]:
    """Its rows, or its error; and which tables were asked for."""
    asked: list[str] = []

    try:
        connection = query_process.connect(2**28)
        while isinstance(found := query_process.bound(connection, sql, TABLES, set(asked)), str):
            asked.append(found)
            table = STEPS if found == "steps" else STEPS.rename_columns(["run", "self_time_us"])
            connection.register(found, table)
        rows = query_process.as_simple_types(found).to_arrow_reader(100).read_all().to_pylist()
    except Exception as error:  # whatever it is, it is told
        return {"error": f"{type(error).__name__}: {query_process.error_text(str(error), sql)}", "asked": asked}
    return {"rows": rows, "asked": asked}


if __name__ == "__main__":
    json.dump({sql: outcome(sql) for sql in json.load(sys.stdin)}, sys.stdout)
