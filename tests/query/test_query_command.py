"""The command `query`."""

from __future__ import annotations

import io
import json

import pandas as pd
import pytest

from tests.profiles import loaded_run, run_path

BEFORE, AFTER = (str(run_path(name)) for name in ("filters_512_128", "filters_16_8"))
MEDIANS = "SELECT run, median(duration_us) / 1000 AS step_ms, count(*) AS steps FROM steps WHERE included GROUP BY run"


def test_the_rows_of_all_runs_are_asked(tfcompare) -> None:
    status, out, err = tfcompare("query", f"{MEDIANS} ORDER BY step_ms DESC", BEFORE, AFTER, "--format", "csv")
    assert (status, err) == (0, "")
    rows = pd.read_csv(io.StringIO(out))
    runs = [loaded_run("filters_512_128"), loaded_run("filters_16_8")]
    assert rows["run"].tolist() == [run.id for run in runs]
    assert rows["step_ms"].tolist() == pytest.approx([run.info.step_time_ms_median for run in runs])
    assert rows["steps"].tolist() == [run.info.steps_included for run in runs]


def test_a_table_is_aligned_and_what_a_limit_leaves_out_is_told(tfcompare) -> None:
    sql = "SELECT 1234.5 AS ms, 'a' AS a, 7 AS a, true AS flag, NULL AS nothing, [1] AS list FROM range(3)"
    status, out, err = tfcompare("query", sql, AFTER, "--limit", "1")
    assert status == 0
    assert out == "\n".join([
        "     ms  a  a (2)  flag  nothing  list",
        "1,234.5  a      7  yes   –        [1]\n",
    ])  # fmt: skip
    assert err == "the first 1 rows; there are more (--limit 0 shows all)\n"


def test_json_has_no_infinity(tfcompare) -> None:
    _, out, _ = tfcompare("query", "SELECT 'inf'::DOUBLE AS x, 1 AS y, {'a': '\"'} AS z", AFTER, "--format", "json")
    assert json.loads(out) == [{"x": None, "y": 1, "z": "{'a': '\"'}"}]


def test_a_plan_is_printed_as_it_is(tfcompare) -> None:
    _, out, _ = tfcompare("query", "EXPLAIN FROM steps", AFTER)
    assert "steps" in out or "ARROW" in out.upper()
    assert len(out.splitlines()) > 3


def test_an_error_keeps_its_lines(tfcompare) -> None:
    status, out, err = tfcompare("query", "SELECT 1\n  FORM steps", AFTER)
    assert (status, out) == (2, "")
    assert err.startswith("tfcompare: ")
    assert err.splitlines()[-2:] == ["LINE 2:   FORM steps", "               ^^^^^"]


@pytest.mark.parametrize("wrong", [["--limit", "-1"], ["--timeout", "0"], ["--timeout", "nan"], ["--format", "xml"]])
def test_wrong_options_are_told(tfcompare, wrong: list[str]) -> None:
    status, _, err = tfcompare("query", "SELECT 1", AFTER, *wrong)
    assert status == 2
    assert err.count("\n") == 1
