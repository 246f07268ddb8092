"""Where the candidate falls behind or catches up in the compared step: in an op, in work that has no counterpart in the
other run, or while waiting for the next op."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tfcompare.frames.spans import NO_SPANS
from tfcompare.views.timeline.aligned import Aligned, comparable_spans, telling_spans
from tfcompare.views.timeline.drawing import Viewport, axes
from tfcompare.views.timeline.run_timeline import NONE
from tfcompare.xspace.space import PS_PER_US

WORTH_NAMING = 0.1
"""Of the largest loss: smaller ones are left out."""


@dataclass(frozen=True)
class Loss:
    """A place where the candidate loses time, or gains it (`lost_us` < 0), compared with the baseline.

    `span` is the baseline's span of an op, `op_name` its name (that of the span where a profile names no ops). With
    `is_wait`, the time is lost before that op; else in the op itself. With `span` `NONE` it is lost after the last op,
    before the step ends. `start_us` and `end_us` are on the common axis, of the baseline; `candidate_us` is how long
    the op, or the time before it, is in the candidate.

    An op that has more spans on one side, as a convolution that is one kernel or five, is one place: `span` is its
    longest one, and `lost_us` is of all of them. Before an op, nothing runs; or with `unmatched`, ops that only one of
    the steps has do, most of all the op of that name: the candidate's if `lost_us` > 0, else the baseline's.
    """

    op_name: str
    is_wait: bool
    lost_us: float
    span: int
    start_us: float
    end_us: float
    candidate_us: float
    unmatched: str = ""


def losses(aligned: Aligned, count: int = 3) -> list[Loss]:
    """The places, at most `count`, that lose most if the candidate's step is longer, else that gain most.

    Of the spans of the compared step that `telling_spans` gives and that no other one is around; counted from the
    begin of the step to its end, wherever time 0 is. Of two hosts that meet in a collective, to where each reaches it:
    then they wait for each other. Empty for one run alone, and if it is unknown which host reaches the collective last
    or it is not due to this step.
    """
    late_us = aligned.meeting.late_us if aligned.meeting else 0.0
    if aligned.meeting and not aligned.meeting.is_ordered(late_us):
        return []
    aligned = _until_meeting(aligned)
    rows = _outermost(aligned)
    if rows.empty or late_us * (aligned.lengths_ps[1] - aligned.lengths_ps[0]) < 0:
        return []
    without_partner = [_without_partner(aligned, i) for i in (0, 1)]
    alone = [spans[~spans["op"].isin(rows["op"]) | (spans["op"] == NONE)] for spans in without_partner]
    gaps = [_before_each(aligned, rows, i) for i in (0, 1)]
    busy = [_busy_before(rows, i, gaps[i], without_partner[i]) for i in (0, 1)]
    only = [_busy_before(rows, i, gaps[i], alone[i]) for i in (0, 1)]
    in_op = rows.assign(is_wait=False, is_unmatched=False, begin=rows["start_0"], theirs=rows["duration_1"])
    in_op["lost"] = _lost_in_ops(rows, without_partner)
    before = rows.assign(is_wait=True, begin=rows["start_0"] - gaps[0], end_0=rows["start_0"], theirs=gaps[1])
    waits = before.assign(is_unmatched=False, lost=(gaps[1] - busy[1]) - (gaps[0] - busy[0]))
    every = pd.concat([in_op, waits, before.assign(is_unmatched=True, lost=only[1] - only[0])])
    is_longer = aligned.lengths_ps[1] >= aligned.lengths_ps[0]
    every["size"] = (every["lost"] if is_longer else -every["lost"]).clip(lower=0)
    largest = every[(every["size"] > 0) & (every["size"] >= WORTH_NAMING * every["size"].max())]
    largest = largest.sort_values("size", ascending=False, kind="stable").head(count)
    times = [(largest[name] - aligned.zero_ps[0]) / PS_PER_US for name in ("begin", "end_0")]
    times.append(largest["theirs"] / PS_PER_US)
    names = [
        _most_of(alone, row, [gap[row.Index] for gap in gaps]) if row.is_unmatched else ""
        for row in largest.itertuples()
    ]
    cells = (largest["op_name"], largest["is_wait"], largest["lost"] / PS_PER_US, largest["span"], *times)
    return [Loss(*row) for row in zip(*(column.tolist() for column in cells), names, strict=True)]


def _until_meeting(aligned: Aligned) -> Aligned:
    """What is compared of two hosts that meet ends where each reaches the collective."""
    return replace(aligned, end_ps=aligned.meeting.reached_ps) if aligned.meeting else aligned


def window_of(aligned: Aligned, look: Viewport, loss: Loss) -> tuple[float, float]:
    """From the begin to the end of a loss on both sides, in µs of the common axis."""
    aligned = _until_meeting(aligned)
    theirs = aligned.timelines.sides[1].timeline.spans
    until_ps = aligned.end_ps[1]
    if loss.span != NONE and aligned.pairs is not None:
        partner = theirs.iloc[int(aligned.pairs.partner[0][loss.span])]
        until_ps = int(partner["start_ps"]) + (0 if loss.is_wait else int(partner["duration_ps"]))
    axis = axes(aligned, look)[1]
    begin_us, until_us = axis.us(until_ps - round(loss.candidate_us * PS_PER_US)), axis.us(until_ps)
    return min(loss.start_us, begin_us), max(loss.end_us, until_us)


def _lost_in_ops(rows: pd.DataFrame, without_partner: list[pd.DataFrame]) -> pd.Series:
    """What the candidate loses in each op; of an op that has more spans on one side, all of it in its longest one."""
    lost = rows["duration_1"] - rows["duration_0"]
    more = [spans.groupby("op")["duration"].sum() for spans in without_partner]
    is_uneven = rows["op"].isin(more[0].index.union(more[1].index)) & (rows["op"] != NONE)
    uneven = rows[is_uneven]
    whole = lost[is_uneven].groupby(uneven["op"]).sum()
    for sign, of_side in zip((-1, 1), more, strict=True):
        whole = whole + sign * of_side.reindex(whole.index, fill_value=0)
    longest = (uneven["duration_0"] + uneven["duration_1"]).groupby(uneven["op"]).idxmax()
    lost[is_uneven] = 0
    lost[longest] = whole.to_numpy()
    return lost


def _before_each(aligned: Aligned, rows: pd.DataFrame, side: int) -> pd.Series:
    """How long before each op none of those above it ran."""
    begin, start = aligned.begin_ps[side], rows[f"start_{side}"]
    until = rows[f"end_{side}"].cummax().shift(fill_value=begin).clip(lower=begin)
    return (start - until).clip(lower=0)


def _busy_before(rows: pd.DataFrame, side: int, gap: pd.Series, spans: pd.DataFrame) -> pd.Series:
    """How long any of these spans ran in the gap before each op."""
    start, covered = rows[f"start_{side}"], NO_SPANS.union(spans["start"].to_numpy(), spans["end"].to_numpy())
    return pd.Series(covered.covered_between((start - gap).to_numpy(), start.to_numpy()), start.index)


def _without_partner(aligned: Aligned, side: int) -> pd.DataFrame:
    """The step's comparable spans that have no partner and are within no other one of their lane, by their start. What
    runs on a plane without any partner is left out: a device that the other side lacks costs no time.

    Columns: `op` (its row in `op_stats`, `NONE` for none), `op_name`, and `start`, `end` and `duration` in ps.
    """
    assert aligned.pairs is not None
    timelines = aligned.timelines
    spans, lanes = timelines.sides[side].timeline.spans, timelines.sides[side].timeline.lanes
    paired = np.bincount(spans["lane"], aligned.pairs.partner[side] != NONE, len(lanes)) > 0
    is_shared = pd.Series(paired, lanes.index).groupby(lanes["plane"]).transform("any").to_numpy()
    here = comparable_spans(timelines, aligned.pairs)[side] & aligned.starts_within(side)
    here &= is_shared[spans["lane"]]
    found = spans[here]
    name = found["op_name"].astype(object).where(found["op_name"] != "", found["name"].astype(object))
    end = found["start_ps"] + found["duration_ps"]
    columns = {"op": timelines.op_rows(side)[here], "op_name": name, "start": found["start_ps"], "end": end}
    until = end.groupby(found["lane"]).cummax().groupby(found["lane"]).shift(fill_value=0)
    is_alone = (aligned.pairs.partner[side][here] == NONE) & (found["start_ps"] >= until)
    frame = pd.DataFrame(columns | {"duration": found["duration_ps"]})
    alone: pd.DataFrame = frame[is_alone].sort_values("start", kind="stable", ignore_index=True)
    return alone


def _most_of(alone: list[pd.DataFrame], row: Any, gaps: list[int]) -> str:
    """The op of the unmatched spans that run longest before an op, on the side where they run longer."""
    side = int(row.lost > 0)
    spans, until = alone[side], getattr(row, f"start_{side}")
    overlap = np.minimum(spans["end"], until) - np.maximum(spans["start"], until - gaps[side])
    return str(overlap.clip(lower=0).groupby(spans["op_name"]).sum().idxmax())


def _outermost(aligned: Aligned) -> pd.DataFrame:
    """The telling spans of the compared step that are within no other one of their lane, by the mean of their starts.

    Last, its end. Columns: `span`, `lane`, `op` (its row in `op_stats`, `NONE` for none), `op_name`, and for each side
    `start_<i>`, `end_<i>`, `duration_<i>`, in ps.
    """
    timelines, pairs = aligned.timelines, aligned.pairs
    if pairs is None:
        return pd.DataFrame()
    spans = [side.timeline.spans for side in timelines.sides]
    ours = telling_spans(timelines, pairs)
    ours = ours[aligned.starts_within(0)[ours]]
    partner = pairs.partner[0]
    op_name, name = (spans[0][column].astype(object).to_numpy()[ours] for column in ("op_name", "name"))
    columns = {
        "span": ours,
        "lane": spans[0]["lane"].to_numpy()[ours],
        "op": timelines.op_rows(0)[ours],
        "op_name": np.where(op_name != "", op_name, name),
    }
    for i, which in enumerate((ours, partner[ours])):
        begin, duration = (spans[i][name].to_numpy()[which] for name in ("start_ps", "duration_ps"))
        columns |= {f"start_{i}": begin, f"duration_{i}": duration, f"end_{i}": begin + duration}
    rows = pd.DataFrame(columns)
    until = rows.groupby("lane")["end_0"].cummax().groupby(rows["lane"]).shift(fill_value=0)
    rows = rows[rows["start_0"] >= until]
    order = rows["start_0"] - aligned.begin_ps[0] + (rows["start_1"] - aligned.begin_ps[1])  # the same if swapped
    rows = rows.loc[order.sort_values(kind="stable").index].reset_index(drop=True)
    if rows.empty or aligned.steps is None:
        return rows
    ends = {f"{name}_{i}": aligned.end_ps[i] for i in (0, 1) for name in ("start", "end")}
    end = {"span": NONE, "lane": NONE, "op": NONE, "op_name": "", "duration_0": 0, "duration_1": 0} | ends
    if aligned.meeting and partner[aligned.meeting.span] != NONE:
        end |= {"span": aligned.meeting.span, "op_name": aligned.meeting.collective}
    return pd.concat([rows, pd.DataFrame([end])], ignore_index=True)
