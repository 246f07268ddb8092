"""Where the nodes of a flame graph are, and what colour they have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.growth.counting import count_calls
from tfcompare.compare.stats.verdict import FASTER, SLOWER, UNCLEAR, UNTESTED
from tfcompare.views.flame.layout import IS_ADDED, IS_REMOVED, LEAST_COLOURED, MATCHED, layout


def tree(*rows: tuple[str, str, float, float], verdicts: dict[str, str] | None = None) -> pd.DataFrame:
    """Rows of node, parent, baseline, candidate."""
    nodes = pd.DataFrame(rows, columns=["node", "parent", "us_baseline", "us_candidate"])
    status = np.select([nodes["us_baseline"] == 0, nodes["us_candidate"] == 0], ["added", "removed"], "matched")
    nodes = nodes.assign(label=nodes["node"].str.upper(), status=status)
    return nodes if verdicts is None else nodes.assign(verdict=nodes["node"].map(verdicts), evidence="")


OPPOSITE = tree(
    ("model", "", 30, 30),
    ("encoder", "model", 10, 2),
    ("decoder", "model", 15, 25),
    ("gone", "decoder", 5, 0),
    ("new", "decoder", 0, 20),
    ("loss", "", 1, 1),
)


def by_node(tree: pd.DataFrame) -> pd.DataFrame:
    return layout(tree, "us").set_index("node")


def test_a_node_is_as_wide_as_the_longer_side_of_its_own_part_and_its_children() -> None:
    found = by_node(OPPOSITE)
    own_of_decoder, own_of_model = 10.0, 5.0
    assert found["width"].to_dict() == {
        "model": own_of_model + 10 + 5 + 20 + own_of_decoder,
        "loss": 1,
        "decoder": 5 + 20 + own_of_decoder,
        "encoder": 10,
        "new": 20,
        "gone": 5,
    }


def test_siblings_stand_side_by_side_within_their_parent_the_widest_first() -> None:
    found = layout(OPPOSITE, "us")
    assert found["node"].tolist() == ["model", "loss", "decoder", "encoder", "new", "gone"]
    assert found["left"].tolist() == [0, 50, 0, 35, 0, 20]
    assert found["depth"].tolist() == [0, 0, 1, 1, 2, 2]
    assert found["parent"].tolist() == [-1, -1, 0, 0, 2, 2]
    assert found["label"].tolist() == [node.upper() for node in found["node"]]


def test_the_status_says_what_only_one_run_has() -> None:
    status = by_node(OPPOSITE)["status"]
    assert (status["new"], status["gone"], status["model"]) == (IS_ADDED, IS_REMOVED, MATCHED)


def test_swapping_the_runs_mirrors_colours_and_leaves_widths() -> None:
    swapped = OPPOSITE.rename(columns={"us_baseline": "us_candidate", "us_candidate": "us_baseline"})
    ours, theirs = layout(OPPOSITE, "us"), layout(swapped, "us")
    assert ours["node"].tolist() == theirs["node"].tolist()
    assert ours[["left", "width"]].equals(theirs[["left", "width"]])
    assert ours["change"].tolist() == (-theirs["change"]).tolist()
    assert ours["change"].any()


def test_a_run_compared_with_itself_has_no_colours() -> None:
    itself = OPPOSITE.assign(us_candidate=OPPOSITE["us_baseline"], status="matched")
    assert not layout(itself, "us")["change"].any()


def test_a_change_is_log2_of_the_ratio_up_to_twice_the_time() -> None:
    found = by_node(tree(("a", "", 4, 4 * 2**0.5), ("b", "", 1, 100), ("c", "", 0, 1), ("d", "", 1, 0)))
    assert found["change"].to_dict() == pytest.approx({"a": 0.5, "b": 1, "c": 1, "d": -1})


def test_a_verdict_decides_whether_a_change_has_a_colour() -> None:
    verdicts = {"small": SLOWER, "less": FASTER, "noise": UNCLEAR, "untested": UNTESTED}
    rows = [("small", "", 100.0, 101.0), ("less", "", 100.0, 99.0), ("noise", "", 1.0, 2.0), ("untested", "", 1.0, 2.0)]
    change = by_node(tree(*rows, verdicts=verdicts))["change"]
    assert change.to_dict() == {"small": LEAST_COLOURED, "less": -LEAST_COLOURED, "noise": 0, "untested": 1}


def test_an_unclear_node_has_a_colour_if_significant_ones_below_it_are_most_of_its_change() -> None:
    rows = [
        ("scope", "", 90.0, 40.0),
        ("op", "scope", 90.0, 40.0),
        ("one", "op", 60.0, 20.0),
        ("two", "op", 30.0, 20.0),
    ]
    verdicts = dict.fromkeys(["scope", "op", "two"], UNCLEAR)
    change = by_node(tree(*rows, verdicts=verdicts | {"one": FASTER}))["change"]
    assert change.to_dict() == {"scope": -1, "op": -1, "one": -1, "two": 0}, "40 of 50"
    swapped = [(node, parent, theirs, ours) for node, parent, ours, theirs in rows]
    assert (by_node(tree(*swapped, verdicts=verdicts | {"one": SLOWER}))["change"] == -change).all()
    change = by_node(tree(*rows, verdicts=verdicts | {"one": UNCLEAR, "two": FASTER}))["change"]
    assert not change[["scope", "op"]].any() and change["two"] < 0, "10 of 50"
    against = [("scope", "", 30.0, 70.0), ("one", "scope", 20.0, 10.0), ("two", "scope", 10.0, 60.0)]
    change = by_node(tree(*against, verdicts={"scope": UNCLEAR, "one": FASTER, "two": UNCLEAR}))["change"]
    assert change["scope"] == 0, "what is significant changed against it"


def test_what_took_no_time_is_left_out_and_what_is_unknown_stays_unknown() -> None:
    found = by_node(tree(("idle", "", 0, 0), ("within", "idle", 0, 0), ("unknown", "", np.nan, 3)))
    assert found.index.tolist() == ["unknown"]
    assert np.isnan(found.loc["unknown", "baseline"]) and found.loc["unknown", "width"] == 3
    assert found.loc["unknown", "change"] == 0


def test_a_run_alone_is_as_wide_as_its_times() -> None:
    alone = OPPOSITE.assign(us_candidate=OPPOSITE["us_baseline"])
    found = by_node(alone)
    assert found.loc["model", "width"] == 30


def test_an_empty_tree_has_no_nodes() -> None:
    assert layout(OPPOSITE.iloc[:0], "us").empty


def test_the_calls_do_not_grow_with_the_rows() -> None:
    def wide(count: int) -> pd.DataFrame:
        rows = [("all", "", 2.0 * count, 1.0 * count), *((f"op{i}", "all", 2.0, 1.0) for i in range(count))]
        return tree(*rows)

    few, many = wide(100), wide(10_000)
    calls = [count_calls(lambda shown=shown: layout(shown, "us")).python for shown in (few, few, many)]
    assert calls[2] <= calls[1] * 1.2
