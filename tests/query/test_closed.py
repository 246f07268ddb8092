"""No query gets at a file, the network, the environment, Python's variables or a setting, and none writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.profiles import ROOT

READING_FILES = [
    "FROM read_csv('{file}')",
    "SELECT content FROM read_text('{file}')",
    "FROM glob('{folder}/*')",
    "FROM read_parquet('{file}')",
    "FROM read_duckdb('{file}')",
    "FROM query('FROM read_csv(''{file}'')')",
    "WITH a AS (FROM read_text('{file}')) SELECT content FROM a",
    "DESCRIBE FROM read_csv('{file}')",
    "SUMMARIZE FROM '{file}'",
    "EXPLAIN ANALYZE SELECT content FROM read_text('{file}')",
    "FROM postgres_scan('host=localhost', 'public', 't')",
    "FROM 'https://example.com/a.csv'",
    "FROM which_secret('s3://bucket', 's3')",
    "FROM duckdb_secrets()",
    "SELECT getenv('QUERY_SECRET')",
    "FROM secret_frame",
    "FROM query_process",
    "FROM st_read('{file}')",
]
WRITING = [
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY steps FROM '{file}'",
    "ATTACH '{folder}/new.db'",
    "ATTACH ':memory:' AS other",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET GLOBAL threads = 64",
    "RESET memory_limit",
    "PRAGMA enable_profiling",
    "CREATE TABLE t AS SELECT 1",
    "CREATE SECRET s (TYPE s3)",
    "CREATE MACRO m() AS 1",
    "DROP TABLE steps",
    "INSERT INTO steps VALUES ('c', 1)",
    "DELETE FROM steps",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "CHECKPOINT",
    "BEGIN TRANSACTION",
    "CALL pragma_version()",
    "PREPARE p AS SELECT 1",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/out.csv'",
    "EXPLAIN (ANALYZE) CREATE TABLE t AS SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT 1 -- \n; COPY (SELECT 1) TO '{folder}/out.csv'",
    "/* SELECT */ COPY (SELECT 1) TO '{folder}/out.csv'",
    "/* /* */ SELECT */ CREATE TABLE t AS SELECT 1",
    "\ufeffCOPY (SELECT 1) TO '{folder}/out.csv'",
    "\u00a0SET threads = 1",
    "ＳＥＴ threads = 1",
    "",
    ";",
]
OF_WITH = "WITH a AS (INSERT INTO steps VALUES ('c', 1) RETURNING *) FROM a"
HARMLESS = {
    "FROM steps;": [{"run": "a", "duration_us": 1.5}, {"run": "b", "duration_us": None}],
    "/* DROP TABLE steps; */ SELECT 1 AS x -- ; DROP": [{"x": 1}],
    "SELECT 'DROP TABLE steps; --' AS x": [{"x": "DROP TABLE steps; --"}],
    "SELECT value AS x FROM duckdb_settings() WHERE name = 'enable_external_access'": [{"x": "false"}],
    "SELECT value AS x FROM duckdb_settings() WHERE name = 'lock_configuration'": [{"x": "true"}],
    "SELECT value AS x FROM duckdb_settings() WHERE name = 'temp_directory'": [{"x": ""}],
    "(SELECT 1 AS x) UNION ALL VALUES (2)": [{"x": 1}, {"x": 2}],
    "SELECT name AS x FROM (SHOW TABLES) ORDER BY x": [{"x": "op_steps"}, {"x": "steps"}],
    "DESCRIBE SELECT any_value(self_time_us) AS x FROM op_steps": [
        {"column_name": "x", "column_type": "DOUBLE", "null": "YES", "key": None, "default": None, "extra": None}
    ],
    "SELECT table_name, column_name, run FROM information_schema.columns, steps WHERE run = 'a' ORDER BY ALL": [
        {"table_name": "op_steps", "column_name": "run", "run": "a"},
        {"table_name": "op_steps", "column_name": "self_time_us", "run": "a"},
        {"table_name": "steps", "column_name": "duration_us", "run": "a"},
        {"table_name": "steps", "column_name": "run", "run": "a"},
    ],
}
READ_FROM = {
    "FROM query_table('Steps')": ["steps"],
    "FROM query('FROM ' || 'st' || 'eps')": ["steps"],
    'SELECT count(*) FROM "op_STEPS", steps': ["op_steps", "steps"],
    "PIVOT steps ON run USING sum(duration_us)": ["steps"],
    "UNPIVOT steps ON duration_us": ["steps"],
    "WITH steps AS (SELECT 1) FROM steps": [],
    "SELECT 1 AS op_steps, 'op_steps' -- op_steps": [],
    "EXPLAIN ANALYZE FROM steps": ["steps"],
    "SUMMARIZE steps": ["steps"],
    "SHOW TABLES": [],
    "show tables; -- all": [],
    "DESCRIBE op_steps": [],
    "DESCRIBE SELECT run, count(*) FROM op_steps GROUP BY run": [],
    "FROM information_schema.tables": [],
    "/* SHOW */ SELECT count(*) FROM steps": ["steps"],
    "/* /* */ DESCRIBE */ SELECT count(*) FROM steps": ["steps"],
}
SECRETS = ("file-secret", "environment-secret", "variable-secret")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("secrets")
    (made / "secret.csv").write_text("word\nfile-secret\n", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, Any]:
    """What became of every statement, all tried in one process."""
    statements = [_placed(sql, folder) for sql in (*READING_FILES, *WRITING)] + [OF_WITH, *HARMLESS, *READ_FROM]
    done = subprocess.run(
        [sys.executable, "-m", "tests.query.attempts"],
        cwd=folder,
        input=json.dumps(statements),
        text=True,
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "QUERY_SECRET": "environment-secret", "HOME": str(folder)},
    )
    return json.loads(done.stdout)


def _placed(sql: str, folder: Path) -> str:
    return sql.replace("{file}", str(folder / "secret.csv")).replace("{folder}", str(folder))


def test_nothing_outside_can_be_read(outcomes: dict[str, Any], folder: Path) -> None:
    for sql in READING_FILES:
        found = outcomes[_placed(sql, folder)]
        assert "error" in found, sql
        assert not any(secret in str(found) for secret in SECRETS), sql


def test_nothing_can_be_written_or_set(outcomes: dict[str, Any], folder: Path) -> None:
    for sql in (*WRITING, OF_WITH):
        assert "error" in outcomes[_placed(sql, folder)], sql
    assert [path.name for path in folder.iterdir()] == ["secret.csv"]


def test_what_does_not_read_is_refused_in_one_sentence(outcomes: dict[str, Any], folder: Path) -> None:
    assert outcomes["SET enable_external_access = true"]["error"] == (
        "Refused: Only what reads is run: a SELECT (or WITH, FROM, VALUES, PIVOT, …), DESCRIBE, SHOW, SUMMARIZE or "
        "EXPLAIN of one; this is SET."
    )
    assert outcomes["SELECT 1; SELECT 2"]["error"].endswith("found 2 statements.")
    assert outcomes[""]["error"].endswith("found nothing.")
    assert "this is COPY" in outcomes[_placed("/* SELECT */ COPY (SELECT 1) TO '{folder}/out.csv'", folder)]["error"]


def test_what_only_looks_dangerous_is_answered(outcomes: dict[str, Any]) -> None:
    assert {sql: outcomes[sql].get("rows") for sql in HARMLESS} == HARMLESS


def test_only_tables_that_are_read_are_made(outcomes: dict[str, Any]) -> None:
    for sql, tables in READ_FROM.items():
        assert "error" not in outcomes[sql], outcomes[sql]
        assert sorted(outcomes[sql]["asked"]) == tables, sql
    assert [row["name"] for row in outcomes["SHOW TABLES"]["rows"]] == ["op_steps", "steps"]
    assert [row["column_name"] for row in outcomes["DESCRIBE op_steps"]["rows"]] == ["run", "self_time_us"]
    assert outcomes["/* /* */ DESCRIBE */ SELECT count(*) FROM steps"]["rows"] == [{"count_star()": 2}]
