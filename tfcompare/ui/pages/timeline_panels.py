"""Below the timeline: the selected span with its partner, what ran in the measured range, and downloads."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from tfcompare.compare.pair import Pair
from tfcompare.text import as_code, as_markdown, middle_ellipsis
from tfcompare.ui.widgets import perfetto
from tfcompare.ui.widgets.blocks import file_button
from tfcompare.ui.widgets.links import show_link
from tfcompare.ui.widgets.perfetto import show_perfetto
from tfcompare.ui.widgets.tables import sortable
from tfcompare.ui.widgets.timeline import State
from tfcompare.units import MISSING, format_delta, format_ratio, format_time_us
from tfcompare.views import links
from tfcompare.views.csv_files import file_stem, spreadsheet_csv
from tfcompare.views.ops.op import op_key
from tfcompare.views.timeline.aligned import Aligned
from tfcompare.views.timeline.drawing import default_window_us
from tfcompare.views.timeline.host_pair import Meeting
from tfcompare.views.timeline.hosts import ShownHosts
from tfcompare.views.timeline.selection import Selected, select
from tfcompare.views.timeline.trace import chrome_trace, to_trace
from tfcompare.views.timeline.view import Compared, ran_in
from tfcompare.views.verdict_marks import text_of

HEADING_LETTERS = 120
START = "Start after time 0"
LONG_NAME, NAME_HEIGHT = 300, 110
"""Names with more letters than this are shown in a box as high as that, in pixels."""


def in_words(aligned: Aligned, state: State, letters: list[str]) -> str:
    """The selection for those who do not see it."""
    sides = select(aligned, *state.selected) if state.selected else []
    texts = [
        f"{letter}: {one.op_name or one.name}, {format_time_us(one.duration_us)} on {one.lane}"
        if one
        else f"{letter}: no partner"
        for letter, one in zip(letters, sides, strict=False)
    ]
    return ". ".join(texts)


def show_selected(sides: ShownHosts, aligned: Aligned, state: State) -> None:
    """The selected span and its partner, side by side."""
    spans = select(aligned, *state.selected) if state.selected else []
    if not spans:
        hint = "Click a span to see its times, its partner and what launched it."
        st.caption(f"{hint} Drag on the ruler to measure a range.")
        return
    one = next(side for side in spans if side)
    st.markdown(f"##### {as_code(middle_ellipsis(one.op_name or one.name, HEADING_LETTERS))}")
    st.markdown(_about(sides.pair, aligned, spans, one, sides.labels))
    _whole_names(spans, sides.labels)
    meeting = aligned.meeting if aligned.is_at_meeting else None  # else times count from an op on the host's own clock
    st.table(_numbers(spans, sides.labels, meeting).set_index(""), width="content")
    if one.op >= 0 and not sides.hosts:
        row = aligned.timelines.op_stats.iloc[[one.op]]
        show_link(sides.pair, links.to_op_view(op_key(row).iloc[0]))


def _whole_names(sides: list[Selected | None], letters: list[str]) -> None:
    """The names of the spans as recorded, if the heading does not show them: of kernels, and of what is long."""
    names = {letter: side.name for letter, side in zip(letters, sides, strict=False) if side}
    for name in dict.fromkeys(names.values()):
        if any(side and side.name == name and (side.op_name or name) in name[:HEADING_LETTERS] for side in sides):
            continue
        if len(set(names.values())) > 1:
            st.caption(f"In {next(letter for letter, of in names.items() if of == name)}:")
        st.code(name, language=None, wrap_lines=True, height=NAME_HEIGHT if len(name) > LONG_NAME else "content")


def _about(pair: Pair, aligned: Aligned, sides: list[Selected | None], one: Selected, letters: list[str]) -> str:
    """Which op it is and the verdict on it, or that it has no partner."""
    texts = []
    if one.op >= 0:
        row = aligned.timelines.op_stats.iloc[one.op]
        texts.append(as_markdown(row["op_type"]))
        if len(one.op_name) > HEADING_LETTERS:
            texts.append(as_code(one.op_name))
        if not pair.is_single and isinstance(row["verdict"], str):
            texts.append(f"over all steps {text_of(row['verdict'], row['evidence'])}")
    if len(sides) > 1 and None in sides:
        texts.append(f"**only in {letters[0 if sides[0] else 1]}**, in this step")
    elif len(sides) > 1 and sides[0] and sides[1] and sides[0].duration_us > 0:
        texts.append(f"here {letters[1]} takes {format_ratio(sides[1].duration_us / sides[0].duration_us)}")
    return " · ".join(texts)


def _numbers(sides: list[Selected | None], letters: list[str], meeting: Meeting | None) -> pd.DataFrame:
    """Times and places as texts: a row for each, a column for each side, and the change.

    How far apart events of two hosts are is left out if it is less than the error of their clocks.
    """
    times: dict[str, Callable[[Selected], float]] = {
        START: lambda side: side.start_us,
        "Duration": lambda side: side.duration_us,
        "Self time": lambda side: side.self_time_us,
    }
    texts: dict[str, Callable[[Selected], str]] = {
        "Step": lambda side: side.step or MISSING,
        "Lane": lambda side: side.lane,
    }
    if any(side and side.launched_by for side in sides):
        texts["Launched by"] = lambda side: middle_ellipsis(side.launched_by, HEADING_LETTERS) or MISSING
    if any(side and not math.isnan(side.delay_us) for side in sides):
        times["Starts after its launch"] = lambda side: side.delay_us
    rows = []
    for label, value in times.items():
        cells = [format_time_us(value(side)) if side else MISSING for side in sides]
        line = {"": label} | dict(zip(letters, cells, strict=True))
        if len(sides) > 1:
            ours, theirs = sides
            line["Change"] = format_delta(value(theirs) - value(ours), "µs") if ours and theirs else MISSING
            if meeting and ours and theirs and label == START and not meeting.is_ordered(value(theirs) - value(ours)):
                line["Change"] = f"< {format_time_us(meeting.error_us)}" if meeting.has_clock else MISSING
        rows.append(line)
    for label, text in texts.items():
        cells = [as_markdown(text(side)) if side else MISSING for side in sides]
        rows.append({"": label} | dict(zip(letters, cells, strict=True)) | ({"Change": ""} if len(sides) > 1 else {}))
    return pd.DataFrame(rows)


def show_range(compared: Compared, state: State) -> None:
    """What ran in the measured range."""
    if state.range_us is None:
        return
    heading, covered, table = ran_in(compared, state.look, state.range_us)
    st.markdown(f"##### {heading.text}", help=heading.help)
    st.markdown(covered.text)
    ordered, _ = sortable(table.rows, table.columns, key="timeline_range", address=table.address)
    name = f"{file_stem(compared.shown.pair.baseline.name)}_range.csv"
    file_button("CSV", lambda: spreadsheet_csv(ordered), name, "timeline_range_csv")


def traces(pair: Pair, aligned: Aligned, state: State) -> None:
    """The whole timelines as a file for Perfetto, and what is in the window in Perfetto itself if it is installed."""
    name = f"{file_stem('_'.join(run.name for _, run in pair.shown))}.json.gz"
    meaning = "All that is on this axis, for ui.perfetto.dev or chrome://tracing; as `tfcompare trace` writes it"
    with st.container(horizontal=True, vertical_alignment="center"):
        file_button("Trace for Perfetto", partial(_trace, pair, aligned), name, "timeline_trace", meaning)
        is_open = perfetto.folder() is not None and st.toggle(
            "Perfetto", key="perfetto_open", help="Show the spans of this window in Perfetto, which runs on this server"
        )
    if is_open:
        window = state.look.window_us or default_window_us(aligned, state.look)
        show_perfetto(_trace(pair, aligned, window), f"{pair.baseline.name} and {pair.candidate.name}")


def _trace(pair: Pair, aligned: Aligned, window_us: tuple[float, float] | None = None) -> bytes:
    """The trace as `export.trace.chrome_trace` writes it, compressed; of a window, or of all."""
    hosts = []
    for number, (run, side, zero) in enumerate(zip(pair.runs, aligned.timelines.sides, aligned.zero_ps, strict=False)):
        timeline = replace(side.timeline, zero_ps=zero)
        name = run.name if pair.baseline.name != pair.candidate.name else f"{run.name} ({number + 1})"
        hosts.append(to_trace(run, name, timeline, *(window_us or ())))
    return gzip.compress("".join(chrome_trace(hosts)).encode(), compresslevel=6)
