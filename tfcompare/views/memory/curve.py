"""A memory over time: in one typical step, over the whole run (downsampled for charts), or complete for export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from tsdownsample import M4Downsampler

from tfcompare.frames.memory_events import MemoryEvents
from tfcompare.run import Run
from tfcompare.schema.arrays import Floats, Int64
from tfcompare.tables.memory_timeline import memory_timeline
from tfcompare.tables.step_kinds import of_main_kind
from tfcompare.tables.step_times import host_starts_and_end
from tfcompare.xspace.space import PS_PER_US

Align = Literal["time", "step"]
Level = Literal["in_use_bytes", "heap_bytes", "stack_bytes", "free_bytes", "fragmentation"]

POINTS = 2000
"""The approximate number of points to which longer lines are downsampled: more than a screen is wide."""

SLICES = 400
"""The slices of a typical step: fine enough for a screen, coarse enough to align steps that vary a little."""

PART_ROWS = 50_000


@dataclass(frozen=True)
class Memory:
    """One allocator of a run: its host and its id there."""

    host: str
    memory_id: str


def line_of(run: Run, memory: Memory, level: Level, align: Align, points: int = POINTS) -> pd.DataFrame:
    """The events that draw `level` of one memory as a line of steps, in order of time.

    Columns: those of `memory_timeline`; `position`, where to draw each (µs from the first one, or as
    `step_positions`); `is_peak`, true for the one event that `peak_of` names. Of more than `points` events, those that
    `thin` keeps; events that do not tell the level are left out.
    """
    events = _events(run, memory.host)
    which = events.memory_ids.index(memory.memory_id)
    own = np.arange(events.first[which], events.first[which + 1])
    values = np.asarray(getattr(events, level)[own], dtype=np.float64)
    own, values = own[np.isfinite(values)], values[np.isfinite(values)]
    if not len(own):
        return memory_timeline(events, memory.host, own).assign(position=0.0, is_peak=False)
    time_us = events.time_ps[own] / PS_PER_US
    if align == "time":
        position = time_us - time_us[0]
    else:
        position = step_positions(time_us, run.table("steps", host=memory.host))
    peak = int(np.flatnonzero(own == events.peaks()[which])[0]) if level == "in_use_bytes" else peak_of(values, level)
    kept = thin(position, values, peak, points)
    rows = memory_timeline(events, memory.host, own[kept])
    return rows.assign(position=position[kept], is_peak=kept == peak)


def typical_step(run: Run, memory: Memory, level: Level, slices: int = SLICES) -> pd.DataFrame:
    """One level of a memory over one step: the median over the included steps, with the lowest and the highest; of
    several kinds of steps, over those of the kind with most time.

    Each step reaches to the start of the next one and is cut into `slices` of equal length. Of each slice, the highest
    level in it is taken (of free memory the lowest), so that no peak is lost. One row per slice, where any step is
    known: `share`, where the slice begins, from 0 to 1; `time_us`, the same as a time in a step of median length;
    `median`, `low` and `high` over the steps, in the level's unit; `steps`, how many are included.

    Without steps, or without events that have the level, the frame is empty.
    """
    events = _events(run, memory.host)
    which = events.memory_ids.index(memory.memory_id)
    own = slice(events.first[which], events.first[which + 1])
    values = np.asarray(getattr(events, level)[own], dtype=np.float64)
    known = np.isfinite(values)
    steps = run.table("steps", host=memory.host)
    start, length = _spans(steps, of_main_kind(steps, run.tables.kinds.by_row(steps)))
    time_us = events.time_ps[own][known] / PS_PER_US
    levels = _by_slice(time_us, values[known], start, length, slices, lowest=level == "free_bytes")
    levels = levels[np.isfinite(levels).any(axis=1)]
    is_known = np.isfinite(levels).any(axis=0)
    over_steps = levels[:, is_known]
    share = np.arange(slices)[is_known] / slices
    return pd.DataFrame(
        {
            "share": share,
            "time_us": share * (np.median(length) if len(length) else 0.0),
            "median": np.nanmedian(over_steps, axis=0),
            "low": np.nanmin(over_steps, axis=0, initial=np.inf),
            "high": np.nanmax(over_steps, axis=0, initial=-np.inf),
            "steps": len(over_steps),
        }
    )


def _spans(steps: pd.DataFrame, is_shown: pd.Series) -> tuple[Floats, Floats]:
    """(start, length) of each of the shown steps of one host, in µs; a step reaches to the start of the next."""
    start, end = host_starts_and_end(steps)
    order = np.argsort(start, kind="stable")
    length = np.diff(start[order], append=end)
    chosen = is_shown.to_numpy(dtype=np.bool_)[order] & (length > 0)
    return start[order][chosen], length[chosen]


def _by_slice(time_us: Floats, values: Floats, start: Floats, length: Floats, slices: int, *, lowest: bool) -> Floats:
    """The highest (or lowest) level in each slice of each step, one row per step; NaN before the first event."""
    if not len(time_us) or not len(start):
        return np.full((0, slices), np.nan)
    edges = start[:, None] + length[:, None] * np.arange(slices + 1) / slices
    next_event = np.searchsorted(time_us, edges, side="left")
    held = np.searchsorted(time_us, edges[:, :-1], side="right") - 1
    first = np.minimum(next_event[:, :-1], held)  # the event that set the level at the slice's start
    until = np.maximum(next_event[:, 1:], first + 1)
    is_known = until > 0
    ranges = np.stack([np.maximum(first, 0), np.maximum(until, 1)], axis=-1).ravel()
    extreme = np.minimum if lowest else np.maximum
    found = extreme.reduceat(np.append(values, values[-1]), ranges)[::2].reshape(is_known.shape)
    return np.where(is_known, found, np.nan)


def peak_of(values: Floats, level: Level) -> int:
    """The index of the value to mark: the minimum of free memory, the maximum otherwise; the first among equals."""
    return int(np.argmin(values) if level == "free_bytes" else np.argmax(values))


def thin(position: Floats, values: Floats, peak: int, points: int = POINTS) -> Int64:
    """The sorted indices of events that draw the same line on a screen: at most `points` plus three.

    The line is cut into segments, limited in time and number of events. The first, last, minimum and maximum value of
    each are selected, so that no peak is lost, nor a level held through a pause. The neighbours of `peak` and of the
    ends are selected as well, so that peaks are not widened.
    """
    count = len(values)
    if count <= points:
        return np.arange(count)
    span = float(position[-1] - position[0]) or 1.0
    # Time and event count are weighted equally, so that bursts of events keep their shape and pauses their width.
    place = (position - position[0]) / span + np.arange(count) / count
    sampler = M4Downsampler()  # type: ignore[no-untyped-call]
    kept = sampler.downsample(place, values, n_out=points - points % 4).astype(np.int64)
    return np.union1d(kept, np.clip([peak - 1, peak, peak + 1], 0, count - 1))


def step_positions(time_us: Floats, steps: pd.DataFrame) -> Floats:
    """Where in a run's steps each time lies: `k` and a fraction in the k-th step, counted from 1.

    `steps` is the table of one host. A step reaches to the start of the next one, the last to its end: of its host span
    where there is one, since the host allocates. What comes before the first step lies between 0 and 1, what comes
    after the last one between n + 1 and n + 2.
    """
    starts, end = host_starts_and_end(steps)
    starts = np.sort(starts)
    first = min(0.0, float(time_us.min()))
    last = max(end, float(time_us.max()))
    edges = np.maximum.accumulate([first, *starts, end, last])
    number = np.clip(np.searchsorted(edges, time_us, side="right") - 1, 0, len(edges) - 2)
    width = edges[number + 1] - edges[number]  # 0 where edges coincide
    way = np.divide(time_us - edges[number], width, out=np.zeros(len(time_us)), where=width > 0)
    position: Floats = number.astype(np.float64) + way
    return position


def timeline_parts(run: Run, host: str | None = None) -> Iterator[pd.DataFrame]:
    """Yields the table `memory_timeline` of one host or all in parts, so that it is never in memory as a whole."""
    for name, events in run.tables.memory_events(host=host):
        for first in range(0, len(events), PART_ROWS):
            yield memory_timeline(events, name, np.arange(first, min(first + PART_ROWS, len(events))))


def event_count(run: Run, host: str | None = None, memory_id: str | None = None) -> int:
    """The number of events on one host or all, of one memory or all."""
    counts = [
        np.diff(events.first)[[memory_id in (None, name) for name in events.memory_ids]].sum()
        for _, events in run.tables.memory_events(host=host)
    ]
    return int(sum(counts))


def _events(run: Run, host: str) -> MemoryEvents:
    ((_, events),) = run.tables.memory_events(host=host)
    return events
