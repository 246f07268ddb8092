"""A graph of which event caused which: by nesting on a thread, and across threads.

Edges are those that xprof draws (`docs/numbers.md`, "Eager" and "Steps"): from an event to those nested in it on its
line; from a kernel launch to the kernel (`correlation_id`); from the start of an XLA program to its runs on TPU cores
(`run_id`), and from those to their ops; from an executor to the iterator it waits for (`id`, `iter_num`); from a
producer to its consumers (`_pt`, `_p` to `_ct`, `_c`). Beyond xprof, from a call to the execution of an XLA program
that it launched on the host's own threads (`executions`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfcompare.frames.edges import Edges, contexts, executors, launches_of_kernels, ops_of_runs, program_runs
from tfcompare.frames.executions import REGION_START, Executions, find_executions
from tfcompare.frames.grouping import largest, smallest
from tfcompare.frames.nesting import enclosing, order_by_start
from tfcompare.frames.planes import device_planes, events_of_lines, host_plane, recorded_lines
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace, lookup
from tfcompare.xspace.compilation import Array, Int, compiled

_REGION_STOP = "ThreadpoolListener::StopRegion"
_LOOPS = ("WhileOp-EvalCond", "WhileOp-StartBody", "ForOp", "ParallelForOp", "ForeverOp")
_MAX_LEVELS = 16  # distinct levels of roots; any more count as the last


@dataclass(frozen=True, eq=False)
class Links:
    """A directed graph. Its nodes are the event rows, followed by one node per producer/consumer context.

    The children of node n are `child[child_first[n]:child_first[n + 1]]`. `around` is the result of `directly_around`.
    """

    around: Int32
    executions: Executions
    child_first: Int32
    child: Int32

    @property
    def nodes(self) -> int:
        """Number of nodes: events and contexts."""
        return len(self.child_first) - 1


def directly_around(space: XSpace) -> Int32:
    """For each event, the row of the innermost event that encloses it on its recorded line, −1 for none.

    Asynchronous events (stat `_a`) neither enclose others nor are enclosed.
    """
    recorded = recorded_lines(space)
    planes = [p for p in (host_plane(space), *device_planes(space)) if p is not None]
    order = events_of_lines(space, [i for p in planes for i in p.lines if recorded[i]])
    if "_a" in space.stat_names:
        order = order[~space.has("_a")[order]]
    line, start, duration = space.events.line, space.events.start_ps, _span_durations(space)
    order_by_start(line, start, duration, order)
    parent = np.full(len(space.events), -1, np.int32)
    parent[order] = np.append(order, np.int32(-1)).take(enclosing(line, start, duration, order))
    return parent


def _span_durations(space: XSpace) -> Int64:
    """The duration of each event. The start event of a thread-pool region lasts until the end of its stop event."""
    events = space.events
    if not len(space.rows_named(REGION_START)) or not len(space.rows_named(_REGION_STOP)):
        return events.duration_ps
    rows, is_start = space.rows_named(REGION_START, _REGION_STOP), space.events_named(REGION_START)
    here, following = rows[:-1], rows[1:]
    region = is_start[here] & ~is_start[following] & (events.line[here] == events.line[following])
    here, following = here[region], following[region]
    until_stop = events.start_ps[following] + events.duration_ps[following] - events.start_ps[here]
    duration = events.duration_ps.copy()
    duration[here] = np.maximum(duration[here], until_stop)
    return duration


def has_loops(space: XSpace) -> bool:
    """Whether the profile contains host-driven loops, for which links between events would mislead."""
    return not set(_LOOPS).isdisjoint(space.metadata_names.tolist())


def link(space: XSpace) -> Links:
    """Builds the graph of which event caused which."""
    producers, consumers, count = contexts(space)
    edges = [launches_of_kernels(space), program_runs(space), ops_of_runs(space), executors(space)]
    around = directly_around(space)
    executions = find_executions(space, around)
    if len(executions.rows):
        launched, is_region = _regions_of_executions(space, around, executions)
        others = ~is_region[consumers[1]]
        consumers = consumers[0][others], consumers[1][others]
        edges += [executions.linked, launched]
    edges += [producers, consumers]
    return Links(around, executions, *_adjacency(around, edges, len(space.events) + count))


def _regions_of_executions(space: XSpace, around: Int32, executions: Executions) -> tuple[Edges, Bools]:
    """(edges from calls to the thread-pool regions in which the executions that they launched run; which events are
    regions with executions).

    The recorded producer of a region is what ran before it on the thread that scheduled it, often the end of the
    execution of an earlier step. A region with executions of several calls belongs to none of them.
    """
    calls, rows = executions.linked
    region = around[rows]
    in_region = (region >= 0) & space.events_named(REGION_START)[region]
    found = region[in_region], calls[in_region], len(space.events)
    first, last = smallest(*found), largest(*found)
    of_one_call = np.flatnonzero(first == last)
    return (first[of_one_call], of_one_call), last >= 0


def nearest_source_value(links: Links, sources: Int64, values: Int32) -> Int32:
    """For each node, the value of its nearest ancestor among `sources`, or its own if it is one; 0 where there is none.

    `values` holds a positive number for each source.
    """
    out, queue = np.zeros(links.nodes, np.int32), np.empty(links.nodes, np.int32)
    out[sources], queue[: len(sources)] = values, sources
    _spread(links.child_first, links.child, queue, len(sources), 0, out)
    return out


def spread_groups(links: Links, roots: Int64, levels: Int64) -> tuple[Int32, Int64]:
    """(group of every node, −1 for none; the root of each group).

    Each root, in the given order, starts a group of all its descendants that have none yet. A root with an ancestor of
    the same level among the roots starts no group.
    """
    ranks = np.minimum(np.unique(levels, return_inverse=True)[1], _MAX_LEVELS - 1)
    is_topmost = np.ones(len(roots), np.bool_)
    queue = np.empty(links.nodes, np.int32)
    for rank in np.unique(ranks):
        below = np.zeros(links.nodes, np.int32)
        _mark_descendants(links.child_first, links.child, roots[ranks == rank], queue, below)
        is_topmost &= (ranks != rank) | (below[roots] == 0)
    group = np.full(links.nodes, -1, np.int32)
    used_roots = np.full(len(roots), -1, np.int64)
    count = _number_groups(links.child_first, links.child, roots[is_topmost], queue, group, used_roots)
    return group, used_roots[:count]


def _adjacency(parent_of_event: Int32, edges: list[tuple[Int64, Int64]], nodes: int) -> tuple[Int32, Int32]:
    """(index of each node's first child, followed by the number of all children; the children of all nodes: those
    nested in each, then those of `edges`)."""
    parents, children = (np.concatenate(ends, dtype=np.int32) for ends in zip(*edges, strict=True))
    first = np.zeros(nodes + 2, np.int32)
    lookup.count_each(parent_of_event, first[2:])
    lookup.count_each(parents, first[2:])
    np.cumsum(first, out=first)
    out = np.empty(first[-1], np.int32)
    lookup.put_each(parent_of_event, first[1:], out)
    _append_children(parents, children, first[1:], out)
    return first[:-1], out


@compiled
def _append_children(parents: Array, children: Array, next_free: Array, out: Array) -> None:
    """Append each child to its parent's children in `out`; `next_free` is the next free position of each parent."""
    for i in range(parents.size):
        at = next_free[parents[i]]
        out[at] = children[i]
        next_free[parents[i]] = at + 1


@compiled
def _spread(first: Array, child: Array, queue: Array, tail: Int, unset: Int, out: Array) -> None:
    """Breadth-first search from the first `tail` nodes of `queue`: each node whose value in `out` is `unset` gets that
    of the node from which it is reached first. Callers pass the same types, so that it is compiled once."""
    head = 0
    while head < tail:
        node = queue[head]
        head += 1
        for at in range(first[node], first[node + 1]):
            below = child[at]
            if out[below] == unset:
                out[below] = out[node]
                queue[tail] = below
                tail += 1


@compiled
def _mark_descendants(first: Array, child: Array, sources: Array, queue: Array, below: Array) -> None:
    """Set `below` to 1 for all descendants of `sources`, not for these themselves."""
    for source in sources:
        for at in range(first[source], first[source + 1]):
            if below[child[at]] == 0:
                below[child[at]], queue[0] = 1, child[at]
                _spread(first, child, queue, np.int64(1), np.int64(0), below)


@compiled
def _number_groups(first: Array, child: Array, roots: Array, queue: Array, group: Array, used_roots: Array) -> Int:
    """Fill `group` of all nodes below `roots` and the root of each group; returns the number of groups."""
    count = 0
    for root in roots:
        if group[root] < 0:
            group[root], queue[0], used_roots[count] = count, root, root
            _spread(first, child, queue, np.int64(1), np.int64(-1), group)
            count += 1
    return count
