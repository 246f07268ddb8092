"""Many runs beside one baseline: a row for each, and the ops that moved most in any of them."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from tests.compare.compare_runs import FakeRun, ops, run, steps
from tests.profiles import loaded_run
from tfcompare import compare, schema
from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.errors import Unknown
from tfcompare.views.candidates.figures import (
    COLUMNS,
    NEITHER,
    changes_by_run,
    fastest_first,
    in_time_order,
    runs_table,
    side_by_side,
)

OPS = """
Host MatMul a/dense/MatMul 1 100
Host Relu a/dense/Relu 1 10
Host Mean loss/Mean 1 5
Host IDLE IDLE 0 1000
"""
FASTER = """
Host MatMul a/dense/MatMul 1 40
Host Relu a/dense/Relu 1 12
Host Mean loss/Mean 1 5
Host IDLE IDLE 0 9000
"""
OTHER = """
Host MatMul a/dense/MatMul 1 90
Host Cast a/dense/Cast 1 30
Host Mean loss/Mean 1 5
Host IDLE IDLE 0 1
"""


def recorded(run_id: str, minute: int, op_text: str = OPS, **more) -> FakeRun:
    made = run(run_id, ops(op_text), **more)
    made.info.start_time = datetime(2026, 1, 1, 12, minute, tzinfo=UTC)
    made.info.start_time_source = "profile"
    return made


def memory(*peaks: int, host: str = "worker") -> pd.DataFrame:
    frame = pd.DataFrame({"memory_id": [f"memory {i}" for i in range(len(peaks))], "peak_bytes": peaks, "host": host})
    for column in schema.MEMORY_SUMMARY.columns:
        if column.name not in frame:
            frame[column.name] = 0
    return schema.MEMORY_SUMMARY.conform(frame)


BASELINE = recorded("base", 5)
FIRST = recorded("first", 9, FASTER)
SECOND = recorded("second", 1, OTHER)


@pytest.fixture
def diff() -> pd.DataFrame:
    return compare(BASELINE, FIRST, SECOND).diffs("op_stats")


def test_each_run_has_a_row_with_what_its_steps_took():
    durations = [9e6, *(float(t) for t in range(100, 110)), 9e6]
    slow = recorded("slow", 0, step_count=12, step_frame=steps(durations, set_aside=1))
    fast = recorded("fast", 1, step_count=12, step_frame=steps([10.0] * 12, set_aside=1))
    table = runs_table(compare(slow, fast, BASELINE))
    assert tuple(table.columns) == COLUMNS
    assert table["run"].tolist() == ["slow", "fast", "base"]
    assert table["role"].tolist() == ["baseline", "candidate", "candidate"]
    first = table.iloc[0]
    assert (first["steps"], first["step_time_us_median"]) == (10, 104.5), "what is set aside does not count"
    assert first["step_time_us_mean"] == pytest.approx(104.5)
    assert 100 < first["step_time_us_tenth"] < 104.5 < first["step_time_us_ninetieth"] < 109
    assert first["verdict"] == "" and np.isnan(first["ratio"])


def test_the_verdicts_are_those_of_the_comparison():
    comparison = compare(BASELINE, FIRST, SECOND)
    table = runs_table(comparison).set_index("run")
    for run_id, verdict in comparison.verdict.items():
        row = table.loc[run_id]
        assert (row["verdict"], row["reason"], row["caveat"]) == (verdict.word, verdict.reason, verdict.caveat)


def test_the_fastest_comes_first_and_a_run_without_steps_last():
    runs = [
        recorded("unmarked", 2, step_ms=0.001, has_steps=False),
        recorded("slow", 3, step_ms=30),
        recorded("fast", 4, step_ms=10),
    ]
    runs[0].info.step_source = "whole profile"
    table = runs_table(compare(BASELINE, *runs))
    assert fastest_first(table)["run"].tolist() == ["fast", "base", "slow", "unmarked"]
    assert np.isnan(table.set_index("run").loc["unmarked", ["step_time_us_median", "input_share"]].astype(float)).all()


def test_the_order_of_time_does_not_depend_on_the_order_of_candidates():
    given = ((FIRST, SECOND), (SECOND, FIRST))
    orders = [in_time_order(runs_table(compare(BASELINE, *candidates)))["run"].tolist() for candidates in given]
    assert orders == [["second", "base", "first"]] * 2


def test_of_several_memories_the_largest_peak_counts_and_none_is_missing():
    ours, theirs, without = recorded("ours", 0), recorded("theirs", 1), recorded("without", 2)
    ours.frames["memory_summary"], theirs.frames["memory_summary"] = memory(100, 700), memory(500, 20)
    table = runs_table(compare(ours, theirs, without))
    assert table["peak_bytes"].fillna(-1).tolist() == [700, 500, -1]
    assert table["peak_bytes_delta"].fillna(-1).tolist() == [-1, -200, -1]


def test_where_no_verdict_gives_a_ratio_it_is_that_of_the_typical_steps_all_the_same():
    runs = [recorded(name, 0, step_ms=ms, step_count=3) for name, ms in (("base", 20), ("slower", 30), ("same", 20))]
    table = runs_table(compare(*runs))
    assert table["verdict"].tolist() == ["", "untested", "untested"]
    assert table["ratio"].tolist()[1:] == pytest.approx([1.5, 1.0])
    assert np.isnan(table["ratio"][0]) and table[["interval_low", "interval_high"]].isna().all(axis=None)


def test_a_tested_ratio_is_that_of_the_verdict():
    runs = [
        recorded(name, 0, step_count=20, step_frame=steps([time + i % 3 for i in range(20)]))
        for name, time in (("a", 100.0), ("b", 50.0), ("c", 99.0))
    ]
    comparison = compare(*runs)
    table = runs_table(comparison).set_index("run").loc[["b", "c"]]
    expected = [(v.ratio, v.low, v.high) for v in comparison.verdict.values()]
    assert table[["ratio", "interval_low", "interval_high"]].to_numpy() == pytest.approx(np.array(expected), rel=1e-12)
    typical = [comparison.step_time_us(one) for one in runs]
    assert table["ratio"].tolist() == pytest.approx([typical[1] / typical[0], typical[2] / typical[0]])
    assert table["interval_low"].notna().all()


def test_the_input_share_is_that_of_all_step_time():
    frame = steps([100.0, 300.0]).assign(input_us=[50.0, 50.0])
    table = runs_table(compare(BASELINE, recorded("waits", 0, step_count=2, step_frame=frame), FIRST))
    assert table["input_share"].tolist() == [0.0, 0.25, 0.0]


def test_of_one_host_only_its_steps_count():
    frame = pd.concat([steps([100.0] * 3, "a"), steps([900.0] * 3, "b")], ignore_index=True)
    by_host = {host: {"op_stats": ops(OPS), "memory_summary": memory(peak)} for host, peak in (("a", 7), ("b", 9))}
    runs = [
        recorded(name, 0, step_count=3, step_frame=frame, hosts=("a", "b"), by_host=by_host) for name in ("x", "y", "z")
    ]
    table = runs_table(compare(*runs, host="a"))
    assert table["step_time_us_median"].tolist() == [100.0] * 3
    assert table["peak_bytes"].tolist() == [7] * 3


def test_the_op_that_changed_most_in_any_run_is_the_first(diff):
    cells = changes_by_run(diff)
    assert cells.drop_duplicates("row")["op_name"].tolist() == [
        "a/dense/MatMul",
        "a/dense/Cast",
        "a/dense/Relu",
    ], "neither IDLE nor what changed nowhere"
    assert cells["row"].tolist() == [0, 0, 1, 1, 2, 2]
    assert cells["candidate"].tolist() == ["first", "second"] * 3
    assert changes_by_run(diff, n=1)["op_name"].unique().tolist() == ["a/dense/MatMul"]


def test_every_cell_says_what_became_of_the_op(diff):
    cells = changes_by_run(diff).set_index(["op_name", "candidate"])
    assert cells["status"].to_dict() == {
        ("a/dense/MatMul", "first"): MATCHED,
        ("a/dense/MatMul", "second"): MATCHED,
        ("a/dense/Cast", "first"): NEITHER,
        ("a/dense/Cast", "second"): ADDED,
        ("a/dense/Relu", "first"): MATCHED,
        ("a/dense/Relu", "second"): REMOVED,
    }
    matched = cells[cells["status"] == MATCHED]
    assert matched["ratio"].tolist() == [0.4, 0.9, 1.2]
    assert (matched["verdict"] == "untested").all()
    absent = cells[cells["status"] != MATCHED]
    assert absent["ratio"].isna().all() and (absent["verdict"] == "").all()
    assert cells.loc[("a/dense/Cast", "second"), "candidate_us"] == 30
    assert np.isnan(cells.loc[("a/dense/Cast", "second"), "baseline_us"])


def test_op_types_are_added_up():
    more = OPS + "Host MatMul b/dense/MatMul 1 50\n"
    cells = changes_by_run(compare(recorded("base", 0, more), FIRST, SECOND).diffs("op_stats"), by="op_type")
    assert "op_name" not in cells
    first = cells[cells["op_type"] == "MatMul"].set_index("candidate").loc["first"]
    assert (first["baseline_us"], first["candidate_us"]) == (150, 40)
    assert first["ratio"] == pytest.approx(40 / 150)


def test_an_op_that_is_new_stands_apart_from_one_of_the_baseline_by_its_name(diff):
    row = diff[(diff["candidate"] == "first") & (diff["op_name"] == "a/dense/MatMul")]
    twice = pd.concat([diff, row.assign(status=ADDED, self_time_us_baseline=np.nan)], ignore_index=True)
    cells = changes_by_run(twice)
    assert len(cells) == 2 * cells["row"].nunique(), "a cell for each op and candidate, no more"
    named = cells[cells["op_name"] == "a/dense/MatMul"]
    assert named["row"].nunique() == 2
    assert sorted(named["status"]) == sorted([MATCHED, MATCHED, ADDED, NEITHER])


def test_runs_alike_have_nothing_to_show():
    cells = changes_by_run(compare(BASELINE, recorded("copy", 1), recorded("copy 2", 2)).diffs("op_stats"))
    assert cells.empty


def test_another_grouping_is_refused(diff):
    with pytest.raises(Unknown, match="op_name"):
        changes_by_run(diff, by="scope")


def test_a_table_beside_all_runs_has_the_figures_of_each_diff() -> None:
    names = ("filters_512_128", "filters_16_8", "filters_16_8_better_input")
    comparison = compare(*map(loaded_run, names))
    for name in ("op_stats", "memory_peak", "input_pipeline"):
        found = side_by_side(comparison, name)
        metric = str(schema.table(name).headline)
        diff = comparison.diffs(name)
        if name == "op_stats":
            diff = diff[diff["op_type"] != schema.IDLE]
        for position, candidate in enumerate(comparison.candidates, start=1):
            of_run = diff[diff["candidate"] == candidate.id]
            assert found[f"value_{position}"].sum() == pytest.approx(of_run[f"{metric}_candidate"].sum())
            assert found["value_0"].sum() == pytest.approx(of_run[f"{metric}_baseline"].sum())
            both = found[found["value_0"].gt(0) & found[f"value_{position}"].notna()]
            assert both[f"ratio_{position}"].tolist() == pytest.approx(
                (both[f"value_{position}"] / both["value_0"]).tolist()
            )


def test_a_table_beside_all_runs_keeps_rows_of_one_run_apart() -> None:
    found = side_by_side(compare(BASELINE, recorded("a", 1, FASTER), recorded("b", 2, OTHER)), "op_stats")
    cells = found.set_index("op_type")[["value_0", "value_1", "value_2"]]
    assert cells.loc["MatMul"].tolist() == [100, 40, 90]
    assert cells.loc["Relu"].tolist()[:2] == [10, 12] and np.isnan(cells.loc["Relu", "value_2"])
    assert np.isnan(cells.loc["Cast"].tolist()[:2]).all() and cells.loc["Cast", "value_2"] == 30
    assert found["op_type"].tolist()[0] == "MatMul", "what changed most in any run is first"
    with pytest.raises(Unknown, match="table with a headline metric"):
        side_by_side(compare(BASELINE, recorded("a", 1)), "steps")
