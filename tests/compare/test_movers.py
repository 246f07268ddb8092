"""The largest changes, groups by type and scope, the tree of scopes, and layers of which XLA compiled one side."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest
from compare_runs import ops, run, text
from hypothesis import given
from test_diff import SIDES, op_rows, op_stats

from tests.laws import law
from tests.profiles import compared_runs
from tfcompare.compare.groups.aggregate import group_diff, largest_changes
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.pair import Per
from tfcompare.comparison import compare
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


@cache
def diff_of(per: Per = "step") -> pd.DataFrame:
    return compare(run("before", BEFORE, step_count=2), run("after", AFTER), per=per).diffs("op_stats")


def test_the_largest_changes_count_an_absent_side_as_nothing_and_leave_idle_out():
    assert text(largest_changes(diff_of(), 3), ["op_name", "self_time_us_change", "status"]) == [
        "model/conv/Conv2D -1500.0 matched",
        "relu -30.0 removed",
        "model/gelu/Gelu 10.0 added",
    ]
    by_count = largest_changes(diff_of("run"), metric="occurrences")
    assert by_count["occurrences_change"].tolist() == [-2.0, -1.0, -1.0, -1.0, 1.0, -1.0, -1.0]
    same = compare(run("before", BEFORE), run("after", BEFORE)).diffs("op_stats")
    assert len(largest_changes(same)) == 0
    with pytest.raises(Unknown, match="unknown metric of the diff 'nope'"):
        largest_changes(diff_of(), metric="nope")
    comparison = compare(run("before", BEFORE), run("z", AFTER), run("a", AFTER))
    assert largest_changes(comparison.diffs("op_stats"), 2)["candidate"].tolist() == ["z", "z", "a", "a"]


def test_by_op_type_each_side_counts_under_its_own_type():
    groups = group_diff(diff_of(), "op_type")
    time = "self_time_us"
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
    groups = group_diff(diff_of("run"), "scope")
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
    with pytest.raises(Unknown, match="unknown grouping 'color'"):
        group_diff(diff_of(), "color")


def test_the_tree_of_scopes():
    tree = scope_tree(diff_of("run"))
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


@law(6)
@given(op_rows, op_rows)
def test_the_parts_of_a_tree_sum_to_their_parent_and_grouping_loses_nothing(before, after):
    comparison = compare(run("a", op_stats(before)), run("b", op_stats(after)), run("c", op_stats(before)), per="run")
    diff = comparison.diffs("op_stats")
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
    for by in ("op_name", "op_type", "scope"):
        groups = group_diff(diff, by)
        assert not groups.duplicated(["candidate", "host_or_device", by]).any()
        for column in (f"{metric}_{side}" for metric in ("self_time_us", "occurrences") for side in SIDES):
            assert groups[column].sum() == pytest.approx(diff[column].sum())


PLAIN = ops("""
    Host MatMul       StatefulPartitionedCall/net/hidden/MatMul            20 400
    Host BiasAdd      StatefulPartitionedCall/net/hidden/BiasAdd           20 50
    Host Relu         StatefulPartitionedCall/net/hidden/Relu              20 30
    Host _FusedMatMul StatefulPartitionedCall/net/head/BiasAdd             20 200
    Host MatMul       StatefulPartitionedCall/gradient_tape/net/hidden/MatMul_1 20 300
    Host Sub          StatefulPartitionedCall/loss/sub                     20 10
""")
COMPILED = ops("""
    Host MatMul       net/hidden/MatMul                                    20 100
    Host Relu         net/hidden/Relu                                      20 60
    Host MatMul       net/head/MatMul                                      20 80
    Host AddV2        gradient_tape/net/hidden/Add/add                     20 90
    Host Unknown      copy.3                                               20 5
    Host Mul          extra/mul                                            20 7
""")


def by_scope(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """The self time of both sides by scope, without the scope that wraps all of one side."""
    diff = compare(run("a", before), run("b", after), per="run").diffs("op_stats")
    rows = group_diff(diff, "scope").fillna({"self_time_us_baseline": 0.0, "self_time_us_candidate": 0.0})
    names = rows["scope"].str.removeprefix("StatefulPartitionedCall/")
    times = zip(rows["self_time_us_baseline"], rows["self_time_us_candidate"], strict=True)
    return dict(zip(names, times, strict=True))


def test_a_layer_is_one_row_whatever_it_was_compiled_to_from_either_side() -> None:
    layers = by_scope(PLAIN, COMPILED)
    assert layers == {
        "net/hidden": (480, 160),
        "net/head": (200, 80),
        "gradient_tape/net/hidden": (300, 0),
        "gradient_tape/net/hidden/Add": (0, 90),
        "loss": (10, 0),
        "(no scope)": (0, 5),
        "extra": (0, 7),
    }
    assert sum(ours for ours, _ in layers.values()) == PLAIN["self_time_us"].sum()
    assert sum(theirs for _, theirs in layers.values()) == COMPILED["self_time_us"].sum()
    assert {name: times[::-1] for name, times in by_scope(COMPILED, PLAIN).items()} == layers


def test_the_tree_has_a_layer_once() -> None:
    diff = compare(run("a", PLAIN), run("b", COMPILED), per="run").diffs("op_stats")
    tree = scope_tree(diff).set_index("node")
    root = "Host/StatefulPartitionedCall"
    sides = ["self_time_us_baseline", "self_time_us_candidate"]
    assert tree.loc[f"{root}/net/head", sides].to_list() == [200, 80]
    assert tree.loc[f"{root}/gradient_tape/net/hidden", sides].to_list() == [300, 90]
    assert tree.loc["Host", sides].to_list() == [990, 342]
    assert "Host/net" not in tree.index


def test_a_renumbered_layer_takes_its_new_ops_along() -> None:
    before = ops("Host MatMul dense_3/MatMul 1 40\nHost Relu dense_3/Relu 1 4\nHost Cast dense_3/Cast 1 1")
    after = ops("Host MatMul dense_5/MatMul 1 30\nHost Relu dense_5/Relu 1 5\nHost Tanh dense_5/sub/Tanh 1 2")
    assert by_scope(before, after) == {"dense_3": (45, 35), "dense_3/sub": (0, 2)}


def test_a_layer_that_could_be_either_of_two_stays_where_it_is() -> None:
    before = ops("Host A StatefulPartitionedCall/x/a 1 1\nHost B jit(f)/x/b 1 1")
    after = ops("Host C x/c 1 5")
    diff = compare(run("a", before), run("b", after), per="run").diffs("op_stats")
    assert set(group_diff(diff, "scope")["scope"]) == {"StatefulPartitionedCall/x", "jit(f)/x", "x"}


def test_two_compiled_runs_have_all_their_layers_in_common() -> None:
    diff = compared_runs("tensorflow_filters_128_32", "tensorflow_filters_16_8").diffs("op_stats")
    rows = group_diff(diff, "scope").set_index("scope")
    layers = ["encoder_outer", "encoder_inner", "decoder_inner", "decoder_outer", "image"]
    assert set(rows.loc[[*layers, *(f"gradient_tape/{layer}" for layer in layers)], "status"]) == {"matched"}
