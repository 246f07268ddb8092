from __future__ import annotations

import pandas as pd
import pytest
from compare_runs import ops, run
from hypothesis import given
from hypothesis import strategies as st
from test_compare_diff import op_rows, op_stats

from tests.laws import law
from tfcompare.compare import compare
from tfcompare.compare.groups.aggregate import group_diff, largest_changes
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.errors import Unknown

BEFORE = ops("""
    Host   IDLE     IDLE                      0   500
    Host   Conv2D   model/conv/Conv2D         2  4000
    Host   AddV2    model/add                 2   40
    Host   ReadVariableOp  model/add/Read     2   2
    Host   MatMul   model/dense/MatMul        2  100
    Device MatMul   model/dense/MatMul        2  10
    Host   Relu     relu                      2  60
""")
AFTER = ops("""
    Host   IDLE       IDLE                    0   900
    Host   Conv2D     model/conv/Conv2D       1  500
    Host   AddV2      model/add               1  20
    Host   ReadVariableOp  model/add/Read     1  1
    Host   _MklMatMul model/dense_3/MatMul    1  50
    Device MatMul     model/dense_3/MatMul    1  5
    Host   Gelu       model/gelu/Gelu         1  10
""")


def diff_of(before: pd.DataFrame = BEFORE, after: pd.DataFrame = AFTER, **options: str) -> pd.DataFrame:
    return compare(run("before", before, step_count=2), run("after", after), **options).table("op_stats")


def text(frame: pd.DataFrame, columns: list[str]) -> list[str]:
    return [" ".join("–" if pd.isna(v) else str(v) for v in row) for row in frame[columns].itertuples(index=False)]


def test_the_largest_changes_count_an_absent_side_as_nothing_and_leave_idle_out():
    assert text(largest_changes(diff_of(), 3), ["op_name", "self_time_us_per_step_change", "status"]) == [
        "model/conv/Conv2D -1500.0 matched",
        "relu -30.0 removed",
        "model/gelu/Gelu 10.0 added",
    ]
    by_count = largest_changes(diff_of(per="run"), metric="occurrences")
    assert by_count["occurrences_change"].tolist() == [-2.0, -1.0, -1.0, -1.0, 1.0, -1.0, -1.0]
    assert len(largest_changes(diff_of(after=BEFORE, per="run"))) == 0
    with pytest.raises(Unknown, match="unknown metric of the diff 'nope'"):
        largest_changes(diff_of(), metric="nope")


def test_each_candidate_has_its_own_largest_changes():
    comparison = compare(run("before", BEFORE), run("z", AFTER), run("a", AFTER))
    assert largest_changes(comparison.table("op_stats"), 2)["candidate"].tolist() == ["z", "z", "a", "a"]


def test_by_op_type_each_side_counts_under_its_own_type():
    groups = group_diff(diff_of(), "op_type")
    time = "self_time_us_per_step"
    assert text(groups, ["host_or_device", "op_type", f"{time}_baseline", f"{time}_candidate", "status", "match"]) == [
        "Host Conv2D 2000.0 500.0 matched exact",
        "Host IDLE 250.0 900.0 matched exact",
        "Host MatMul 50.0 – removed –",
        "Host _MklMatMul – 50.0 added –",
        "Host Relu 30.0 – removed –",
        "Host Gelu – 10.0 added –",
        "Host AddV2 20.0 20.0 matched exact",
        "Device MatMul 5.0 5.0 matched exact",
        "Host ReadVariableOp 1.0 1.0 matched exact",
    ]


def test_by_scope_a_renamed_layer_counts_under_the_baselines_name():
    groups = group_diff(diff_of(per="run"), "scope")
    columns = ["host_or_device", "scope", "self_time_us_baseline", "self_time_us_candidate", "status", "match"]
    assert text(groups, [*columns, "verdict"]) == [
        "Host model/conv 4000.0 500.0 matched exact untested",
        "Host IDLE 500.0 900.0 matched exact untested",
        "Host (no scope) 60.0 – removed – –",
        "Host model/dense 100.0 50.0 matched canonical untested",
        "Host model 40.0 20.0 matched exact untested",
        "Host model/gelu – 10.0 added – –",
        "Device model/dense 10.0 5.0 matched canonical untested",
        "Host model/add 2.0 1.0 matched exact untested",
    ]
    assert list(groups.columns[:3]) == ["candidate", "host_or_device", "scope"]
    assert groups["occurrences_delta"].dtype == "Int64"


def test_by_name_and_by_nothing_there_is():
    assert len(group_diff(diff_of(), "op_name")) == 8
    with pytest.raises(Unknown, match="unknown grouping 'color'"):
        group_diff(diff_of(), "color")


def test_identical_runs_group_to_same():
    comparison = compare(run("a", BEFORE, content="x"), run("b", BEFORE, content="x"))
    assert set(group_diff(comparison.table("op_stats"), "op_type")["verdict"]) == {"same"}


def test_the_tree_of_scopes():
    tree = scope_tree(diff_of(per="run"))
    columns = ["node", "parent", "label", "depth", "self_time_us_baseline", "self_time_us_candidate", "status"]
    assert text(tree, columns) == [
        "Device  Device 0 10.0 5.0 matched",
        "Device/model Device model 1 10.0 5.0 matched",
        "Device/model/dense Device/model dense 2 10.0 5.0 matched",
        "Device/model/dense/MatMul Device/model/dense MatMul 3 10.0 5.0 matched",
        "Host  Host 0 4202.0 581.0 matched",
        "Host/model Host model 1 4142.0 581.0 matched",
        "Host/model/add Host/model add 2 42.0 21.0 matched",
        "Host/model/add/(self) Host/model/add (self) 3 40.0 20.0 matched",
        "Host/model/add/Read Host/model/add Read 3 2.0 1.0 matched",
        "Host/model/conv Host/model conv 2 4000.0 500.0 matched",
        "Host/model/conv/Conv2D Host/model/conv Conv2D 3 4000.0 500.0 matched",
        "Host/model/dense Host/model dense 2 100.0 50.0 matched",
        "Host/model/dense/MatMul Host/model/dense MatMul 3 100.0 50.0 matched",
        "Host/model/gelu Host/model gelu 2 0.0 10.0 added",
        "Host/model/gelu/Gelu Host/model/gelu Gelu 3 0.0 10.0 added",
        "Host/relu Host relu 1 60.0 0.0 removed",
    ]


slowly = law(15)


@slowly
@given(op_rows, op_rows)
def test_the_parts_of_a_tree_sum_to_their_parent(before, after):
    comparison = compare(run("a", op_stats(before)), run("b", op_stats(after)), run("c", op_stats(before)), per="run")
    diff = comparison.table("op_stats")
    tree = scope_tree(diff)
    assert not tree.duplicated(["candidate", "node"]).any()
    for side in ("self_time_us_baseline", "self_time_us_candidate"):
        sums: dict[tuple[str, str], float] = {}
        for row in tree.itertuples():
            sums[row.candidate, row.parent] = sums.get((row.candidate, row.parent), 0.0) + getattr(row, side)
        values = tree.set_index(["candidate", "node"])[side]
        assert all(total == values[parent] for parent, total in sums.items() if parent[1])
        roots = tree[tree["parent"] == ""].groupby("candidate")[side].sum()
        busy = diff[diff["op_type"] != "IDLE"].groupby("candidate")[side].sum()
        pd.testing.assert_series_equal(roots, busy, check_names=False, rtol=1e-12)


@slowly
@given(op_rows, op_rows, st.sampled_from(["op_name", "op_type", "scope"]))
def test_grouping_loses_nothing(before, after, by):
    diff = compare(run("a", op_stats(before)), run("b", op_stats(after)), per="run").table("op_stats")
    groups = group_diff(diff, by)
    assert not groups.duplicated(["candidate", "host_or_device", by]).any()
    for column in ("self_time_us_baseline", "self_time_us_candidate", "occurrences_baseline", "occurrences_candidate"):
        assert groups[column].sum() == pytest.approx(diff[column].sum())
