"""Which span of one run is the partner of which span of the other: the same op, at the same occurrence in its step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.compare.groups.fused_rows import single_ops
from tfcompare.compare.matching.plain_names import plain_type
from tfcompare.frames.grouping import combinations
from tfcompare.frames.planes import HOST_PLANE
from tfcompare.schema import SIDES
from tfcompare.schema.arrays import Bools, Int64
from tfcompare.views.timeline.lanes import LanePair
from tfcompare.views.timeline.run_timeline import NONE, HostTimeline

PairedRows = tuple[Int64, Int64]

OP = ("host_or_device", "op_type", "op_name")


@dataclass(frozen=True, eq=False)
class Identities:
    """What the spans of both sides are, so that equal spans have equal numbers.

    `op` is the row of the diff of `op_stats` that a span belongs to, `NONE` for a span that is no op. `what` tells
    apart different kernels of an op and different events that are no ops; `NONE` for spans that cannot have a
    partner. `on_device` and `op_on_device` are these two by device. `order` sorts the spans by start.
    """

    op: PairedRows
    what: PairedRows
    on_device: PairedRows
    op_on_device: PairedRows
    order: PairedRows
    duration_ps: PairedRows


def identities(
    timelines: Sequence[HostTimeline], lanes: Sequence[LanePair], op_stats: pd.DataFrame, kernel_stats: pd.DataFrame
) -> Identities:
    """What each span is, by the matches that all pages use: rows of the diffs of `op_stats` and `kernel_stats`.

    Both diffs are of the timelines' hosts only.
    """
    ours, theirs = timelines
    op = _ops(ours, lanes, op_stats, 0), _ops(theirs, lanes, op_stats, 1)
    kind = [_kinds(timeline, lanes, side) for side, timeline in enumerate(timelines)]
    # a number for each op, and for each kind of lane, whose spans that are no ops pair among themselves
    other = [np.where(one >= 0, one + len(op_stats), NONE) for one in kind]
    code = np.concatenate([np.where(own >= 0, own, no_op) for own, no_op in zip(op, other, strict=True)])
    name = np.concatenate(_names(ours, theirs, kernel_stats))
    both = np.where(code >= 0, pd.factorize(code * (int(name.max(initial=0)) + 1) + name)[0], NONE)
    size = len(ours.spans)
    plane = np.concatenate(_planes(ours, theirs))
    ops, planes = np.concatenate(op), int(plane.max(initial=0)) + 1
    on_device, op_on_device = (np.where(of >= 0, pd.factorize(of * planes + plane)[0], NONE) for of in (both, ops))
    first, second = (timeline.spans for timeline in timelines)
    order = tuple(np.argsort(spans["start_ps"].to_numpy(), kind="stable") for spans in (first, second))
    duration = first["duration_ps"].to_numpy(), second["duration_ps"].to_numpy()
    what, on_devices, ops_on_devices = ((of[:size], of[size:]) for of in (both, on_device, op_on_device))
    return Identities(op, what, on_devices, ops_on_devices, (order[0], order[1]), duration)


def _planes(ours: HostTimeline, theirs: HostTimeline) -> PairedRows:
    """A number for the plane that each span is on, the same in both runs for planes of one name."""
    names = np.concatenate([timeline.lanes["plane"].to_numpy(object) for timeline in (ours, theirs)])
    numbers = pd.factorize(names)[0].astype(np.int64)
    lanes = np.split(numbers, [len(ours.lanes)])
    return lanes[0][ours.spans["lane"].to_numpy()], lanes[1][theirs.spans["lane"].to_numpy()]


def _names(ours: HostTimeline, theirs: HostTimeline, kernel_stats: pd.DataFrame) -> PairedRows:
    """A number for each span's name, without those of traced functions (`__inference_train_step_6936`); a kernel of the
    candidate has that of the (longest) one it is matched with."""
    labels = [timeline.spans["name"].cat.categories for timeline in (ours, theirs)]
    matched = kernel_stats[kernel_stats["status"] == MATCHED]
    matched = matched.sort_values("total_duration_us_baseline", kind="stable")
    partner = dict(zip(matched["kernel_name_candidate"], matched["kernel_name"], strict=True))
    known = set(kernel_stats.loc[kernel_stats["status"] != ADDED, "kernel_name"])
    renamed = [name if name in known else partner.get(name, name) for name in labels[1]]
    codes = pd.factorize(np.array([plain_type(name) for name in (*labels[0], *labels[1], *renamed)], object))[0]
    first, second, kernel = np.split(codes, np.cumsum([len(of) for of in labels]))
    name = theirs.spans["name"].cat.codes.to_numpy()
    is_on_host = (theirs.lanes["plane"] == HOST_PLANE).to_numpy()[theirs.spans["lane"]]
    return first[ours.spans["name"].cat.codes.to_numpy()], np.where(is_on_host, second[name], kernel[name])


def _ops(timeline: HostTimeline, lanes: Sequence[LanePair], op_stats: pd.DataFrame, side: int) -> Int64:
    """The row of the diff that each span's op is in, `NONE` for spans of derived lanes and for those that are no op."""
    is_here = op_stats["status"] != (REMOVED if side else ADDED)
    ops = single_ops(op_stats[is_here], SIDES[side])[list(OP)]
    row_of = dict(zip(ops.itertuples(index=False, name=None), op_stats.index.get_indexer(ops.index), strict=True))
    places = np.full(len(timeline.lanes), "", object)
    for pair in lanes:
        if (lane := pair.lanes[side]) is not None:
            places[lane] = pair.place
    spans = timeline.spans
    codes = [np.asarray(spans[name].cat.codes, np.int64) for name in OP[1:]]
    first, each = combinations(np.asarray(spans["lane"], np.int64), *codes)
    some = spans.iloc[first]
    found = [row_of.get(key, NONE) for key in zip(places[some["lane"]], some["op_type"], some["op_name"], strict=True)]
    return np.array(found, np.int64)[each]


def _kinds(timeline: HostTimeline, lanes: Sequence[LanePair], side: int) -> Int64:
    """The kind of the lane that each span is on, `NONE` for derived lanes and kinds that only one run has."""
    there = [{pair.kind for pair in lanes if pair.lanes[one] is not None} for one in (0, 1)]
    number = {kind: position for position, kind in enumerate(sorted(there[0] & there[1]))}
    kinds = np.full(len(timeline.lanes), NONE, np.int64)
    for pair in lanes:
        if (lane := pair.lanes[side]) is not None:
            kinds[lane] = number.get(pair.kind, NONE)
    return kinds.take(timeline.spans["lane"].to_numpy())


@dataclass(frozen=True, eq=False)
class SpanPairs:
    """The partner of each span: its position in the other side's table of spans, `NONE` without one.

    `is_compared` tells which spans could have one: they ran in a step that is compared, and are ops, or on a kind of
    lane that both runs have. `theirs_ps` is of spans of an op that is other kernels on the other side, and not as many:
    the span's part of the time that those take, in the proportion of the durations on its own side; `NONE` for others.
    """

    partner: PairedRows
    is_compared: tuple[Bools, Bools]
    theirs_ps: PairedRows


def span_pairs(known: Identities, step: PairedRows) -> SpanPairs:
    """The pairs, given the number of the compared step that each span ran in, equal for steps that are compared with
    each other, `NONE` for spans outside of all of them.

    The n-th span of its kind on a device in a step is the partner of the n-th one in the other step, on the device of
    that name if both runs have it, else on any. Those of one op that are left, kernels of another algorithm, are
    partners in their order; where one side has more of them, the longest of that side are.
    """
    compared = [(of >= 0) & (what >= 0) for of, what in zip(step, known.what, strict=True)]
    partner = _join(known, known.on_device, step, compared)
    left = _without(partner, compared, known.what)
    partner = _either(partner, _join(known, known.what, step, left))
    theirs_ps: PairedRows = np.full(len(step[0]), NONE, np.int64), np.full(len(step[1]), NONE, np.int64)
    for op in (known.op_on_device, known.op):
        left = _without(_either(partner, theirs_ps), compared, op)
        longest, parts_ps = _of_ops(known, op, step, left)
        partner = _either(partner, _join(known, op, step, longest))
        theirs_ps = _either(theirs_ps, parts_ps)
    return SpanPairs(partner, (compared[0], compared[1]), theirs_ps)


def _without(found: PairedRows, among: Sequence[Bools], what: PairedRows) -> list[Bools]:
    """Which spans `among` those nothing is found for yet, but for those of no kind."""
    return [(one == NONE) & can & (kind >= 0) for one, can, kind in zip(found, among, what, strict=True)]


def _either(found: PairedRows, more: PairedRows) -> PairedRows:
    ours, theirs = (np.where(one == NONE, other, one) for one, other in zip(found, more, strict=True))
    return ours, theirs


def _grouped(
    known: Identities, what: PairedRows, step: PairedRows, among: Sequence[Bools]
) -> tuple[list[Int64], PairedRows, int]:
    """(the spans `among` those of each side, by their start; a number for the step and `what` of each; how many)."""
    rows = [order[mask[order]] for order, mask in zip(known.order, among, strict=True)]
    most = max(int(one.max(initial=0)) for one in what) + 1
    keys = np.concatenate([of[row] * most + kind[row] for of, kind, row in zip(step, what, rows, strict=True)])
    group = pd.factorize(keys)[0].astype(np.int64)
    return rows, (group[: len(rows[0])], group[len(rows[0]) :]), int(group.max(initial=-1)) + 1


def _of_ops(
    known: Identities, op: PairedRows, step: PairedRows, left: Sequence[Bools]
) -> tuple[list[Bools], PairedRows]:
    """(which of the spans `left` of an op in a step have partners, `SpanPairs.theirs_ps` of all of them).

    Of the side that has more of them, these are the longest ones.
    """
    rows, groups, size = _grouped(known, op, step, left)
    duration = [of[row] for of, row in zip(known.duration_ps, rows, strict=True)]
    counts = [np.bincount(group, minlength=size) for group in groups]
    totals = [np.bincount(group, of, minlength=size) for group, of in zip(groups, duration, strict=True)]
    fewer, is_uneven = np.minimum(*counts), (counts[0] != counts[1]) & (np.minimum(*counts) > 0)
    longest = [np.zeros(len(mask), np.bool_) for mask in left]
    parts = np.full(len(left[0]), NONE, np.int64), np.full(len(left[1]), NONE, np.int64)
    for side, (row, group, of) in enumerate(zip(rows, groups, duration, strict=True)):
        by_length = np.lexsort((-of, group))
        first = np.concatenate([[0], np.cumsum(counts[side])])
        rank = np.arange(len(row)) - first[group[by_length]]
        chosen = by_length[rank < fewer[group[by_length]]]
        longest[side][row[chosen]] = True
        part = of * (totals[1 - side] / np.maximum(totals[side], 1))[group]
        parts[side][row] = np.where(is_uneven[group], np.round(part).astype(np.int64), NONE)
    return longest, parts


def _join(known: Identities, what: PairedRows, step: PairedRows, among: Sequence[Bools]) -> PairedRows:
    """The partner of each span `among` those with the same step, `what` and occurrence; `NONE` without one."""
    rows, groups, size = _grouped(known, what, step, among)
    count = np.bincount(groups[0], minlength=size)
    last = np.concatenate([[0], np.cumsum(count)])
    place = [pd.Series(one).groupby(one, sort=False).cumcount().to_numpy() for one in groups]
    at = np.full(int(last[-1]) + 1, NONE, np.int64)
    at[last[groups[0]] + place[0]] = rows[0]
    has = place[1] < count[groups[1]]
    ours, theirs = (np.full(len(mask), NONE, np.int64) for mask in among)
    theirs[rows[1][has]] = at[(last[groups[1]] + place[1])[has]]
    ours[theirs[rows[1][has]]] = rows[1][has]
    return ours, theirs
