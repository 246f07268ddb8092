"""Where the nodes of a tree are in a flame graph, and what colour they have."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.compare.stats.verdict import FASTER, LESS, MORE, SAME, SLOWER, UNCLEAR
from tfcompare.schema import SIDES

Numbers = NDArray[np.float64]

MATCHED, IS_ADDED, IS_REMOVED = 0, 1, 2
"""The values of `status`."""
LEAST_COLOURED = 0.07
"""The change, as log2, from which a node has a colour: 5 %, `UNCHANGED` of `views/canvas/theme.js`."""
MOST_COLOURED = 1.0
"""The change that has the full colour: twice or half the time, `MOST_CHANGE` there."""
CLAIMS = (FASTER, SLOWER, LESS, MORE)
"""The verdicts that claim a change."""


def layout(tree: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The nodes of a tree that took any time, row by row from the roots on, and in a row from left to right.

    `tree` is that of a `FlameGraph`. Columns: `node`, `label`; `parent`, the position of the parent's row, −1 for
    roots; `depth`, 0 for roots; `left` and `width` in the unit of the metric; `baseline`, `candidate`; `status`; and
    `change`, log2 of candidate ÷ baseline within ±`MOST_COLOURED`, 0 where the change has no significance.

    The width of a leaf is the longer side's time. That of a node is its own part, also the longer side's, and those of
    its children. So bars never overlap, and are the same if the sides are swapped; where the time of one child
    grew and that of another shrank, the parent is wider than its time on either side.
    """
    times = tree[[f"{metric}_{side}" for side in SIDES]].to_numpy(dtype=np.float64)
    parent = pd.Index(tree["node"]).get_indexer(pd.Index(tree["parent"]))
    depth = _depths(parent)
    width = _widths(np.nan_to_num(times), parent, depth)
    left = np.zeros(len(tree))
    order: list[NDArray[np.int64]] = []
    for level in range(int(depth.max(initial=-1)) + 1):
        here = np.flatnonzero((depth == level) & (width > 0))
        above = parent[here]
        here = here[np.lexsort((-width[here], left[above] if level else np.zeros(len(here))))]
        left[here] = _beside(width[here], parent[here])
        if level:
            left[here] += left[parent[here]]
        order.append(here)
    rows = np.concatenate([*order, np.zeros(0, dtype=np.int64)])
    position = np.full(len(tree) + 1, -1, dtype=np.int64)  # the last is for the parent −1 of roots
    position[rows] = np.arange(len(rows))
    found = tree.iloc[rows].reset_index(drop=True)
    status = np.select([found["status"] == ADDED, found["status"] == REMOVED], [IS_ADDED, IS_REMOVED], MATCHED)
    return found[["node", "label"]].assign(
        parent=position[parent[rows]],
        depth=depth[rows],
        left=left[rows],
        width=width[rows],
        baseline=times[rows, 0],
        candidate=times[rows, 1],
        status=status,
        change=_changes(found, times[rows], _claimed(tree, times, parent, depth)[rows]),
    )


def _depths(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many nodes are above each."""
    depth = np.zeros(len(parent), dtype=np.int64)
    above = parent
    while (has_any := above >= 0).any():
        depth += has_any
        above = np.where(has_any, parent[above], -1)
    return depth


def _widths(times: Numbers, parent: NDArray[np.int64], depth: NDArray[np.int64]) -> Numbers:
    """The width of each node: the longer side of its own part, and the widths of its children."""
    is_child = parent >= 0
    inside = np.zeros_like(times)
    np.add.at(inside, parent[is_child], times[is_child])
    width: Numbers = (times - inside).max(axis=1, initial=0.0)
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = depth == level
        np.add.at(width, parent[here], width[here])
    return width


def _beside(width: Numbers, parent: NDArray[np.int64]) -> Numbers:
    """Where each node begins within its parent; siblings follow each other."""
    before = np.cumsum(width) - width
    is_first = np.diff(parent, prepend=-2) != 0
    return np.asarray(before - before[is_first][np.cumsum(is_first) - 1])


def _claimed(tree: pd.DataFrame, times: Numbers, parent: NDArray[np.int64], depth: NDArray[np.int64]) -> Numbers:
    """How much of the change of each node is significant: all of it, or what is below it."""
    if "verdict" not in tree:
        return np.zeros(len(tree))
    is_significant = tree["verdict"].isin(CLAIMS).to_numpy()
    claimed: Numbers = np.where(is_significant, np.nan_to_num(times[:, 1] - times[:, 0]), 0.0)
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = depth == level
        inside = np.zeros(len(tree))
        np.add.at(inside, parent[here], claimed[here])
        claimed = np.where(is_significant, claimed, claimed + inside)
    return claimed


def _changes(nodes: pd.DataFrame, times: Numbers, claimed: Numbers) -> Numbers:
    """The changes as log2, for colours. A verdict decides if there is one; otherwise the size of the change does.

    A sum may be less certain than its parts: what is unclear has a colour if what is `claimed` is most of its change.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        change: Numbers = np.nan_to_num(np.log2(times[:, 1]) - np.log2(times[:, 0]), posinf=np.inf, neginf=-np.inf)
    change = np.clip(change, -MOST_COLOURED, MOST_COLOURED)
    if "verdict" in nodes:
        is_significant = nodes["verdict"].isin(CLAIMS).to_numpy()
        least = np.sign(change) * np.maximum(np.abs(change), LEAST_COLOURED)
        change = np.where(is_significant, least, change)
        delta = np.nan_to_num(times[:, 1] - times[:, 0])
        is_most = claimed * np.sign(delta) > np.abs(delta) / 2
        is_unclear = (nodes["verdict"] == UNCLEAR).to_numpy() & ~is_most
        change = np.where(is_unclear | (nodes["verdict"] == SAME).to_numpy(), 0.0, change)
    return change
