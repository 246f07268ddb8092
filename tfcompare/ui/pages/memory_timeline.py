"""The memory page's charts over time: one typical step, or the whole run, and the CSV files of all events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeVar

import pandas as pd
import streamlit as st

from tfcompare.charts import memory as charts
from tfcompare.charts.memory import Axis
from tfcompare.charts.pair import has_steps
from tfcompare.charts.style import Side
from tfcompare.compare.headline import step_marker_call
from tfcompare.export.csv import file_stem, gzipped, spreadsheet_csv_of
from tfcompare.markdown import as_code
from tfcompare.run import Run
from tfcompare.tools import memory_timeline as memory_series
from tfcompare.tools.memory_timeline import Align, Level, Memory
from tfcompare.ui.pages.memory import Chosen
from tfcompare.ui.widgets.figures import draw
from tfcompare.ui.widgets.side_by_side import side_by_side

T = TypeVar("T")
Span = Literal["step", "run"]
SPANS: dict[Span, str] = {"step": "one typical step", "run": "the whole run"}
LEVELS: dict[Level, str] = {
    "in_use_bytes": "in use",
    "heap_bytes": "heap",
    "stack_bytes": "stack",
    "free_bytes": "free",
    "fragmentation": "fragmentation",
}
LEVEL_NAMES = {
    "in_use_bytes": "the memory in use",
    "heap_bytes": "the heap",
    "stack_bytes": "the stack",
    "free_bytes": "the free memory",
    "fragmentation": "fragmentation",
}
AXES: dict[Axis, str] = {"time": "time", "share": "share of the step"}
ALIGNMENTS: dict[Align, str] = {"step": "step by step", "time": "by time"}

GZIP_FROM_ROWS = 200_000
"""A longer CSV is sent compressed: it would be as large as the profile itself."""

_SPAN_HELP = (
    "One typical step: the median over the included steps. The whole run: allocations and deallocations; if there are "
    f"more than {memory_series.POINTS:,}, as many are drawn, with all peaks. The CSV files contain every event."
)
_ALIGN_HELP = "Step by step: every step is drawn equally long, so that the same steps are above each other"
_AXIS_HELP = "Steps of a run are stretched to their median length. Share of the step: steps of both runs equally long"


def over_time(chosen: Chosen) -> None:
    """The memory in one typical step, or over the whole run if that is chosen or steps are unknown."""
    unmarked = [run for _, run in chosen.pair.shown if not has_steps(run)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        span: Span = "run" if unmarked else _choice("Show", SPANS, "span", _SPAN_HELP)
        level: Level = _choice("Level", LEVELS, "level", "In use: stack and heap together")
        axis: Axis = _choice("Horizontal axis", AXES, "axis", _AXIS_HELP) if span == "step" else "time"
        align: Align = "time"
        if span == "run" and not unmarked:
            align = _choice("Horizontal axis", ALIGNMENTS, "align", _ALIGN_HELP)
        parts = span == "run" and st.toggle(
            "Stack, heap and free", key="parts", bind="query-params", help="Composition of the memory over time"
        )
    if span == "step":
        _typical_step(chosen, level, axis)
    else:
        _whole_run(chosen, level, align, parts)
    if unmarked:
        names = " and ".join(as_code(run.name) for run in unmarked)
        call = step_marker_call(run.info for _, run in chosen.pair.shown)
        st.caption(
            f"A typical step needs step markers, but none were found in {names}. Record each step inside `{call}`."
        )
    _timeline_csvs(chosen)


def _choice(label: str, options: Mapping[T, str], key: str, meaning: str) -> T:
    """A control whose first option is the default."""
    return st.segmented_control(
        label, list(options), default=next(iter(options)), required=True, format_func=options.__getitem__, key=key,
        bind="query-params", help=meaning,
    )  # fmt: skip


def _typical_step(chosen: Chosen, level: Level, axis: Axis) -> None:
    steps = [(side, _of_a_step((run.content_id, run.id), memory, level, run)) for side, run, memory in _shown(chosen)]
    if any(len(frame) for _, frame in steps):
        on = (chosen.memories, level, axis)
        draw(chosen.pair, "typical_step", partial(charts.typical_step, steps, level, axis), on)
    else:
        st.info(f"No event of an included step reports {LEVEL_NAMES[level]}.")


def _whole_run(chosen: Chosen, level: Level, align: Align, parts: bool) -> None:
    lines, on = _lines(chosen, level, align), (chosen.memories, level, align)
    if any(len(frame) for _, frame in lines):
        draw(chosen.pair, "timeline", partial(_timeline, chosen, lines, level, align), on)
    else:
        st.info(f"No event reports {LEVEL_NAMES[level]}.")
    if parts:
        drawn = [(side, frame) for side, frame in _lines(chosen, "in_use_bytes", align) if len(frame)]
        for place, (side, frame) in zip(side_by_side(len(drawn)), drawn, strict=True):
            with place:
                key, make = f"make_up_{side.position > 0}", partial(charts.memory_composition, side, frame, align)
                draw(chosen.pair, key, make, on)


def _timeline(chosen: Chosen, lines: charts.Lines, level: Level, align: Align) -> Any:
    fragmentation = [] if level == "fragmentation" else _lines(chosen, "fragmentation", align)
    return charts.timeline(lines, fragmentation, level, align)


def _shown(chosen: Chosen) -> list[tuple[Side, Run, Memory]]:
    """Each side that has the memory."""
    every = zip(chosen.pair.shown, chosen.memories.memories, strict=False)
    return [(side, run, memory) for (side, run), memory in every if memory]


def _lines(chosen: Chosen, level: Level, align: Align) -> list[tuple[Side, pd.DataFrame]]:
    """Each side that has the memory, with the events to draw."""
    return [(side, _drawn((run.content_id, run.id), memory, level, align, run)) for side, run, memory in _shown(chosen)]


@st.cache_data(max_entries=32, show_spinner=False)
def _drawn(key: tuple[str, str], memory: Memory, level: Level, align: Align, _run: Run) -> pd.DataFrame:
    del key
    return memory_series.drawn(_run, memory, level, align)


@st.cache_data(max_entries=32, show_spinner=False)
def _of_a_step(key: tuple[str, str], memory: Memory, level: Level, _run: Run) -> pd.DataFrame:
    del key
    return memory_series.typical_step(_run, memory, level)


def _timeline_csvs(chosen: Chosen) -> None:
    """A button per run: every event of all its memories, as a file made on request."""
    with st.container(horizontal=True):
        for side, run in chosen.pair.shown:
            host = chosen.pair.host_of(run)
            rows = memory_series.event_count(run, host)
            if rows:
                is_long = rows > GZIP_FROM_ROWS
                st.download_button(
                    f"CSV of the {side.role_in_text}'s events{' (compressed)' if is_long else ''}",
                    _timeline_csv(run, host, is_long),
                    file_name=f"memory_timeline_{file_stem(run.name)}.csv{'.gz' if is_long else ''}",
                    mime="application/gzip" if is_long else "text/csv",
                    icon=":material/download:",
                    on_click="ignore",
                    help=f"{rows:,} events of all memories, in full precision",
                    key=f"timeline_csv_{side.position > 0}",
                )


def _timeline_csv(run: Run, host: str | None, is_long: bool) -> Callable[[], bytes]:
    join = gzipped if is_long else b"".join
    return lambda: join(spreadsheet_csv_of(memory_series.timeline_parts(run, host)))
