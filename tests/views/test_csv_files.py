"""CSV: what a program reads is exact, what a spreadsheet opens runs nothing."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile

import pandas as pd
import pytest

from tests.profiles import compared_runs
from tfcompare.text import text_of
from tfcompare.views.columns import as_shown, changes_of
from tfcompare.views.csv_files import (
    csv_text,
    for_spreadsheet,
    gzipped,
    spreadsheet_csv,
    spreadsheet_csv_of,
    zipped_diffs,
)


def test_names_numbers_and_absent_cells():
    frame = pd.DataFrame(
        {
            "op_name": pd.Series(["a/b", "c,d"], dtype="str"),
            "self_time_us": [0.1, float("nan")],
            "occurrences": pd.array([3, pd.NA], dtype="Int64"),
            "start_time": pd.to_datetime(["2026-11-20T10:17:24Z", "2026-11-20T10:17:25Z"]),
        }
    )
    assert csv_text(frame) == (
        "op_name,self_time_us,occurrences,start_time\n"
        "a/b,0.1,3,2026-11-20T10:17:24.000000Z\n"
        '"c,d",,,2026-11-20T10:17:25.000000Z\n'
    )


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "\u00a0+", "\uff1d", " \uff20"])
def test_a_text_that_a_spreadsheet_would_run_is_prefixed(start):
    frame = pd.DataFrame({"op_name": pd.Series([f"{start}1+1"], dtype="str")})
    assert for_spreadsheet(frame)["op_name"].tolist() == [f"'{text_of(start)}1+1"]


@pytest.mark.parametrize("start", ["=", "\t"])
def test_a_column_that_a_query_names_like_a_formula_is_prefixed(start):
    alias = f"{start}cmd|' /C calc'!A0"
    frame = pd.DataFrame({alias: [1], "self": pd.Series(["=x"], dtype="str")})
    assert pd.read_csv(io.BytesIO(spreadsheet_csv(frame))).columns.tolist() == [f"'{text_of(alias)}", "self"]
    assert b"".join(spreadsheet_csv_of([frame])) == spreadsheet_csv(frame)
    assert list(for_spreadsheet(frame)) == [alias, "self"], "a page looks its columns up by their own names"


def test_control_characters_begin_no_row_and_steer_no_terminal():
    text = csv_text(pd.DataFrame({"op_\x1b[2J": pd.Series(["a\r=cmd()\n\x9b1m"], dtype="str")}))
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["op_\\x1b[2J"], ["a\\r=cmd()\\n\\x9b1m"]]


def test_harmless_text_numbers_and_absent_cells_are_left_alone():
    frame = pd.DataFrame(
        {
            "op_name": pd.Series(["a=b", "'=x", "", None], dtype="str"),
            "mixed": pd.Series([-1, "-1", None, 2.5], dtype=object),
            "delta_us": [-1.5, 2.0, -0.0, float("nan")],
        }
    )
    result = for_spreadsheet(frame)
    assert result["op_name"].tolist()[:3] == ["a=b", "'=x", ""]
    assert result["op_name"].isna().tolist() == [False, False, False, True]
    assert result["mixed"].tolist()[:2] == [-1, "'-1"]
    pd.testing.assert_series_equal(result["delta_us"], frame["delta_us"])
    assert frame["mixed"].tolist()[1] == "-1", "the caller's frame is not changed"


def test_a_download_reads_back_as_the_same_numbers_and_in_parts_is_the_same_file():
    frame = pd.DataFrame({"op_name": ["=cmd", "µ/ß", "b\nc"], "self_time_us": [1 / 3, 1e-9, 2.0]})
    back = pd.read_csv(io.BytesIO(spreadsheet_csv(frame)))
    assert back["op_name"].tolist() == ["'=cmd", "µ/ß", "b\\nc"]
    assert back["self_time_us"].tolist() == frame["self_time_us"].tolist()
    parts = [frame.iloc[:2], frame.iloc[2:]]
    assert b"".join(spreadsheet_csv_of(parts)) == spreadsheet_csv(frame)
    assert gzip.decompress(gzipped(spreadsheet_csv_of(parts))) == spreadsheet_csv(frame)


def test_an_empty_frame_keeps_its_header():
    assert csv_text(pd.DataFrame({"op_name": pd.Series(dtype="str"), "self_time_us": []})) == "op_name,self_time_us\n"


def test_all_diffs_are_one_archive() -> None:
    comparison = compared_runs("filters_512_128", "filters_16_8")
    with zipfile.ZipFile(io.BytesIO(zipped_diffs(comparison))) as archive:
        names = archive.namelist()
        ops = pd.read_csv(archive.open("op_stats.csv"), encoding="utf-8-sig")
    assert "op_stats.csv" in names and "kernel_stats.csv" not in names
    assert list(ops.columns) == list(comparison.table("op_stats").columns)
    assert len(ops) == len(comparison.table("op_stats"))


def test_a_file_has_the_words_of_the_screen() -> None:
    rows = pd.DataFrame(
        {
            "op_name": ["a", "b", "c"],
            "self_time_us_baseline": [1.0, 2.0, None],
            "self_time_us_candidate": [3.0, None, 5.0],
            "self_time_us_delta": [2.0, None, None],
            "status": ["matched", "removed", "added"],
            "match": ["canonical", None, None],
            "verdict": ["slower", None, None],
            "evidence": ["single", "single", "single"],
        }
    )
    shown = as_shown(rows, ["op_name", "self_time_us_delta", "match", "verdict"])
    assert shown["self_time_us_delta"].tolist() == [2.0, -2.0, 5.0]
    assert shown["verdict"].tolist() == ["likely slower", "removed", "added"]
    assert shown["match"].tolist()[0] == "renamed"
    assert list(as_shown(rows, ["op_name"])) == ["op_name"]


def test_a_value_that_one_side_did_not_record_changed_by_an_unknown_amount() -> None:
    rows = pd.DataFrame(
        {
            "busy_us_baseline": [1.0, None, None],
            "busy_us_candidate": [3.0, 5.0, 5.0],
            "busy_us_delta": [2.0, None, None],
            "status": ["matched", "matched", "added"],
        }
    )
    assert changes_of(rows, "busy_us_delta").fillna(-1).tolist() == [2.0, -1, 5.0]
