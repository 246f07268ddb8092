"""The ops of a pair as a tree: where they ran, their name scopes, and the ops themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.diff import VERDICT
from tfcompare.compare.groups.scope_tree import op_nodes, tree_of
from tfcompare.compare.matching.manual import with_distinct_names
from tfcompare.views.ops.figures import ops_of
from tfcompare.views.view import by_role

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair

TIME = "self_time_us"


def nodes_of(pair: Pair, *, idle: bool) -> pd.DataFrame:
    """The `op_nodes` of the rows of `ops_of`."""

    def make() -> pd.DataFrame:
        return op_nodes(with_distinct_names(ops_of(pair, idle=idle), pair.manual_pairs))

    return pair.cached(("op nodes", idle), make)


def tree(pair: Pair, rows: pd.DataFrame, *, idle: bool) -> pd.DataFrame:
    """The columns of `Pair.scopes` for some rows of `ops_of`, so that the roots add up to these.

    A node keeps its verdict if the rows have everything below it.
    """
    found = tree_of(rows, nodes_of(pair, idle=idle).loc[rows.index], TIME)
    whole, times = pair.scopes().set_index("node").reindex(found["node"]), by_role(TIME)
    is_whole = (whole[times].to_numpy() == found[times].to_numpy()).all(axis=1)
    return found.assign(**{name: whole[name].where(is_whole).array for name in VERDICT})


def below(pair: Pair, rows: pd.DataFrame, node: str, *, idle: bool) -> pd.DataFrame | None:
    """The rows of `ops_of` at a node of the tree or below it; None if no op of the pair is."""
    nodes = nodes_of(pair, idle=idle)["node"]
    is_below = (nodes == node) | nodes.str.startswith(f"{node}/")
    return rows[is_below[rows.index]] if is_below.any() else None
