"""Lanes of two timelines: which belong together, and where each is drawn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tfcompare.frames.planes import place_of
from tfcompare.schema import HOST
from tfcompare.schema.arrays import Int64
from tfcompare.views.timeline.run_timeline import HostTimeline
from tfcompare.xspace.compilation import Array, compiled

Lanes = tuple[int | None, int | None]

_ID = re.compile(r"/-?\d+$")
_NUMBER = re.compile(r"\d+")
_CONTENTS = re.compile(r"(?<=\()\w+(?:,\w+)+(?=\)$)")
"""What ran on a stream, in the order in which it first ran: `Stream #13(MemcpyD2D,Compute)`."""
MOST_ROWS = 64
"""Rows of one lane; spans that would need another share the last one."""


@dataclass(frozen=True)
class LanePair:
    """A lane of each side, as a row of its `HostTimeline.lanes`; None for a side without it.

    `label` is its name as people know it: of a thread without its id, of a device's line with the device in front.
    `kind` is the same for threads of one pool, and for lines of devices that differ in numbers only. `place`: that of
    its ops, as `host_or_device` in `op_stats`.
    """

    label: str
    kind: str
    lanes: Lanes
    place: str

    @property
    def is_on_host(self) -> bool:
        """Whether it is a thread of the host."""
        return self.place == HOST


def lane_pairs(timelines: Sequence[HostTimeline]) -> list[LanePair]:
    """The lanes of one timeline, or of two in pairs: device by device, then threads, the busiest of each first.

    Those that only one side has come last among those of devices, and among threads. Equal labels are numbered from 1.

    Lanes pair by plane and name; those left pair by plane and name without its numbers, the busiest with the busiest.
    Lanes that the profiler derived from others are left out, as they show the same spans again.
    """
    sides = []
    for timeline in timelines:
        busy = np.bincount(timeline.spans["lane"], timeline.spans["duration_ps"], minlength=len(timeline.lanes))
        lanes = timeline.lanes.assign(busy_ps=busy)
        lanes = lanes[lanes["is_recorded"]]
        name = lanes["line"].map(_name)
        sides.append(lanes.assign(name=name, kind=name.map(lambda text: _NUMBER.sub("#", text))))
    alone = ((int(lane), None) for lane in sides[0].index)
    pairs = [_label(sides, both) for both in (alone if len(sides) == 1 else _pair_up(*sides))]
    pairs.sort(key=lambda one: one[1])
    count, seen, found = Counter(pair.label for pair, _ in pairs), Counter[str](), []
    for pair, _ in pairs:
        seen[pair.label] += 1
        label = f"{pair.label} {seen[pair.label]}" if count[pair.label] > 1 else pair.label
        found.append(replace(pair, label=label))
    return found


def _name(line: str) -> str:
    """A line's name without a thread's id, and with the contents of a stream in alphabetical order."""
    return _CONTENTS.sub(lambda found: ",".join(sorted(found[0].split(","))), _ID.sub("", line))


def _pair_up(ours: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[Lanes]:
    """All lanes of both sides, in pairs as far as they have a counterpart."""
    left = {0: ours, 1: theirs}
    for key in ("line", "name", "kind"):
        groups = [dict(iter(side.groupby(["plane", key], sort=False))) for side in left.values()]
        taken: tuple[list[int], list[int]] = ([], [])
        for name in groups[0].keys() & groups[1].keys():
            busiest = [group[name].sort_values("busy_ps", ascending=False, kind="stable").index for group in groups]
            for pair in zip(*busiest, strict=False):
                yield pair
                taken[0].append(pair[0])
                taken[1].append(pair[1])
        left = {side: left[side].drop(index=taken[side]) for side in left}
    yield from ((lane, None) for lane in left[0].index)
    yield from ((None, lane) for lane in left[1].index)


def _label(sides: Sequence[pd.DataFrame], lanes: Lanes) -> tuple[LanePair, tuple[bool, bool, str, float, str]]:
    """The pair with its label, and its place among the others."""
    rows = [side.loc[lane].to_dict() for side, lane in zip(sides, lanes, strict=False) if lane is not None]
    plane, name = str(rows[0]["plane"]), str(rows[0]["name"])
    place = place_of(plane)
    on_host = place == HOST
    label = name or "thread" if on_host else f"{plane.removeprefix('/device:')} {name}".strip()
    is_alone = len(rows) < len(sides)
    padded = _NUMBER.sub(lambda number: f"{number[0]:0>20}", plane)
    busy_ps = float(sum(row["busy_ps"] for row in rows))
    kind = _NUMBER.sub("#", f"{plane} {name}")
    return LanePair(label, kind, lanes, place), (on_host, is_alone, padded, -busy_ps, label)


@dataclass(frozen=True, eq=False)
class Layout:
    """The spans of a timeline, sorted by lane, row and start.

    `span` is the position of each in the table of spans, `start_ps` and `end_ps` its time. Row `i` holds the spans from
    `first[i]` to before `first[i + 1]`; `lane[i]` is its lane and `number[i]` its number within the lane, 0 at the top.
    Starts and ends increase within a row, except in row `MOST_ROWS - 1` of a lane.
    """

    span: Int64
    start_ps: Int64
    end_ps: Int64
    first: Int64
    lane: Int64
    number: Int64


def lay_out(spans: pd.DataFrame) -> Layout:
    """Rows for spans with the columns `lane`, `start_ps`, `duration_ps`, sorted by lane and start, longer ones first.

    A span goes to the first row of its lane that is free: nested spans are below the one around them, and so are spans
    that overlap without nesting.
    """
    lane, start = (spans[name].to_numpy(np.int64) for name in ("lane", "start_ps"))
    end = start + spans["duration_ps"].to_numpy(np.int64)
    row = np.zeros(len(spans), np.int64)
    _place(lane, start, end, np.empty(MOST_ROWS, np.int64), row)
    key = lane * MOST_ROWS + row
    order = np.argsort(key, kind="stable")
    rows, first = np.unique(key[order], return_index=True)
    return Layout(order, start[order], end[order], np.append(first, len(spans)), rows // MOST_ROWS, rows % MOST_ROWS)


@compiled
def _place(lane: Array, start: Array, end: Array, ends: Array, out: Array) -> None:
    """`ends` holds the end of the last span in each of the `used` rows of the current lane."""
    used = 0
    for i in range(start.size):
        if i == 0 or lane[i] != lane[i - 1]:
            used = 0
        row = 0
        while row < used and row < ends.size - 1 and ends[row] > start[i]:
            row += 1
        used = max(used, row + 1)
        ends[row] = end[i]
        out[i] = row
