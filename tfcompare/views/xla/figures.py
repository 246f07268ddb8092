"""The instructions of compiled programs for reading: sentences, figures, their tree, and unknown costs."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED, change
from tfcompare.compare.executions import execution_time_us, floats
from tfcompare.compare.matching.name_tree import MAX_DEPTH
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.compare.pooling import mean_of
from tfcompare.compare.utilization import (
    COSTS,
    ROOFLINE,
    has_unknown_cost,
    instructions_in_steps,
    roofline_efficiency,
    unknown_share,
)
from tfcompare.compare.work.terms import work_changes
from tfcompare.errors import TfcompareError
from tfcompare.schema import SIDES
from tfcompare.schema.hlo import MOST_UNKNOWN, TRANSFERS, UNKNOWN_SOURCE
from tfcompare.text import as_code, some_of
from tfcompare.units import format_delta, format_percent, format_percent_change, format_time_us
from tfcompare.views.advice.model import code
from tfcompare.views.key_figures import KeyFigure, Unit
from tfcompare.views.ops.work_words import work_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tfcompare.compare.pair import Pair

_US_PER_S = 1e6
TIME_MEANING = (
    "Self time of all its instructions on one device in one execution. Instructions may run at the same time."
)
FLOP_RATE_MEANING = (
    "Floating-point operations of all its instructions by their self time; unknown if those of more than 1 % of that "
    "time are."
)
BANDWIDTH_MEANING = (
    "Bytes that all its instructions read and write at least, by their self time; unknown as the FLOP rate is."
)
ROOFLINE_MEANING = (
    "Least time that the device's peak FLOP rate and bandwidth allow its instructions, as a share of the time taken; "
    "the Overview's is of all programs in the steps."
)
By = Literal["category", "scope", "source"]
"""The stacks of the last are read on demand."""
STACK = "source_stack"
TIME = "execution_time_us"
UNKNOWN_SCOPE = "unknown"
_SIDES = [f"{TIME}_{role}" for role in SIDES]
_SEPARATOR = "\n"
_CALL = re.compile(r"(?:(.*) \()?(.*?)(:\d+)(?::\d+)?\)?")
"""A call of a stack: function, file and line, of TPUs also a column."""
_INSIDE = "<locals>."
"""In Python's names of functions, after those of the functions that they are defined in."""
_FOLDERS = re.compile(r".*[/\\]")
_INSTRUCTION = "%"
"""Before an instruction's name in `node`, since a scope may have the same name."""
_LEAST_SHARE = 0.001  # less is 0.0 % in the sentence
_NAMED = 3
"""Instructions that a sentence names."""
_CPU = "CPU"
_CALLED = {"flops": "FLOPs", "bytes_accessed": "bytes accessed"}


def figures(rows: pd.DataFrame) -> list[KeyFigure]:
    """Time per execution, rates and the share of the peak of the program whose instructions `rows` are."""
    names = ("self_time_us", "flops", "bytes_accessed", "peak_flops_per_s", "peak_bytes_per_s")
    sides = [pd.DataFrame({name: floats(rows, name, role) for name in names}) for role in SIDES]
    figures: tuple[tuple[str, Unit, Iterable[float], str], ...] = (
        ("Time per execution", "µs", execution_time_us(rows), TIME_MEANING),
        ("FLOP rate", "FLOP/s", [_rate(rows, "flops", role) for role in SIDES], FLOP_RATE_MEANING),
        ("Bandwidth", "bytes/s", [_rate(rows, "bytes_accessed", role) for role in SIDES], BANDWIDTH_MEANING),
        (ROOFLINE, "share", map(roofline_efficiency, sides), ROOFLINE_MEANING),
    )
    found = []
    for label, unit, (ours, theirs), meaning in figures:
        if not (np.isnan(ours) and np.isnan(theirs)):
            found.append(KeyFigure(label, unit, ours, theirs, "neither", meaning))
    return found


def _rate(rows: pd.DataFrame, cost: str, role: str) -> float:
    """The cost by self time; unknown if it is for a part of the time, but for starting and awaiting transfers."""
    times, costs = floats(rows, "self_time_us", role), floats(rows, cost, role)
    is_transfer = rows["category"].str.endswith(TRANSFERS)
    is_unknown = costs.isna() | (rows[f"bandwidth_bytes_per_s_{role}"].isna() & ~is_transfer)
    if times[is_unknown].sum() > MOST_UNKNOWN * times.sum():
        return np.nan
    return _total(costs) / (_total(times) or np.nan) * _US_PER_S


def sentence(rows: pd.DataFrame, name: str, runs: tuple[str, str]) -> str:
    """`jit_f` takes 3.10 ms per execution in `B`, 2.40 ms in `A` (+29.2 %), and the largest change, in Markdown.

    `rows` are the instructions of the program of that name; `runs` are the names of baseline and candidate.
    """
    ours, theirs = execution_time_us(rows)
    program, (baseline, candidate) = code(name), map(code, runs)
    if np.isnan(ours) or np.isnan(theirs):
        time, there = (theirs, candidate) if np.isnan(ours) else (ours, baseline)
        return f"{program} ran only in {there}: {format_time_us(time)} per execution."
    if ours == theirs:
        return f"{program} takes {format_time_us(ours)} per execution in both runs."
    text = f"{program} takes {format_time_us(theirs)} per execution in {candidate}, "
    text += f"{format_time_us(ours)} in {baseline}"
    text += f" ({format_percent_change(theirs / ours)})" if ours > 0 else ""
    sign = np.sign(theirs - ours)
    changes = change(*(rows[f"execution_time_us_{role}"] for role in SIDES)) * sign
    if changes.max() > 0:  # in the direction of the program
        row = rows.iloc[int(changes.argmax())]
        text += f"; largest change: {code(row['hlo_op'])} ({format_delta(float(changes.max() * sign), 'µs')})"
        text += f", {work}" if (work := work_words(row)) else ""
    return f"{text}."


def sentence_alone(rows: pd.DataFrame, name: str) -> str:
    """`jit_f` takes 784 ms per execution. Longest instruction: `copy-done.4` (24.8 %), in Markdown."""
    times = rows["execution_time_us_baseline"]
    total = _total(times)
    longest = code(rows["hlo_op"].iloc[int(times.argmax())])
    share = format_percent(float(times.max()) / total) if total > 0 else "0 %"
    return f"{code(name)} takes {format_time_us(total)} per execution. Longest instruction: {longest} ({share})."


def _total(cells: pd.Series) -> float:
    return float(cells.sum(min_count=1))


def time_tree(rows: pd.DataFrame, program: str, by: By) -> pd.DataFrame:
    """One row for each node: the program, its categories, calls and lines of the source, or name scopes, its
    instructions.

    `rows` are `executions.instructions` of one program of that name, by source `with_stacks`. Columns: `node`, `parent`
    (empty for the program), `label`, `depth`, `is_instruction`, `execution_time_us_baseline` and `_candidate` (µs, 0
    where nothing ran; a node's are the sums over its children), `width_us` (the sum over its instructions of the longer
    of both times), `status` (`added` or `removed` if all its instructions are), `work` (the `work_changes` of all its
    instructions, empty if they differ).
    """
    times = rows[_SIDES].astype("float64").fillna(0.0).set_axis(_SIDES, axis=1)
    leaves = times.assign(
        width_us=times.max(axis=1),
        in_baseline=rows["status"] != ADDED,
        in_candidate=rows["status"] != REMOVED,
        work=work_changes(rows),
    )
    paths = _paths(rows, program, by)
    deepest = max(map(len, paths), default=1)
    tree = pd.concat([_level(leaves, paths, depth, by) for depth in range(deepest)], ignore_index=True)
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


def with_keys(tree: pd.DataFrame, by: By) -> pd.DataFrame:
    """A `time_tree` by `by` whose nodes are called by their keys (`node_key`)."""
    keys = {node: node_key(by, node) for node in tree["node"]}
    above = tree["parent"].map(keys).where(tree["depth"] > 0, "")  # a program may have no name, as what is above it
    return tree.assign(node=tree["node"].map(keys), parent=above)


def below_node(
    rows: pd.DataFrame, program: str, key: str, stacked: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows
) -> tuple[str, pd.DataFrame] | None:
    """(label, instructions) of the node with this key in any of the trees of `rows`; None if there is none.

    Nodes are found that another selection of the rows has. `stacked` gives the rows `with_stacks`.
    """
    for by in get_args(By):
        paths = _paths(stacked(rows) if by == "source" else rows, program, by)
        texts = [_SEPARATOR.join(path) for path in paths]
        names: dict[str, str] = {}
        for parts in map(str.split, texts, [_SEPARATOR] * len(texts)):
            names |= {_SEPARATOR.join(parts[: depth + 1]): name for depth, name in enumerate(parts)}
        for path in paths:
            names |= {_SEPARATOR.join(path[: depth + 1]): name for depth, name in enumerate(path)}
        found = next((node for node in names if node_key(by, node) == key), None)
        if found is not None:
            is_below = [text == found or text.startswith(f"{found}{_SEPARATOR}") for text in texts]
            return _label(names[found].removeprefix(_INSTRUCTION), by), rows[is_below]
    return None


def node_key(by: By, node: str) -> str:
    """A short text that identifies a node of a tree in a URL."""
    return blake2b(f"{by}{_SEPARATOR}{node}".encode(), digest_size=6).hexdigest()


def _level(leaves: pd.DataFrame, paths: list[tuple[str, ...]], depth: int, by: By) -> pd.DataFrame:
    """The nodes at one depth, each with the sums over its instructions."""
    reaching = [path for path in paths if len(path) > depth]
    is_instruction = [len(path) == depth + 1 for path in reaching]
    last = zip(reaching, is_instruction, strict=True)
    nodes = leaves[np.array([len(path) > depth for path in paths], np.bool_)].assign(
        node=[_SEPARATOR.join(path[: depth + 1]) for path in reaching],
        parent=[_SEPARATOR.join(path[:depth]) for path in reaching],
        label=[
            path[depth].removeprefix(_INSTRUCTION) if is_last else _label(path[depth], by) for path, is_last in last
        ],
        depth=depth,
        is_instruction=is_instruction,
    )
    by_node = nodes.groupby(["node", "parent", "label", "depth", "is_instruction"], as_index=False, sort=False)
    presence = ["in_baseline", "in_candidate"]
    found = by_node[[*_SIDES, "width_us"]].sum().assign(**by_node[presence].any()[presence])
    work = by_node["work"].agg(["first", "nunique"])
    return found.assign(work=work["first"].where(work["nunique"] == 1, ""))


def _paths(rows: pd.DataFrame, program: str, by: By) -> list[tuple[str, ...]]:
    """The names on the way from the program to each instruction."""
    inner: list[tuple[str, ...]]
    if by == "category":
        inner = [(name or "unknown",) for name in rows["category"]]
    elif by == "source":
        stacks = _of_either(rows, STACK) if f"{STACK}_baseline" in rows else [""] * len(rows)
        sources = zip(stacks, _of_either(rows, "source"), strict=True)
        inner = _folded([_calls(stack or source or UNKNOWN_SOURCE) for stack, source in sources])
    else:
        inner = _scopes(rows)
    names = rows["hlo_op"].tolist()
    return [(program, *groups, f"{_INSTRUCTION}{name}") for groups, name in zip(inner, names, strict=True)]


def _scopes(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """The name scopes and the op of each instruction."""
    names = [plain_name(op) or UNKNOWN_SCOPE for op in _of_either(rows, "op_name")]
    return _folded([tuple(name.split("/", MAX_DEPTH)) for name in names])


def _calls(stack: str) -> tuple[str, ...]:
    """The calls of a stack: of each the function, or its file, and then the line."""
    out: list[str] = []
    for call in stack.split(_SEPARATOR):
        if (found := _CALL.fullmatch(call)) is None:
            out.append(call)
        else:
            function, file, line = found.groups()
            out += [f"{function} ({file}{at})" if function else f"{file}{at}" for at in ("", line)]
    return tuple(out)


def _folded(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The paths, of which a group with just one other in it is one with that."""
    below: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for path in set(paths):
        for depth, name in enumerate(path):
            below[path[:depth]].add(name)
    ends, folded = set(paths), []
    for path in paths:
        parts: list[str] = []
        for depth, name in enumerate(path):
            above = path[:depth]
            if parts and above not in ends and len(below[above]) == 1:
                parts[-1] += f"{_SEPARATOR}{name}"
            else:
                parts.append(name)
        folded.append(tuple(parts))
    return folded


def _label(name: str, by: By) -> str:
    """The name of a group for reading: scopes as one path; calls without folders and what their functions are defined
    in, and a function once with its line."""
    parts = name.split(_SEPARATOR)
    if by != "source":
        return "/".join(parts)
    functions = [*(_calls(part)[0] for part in parts[1:]), ""]
    shown = [part for part, next_one in zip(parts, functions, strict=True) if part != next_one]
    places = (part.rpartition(" (") for part in shown)
    return " › ".join(head.rpartition(_INSIDE)[2] + mark + _FOLDERS.sub("", place) for head, mark, place in places)


def stacked(pair: Pair, rows: pd.DataFrame) -> pd.DataFrame:
    """The instructions of a pair `with_stacks`, if the profiles that have these are still there."""
    try:
        return with_stacks(rows, *pair.tables("hlo_texts"))
    except TfcompareError:  # the page shows it
        return rows


def with_stacks(rows: pd.DataFrame, baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """`rows`, which are `executions.instructions`, with `source_stack_baseline` and `_candidate` of both sides'
    `hlo_texts`; missing where unknown, or where the side lacks the instruction."""
    is_added, columns = rows["status"] == ADDED, {}
    for role, texts, suffix in zip(SIDES, (baseline, candidate), ("", "_candidate"), strict=True):
        known = texts[texts[STACK] != ""]
        stacks = dict(zip(zip(known["program"], known["hlo_op"], strict=True), known[STACK], strict=True))
        keys = [rows[key].where(is_added, rows[f"{key}{suffix}"]) for key in ("program", "hlo_op")]
        found = pd.Series(list(map(stacks.get, zip(*keys, strict=True))), rows.index, dtype="str")
        columns[f"{STACK}_{role}"] = found.mask(is_added) if role == SIDES[0] else found
    return rows.assign(**columns)


def _of_either(rows: pd.DataFrame, column: str) -> pd.Series:
    """The text of the baseline if it has the instruction, else that of the candidate."""
    return rows[f"{column}_baseline"].fillna(rows[f"{column}_candidate"]).fillna("")


def unknown_costs_sentence(pair: Pair) -> str:
    """Which share of the device time of all compiled programs has no known cost, in Markdown; empty if all have one."""
    make = partial(_unknown_costs_sentence, pair)
    return pair.cached("unknown costs", lambda: make([side.each(instructions_in_steps) for side, _ in pair.shown]))


def unknown_costs_sentence_on(pair: Pair, rows: pd.DataFrame) -> str:
    """As `sentence`, of the instructions `rows`, which are of the diff of `hlo_ops`."""
    names = ("self_time_us", *COSTS)
    sides = [
        pd.DataFrame({"hlo_op": rows["hlo_op"], **{name: rows[f"{name}_{role}"].astype("float64") for name in names}})
        for role in SIDES[: len(pair.shown)]
    ]
    return _unknown_costs_sentence(pair, [[side] for side in sides])


def _unknown_costs_sentence(pair: Pair, captures: Sequence[Sequence[pd.DataFrame]]) -> str:
    """`captures` are the instructions of each capture of each side."""
    shares = [mean_of([*map(unknown_share, frames)]) for frames in captures]
    lacking = {at: share for at, share in enumerate(shares) if share >= _LEAST_SHARE}
    if not lacking:
        return ""
    unknown = pd.concat([frame[has_unknown_cost(frame)] for at in lacking for frame in captures[at]])
    lacked = [called for cost, called in _CALLED.items() if unknown[cost].isna().any()]
    what = lacked[0] if len(lacked) == 1 else "cost"
    times = unknown.groupby("hlo_op")["self_time_us"].sum().sort_values(ascending=False, kind="stable")
    on_device = "device " if any(run.info.device_type != _CPU for _, run in pair.shown) else ""
    first, *others = [(at, format_percent(share)) for at, share in lacking.items()]
    whole = f"{first[1]} of the {on_device}time of compiled programs"
    if not pair.is_single:
        whole += f" in {pair.marked[first[0]]}"
        whole += "".join(f" and {share} in {pair.marked[at]}" for at, share in others)
    return f"{whole} has no known {what}: {some_of(map(as_code, times.index), _NAMED)}."
