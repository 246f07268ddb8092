"""Timelines as Chrome JSON, for Perfetto and chrome://tracing.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcompare.schema.arrays import Int64
from tfcompare.views.timeline.run_timeline import within
from tfcompare.xspace.compilation import Array, compiled

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run
    from tfcompare.views.timeline.run_timeline import HostTimeline


PS_PER_US = 1_000_000
MOST_SUBLANES = 64
"""Spans of one line that overlap without nesting are spread over at most this many rows."""
MOST_NESTED = 256
"""Deeper spans do not keep others off their row."""


@dataclass(frozen=True, eq=False)
class Traced:
    """A host of a run in a trace: the run's name, unique in it, its timeline, and its rows of `memory_timeline`."""

    run: str
    timeline: HostTimeline
    memory: pd.DataFrame


def to_trace(
    run: Run, name: str, timeline: HostTimeline, from_us: float | None = None, to_us: float | None = None
) -> Traced:
    """What to trace of one host of a run: what overlaps a window, in µs since the timeline's time 0; None: open end."""
    memory = run.table("memory_timeline", host=timeline.host)
    at_us = memory["time_us"] - timeline.zero_ps / PS_PER_US
    low = -math.inf if from_us is None else from_us
    high = math.inf if to_us is None else to_us
    return Traced(name, within(timeline, from_us, to_us), memory[at_us.between(low, high)])


def chrome_trace(hosts: Sequence[Traced]) -> Iterator[str]:
    """The trace in pieces of text that are valid JSON together.

    Each plane of each host is a process whose name begins with the run's; each line is a thread, or several if its
    spans overlap without nesting. Spans are complete events with `ts` and `dur` in µs, exact to the picosecond;
    launches are flows, memory in use is a counter.
    """
    yield '{"displayTimeUnit":"ns","traceEvents":[\n'
    for number, event in enumerate(_events(hosts)):
        yield f",\n{event}" if number else event
    yield "\n]}\n"


def _events(hosts: Sequence[Traced]) -> Iterator[str]:
    """The events of all processes: one for each plane of each host, and one for its memory."""
    process = 0
    for host in hosts:
        launched: dict[int, list[int]] = {}  # by each span
        launch = host.timeline.spans["launch"].to_numpy()
        for row in np.flatnonzero(launch >= 0).tolist():
            launched.setdefault(int(launch[row]), []).append(row)
        for plane, lanes in host.timeline.lanes.groupby("plane", sort=False):
            process += 1
            yield from _plane(host, str(plane), lanes, process, launched)
        if len(host.memory):
            process += 1
            yield from _memory(host, host.memory, process)


def _plane(
    host: Traced, plane: str, lanes: pd.DataFrame, process: int, launched: dict[int, list[int]]
) -> Iterator[str]:
    """The events of one plane: its names, then its spans lane by lane."""
    name = f"{host.run} · {host.timeline.host} {plane}"
    yield _metadata("process_name", process, 0, {"name": name})
    yield _metadata("process_sort_index", process, 0, {"sort_index": process})
    spans = host.timeline.spans
    begins, ends = (np.searchsorted(spans["lane"].to_numpy(), lanes.index, side=side) for side in ("left", "right"))
    for number, (begin, end, line) in enumerate(zip(begins, ends, lanes["line"], strict=True)):
        here = spans.iloc[begin:end]
        sublane = sublanes(here["start_ps"].to_numpy(), here["duration_ps"].to_numpy())
        for which in range(int(sublane.max(initial=-1)) + 1):
            thread = number * MOST_SUBLANES + which + 1
            yield _metadata("thread_name", process, thread, {"name": line if not which else f"{line} ({which + 1})"})
            yield _metadata("thread_sort_index", process, thread, {"sort_index": thread})
        yield from _spans(host, here, process, number * MOST_SUBLANES + sublane + 1, launched)


def _spans(
    host: Traced, spans: pd.DataFrame, process: int, threads: Int64, launched: dict[int, list[int]]
) -> Iterator[str]:
    """The spans of one lane, and the starts and ends of the flows between launches and what they launched."""
    zero, flow = host.timeline.zero_ps, f'"name":"launch","cat":{_json(f"{host.run} {host.timeline.host}")}'
    texts = []  # every distinct one is encoded once
    for cells in (spans[column].cat for column in ("name", "op_type", "op_name")):
        labels = [_json(str(label)) for label in cells.categories]
        texts.append([labels[code] for code in cells.codes])
    columns = (spans[name].to_numpy().tolist() for name in ("start_ps", "duration_ps", "step", "launch"))
    rows = zip(threads.tolist(), *texts, *columns, spans.index, strict=True)
    for thread, name, op_type, op_name, start_ps, duration_ps, step, launch, row in rows:
        arguments = f'"step":{step}' if step >= 0 else ""
        if op_name != '""':
            arguments += f'{"," if arguments else ""}"op":{op_name},"type":{op_type}'
        at = f'"pid":{process},"tid":{thread},"ts":{_us(start_ps - zero)}'
        yield f'{{"ph":"X",{at},"dur":{_us(duration_ps)},"name":{name},"args":{{{arguments}}}}}'
        if launch >= 0:
            yield f'{{"ph":"f","bp":"e",{at},"id":{row},{flow}}}'
        for target in launched.get(row, ()):
            yield f'{{"ph":"s",{at},"id":{target},{flow}}}'


def _memory(host: Traced, memory: pd.DataFrame, process: int) -> Iterator[str]:
    """A counter for each memory: its bytes in use after each event."""
    yield _metadata("process_name", process, 0, {"name": f"{host.run} · {host.timeline.host} memory"})
    yield _metadata("process_sort_index", process, 0, {"sort_index": process})
    zero_us = host.timeline.zero_ps / PS_PER_US
    columns = (memory[name].tolist() for name in ("memory_id", "time_us", "in_use_bytes"))
    for memory_id, time_us, used in zip(*columns, strict=True):
        at = f'"pid":{process},"ts":{time_us - zero_us:.6f}'
        yield f'{{"ph":"C",{at},"name":{_json(memory_id)},"args":{{"in use (bytes)":{used}}}}}'


def _metadata(kind: str, process: int, thread: int, arguments: dict[str, Any]) -> str:
    return _json({"ph": "M", "name": kind, "pid": process, "tid": thread, "args": arguments})


def _json(value: Any) -> str:
    """As JSON, with letters as they are: Perfetto shows escaped ones of names of processes as they are written."""
    return json.dumps(value, ensure_ascii=False)


def _us(time_ps: int) -> str:
    """A time in µs with all its digits, so that nested spans never overlap by rounding."""
    sign, time_ps = ("-", -time_ps) if time_ps < 0 else ("", time_ps)
    return f"{sign}{time_ps // PS_PER_US}.{time_ps % PS_PER_US:06}"


def sublanes(start_ps: Int64, duration_ps: Int64) -> Int64:
    """The row of each span below its line: the first in which it nests in, or comes after, all others of that row.

    Spans are sorted by start, longer ones first.
    """
    out = np.zeros(len(start_ps), np.int64)
    ends = np.empty((MOST_SUBLANES, MOST_NESTED), np.int64)
    _spread(start_ps, duration_ps, np.zeros(MOST_SUBLANES, np.int64), ends, out)
    return out


@compiled
def _spread(start: Array, duration: Array, depth: Array, ends: Array, out: Array) -> None:
    """`ends` holds the ends of the `depth` spans that enclose the current time in each row, innermost last."""
    for i in range(start.size):
        end = start[i] + duration[i]
        for row in range(depth.size):
            while depth[row] > 0 and ends[row, depth[row] - 1] <= start[i]:
                depth[row] -= 1
            if row == depth.size - 1 or depth[row] == 0 or end <= ends[row, depth[row] - 1]:
                if depth[row] < ends.shape[1]:
                    ends[row, depth[row]] = end
                    depth[row] += 1
                out[i] = row
                break
