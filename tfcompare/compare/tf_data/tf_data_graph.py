"""The aligned graphs of two tf.data executions: matched iterators on the same level, differences marked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tfcompare.compare.tf_data.iterator_tree import display_name, setting, tree_of
from tfcompare.compare.tf_data.iterators import align_iterators, pair_iterators
from tfcompare.compare.tf_data.pipelines import iterators_of

MOST_NODES = 50
"""The maximum number of legible nodes. In a larger graph, nodes on the critical path and slow nodes take precedence."""

_COMPARED_SETTINGS = ("batch_size", "buffer_size", "count", "cycle_length", "block_length", "deterministic")
_COMPARED_COLUMNS = {"parallelism": "parallelism", "buffer_limit": "buffer limit", "autotune": "autotune"}
_SUMS = ("calls", "total_duration_us", "self_time_us")


@dataclass(frozen=True, eq=False)
class Graph:
    """The graph of one side: `nodes` has the columns of `tf_data` and those below; `left_out` nodes are omitted.

    `above`: the row of the nearest shown ancestor, −1 for none; `skipped`: how many nodes between them are omitted;
    `level`: equal for matched nodes of both sides; `alike`: how many identical iterators the node aggregates; `mark`:
    `added`, `removed`, `changed`, `not called` (it exists in the other pipeline, but was not called in that execution)
    or empty; `change`: a description of the change.
    """

    nodes: pd.DataFrame
    left_out: int


def graphs(
    baseline: pd.DataFrame, candidate: pd.DataFrame, names: tuple[set[str], set[str]], most_nodes: int = MOST_NODES
) -> tuple[Graph, Graph]:
    """The graphs of two executions, given by their rows of `tf_data`; either may be empty.

    `names` are the long names in all executions of the two pipelines. Siblings with identical subtrees are merged into
    one node.
    """
    sides = _with_tree(baseline), _with_tree(candidate)
    partners = _partners(*sides)
    levels = _levels(*sides, partners[0])
    marked = _mark(*sides, partners, names)
    merged = (_merge(side.assign(level=level)) for side, level in zip(marked, levels, strict=True))
    found = [_largest_nodes(nodes, most_nodes) for nodes in merged]
    # without levels that are empty on both sides
    each = [side.nodes["level"].to_numpy(np.int64) for side in found]
    used = [np.searchsorted(np.unique(np.concatenate(each)), level) for level in each]
    ours, theirs = (replace(g, nodes=g.nodes.assign(level=own)) for g, own in zip(found, used, strict=True))
    return ours, theirs


def _with_tree(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows in depth-first order, with `above` and `depth`."""
    tree = tree_of(iterators_of(rows))
    ordered = rows.iloc[list(tree.place)].reset_index(drop=True)
    return ordered.assign(above=np.array(tree.parent, np.int64), depth=np.array(tree.depth, np.int64))


def _partners(ours: pd.DataFrame, theirs: pd.DataFrame) -> tuple[list[int], list[int]]:
    partners = [-1] * len(ours), [-1] * len(theirs)
    for pair in pair_iterators(iterators_of(ours), iterators_of(theirs)):
        partners[0][pair.baseline] = pair.candidate
        partners[1][pair.candidate] = pair.baseline
    return partners


def _levels(ours: pd.DataFrame, theirs: pd.DataFrame, partner: list[int]) -> tuple[list[int], list[int]]:
    """The level of each node: below its ancestors on either side."""
    size = len(ours)
    node_of_theirs = {j: i for i, j in enumerate(partner) if j >= 0}
    node = [node_of_theirs.get(j, size + j) for j in range(len(theirs))]
    edges = [(above, i) for i, above in enumerate(ours["above"]) if above >= 0]
    edges += [(node[above], node[j]) for j, above in enumerate(theirs["above"]) if above >= 0]
    below: dict[int, list[int]] = {}
    waits_for: dict[int, int] = {}
    for above, under in edges:
        below.setdefault(above, []).append(under)
        waits_for[under] = waits_for.get(under, 0) + 1
    level = dict.fromkeys([*range(size), *node], 0)
    ready = [n for n in level if n not in waits_for]
    while ready:
        above = ready.pop()
        for under in below.get(above, ()):
            level[under] = max(level[under], level[above] + 1)
            waits_for[under] -= 1
            if not waits_for[under]:
                ready.append(under)
    return [level[i] for i in range(size)], [level[n] for n in node]


def _mark(
    ours: pd.DataFrame, theirs: pd.DataFrame, partners: tuple[list[int], list[int]], names: tuple[set[str], set[str]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    changes = [changed_settings(ours.iloc[i], theirs.iloc[j]) if j >= 0 else "" for i, j in enumerate(partners[0])]
    if ours.empty or theirs.empty:  # the whole graph differs, so marks would add nothing
        return ours.assign(mark="", change=""), theirs.assign(mark="", change="")
    aligned = align_iterators(*([(name, "") for name in side] for side in names))
    both = set(aligned.values()), set(aligned)
    sides = []
    for rows, partner, known, alone in zip((ours, theirs), partners, both, ("removed", "added"), strict=True):
        change = changes if rows is ours else [changes[i] if i >= 0 else "" for i in partner]
        mark = [
            ("changed" if text else "") if other >= 0 else "not called" if name in known else alone
            for name, other, text in zip(rows["long_name"], partner, change, strict=True)
        ]
        sides.append(rows.assign(mark=pd.Series(mark, dtype="str"), change=pd.Series(change, dtype="str")))
    return sides[0], sides[1]


def changed_settings(ours: pd.Series, theirs: pd.Series) -> str:
    """The changed settings of a matched iterator, if known on both sides: `Map → ParallelMap, parallelism 2 → 4`."""
    sides = ours, theirs
    told = [("", *(display_name(str(side["iterator"])) for side in sides))]
    told += [(word, *(_text(side[name]) for side in sides)) for name, word in _COMPARED_COLUMNS.items()]
    told += [(name, *(setting(side, name) for side in sides)) for name in _COMPARED_SETTINGS]
    return ", ".join(f"{word} {was} → {now}".strip() for word, was, now in told if was and now and was != now)


def _text(value: object) -> str:
    return "" if pd.isna(value) else str(value)  # type: ignore[call-overload]


def _merge(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with identical sibling subtrees merged; times and calls are summed."""
    looks = ["iterator", "mark", "change", "on_critical_path", "is_bottleneck"]
    own = list(rows[looks].itertuples(index=False, name=None))
    children: list[list[int]] = [[] for _ in own]
    for row, above in enumerate(rows["above"]):
        if above >= 0:
            children[above].append(row)
    codes: dict[tuple[object, ...], int] = {}
    code = [0] * len(own)
    for row in range(len(own) - 1, -1, -1):
        key = (own[row], tuple(sorted(code[child] for child in children[row])))
        code[row] = codes.setdefault(key, len(codes))
    merged_into = list(range(len(own)))
    seen: dict[tuple[int, int], int] = {}
    for row, above in enumerate(rows["above"].tolist()):
        place = (merged_into[above] if above >= 0 else -1, code[row])
        merged_into[row] = seen.setdefault(place, row)
    sums = rows[list(_SUMS)].groupby(merged_into).sum()
    kept = rows.loc[sums.index].assign(
        **{name: sums[name] for name in _SUMS},
        alike=pd.Series(merged_into).value_counts(),
        start_us=rows["start_us"].groupby(merged_into).min(),
        level=rows["level"].groupby(merged_into).min(),
    )
    number = {row: place for place, row in enumerate(kept.index)}
    above = [number[merged_into[a]] if a >= 0 else -1 for a in kept["above"]]
    return kept.assign(above=np.array(above, np.int64)).reset_index(drop=True)


def _largest_nodes(nodes: pd.DataFrame, most: int) -> Graph:
    """The graph reduced to at most `most` nodes; the root is always included."""
    if len(nodes) <= most:
        return Graph(nodes.assign(skipped=0), 0)
    first = nodes.assign(top=nodes["above"] < 0).sort_values(
        ["is_bottleneck", "top", "on_critical_path", "self_time_us"], ascending=False, kind="stable"
    )
    kept = nodes.loc[sorted(first.index[:most])]
    number = {row: place for place, row in enumerate(kept.index)}
    every = nodes["above"].tolist()
    nearest: list[tuple[int, int]] = []  # each node's nearest shown ancestor and the number of nodes between them
    for above in every:
        if above < 0 or above in number:
            nearest.append((number.get(above, -1), 0))
        else:
            nearest.append((nearest[above][0], nearest[above][1] + 1))
    above, skipped = np.array([nearest[row] for row in kept.index], np.int64).reshape(-1, 2).T
    shown = kept.assign(above=above, skipped=skipped).reset_index(drop=True)
    return Graph(shown, int(nodes["alike"].sum() - kept["alike"].sum()))
