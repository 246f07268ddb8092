"""A memory over time: in one typical step, or over the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import pandas as pd

from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.compare.steps.step_time_verdict import step_marker_call
from tfcompare.run import Run
from tfcompare.text import as_code
from tfcompare.units import MISSING, format_bytes, format_percent
from tfcompare.views.blocks import Beside, Block, Chart, Facts, Live, Text
from tfcompare.views.memory import charts
from tfcompare.views.memory import curve as memory_timeline
from tfcompare.views.memory.charts import Axis, Lines
from tfcompare.views.memory.choice import Chosen
from tfcompare.views.memory.curve import Align, Level
from tfcompare.views.pair_words import stand_ins
from tfcompare.views.steps.figures import has_step_times

Span = Literal["step", "run"]
SPANS: dict[Span, str] = {"step": "one typical step", "run": "the whole run"}
AXES: dict[Axis, str] = {"time": "time", "share": "share of the step"}
ALIGNMENTS: dict[Align, str] = {"step": "step by step", "time": "by time"}

SPAN_HELP = (
    "One typical step: the median over the included steps. The whole run: allocations and deallocations; if there are "
    f"more than {memory_timeline.POINTS:,}, as many are drawn, with all peaks. The CSV files contain every event."
)
ALIGN_HELP = "Step by step: every step is drawn equally long, so that the same steps are above each other"
AXIS_HELP = "Steps of a run are stretched to their median length. Share of the step: steps of both runs equally long"


def unmarked(pair: Pair) -> list[Run]:
    """The runs shown that have no steps."""
    return [run for _, run in pair.shown if not (run.info.has_steps and len(run.steps))]


def spans(pair: Pair, _options: Any) -> dict[Span, str]:
    """What can be shown: a typical step only if both runs have steps."""
    return {"run": SPANS["run"]} if unmarked(pair) else SPANS


def alignments(pair: Pair, _options: Any) -> dict[Align, str]:
    """How runs can be above each other: step by step only if both have steps."""
    return {"time": ALIGNMENTS["time"]} if unmarked(pair) else ALIGNMENTS


def over_time(chosen: Chosen, options: Any) -> Iterator[Block]:
    """The memory in one typical step, or over the whole run."""
    yield from _in_a_step(chosen, options) if options.span == "step" else _in_the_run(chosen, options)
    if note := stand_ins(chosen.pair):
        yield Text(note, "quiet")
    if without := unmarked(chosen.pair):
        names = " and ".join(as_code(run.name) for run in without)
        call = step_marker_call(run.info for _, run in chosen.pair.shown)
        text = f"A typical step needs step markers, but none were found in {names}. Record each step inside `{call}`."
        yield Text(text, "quiet")
    yield Live("memory_events")


def _in_a_step(chosen: Chosen, options: Any) -> Iterator[Block]:
    steps = _steps(chosen, options.level)
    if not any(len(frame) for _, frame in steps):
        yield Text(f"No event of an included step reports {charts.LEVELS[options.level][1]}.", "notice")
        return
    best = "min" if options.level == "free_bytes" else "max"
    rows = {f"Typical {_peak(options.level)}": ("median", best), "Highest": ("high", "max"), "Lowest": ("low", "min")}
    facts = _facts(chosen.pair, f"{charts.level_title(options.level)} in one typical step", options.level, steps, rows)
    on = (chosen.memories, options.level, options.axis)
    yield Chart("memory_step", partial(charts.typical_step, steps, options.level, options.axis), facts, on=on)


def _in_the_run(chosen: Chosen, options: Any) -> Iterator[Block]:
    lines, on = _lines(chosen, options.level, options.align), (chosen.memories, options.level, options.align)
    if any(len(frame) for _, frame in lines):
        peaks = [(side, frame[frame["is_peak"]]) for side, frame in lines]
        row = {_peak(options.level).capitalize(): (options.level, "max")}
        facts = _facts(chosen.pair, f"{charts.level_title(options.level)} over time", options.level, peaks, row)
        yield Chart("memory_run", partial(_timeline, chosen, lines, options.level, options.align), facts, on=on)
    else:
        yield Text(f"No event reports {charts.LEVELS[options.level][1]}.", "notice")
    if options.parts:
        compositions = []
        for side, frame in _lines(chosen, "in_use_bytes", options.align):
            if len(frame):
                draw = partial(charts.memory_composition, side, frame, options.align)
                compositions.append([Chart(f"memory_composition_{side.position}", draw, on=on)])
        yield Beside(compositions)


def typical_step(chosen: Chosen, level: Level, axis: Axis) -> Any:
    """One level of the memory over one step of each run that has steps, as a figure; None without any."""
    steps = _steps(chosen, level)
    return charts.typical_step(steps, level, axis) if any(len(frame) for _, frame in steps) else None


def whole_run(chosen: Chosen, level: Level) -> Any:
    """One level of the memory over the whole run, by time, as a figure; None without any event."""
    lines = _lines(chosen, level, "time")
    return charts.timeline(lines, [], level, "time") if any(len(frame) for _, frame in lines) else None


def _timeline(chosen: Chosen, lines: Lines, level: Level, align: Align) -> Any:
    """With the fragmentation below, unless it is the level itself."""
    fragmentation = [] if level == "fragmentation" else _lines(chosen, "fragmentation", align)
    return charts.timeline(lines, fragmentation, level, align)


def _steps(chosen: Chosen, level: Level) -> list[tuple[Side, pd.DataFrame]]:
    found = []
    for side, run, memory in chosen.shown:
        if has_step_times(run):
            make = partial(memory_timeline.typical_step, run, memory, level)
            found.append((side, chosen.pair.cached(("memory_step", side.position, memory, level), make)))
    return found


def _lines(chosen: Chosen, level: Level, align: Align) -> list[tuple[Side, pd.DataFrame]]:
    """Each side that has the memory, with the events to draw."""
    found = []
    for side, run, memory in chosen.shown:
        make = partial(memory_timeline.line_of, run, memory, level, align)
        found.append((side, chosen.pair.cached(("memory_run", side.position, memory, level, align), make)))
    return found


def _facts(pair: Pair, title: str, level: Level, lines: Lines, rows: dict[str, tuple[str, str]]) -> Facts:
    """What a chart shows, as texts; `rows` are columns of the frames with the function that sums them up, by label."""
    frames = {side.position: frame for side, frame in lines if len(frame)}
    shown = [frames.get(side.position) for side, _ in pair.shown]
    text = format_percent if level == "fragmentation" else format_bytes
    cells = [
        [label, *(MISSING if frame is None else text(float(frame[column].agg(how))) for frame in shown)]
        for label, (column, how) in rows.items()
    ]
    return Facts([title, *pair.headings], cells, (1, 2))


def _peak(level: Level) -> str:
    return charts.PEAKS.get(level, "peak")
