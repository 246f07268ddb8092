"""Below the timeline: a link to the op of the selected span, what ran in the measured range, and downloads."""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from tfcompare.compare.pair import Pair
from tfcompare.ui.widgets import perfetto
from tfcompare.ui.widgets.blocks import file_button
from tfcompare.ui.widgets.links import show_link
from tfcompare.ui.widgets.perfetto import show_perfetto
from tfcompare.ui.widgets.tables import sortable
from tfcompare.ui.widgets.timeline import State
from tfcompare.units import format_time_us
from tfcompare.views import links
from tfcompare.views.csv_files import file_stem, spreadsheet_csv
from tfcompare.views.ops.op import op_key
from tfcompare.views.timeline.aligned import Aligned
from tfcompare.views.timeline.drawing import default_window_us
from tfcompare.views.timeline.hosts import ShownHosts
from tfcompare.views.timeline.selection import select
from tfcompare.views.timeline.trace import chrome_trace, to_trace
from tfcompare.views.timeline.view import Compared, ops_in_range


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


def show_op(sides: ShownHosts, aligned: Aligned, state: State) -> None:
    """A link to the op of the selected span."""
    spans = select(aligned, *state.selected) if state.selected else []
    one = next((side for side in spans if side and side.op >= 0), None)
    if one and not sides.hosts:
        show_link(sides.pair, links.to_op_view(op_key(aligned.timelines.op_stats.iloc[[one.op]]).iloc[0]))


def show_range(compared: Compared, rows: pd.DataFrame) -> None:
    """The ops that ran in the measured range."""
    table = ops_in_range(compared, rows)
    ordered, _ = sortable(table.rows, table.columns, key="timeline_range", address=table.address)
    name = f"{file_stem(compared.shown.pair.baseline.name)}_range.csv"
    file_button("CSV", lambda: spreadsheet_csv(ordered), name, "timeline_range_csv")


def traces(shown: ShownHosts, aligned: Aligned, state: State) -> None:
    """The whole timelines as a file for Perfetto, and what is in the window in Perfetto itself if it is installed; and
    a link to the op of the selected span."""
    pair = shown.pair
    name = f"{file_stem('_'.join(run.name for _, run in pair.shown))}.json.gz"
    meaning = "All that is on this axis, for ui.perfetto.dev or chrome://tracing; as `tfcompare trace` writes it"
    with st.container(horizontal=True, vertical_alignment="center"):
        show_op(shown, aligned, state)
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
