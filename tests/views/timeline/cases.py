"""Timelines for tests: of the recorded runs, and of tiny profiles written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from tests.profiles import loaded_run
from tests.xspace_builder import PS_PER_US, Event, Plane, event, line, plane, space
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import compare
from tfcompare.run import Run, load
from tfcompare.views.timeline.aligned import Aligned, align
from tfcompare.views.timeline.run_pair import Timelines, open_timelines
from tfcompare.views.timeline.run_timeline import NONE, HostTimeline

GPU_PAIR = ("h100_512_128", "h100_16_8")
PAIRS = [("filters_512_128", "filters_16_8"), GPU_PAIR, ("jax_conv_08", "jax_conv_legacy"), ("tf_gpu", "jax_tpu")]
"""A pair on a CPU, on a GPU, of JAX without steps, and of runs that have little in common."""
KERNEL = {"kernel_details": "regs:16 grid:1,1,1 block:64,1,1"}


def open_pair(baseline: Run, candidate: Run) -> Timelines:
    """The timelines of two runs, which may be the same one."""
    other = replace(candidate, id=f"{candidate.id} (candidate)")
    return open_timelines(pair_with(compare(baseline, other), other.id), None)


def open_alone(run: Run) -> Timelines:
    return open_timelines(pair_with(compare(run, run), run.id), None)


@lru_cache(maxsize=32)
def recorded_pair(baseline: str, candidate: str) -> Timelines:
    """The timelines of two runs of `tests.profiles`, opened once for all tests."""
    return open_pair(loaded_run(baseline), loaded_run(candidate))


@lru_cache(maxsize=32)
def aligned_pair(baseline: str, candidate: str) -> Aligned:
    """The same, aligned at their typical steps."""
    return align(recorded_pair(baseline, candidate))


def write_run(folder: Path, name: str, *planes: Plane) -> Run:
    """A run of these planes."""
    (folder / name).mkdir(parents=True)
    (folder / name / "host.xplane.pb").write_bytes(space(*planes))
    return load(folder / name)


def host_run(folder: Path, name: str, *events: Event) -> Run:
    """A run of one thread."""
    return write_run(folder, name, plane("/host:CPU", line("python", *events, id=1)))


def step(number: int, at_us: float, length_us: float, *inside: Event) -> list[Event]:
    """A step's marker and what is in it, whose times count from the start of the step."""
    moved = [replace(one, offset_ps=one.offset_ps + round(at_us * PS_PER_US)) for one in inside]
    return [event("train", at_us, length_us, _r=1, step_num=number), *moved]


def pair_of_cases(folder: Path, cases: Iterable[Sequence[Sequence[Event]]]) -> Timelines:
    """Two runs of one thread; each case has the events of both, and they follow one another."""
    sides = ([one for events in side for one in events] for side in zip(*cases, strict=True))
    return open_pair(*(host_run(folder, name, *events) for name, events in zip("ab", sides, strict=True)))


def partners(aligned: Aligned) -> list[tuple[tuple[str, float], tuple[str, float] | None]]:
    """(name, start after time 0 in µs) of each span of the baseline but markers, with the same of its partner."""
    found: list[tuple[tuple[str, float], tuple[str, float] | None]] = []
    places = [places_of(aligned, side) for side in (0, 1)]
    for place, partner in zip(places[0], aligned.pairs.partner[0].tolist(), strict=True):
        if place[0] != "train":
            found.append((place, places[1][partner] if partner != NONE else None))
    return found


def places_of(aligned: Aligned, side: int) -> list[tuple[str, float]]:
    """(name, start after time 0 in µs) of each span of a side."""
    spans = aligned.timelines.sides[side].timeline.spans
    starts = (spans["start_ps"] - aligned.zero_ps[side]) / PS_PER_US
    return list(zip(spans["name"].astype(str), starts.tolist(), strict=True))


def span_named(aligned: Aligned, side: int, name: str, nth: int = 0) -> int:
    """The position of the n-th span of that name."""
    names = aligned.timelines.sides[side].timeline.spans["name"].astype(str)
    return int(np.flatnonzero(names == name)[nth])


def spans_table(spans: Sequence[tuple[int, int, int]]) -> pd.DataFrame:
    """A table of spans of (lane, start in ps, duration in ps), in the order of `timeline_spans`."""
    rows = sorted(spans, key=lambda span: (span[0], span[1], -span[2]))
    return pd.DataFrame(rows, columns=["lane", "start_ps", "duration_ps"]).astype(np.int64)


def bare_timeline(lanes: Sequence[tuple[str, str, int]], derived: Sequence[int] = ()) -> HostTimeline:
    """A timeline of lanes of (plane, line, time in ps); those at the positions `derived` are not recorded."""
    table = pd.DataFrame([lane[:2] for lane in lanes], columns=["plane", "line"], dtype="str")
    table = table.assign(line_id="0", is_recorded=~np.isin(np.arange(len(lanes)), derived))
    spans = spans_table([(position, 0, lane[2]) for position, lane in enumerate(lanes)])
    return HostTimeline("host", table, spans, 0)
