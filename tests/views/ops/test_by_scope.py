"""The flame graph of Op stats and the table beside it: the same ops, and a node restricts the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.profiles import loaded_run
from tests.views.flat import only_pair, pair_of, shown
from tfcompare.compare.pair import Pair
from tfcompare.comparison import compare
from tfcompare.schema import SIDES
from tfcompare.views.blocks import FlameGraph, Table, Text
from tfcompare.views.ops.view import VIEW

TIMES = [f"self_time_us_{side}" for side in SIDES]
CONV = "Host/autoencoder_1/image_1"


@pytest.fixture(scope="module")
def pair() -> Pair:
    return pair_of("filters_512_128", "filters_16_8")


def tree(pair: Pair, **options: Any) -> pd.DataFrame:
    (found,) = shown(VIEW, pair, FlameGraph, **options)
    return found.draw()


def rows(pair: Pair, **options: Any) -> pd.DataFrame:
    return next(iter(shown(VIEW, pair, Table, **options))).rows


def sums(frame: pd.DataFrame) -> list[float]:
    return [float(total) for total in frame[TIMES].sum()]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"idle": True},
        {"per_occurrence": True},
        {"where": "Host", "filter": "conv2d backprop"},
        {"by": "op_type", "filter": "conv2d"},
        {"by": "scope", "filter": "image_1"},
        {"by": "op_name", "filter": "no such op"},
    ],
    ids=str,
)
def test_the_roots_add_up_to_the_table(pair: Pair, options: dict[str, Any]) -> None:
    found = tree(pair, **options)
    roots = found[found["parent"] == ""]
    assert sums(roots) == pytest.approx(sums(rows(pair, **options)))
    assert len(found) == 0 or roots[TIMES].to_numpy().min() > 0


def test_a_node_leaves_the_ops_below_it_however_they_are_grouped(pair: Pair) -> None:
    node = tree(pair).set_index("node").loc[CONV]
    ops = rows(pair, scope=CONV)
    assert 1 < len(ops) < len(rows(pair)) and ops["op_name"].str.startswith("autoencoder_1/image_1/").all()
    for options in ({}, {"by": "op_type"}, {"by": "scope"}):
        assert sums(rows(pair, scope=CONV, **options)) == pytest.approx(node[TIMES].tolist())
    (text,) = [one for one in shown(VIEW, pair, Text, scope=CONV) if one.clears]
    assert (text.text, text.clears) == (f"In `{CONV}`", "scope")
    leaf = tree(pair)["node"][lambda nodes: nodes.str.startswith(CONV)].iloc[-1]
    assert rows(pair, scope=leaf)["op_name"].tolist() == [leaf.removeprefix("Host/")]
    assert len(tree(pair, scope=CONV)) == len(tree(pair)), "the graph shows where the node is"


def test_an_unknown_node_leaves_all(pair: Pair) -> None:
    assert len(rows(pair, scope="Host/no_such")) == len(rows(pair))
    (text,) = [one for one in shown(VIEW, pair, Text, scope="Host/no_such") if one.clears]
    assert text.text == "The runs have no such scope: all ops are shown."


def test_a_node_has_its_verdict_only_if_all_of_it_is_shown(pair: Pair) -> None:
    whole, part = (tree(pair, **options).set_index("node") for options in ({}, {"filter": "image_1"}))
    pd.testing.assert_frame_equal(whole, pair.scopes().set_index("node")[list(whole)], check_like=True)
    assert whole["verdict"]["Host"] == part["verdict"][CONV] == "faster"
    assert pd.isna(part["verdict"]["Host"])


def test_swapped_sides_mirror_and_a_run_with_itself_shows_no_change(pair: Pair) -> None:
    there, back = tree(pair), tree(pair_of("filters_16_8", "filters_512_128"))
    roots = [one[one["parent"] == ""].set_index("node")[TIMES] for one in (there, back)]
    assert np.allclose(roots[0].to_numpy(), roots[1].to_numpy()[:, ::-1])
    assert (there["status"] == "removed").sum() == (back["status"] == "added").sum()
    run = loaded_run("filters_16_8")
    same = tree(only_pair(compare(run, replace(run, id="copy", name="copy"))))
    assert (same[TIMES[0]] == same[TIMES[1]]).all() and set(same["status"]) == {"matched"}
