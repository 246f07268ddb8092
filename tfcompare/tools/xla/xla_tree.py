"""The instructions of an XLA program as a tree, by category, source line or name scope."""

from __future__ import annotations

from collections import defaultdict
from hashlib import blake2b
from typing import Literal, get_args

import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED, change
from tfcompare.compare.matching.name_tree import MAX_DEPTH
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.schema import SIDES
from tfcompare.schema.hlo import UNKNOWN_SOURCE

By = Literal["category", "source", "scope"]
TIME = "execution_time_us"
UNKNOWN_SCOPE = "unknown"
_SIDES = [f"{TIME}_{role}" for role in SIDES]
_SEPARATOR = "\n"
_INSTRUCTION = "%"
"""Before an instruction's name in `node`, since a scope may have the same name."""


def time_tree(rows: pd.DataFrame, program: str, by: By) -> pd.DataFrame:
    """One row for each node: the program, its categories, source files and lines, or name scopes, its instructions.

    `rows` are `executions.instructions` of one program of that name. Columns: `node`, `parent` (empty for the program),
    `label`, `depth`, `is_instruction`, `execution_time_us_baseline` and `_candidate` (µs, 0 where nothing ran; a node's
    are the sums over its children), `width_us` and `change_us` (sums over the instructions of the longer of both times,
    and of the size of the change), `status` (`added` or `removed` if all its instructions are).
    """
    times = rows[_SIDES].astype("float64").fillna(0.0).set_axis(_SIDES, axis=1)
    leaves = times.assign(
        width_us=times.max(axis=1),
        change_us=(times[_SIDES[1]] - times[_SIDES[0]]).abs(),
        in_baseline=rows["status"] != ADDED,
        in_candidate=rows["status"] != REMOVED,
    )
    paths = _paths(rows, program, by)
    deepest = max(map(len, paths), default=0)
    tree = pd.concat([_level(leaves, paths, depth) for depth in range(deepest)], ignore_index=True)
    status = pd.Series(MATCHED, tree.index, dtype="str")
    status = status.mask(~tree["in_baseline"], ADDED).mask(~tree["in_candidate"], REMOVED)
    return tree.drop(columns=["in_baseline", "in_candidate"]).assign(status=status)


def groups(tree: pd.DataFrame, by: By) -> pd.DataFrame:
    """The nodes of a `time_tree` by `by` between program and instructions, each followed by those below it.

    Of nodes with the same parent, the one whose time changed most comes first, and of those the longest. Adds
    `execution_time_us_delta`, `key`, which identifies the node in a URL, and `width_share`, its part of the program's
    `width_us`.
    """
    inner = tree[~tree["is_instruction"] & (tree["depth"] > 0)]
    changes = change(inner[_SIDES[0]], inner[_SIDES[1]])
    keys = [node_key(by, node) for node in inner["node"]]
    whole = float(tree.loc[tree["depth"] == 0, "width_us"].sum()) or 1.0
    inner = inner.assign(key=keys, size=changes.abs(), width_share=inner["width_us"] / whole)
    inner = inner.assign(**{f"{TIME}_delta": changes})
    inner = inner.sort_values(["size", "width_us"], ascending=False, kind="stable").drop(columns="size")
    below: dict[str, list[str]] = defaultdict(list)
    for parent, node in zip(inner["parent"], inner["node"], strict=True):
        below[parent].append(node)
    order, waiting = [], below[tree["node"].iloc[0]][::-1] if len(tree) else []
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += below[node][::-1]
    return inner.set_index("node", drop=False).loc[order].reset_index(drop=True)


def below_node(rows: pd.DataFrame, program: str, key: str) -> tuple[str, pd.DataFrame] | None:
    """(label, instructions) of the node with this key in any of the trees of `rows`; None if there is none."""
    for by in get_args(By):
        paths = _paths(rows, program, by)
        nodes = {path[:depth] for path in paths for depth in range(2, len(path))}
        found = next((node for node in nodes if node_key(by, _SEPARATOR.join(node)) == key), None)
        if found is not None:
            return found[-1], rows[[path[: len(found)] == found for path in paths]]
    return None


def node_key(by: By, node: str) -> str:
    """A short text that identifies a node of a tree in a URL."""
    return blake2b(f"{by}{_SEPARATOR}{node}".encode(), digest_size=6).hexdigest()


def _level(leaves: pd.DataFrame, paths: list[tuple[str, ...]], depth: int) -> pd.DataFrame:
    """The nodes at one depth, each with the sums over its instructions."""
    reaching = [path for path in paths if len(path) > depth]
    is_instruction = [len(path) == depth + 1 for path in reaching]
    named = leaves[[len(path) > depth for path in paths]].assign(
        node=[_SEPARATOR.join(path[: depth + 1]) for path in reaching],
        parent=[_SEPARATOR.join(path[:depth]) for path in reaching],
        label=[
            path[depth].removeprefix(_INSTRUCTION if is_last else "")
            for path, is_last in zip(reaching, is_instruction, strict=True)
        ],
        depth=depth,
        is_instruction=is_instruction,
    )
    by_node = named.groupby(["node", "parent", "label", "depth", "is_instruction"], as_index=False, sort=False)
    presence = ["in_baseline", "in_candidate"]
    return by_node[[*_SIDES, "width_us", "change_us"]].sum().assign(**by_node[presence].any()[presence])


def _paths(rows: pd.DataFrame, program: str, by: By) -> list[tuple[str, ...]]:
    """The names on the way from the program to each instruction."""
    groups_of = {"category": _by_category, "source": _by_source, "scope": _by_scope}[by](rows)
    names = rows["hlo_op"].tolist()
    return [(program, *inner, f"{_INSTRUCTION}{name}") for inner, name in zip(groups_of, names, strict=True)]


def _by_category(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    return [(name or "unknown",) for name in rows["category"]]


def _by_source(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """The source file and line of each instruction: the baseline's, if it has the instruction."""
    sources = _of_either(rows, "source")
    return [(source.rpartition(":")[0] or UNKNOWN_SOURCE, source or UNKNOWN_SOURCE) for source in sources]


def _by_scope(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """The name scopes and the op of each instruction, without scopes that only wrap the program.

    A scope with nothing but another scope in it is one with that, as in `model/encoder`.
    """
    names = [plain_name(op) or UNKNOWN_SCOPE for op in _of_either(rows, "op_name")]
    paths = [tuple(name.split("/", MAX_DEPTH)) for name in names]
    below: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for path in set(paths):
        for depth, name in enumerate(path):
            below[path[:depth]].add(name)
    ends = set(paths)
    return [_folded(path, below, ends) for path in paths]


def _folded(
    path: tuple[str, ...], below: dict[tuple[str, ...], set[str]], ends: set[tuple[str, ...]]
) -> tuple[str, ...]:
    parts: list[str] = []
    for depth, name in enumerate(path):
        above = path[:depth]
        if parts and above not in ends and len(below[above]) == 1:
            parts[-1] += f"/{name}"
        else:
            parts.append(name)
    return tuple(parts)


def _of_either(rows: pd.DataFrame, column: str) -> pd.Series:
    """The text of the baseline if it has the instruction, else that of the candidate."""
    return rows[f"{column}_baseline"].fillna(rows[f"{column}_candidate"]).fillna("")
