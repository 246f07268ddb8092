"""Which events caused which across lines: edges, as (rows of the causes, rows of what they caused)."""

from __future__ import annotations

import numpy as np

from tfcompare.frames.grouping import combinations
from tfcompare.frames.planes import are_on_host, device_planes, events_of_lines
from tfcompare.schema.arrays import Int64
from tfcompare.xspace import XSpace

Edges = tuple[Int64, Int64]

_EXECUTOR = "ExecutorState::Process"
_GET_NEXT = ("IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute")
_MAX_CONTEXT_SIZE = 64  # a context with this many producers and consumers is too common to link events


def launches(space: XSpace) -> Edges:
    """(rows of host events, rows of the device events that they launched).

    Kernels and copies by `correlation_id`; runs of XLA programs on TPU cores by their producer (`_pt`, `_p` to `_ct`,
    `_c`), since cores use the same `run_id` for different programs; ops on TPU cores by the run that they are in.
    """
    sources, kernels = launches_of_kernels(space)
    made, used = (np.flatnonzero(space.has(name)) for name in ("_pt", "_ct"))
    above, *keys_above = _having_both(space, made[are_on_host(space, made)], "_pt", "_p")
    below, *keys_below = _having_both(space, used[~are_on_host(space, used)], "_ct", "_c")
    starts, runs = _join(above, keys_above, below, keys_below)
    start_of = np.full(len(space.events), -1, np.int64)
    start_of[runs] = starts
    runs_of_ops, ops = ops_of_runs(space)
    op_starts = start_of[runs_of_ops]
    is_started = op_starts >= 0
    return np.concatenate([sources, starts, op_starts[is_started]]), np.concatenate([kernels, runs, ops[is_started]])


def launches_of_kernels(space: XSpace) -> Edges:
    """Edges from host events to the kernels and copies that they launched, by `correlation_id`."""
    rows, ids = space.numbers("correlation_id")
    on_host = are_on_host(space, rows)
    return _join(rows[on_host], [ids[on_host]], rows[~on_host], [ids[~on_host]])


def program_runs(space: XSpace) -> Edges:
    """Edges from the host event that starts an XLA program to its runs on TPU cores, by `run_id`."""
    rows, ids = space.numbers("run_id")
    on_host = are_on_host(space, rows)
    latest_first = np.argsort(-space.events.start_ps[rows[on_host]], kind="stable")  # `_join` takes the last
    starts = rows[on_host][latest_first]
    return _join(starts, [ids[on_host][latest_first]], rows[~on_host], [ids[~on_host]])


def ops_of_runs(space: XSpace) -> Edges:
    """Edges from the runs of XLA programs on TPU cores to the ops in them."""
    modules, ops = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for plane in device_planes(space):
        module, op = (
            events_of_lines(space, [i for i in plane.lines if space.lines.name[i] == name])
            for name in ("XLA Modules", "XLA Ops")
        )
        if len(module):
            module = module[np.argsort(space.events.start_ps[module], kind="stable")]
            begin, end = space.events.start_ps[module], space.events.start_ps[module] + space.events.duration_ps[module]
            at = np.searchsorted(begin, space.events.start_ps[op], side="right") - 1
            is_within = (at >= 0) & (space.events.start_ps[op] < end[at])
            modules.append(module[at[is_within]].astype(np.int64))
            ops.append(op[is_within].astype(np.int64))
    return np.concatenate(modules), np.concatenate(ops)


def executors(space: XSpace) -> Edges:
    """Edges from executors to the iterators that they wait for, by `id` and `iter_num`."""
    above, *run_above = _having_both(space, space.rows_named(_EXECUTOR), "id", "iter_num")
    below, *run_below = _having_both(space, space.rows_named(*_GET_NEXT), "id", "iter_num")
    return _join(above, run_above, below, run_below)


def contexts(space: XSpace) -> tuple[Edges, Edges, int]:
    """(edges from producers to their context, edges from contexts to consumers, number of contexts)."""
    if "_pt" not in space.stat_names or "_ct" not in space.stat_names:
        none = np.zeros(0, np.int64)
        return (none, none), (none, none), 0
    above, made_kind, made = _having_both(space, np.flatnonzero(space.has("_pt")), "_pt", "_p")
    below, used_kind, used = _having_both(space, np.flatnonzero(space.has("_ct")), "_ct", "_c")
    pairs, codes = combinations(np.concatenate([made_kind, used_kind]), np.concatenate([made, used]))
    count = len(pairs)
    code_above, code_below = codes[: len(above)], codes[len(above) :]
    sizes = [np.bincount(code, minlength=count) for code in (code_above, code_below)]
    crowded = np.minimum(*sizes) >= _MAX_CONTEXT_SIZE
    above, code_above = above[~crowded[code_above]], code_above[~crowded[code_above]]
    below, code_below = below[~crowded[code_below]], code_below[~crowded[code_below]]
    first = len(space.events)
    return (above, first + code_above), (first + code_below, below), count


def _having_both(space: XSpace, rows: Int64, first: str, second: str) -> tuple[Int64, Int64, Int64]:
    """(the events in `rows` that have both stats, their values of the first, their values of the second)."""
    (values, known), (others, are_known) = space.numbers_of(first, rows), space.numbers_of(second, rows)
    both = known & are_known
    return rows[both], values[both], others[both]


def _join(above: Int64, keys_above: list[Int64], below: Int64, keys_below: list[Int64]) -> Edges:
    """Edges from each event of `below` to the last event of `above` with the same keys."""
    firsts, key = combinations(*(np.append(a, b) for a, b in zip(keys_above, keys_below, strict=True)))
    last = np.full(len(firsts), -1, np.int64)
    last[key[: len(above)]] = above
    parent = last[key[len(above) :]]
    return parent[parent >= 0], below[parent >= 0]
