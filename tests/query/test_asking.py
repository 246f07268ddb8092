"""What a query gives: values in their types, errors as DuckDB says them, bounded in time, memory and size."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic, sleep

import pandas as pd
import pyarrow as pa
import pytest

from tests.profiles import loaded_run
from tfcompare import schema
from tfcompare.child import FairSemaphore
from tfcompare.query import asking
from tfcompare.query.asking import Answer, Asked, Limits, QueryFailed, ask
from tfcompare.query.tables import RunTables, every_table
from tfcompare.views.csv_files import spreadsheet_csv

EVERY_TYPE = (
    "FROM test_all_types() SELECT *, 1 AS bool, [1.5, NULL] AS list, {'a': map {'k': 1}} AS nested, 1.25 AS decimal, "
    "sum(1) OVER () AS total, 0.1::FLOAT AS float_, 'nan'::DOUBLE AS nan_, NULL AS nothing LIMIT 3"
)


@dataclass
class Tables:
    """Tables of no run, and which of them were made."""

    made: list[str] = field(default_factory=list)

    def columns(self) -> dict[str, dict[str, str]]:
        return {"steps": {"run": "VARCHAR", "step": "BIGINT"}, "op_steps": {"run": "VARCHAR"}}

    def table(self, name: str) -> pa.Table:
        self.made.append(name)
        return pa.table({"run": ["a", "b", None], "step": [1, None, 2**53 + 1]})


def asked(sql: str, **limits: float | None) -> Answer:
    return ask(sql, Tables(), Limits(**limits))


def failed(sql: str, **limits: float | None) -> str:
    with pytest.raises(QueryFailed) as caught:
        asked(sql, **limits)
    return str(caught.value)


def test_a_table_comes_and_goes_as_it_is() -> None:
    tables = Tables()
    answer = ask("SELECT step, run, step > 1 AS later, step, count(*) OVER () FROM steps", tables)
    assert tables.made == ["steps"]
    assert answer.names == ("step", "run", "later", "step", "count() OVER ()")
    frame = answer.named()
    assert list(frame.columns) == ["step", "run", "later", "step (2)", "count() OVER ()"]
    assert [str(dtype) for dtype in frame.dtypes] == ["Int64", "str", "boolean", "Int64", "Int64"]
    assert frame["step"].tolist() == [1, pd.NA, 2**53 + 1]
    assert frame["run"].isna().tolist() == [False, False, True]
    assert not answer.cut


def test_every_type_is_shown() -> None:
    answer = asked(EVERY_TYPE)
    assert len(answer.frame) == 3
    row = answer.named().iloc[1]
    assert (row["list"], row["nested"]) == ("[1.5, NULL]", "{'a': {k=1}}")
    assert (row["decimal"], row["total"], row["float_"], row["bool (2)"]) == (1.25, 3, 0.1, 1)
    assert row["hugeint"] == "170141183460469231731687303715884105727"
    assert math.isnan(row["nan_"])
    assert row["nothing"] is None or math.isnan(row["nothing"])
    assert {str(dtype) for dtype in answer.frame.dtypes} <= {"boolean", "Int64", "UInt64", "float64", "str"}
    assert b"83 years 3 months" in spreadsheet_csv(answer.named())


def test_wide_numbers_are_numbers_where_they_fit() -> None:
    answer = asked(
        "SELECT range * 1.5 AS half, sum(range) OVER () AS total, range * 1.000000000000000000001 AS fine, "
        "CASE WHEN range = 1 THEN 2.5::DECIMAL(30, 2) END AS sparse FROM range(3)"
    )
    frame = answer.named()
    assert [str(dtype) for dtype in frame.dtypes] == ["float64", "Int64", "str", "float64"]
    assert frame["half"].tolist() == [0, 1.5, 3]
    assert frame["fine"].tolist()[1] == "1.000000000000000000001"
    assert frame["sparse"].dropna().tolist() == [2.5]


def test_an_error_is_what_duckdb_says_with_where() -> None:
    assert failed("FROM steeps") == (
        'Catalog Error: Table with name steeps does not exist!\nDid you mean "steps"?\n\nTables: steps, op_steps'
    )
    assert failed("DESCRIBE steeps") == failed("FROM steeps")
    assert failed("SELECT [1],\n CAST(run AS INTEGER) FROM steps") == (
        "Conversion Error: Could not convert string 'a' to INT32 when casting from source column run\n\n"
        "LINE 2:  CAST(run AS INTEGER) FROM steps\n         ^^^^^^^^^^^^^^^^^^^^"
    )


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        (
            "SELECT CAST(range || CASE WHEN range > 20000 THEN 'x' ELSE '' END AS INTEGER) FROM range(30000)",
            "Conversion Error: Could not convert string '20001x' to INT32",
        ),
        ("SELECT " + "(" * 20_000 + "1" + ")" * 20_000, "Max expression depth limit"),
        ("SELECT '\udcff'", "The query is no text that can be written in UTF-8."),
        ("SELECT error(repeat('x', 1000000))", "Invalid Input Error: xxx"),
        (f"SELECT {', '.join(['1'] * 5001)}", "A result has at most 5,000 columns; this one has 5,001."),
    ],
)
def test_odd_queries_cost_a_sentence(sql: str, error: str) -> None:
    sentence = failed(sql)
    assert error in sentence
    assert len(sentence) < 5000


def test_rows_and_bytes_are_bounded_and_what_is_left_out_is_told() -> None:
    cut = asked("FROM range(100000)", rows=3000)
    assert (len(cut.frame), cut.cut) == (3000, "rows")
    assert cut.frame["0"].tolist()[-1] == 2999
    exactly = asked("FROM range(3000)", rows=3000, result_bytes=2**20)
    assert (len(exactly.frame), exactly.cut) == (3000, "")
    large = asked("SELECT repeat('x', 100000) FROM range(100)", result_bytes=2**20)
    assert (len(large.frame), large.cut) == (10, "bytes")
    later = asked("SELECT range, repeat('x', 100000) FROM range(100)", result_bytes=2**20, offset=93)
    assert (later.frame["0"].tolist(), later.cut) == (list(range(93, 100)), ""), "rows before it count for no limit"
    assert asked("FROM range(5000)", rows=10, offset=4_990).frame["0"].tolist() == list(range(4_990, 5_000))
    assert asked("FROM range(5)", offset=10**12).frame.empty


def test_a_query_that_eats_memory_ends_with_duckdbs_error() -> None:
    said = failed("SELECT list(a.range || repeat('x', 1000)) FROM range(1000000) a", memory_bytes=2**28)
    assert said.startswith(("Out of Memory Error", "The query takes more memory", "The query ended its process"))


def test_a_query_that_takes_too_long_is_stopped() -> None:
    sentence = failed(SLOW, seconds=1)
    assert sentence == "The query was stopped after 1 s of processor time, the most that one may take."


SLOW = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(1000000) b"


def test_a_quick_query_is_answered_while_a_slow_one_runs_that_can_be_stopped() -> None:
    slow = Asked(SLOW, Tables(), Limits(seconds=3600))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(slow.answer)
        try:
            wait_until(lambda: slow._child is not None)
            assert asked("SELECT 1 AS one").named()["one"].tolist() == [1]
            assert not running.done()
        finally:
            slow.stop()
        with pytest.raises(QueryFailed, match=r"^The query was stopped\.$"):
            running.result(timeout=20)


def test_a_query_for_which_there_is_no_turn_waits_a_while_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = FairSemaphore(1)
    monkeypatch.setattr(asking, "_turns", turns)
    with ThreadPoolExecutor(1) as pool, turns.turn():
        assert failed("SELECT 1", waiting_seconds=0.05) == (
            "4 other queries are running, the most at a time, and none of them ended within 0.05 s. "
            "Run yours again in a moment."
        )
        query = Asked("SELECT 1 AS one", Tables(), Limits(waiting_seconds=60))
        answer = pool.submit(query.answer)
        wait_until(lambda: query.is_waiting)
    assert answer.result().named()["one"].tolist() == [1]
    assert not query.is_waiting


def wait_until(condition: Callable[[], bool]) -> None:
    until = monotonic() + 30
    while not condition():
        assert monotonic() < until
        sleep(0.01)


def test_a_crash_costs_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_PROCESS", "tests.query.crashing")
    assert failed("FROM steps") == (
        "The query ended its process (SIGABRT); nothing else is harmed. It may take less memory with fewer rows "
        "or shorter texts."
    )


# The tables of runs


def test_tables_of_runs_have_their_columns_with_the_run_before_them() -> None:
    tables = RunTables.of([loaded_run("filters_512_128"), loaded_run("gpu_filters_512_128")])
    columns = tables.columns()
    assert set(columns) == {"runs", *schema.TABLES}
    for name, table in every_table().items():
        made = tables.table(name)
        assert made.column_names[0] == "run"
        assert made.column_names == list(columns[name]), name
        for column in table.columns:
            is_text = pa.types.is_string(made.schema.field(column.name).type)
            assert is_text == (columns[name][column.name] == "VARCHAR"), (name, column.name)
    stats = tables.table("op_stats")
    assert len(stats) == sum(len(run.table("op_stats")) for run in tables.runs)
    assert set(stats["run"].to_pylist()) == {run.id for run in tables.runs}
    assert tables.table("runs")["role"].to_pylist() == ["baseline", "candidate"]


def test_types_in_sql_are_those_of_the_schema() -> None:
    tables = RunTables.of([loaded_run("gpu_filters_512_128")])
    sql = (
        "SELECT typeof(start_time), typeof(hosts), typeof(duration_ms), typeof(registers_per_thread), "
        "typeof(is_op_tensor_core_eligible), typeof(op_name), max(start_time), count(*) FILTER (op_name IS NULL) "
        "FROM run_info JOIN kernel_stats USING (run) GROUP BY ALL LIMIT 1"
    )
    row = ask(sql, tables).frame.iloc[0].tolist()
    assert row[:6] == ["TIMESTAMP WITH TIME ZONE", "BIGINT", "DOUBLE", "BIGINT", "BOOLEAN", "VARCHAR"]
    assert row[6] == f"{tables.runs[0].info.start_time:%Y-%m-%d %H:%M:%S}+00"
