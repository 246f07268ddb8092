"""Converts a diff of ops to a tree of name scopes, for icicle charts and treemaps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED, VERDICT
from tfcompare.compare.groups.aggregate import GroupJudge, Judged, of_side, with_verdicts, without_idle
from tfcompare.compare.matching.name_tree import MAX_DEPTH
from tfcompare.compare.matching.scopes import in_baseline_scopes
from tfcompare.schema import OP_STATS, SIDES

OWN_TIME = "(self)"
"""The label of the leaf with the self time of an op whose name is also a scope."""

_IDS = ["candidate", "node", "parent", "label", "depth"]
_PRESENCE = ["in_baseline", "in_candidate"]


def scope_tree(diff: pd.DataFrame, metric: str = "self_time_us", judge: GroupJudge | None = None) -> pd.DataFrame:
    """One row for each scope and op of each candidate; IDLE is excluded.

    Columns: `candidate`; `node` (`Host/model/dense`), `parent` (empty for the roots `Host` and `Device`), `label` (the
    last component), `depth` (0 for roots); `<metric>_baseline`, `_candidate` and `_delta`, 0 if nothing ran; `status`
    (`added` or `removed` if everything below is). A scope's figures are the sums over its children. An op whose name is
    also a scope therefore has its self time in a child labelled `OWN_TIME`. Matched ops have the baseline's name,
    added ones are in the baseline's scopes.

    With a `judge`, such as `Pair.group_verdicts`, also `interval_low`, `interval_high`, `verdict` and `evidence`
    of the self time. Each level is tested as one family, consisting of its scopes and ops and the leaf ops of the
    levels above, which together make up the total time.
    """
    busy = without_idle(diff)
    nodes = op_nodes(busy)
    tree = tree_of(busy, nodes, metric)
    return tree if judge is None else _judge(tree, busy, nodes, Judged(OP_STATS.name, metric, judge))


def tree_of(diff: pd.DataFrame, nodes: pd.DataFrame, metric: str = "self_time_us") -> pd.DataFrame:
    """The columns of `scope_tree` without verdicts, of any rows of a diff and their `op_nodes`."""
    metrics = [f"{metric}_baseline", f"{metric}_candidate"]
    level = _leaves(diff, nodes, metrics)
    done: list[pd.DataFrame] = []
    for depth in range(int(level["depth"].max()) if len(level) else 0, -1, -1):
        here = level[level["depth"] == depth].sort_values(["candidate", "node"])
        done.append(here)
        if depth > 0:
            parents = here.drop(columns=["node", "label"]).rename(columns={"parent": "node"})
            parents = parents.assign(depth=depth - 1, parent=_rpartition(parents["node"], 0))
            level = pd.concat([level[level["depth"] < depth], _sum_nodes(parents, metrics)], ignore_index=True)
    tree = pd.concat(done or [level], ignore_index=True).sort_values(["candidate", "node"], ignore_index=True)
    tree[f"{metric}_delta"] = tree[metrics[1]] - tree[metrics[0]]
    status = np.select([~tree["in_baseline"], ~tree["in_candidate"]], [ADDED, REMOVED], MATCHED)
    return tree[[*_IDS, *metrics, f"{metric}_delta"]].assign(status=pd.Series(status, dtype="str"))


def _judge(tree: pd.DataFrame, diff: pd.DataFrame, nodes: pd.DataFrame, judged: Judged) -> pd.DataFrame:
    """The tree with verdicts; each level is tested as one family."""
    paths = [[*_scopes(parent), parent, node] for node, parent in zip(nodes["node"], nodes["parent"], strict=True)]
    position = {key: i for i, key in enumerate(zip(tree["candidate"], tree["node"], strict=True))}
    levels = []
    for depth in range(int(tree["depth"].max()) + 1 if len(tree) else 0):
        at_depth = [path[min(depth, len(path) - 1)] for path in paths]
        places = pd.Series([position[key] for key in zip(diff["candidate"], at_depth, strict=True)], diff.index)
        family = np.unique(places)
        of_row = pd.Series(np.searchsorted(family, places), diff.index)
        number_of = {side: of_row[of_side(diff, side).index] for side in SIDES}
        level = with_verdicts(tree.iloc[family], diff, number_of, judged)
        levels.append(level.loc[level["depth"] == depth, list(VERDICT)])
    return tree.join(pd.concat(levels)) if levels else tree.assign(**dict.fromkeys(VERDICT, np.nan))


def op_nodes(diff: pd.DataFrame) -> pd.DataFrame:
    """Columns `node`, `parent` and `depth`: the place in the tree of the op in each row of a diff."""
    names = (diff["host_or_device"] + "/" + in_baseline_scopes(diff)).tolist()
    scopes = {name: _scopes(name) for name in names}
    all_scopes = {scope for path in scopes.values() for scope in path}
    nodes = [f"{name}/{OWN_TIME}" if name in all_scopes else name for name in names]
    parents = [name if name in all_scopes else scopes[name][-1] for name in names]
    depths = [len(scopes[name]) + (name in all_scopes) for name in names]
    columns = {"node": pd.array(nodes, "str"), "parent": pd.array(parents, "str"), "depth": np.array(depths, np.int64)}
    return pd.DataFrame(columns, diff.index)


def _leaves(diff: pd.DataFrame, nodes: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """The ops as nodes with their position in the tree; ops with equal names are merged."""
    leaves = pd.DataFrame(
        {
            "candidate": diff["candidate"].array,
            **{name: nodes[name].array for name in ("node", "parent", "depth")},
            **{metric: diff[metric].astype("float64").fillna(0.0).array for metric in metrics},
            "in_baseline": (diff["status"] != ADDED).array,
            "in_candidate": (diff["status"] != REMOVED).array,
        }
    )
    return _sum_nodes(leaves, metrics)


def _scopes(node: str) -> list[str]:
    """The scopes that contain a node, outermost first."""
    parts = node.split("/", MAX_DEPTH)
    return ["/".join(parts[:i]) for i in range(1, len(parts))]


def _sum_nodes(nodes: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    groups = nodes.groupby(["candidate", "node", "parent", "depth"], as_index=False)
    added = groups[_PRESENCE].any()
    for metric in metrics:  # in sequence, so that a chart that sums a node's children gets exactly the same number
        sums = np.bincount(groups.ngroup(), weights=nodes[metric], minlength=len(added))
        added[metric] = sums.astype(np.float64)
    return added.assign(label=_rpartition(added["node"], 2))


def _rpartition(nodes: pd.Series, part: int) -> pd.Series:
    return pd.Series([node.rpartition("/")[part] for node in nodes], index=nodes.index, dtype="str")
