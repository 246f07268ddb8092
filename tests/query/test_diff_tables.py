"""The diffs as tables of queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiles import compared_runs, loaded_run
from tests.store.runs_in_stores import small
from tests.views.golden import PAIRS
from tfcompare import compare, load, schema
from tfcompare.query.asking import ask
from tfcompare.query.diff_tables import DiffTables
from tfcompare.query.tables import _TYPES, DIFF, RunTables
from tfcompare.views.columns import in_words


@pytest.mark.parametrize("pair", ["gpu", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("cpu", "xla"))])
def test_the_declared_columns_are_those_of_the_diffs(pair: str) -> None:
    diffs = DiffTables(compared_runs(*PAIRS[pair]))
    assert list(diffs.dtypes) == [f"{name}{DIFF}" for name, table in schema.TABLES.items() if table.has_diff]
    for name, dtypes in diffs.dtypes.items():
        found = diffs.table(name)
        assert list(found.columns) == list(dtypes)
        for column, dtype in found.dtypes.items():
            assert _TYPES[str(dtype)] == _TYPES[dtypes[str(column)]], (name, column)
            assert column in ("baseline", "candidate") or diffs.meaning(name, str(column)), column


def test_a_query_reads_verdicts_and_changes() -> None:
    names = PAIRS["gpu"]
    comparison = compared_runs(*names)
    tables = RunTables.of([loaded_run(name) for name in names], DiffTables(comparison))
    sql = """SELECT op_name, self_time_us_per_step_delta, verdict FROM op_stats_diff
             WHERE op_type <> 'IDLE' ORDER BY abs(self_time_us_per_step_delta) DESC LIMIT 3"""
    found = ask(sql, tables).named()
    expected = comparison.table("op_stats").query("op_type != 'IDLE'").head(3)
    assert found["op_name"].tolist() == expected["op_name"].tolist()
    assert found["self_time_us_per_step_delta"].tolist() == pytest.approx(expected["self_time_us_per_step_delta"])
    assert found["verdict"].tolist() == in_words(expected)["verdict"].tolist()
    assert "likely faster" in set(found["verdict"])
    fused = ask("SELECT count(*) AS n FROM op_stats_diff WHERE constituents_baseline <> ''", tables).named()
    assert fused["n"].tolist() == [0]


def test_the_command_has_diffs_of_two_runs_and_none_of_one(tfcompare, tmp_path: Path) -> None:
    runs = [small(name, tmp_path) for name in ("theirs", "ours")]
    status, out, _ = tfcompare("query", "SELECT count(*) AS n FROM op_stats_diff", *map(str, runs), "--format", "csv")
    expected = len(compare(*map(load, runs)).table("op_stats"))
    assert (status, out.splitlines()[1]) == (0, f"{expected}")
    status, _, error = tfcompare("query", "FROM memory_peak_diff", str(runs[0]))
    assert status == 2 and "memory_peak_diff" in error
