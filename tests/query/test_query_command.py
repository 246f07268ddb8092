"""The command `query`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest

from tests.profiles import SAMPLES
from tests.store.runs_in_stores import SMALL, put, small
from tfcompare import load

MEDIANS = "SELECT run, median(duration_us) / 1000 AS step_ms, count(*) AS steps FROM steps WHERE included GROUP BY run"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two small runs, the slower one first."""
    folder = tmp_path_factory.mktemp("runs")
    return [str(small(name, folder)) for name in ("theirs", "ours")]


def test_the_rows_of_all_runs_are_asked(tfcompare, places: list[str]) -> None:
    status, out, err = tfcompare("query", f"{MEDIANS} ORDER BY step_ms DESC", *places, "--format", "csv")
    assert (status, err) == (0, "")
    rows = pd.read_csv(io.StringIO(out))
    runs = [load(place) for place in places]
    assert rows["run"].tolist() == [run.id for run in runs]
    assert rows["step_ms"].tolist() == pytest.approx([run.info.step_time_ms_median for run in runs])
    assert rows["steps"].tolist() == [run.info.steps_included for run in runs]


def asked(tfcompare, *words: str) -> tuple[pd.DataFrame, str]:
    status, out, err = tfcompare("query", "FROM runs ORDER BY position", *words, "--format", "csv")
    assert status == 0
    return pd.read_csv(io.StringIO(out)), err


def test_a_folder_of_several_runs_stands_for_all_in_the_order_in_which_they_were_recorded(tfcompare) -> None:
    folder = SAMPLES / "autoencoder_gpu" / "h100_16_8"
    first, second, third = (f"h100_16_8_run-{number}" for number in (1, 2, 3))
    rows, err = asked(tfcompare, str(folder))
    assert "left out" not in err
    assert rows["name"].tolist() == [first, second, third]
    assert rows["role"].tolist() == ["baseline", "candidate", "candidate"]
    assert rows["run"].is_unique
    named = asked(tfcompare, str(folder / third), str(folder))[0]
    assert named["name"].tolist() == [third, first, second], "a run that is named twice counts once"


def test_of_several_runs_those_that_cannot_be_read_are_told(tfcompare, tmp_path: Path) -> None:
    for name, content in (("one", SMALL["ours"]), ("two", SMALL["theirs"]), ("bad", b"")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vm.xplane.pb").write_bytes(content)
    rows, err = asked(tfcompare, str(tmp_path))
    assert len(rows) == 2
    assert err.startswith("note: left out: ")
    assert f"{tmp_path / 'bad/vm.xplane.pb'}: is empty" in err
    status, out, err = tfcompare("query", "FROM runs", str(tmp_path / "bad"))
    assert (status, out, err.count("\n")) == (2, "", 1)
    for name in ("one", "two"):
        (tmp_path / name / "vm.xplane.pb").write_bytes(b"")
    status, out, err = tfcompare("query", "FROM runs", str(tmp_path))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{tmp_path}: none of its 3 runs can be read: " in err


def test_runs_of_a_store_by_the_folder_in_their_ids(tfcompare, tmp_path: Path) -> None:
    for name in SMALL:
        small(name, tmp_path / "logs")
    put([tmp_path / "logs"], tmp_path / "store")
    store = ("--store", str(tmp_path / "store"))
    assert sorted(asked(tfcompare, "logs", *store)[0]["name"]) == sorted(SMALL)
    assert asked(tfcompare, "ours", *store)[0]["name"].tolist() == ["ours"]
    assert asked(tfcompare, "ours", "logs", *store)[0]["role"].tolist() == ["baseline", "candidate", "candidate"]
    status, out, err = tfcompare("query", "FROM runs", "nobody", *store)
    assert (status, out) == (2, "")
    assert "has no run 'nobody'; the nearest of its 3" in err


def test_a_table_is_aligned_and_what_a_limit_leaves_out_is_told(tfcompare, places: list[str]) -> None:
    sql = "SELECT 1234.5 AS ms, 'a' AS a, 7 AS a, true AS flag, NULL AS nothing, [1] AS list FROM range(3)"
    status, out, err = tfcompare("query", sql, places[1], "--limit", "1")
    assert status == 0
    assert out == "\n".join(["      ms  a  a (2)  flag  nothing  list", "1,234.50  a      7  yes   –        [1]\n"])
    assert err == "the first 1 rows; there are more (--limit 0 shows all)\n"


def test_a_plan_is_printed_as_it_is_and_json_has_no_infinity(tfcompare, places: list[str]) -> None:
    _, out, _ = tfcompare("query", "EXPLAIN FROM steps", places[1])
    assert len(out.splitlines()) > 3
    _, out, _ = tfcompare("query", "SELECT 'inf'::DOUBLE AS x, 1 AS y, {'a': '\"'} AS z", places[1], "--format", "json")
    assert json.loads(out) == [{"x": None, "y": 1, "z": "{'a': '\"'}"}]


@pytest.mark.parametrize("wrong", [["--limit", "-1"], ["--timeout", "0"], ["--timeout", "nan"], ["--format", "xml"]])
def test_wrong_options_are_told(tfcompare, places: list[str], wrong: list[str]) -> None:
    status, _, err = tfcompare("query", "SELECT 1", places[1], *wrong)
    assert status == 2
    assert err.count("\n") == 1


def test_an_error_keeps_its_lines(tfcompare, places: list[str]) -> None:
    status, out, err = tfcompare("query", "SELECT 1\n  FORM steps", places[1])
    assert (status, out) == (2, "")
    assert err.startswith('tfcompare: Parser Error: syntax error at or near "steps"')
    assert err.splitlines()[-2:] == ["LINE 2:   FORM steps", "               ^^^^^"]
