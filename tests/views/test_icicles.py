"""The icicle of name scopes: parts add up, small ones are merged, chains are folded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.views import chart_samples as samples
from tests.views.chart_samples import METRIC
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.views.icicles import SMALLER, fold_chains, log_ratio, merge_small_scopes, scope_icicle

SIDES = [f"{METRIC}_baseline", f"{METRIC}_candidate"]


def children_add_up(nodes: pd.DataFrame) -> bool:
    for column in SIDES:
        below = nodes[nodes["parent"] != ""].groupby("parent")[column].sum()
        own = nodes.set_index("node")[column].loc[below.index]
        if not np.allclose(below, own):
            return False
    return True


def test_every_node_is_the_sum_of_its_children_and_a_scope_that_holds_one_scope_is_drawn_with_it():
    tree = scope_tree(samples.diff())
    merged = merge_small_scopes(tree, METRIC)
    assert children_add_up(tree) and children_add_up(merged) and children_add_up(fold_chains(merged))
    folded = fold_chains(tree).set_index("node")
    chain = folded.loc["Host/gradient_tape/autoencoder/conv2d_1/Conv2D"]
    assert (chain["label"], chain["parent"]) == ("gradient_tape/autoencoder/conv2d_1/Conv2D", "Host")
    assert folded.loc["Host", "label"] == "Host"


def test_what_is_too_small_to_see_is_one_node():
    names = [f"model/op_{i}" for i in range(50)]
    nodes = pd.DataFrame(
        {
            "node": ["Host", "Host/model", *(f"Host/{name}" for name in names), "Host/large"],
            "parent": ["", "Host", *["Host/model"] * 50, "Host"],
            "label": ["Host", "model", *(name[6:] for name in names), "large"],
            SIDES[0]: [100_050.0, 50.0, *[1.0] * 50, 100_000.0],
            SIDES[1]: [100_050.0, 50.0, *[1.0] * 50, 100_000.0],
            "status": "matched",
        }
    )
    merged = merge_small_scopes(nodes, METRIC)
    assert merged["label"].tolist() == ["Host", "large", "1 smaller"]
    assert merged[SIDES[0]].tolist() == [100_050.0, 100_000.0, 50.0]


def test_colours_are_symmetric_and_end_at_eight_times():
    ratio = log_ratio(np.array([1.0, 2.0, 1.0, 0.0, 5.0, 0.0, 1.0]), np.array([2.0, 1.0, 1.0, 7.0, 0.0, 0.0, 100.0]))
    assert ratio.tolist() == [1.0, -1.0, 0.0, 3.0, -3.0, 0.0, 3.0]


def test_the_figure_shows_both_runs_time_and_its_change():
    figure = scope_icicle(scope_tree(samples.diff()), METRIC, per="step", place="host")
    icicle = figure.data[0]
    at = list(icicle.ids).index("Host/autoencoder/conv2d/Relu")
    assert icicle.values[at] == pytest.approx(4400.0)
    assert icicle.customdata[at].tolist() == ["−90.0 %", "Host/autoencoder/conv2d/Relu", "4.00 ms", "400 µs", ""]
    assert icicle.marker.colors[at] == -3.0
    assert icicle.branchvalues == "total"


def test_hovering_tells_the_verdict_of_a_scope_that_has_one_and_what_only_one_side_has():
    tree = scope_tree(samples.diff(candidate=samples.op_stats(samples.FAST, without="max_pooling2d")))
    icicle = scope_icicle(tree.assign(verdict="unclear", evidence="single"), METRIC, per="step", place="host").data[0]
    told = dict(zip(icicle.ids, icicle.customdata, strict=True))
    assert told["Host/autoencoder"][4] == "<br>? inconclusive"
    assert {texts[4] for node, texts in told.items() if node.endswith(SMALLER + ")")} <= {""}
    assert told["Host/autoencoder/max_pooling2d/MaxPool"][0] == "removed"
