"""Two graphs of tf.data over one another: levels, marks, alike siblings as one, and not more nodes than can be read."""

from __future__ import annotations

import pandas as pd

from tests.tf_data_runs import execution
from tfcompare import schema
from tfcompare.compare.tf_data.tf_data_graph import changed_settings, graphs

BEFORE = """
Root 1 critical
 BatchV2 2 critical
  Map 90 critical blamed
   TFRecord 5
"""
AFTER = """
Root 1 critical
 Prefetch 1 critical
  BatchV2 2 critical
   ParallelMapV2 30 critical blamed
    TFRecord 5
"""


def names(frame: pd.DataFrame) -> set[str]:
    return set(frame["long_name"])


def levels(nodes: pd.DataFrame) -> dict[str, int]:
    return dict(zip(nodes["iterator"], nodes["level"], strict=True))


def both(before: str, after: str, most: int = 60) -> list[pd.DataFrame]:
    ours, theirs = execution(before), execution(after)
    return [graph.nodes for graph in graphs(ours, theirs, (names(ours), names(theirs)), most)]


def test_paired_nodes_stand_on_one_level() -> None:
    ours, theirs = both(BEFORE, AFTER)
    assert levels(ours) == {"Root": 0, "BatchV2": 2, "Map": 3, "TFRecord": 4}
    assert levels(theirs) == {"Root": 0, "Prefetch": 1, "BatchV2": 2, "ParallelMapV2": 3, "TFRecord": 4}
    assert theirs["mark"].tolist() == ["", "added", "", "changed", ""]
    assert theirs["change"].tolist()[3] == ours["change"].tolist()[2] == "Map → ParallelMap"


def test_what_the_other_pipeline_has_but_did_not_call_is_not_removed() -> None:
    ours, theirs = execution(BEFORE), execution(BEFORE.replace("\n   TFRecord 5", ""))
    left, _ = graphs(ours, theirs, (names(ours), names(ours)))
    assert left.nodes["mark"].tolist() == ["", "", "", "not called"]
    left, _ = graphs(ours, theirs, (names(ours), names(theirs)))
    assert left.nodes["mark"].tolist() == ["", "", "", "removed"]


def test_beside_nothing_nothing_is_marked() -> None:
    left, right = graphs(execution(BEFORE), schema.TF_DATA.empty(), (set(), set()))
    assert left.nodes["mark"].tolist() == [""] * 4
    assert right.nodes.empty


FILES = "Root 1 critical\n Interleave 2 critical\n" + "".join(
    f"  FlatMap 3{' critical' if i == 5 else ''}\n   TFRecord {10 + i}{' critical blamed' if i == 5 else ''}\n"
    for i in range(16)
)


def test_siblings_that_are_alike_are_one_node_that_adds_them_up() -> None:
    nodes, _ = both(FILES, FILES)
    assert nodes["iterator"].tolist() == ["Root", "Interleave", "FlatMap", "TFRecord", "FlatMap", "TFRecord"]
    assert sorted(nodes["alike"]) == [1, 1, 1, 1, 15, 15]
    assert nodes["self_time_us"].sum() == execution(FILES)["self_time_us"].sum()
    assert nodes["calls"].sum() == 34
    blamed = nodes[nodes["is_bottleneck"]].iloc[0]
    assert (blamed["iterator"], blamed["alike"], blamed["self_time_us"]) == ("TFRecord", 1, 15)


def test_of_a_large_graph_the_bottleneck_the_top_and_the_critical_path_are_kept() -> None:
    deep = "Root 1 critical\n" + "".join(
        " " * (i + 1) + f"Map {i}{' critical blamed' if i == 90 else ' critical' if i < 90 else ''}\n"
        for i in range(200)
    )
    ours, theirs = execution(deep), execution(BEFORE)
    graph, _ = graphs(ours, theirs, (names(ours), names(theirs)), 10)
    nodes = graph.nodes
    assert len(nodes) == 10
    assert graph.left_out == 191
    assert nodes["is_bottleneck"].sum() == 1
    assert nodes["iterator"].iloc[0] == "Root"
    assert nodes["self_time_us"].tolist() == [1, *range(82, 91)]
    assert nodes["skipped"].tolist() == [0, 82, *[0] * 8]
    assert nodes["above"].tolist() == [-1, *range(9)]


def test_levels_without_nodes_are_left_out() -> None:
    wide = "Root 1\n" + "".join(f" Zip {i}\n  Map {i} \n" for i in range(4))
    ours, theirs = both(wide, wide, 3)
    assert set(ours["level"]) | set(theirs["level"]) == set(range(1 + max(ours["level"].max(), theirs["level"].max())))


def test_settings_that_only_one_side_tells_did_not_change() -> None:
    told = {"parallelism": 2, "settings": "cycle_length=4, ram_budget=9", "autotune": "true"}
    was, now = (execution("Interleave 1").iloc[0].copy() for _ in range(2))
    for name, value in told.items():
        was[name] = value
    assert changed_settings(was, now) == ""
    for name, value in {"parallelism": 8, "settings": "cycle_length=2, ram_budget=1", "autotune": "true"}.items():
        now[name] = value
    assert changed_settings(was, now) == "parallelism 2 → 8, cycle_length 4 → 2"
