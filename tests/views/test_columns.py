"""How columns of tables are written to files."""

from __future__ import annotations

import pandas as pd

from tfcompare.views.columns import as_shown, changes_of


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
