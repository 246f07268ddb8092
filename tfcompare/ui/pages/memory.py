"""The upper parts of the memory page: choice of memory, key figures, and both runs over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare.charts import memory as charts
from tfcompare.charts.style import Side
from tfcompare.compare.headline import step_marker_call
from tfcompare.compare.matching.matching import pair_hosts
from tfcompare.export.csv import gzipped, spreadsheet_csv_of
from tfcompare.run import Run
from tfcompare.tools import memory as memory_sides
from tfcompare.tools import memory_timeline as memory_series
from tfcompare.tools.key_figures import KeyFigure
from tfcompare.tools.memory import Figures, Hosts, MemoryPair
from tfcompare.tools.memory_timeline import Align, Level, Memory
from tfcompare.ui.frame.pair import Pair, has_steps
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.frame.shell import stop
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.downloads import file_stem
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.ui.widgets.text import as_code

LEVELS: dict[Level, str] = {
    "in_use_bytes": "in use",
    "heap_bytes": "heap",
    "stack_bytes": "stack",
    "free_bytes": "free",
    "fragmentation": "fragmentation",
}
ALIGNMENTS: dict[Align, str] = {"step": "step by step", "time": "by time"}

ONE_OF_EACH = "another one for each run …"
GZIP_FROM_ROWS = 200_000
"""A longer CSV is sent compressed: it would be as large as the profile itself."""

HOW_TO_RECORD = (
    "TensorFlow records allocations with `tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)` or a higher "
    "level, JAX with `jax.profiler.start_trace` on devices whose PJRT plugin tells of them, such as GPUs and TPUs."
)


@dataclass(frozen=True)
class Chosen:
    """The pair of runs, and the chosen memory of each."""

    pair: Pair
    memories: MemoryPair
    hosts: Hosts

    @property
    def is_identical(self) -> bool:
        """Whether both sides are the same memory of one capture."""
        return self.pair.baseline.content_id == self.pair.candidate.content_id and self.memories.has_one_name

    @property
    def figures(self) -> Figures:
        """The `memory_summary` of both sides."""
        return cached(
            self.pair,
            ("figures", self.memories),
            lambda: memory_sides.figures(self.pair.diff("memory_summary"), self.memories, self.hosts),
        )


def stop_without_events(pair: Pair, selection: Selection) -> None:
    """Stop the page if neither run has memory events; show a message if only one has."""
    silent = [run for run, table in zip(pair.runs, pair.tables("memory_summary"), strict=True) if table.empty]
    if len(silent) == len(pair.runs):
        stop("Neither run holds memory events, so there is nothing to show.", HOW_TO_RECORD, selection)
    for run in silent:
        st.info(f"{as_code(run.name)} holds no memory events, so the other run stands alone here. {HOW_TO_RECORD}")


def choose_memories(pair: Pair) -> Chosen:
    """A widget that chooses the memory: by its name on both sides, or separately for each side."""
    ours, theirs = pair.tables("memory_summary")
    hosts = pair_hosts(ours["host"].unique(), theirs["host"].unique())
    pairs = memory_sides.memory_pairs(ours, theirs, hosts)
    several_hosts = any(table["host"].nunique() > 1 for table in (ours, theirs))
    options = {_pair_label(one, several_hosts): one for one in pairs}
    of_each = [memory_sides.by_peak(table) for table in (ours, theirs)]
    meet = any(None not in one.memories for one in pairs)
    may_differ = all(of_each) and len(pairs) > 1
    with st.container(horizontal=True, vertical_alignment="bottom"):
        labels = [*options] if meet or not all(of_each) else []
        labels += [ONE_OF_EACH] if may_differ and labels else []
        label = ONE_OF_EACH
        if labels:
            label = st.selectbox("Memory", labels, key="memory", bind="query-params", width=420, help=_MEMORY_HELP)
        chosen = options.get(label) or MemoryPair(
            *(_choose(run.name, role, memories, several_hosts) for run, role, memories in zip(
                pair.runs, memory_sides.ROLES, of_each, strict=True))
        )  # fmt: skip
    return Chosen(pair, chosen, hosts)


_MEMORY_HELP = "The allocator, or the device's number where it has no name; the largest peak comes first"


def _choose(run_name: str, role: str, memories: Sequence[Memory], several_hosts: bool) -> Memory:
    options = {_label(memory, several_hosts): memory for memory in memories}
    label = st.selectbox(
        f"Memory of the {role} {as_code(run_name)}", list(options), key=f"memory_{role}", bind="query-params", width=420
    )
    return options[label]


def _pair_label(pair: MemoryPair, several_hosts: bool) -> str:
    memory = pair.baseline or pair.candidate
    alone = {pair.candidate: " (baseline only)", pair.baseline: " (candidate only)"}.get(None, "")
    return _label(memory, several_hosts) + alone if memory else ""


def _label(memory: Memory, several_hosts: bool) -> str:
    return f"{memory.memory_id} on {memory.host}" if several_hosts else memory.memory_id


def headline(chosen: Chosen) -> None:
    """A sentence about the two peaks."""
    names = [as_code(run.name) for run in chosen.pair.runs]
    if not chosen.memories.has_one_name:
        ids = (as_code(memory.memory_id) for memory in chosen.memories.memories if memory)
        names = [f"{name} in {memory_id}" for name, memory_id in zip(names, ids, strict=True)]
    sentence = memory_sides.headline(
        chosen.memories, chosen.figures["peak_bytes"], (names[0], names[1]), identical=chosen.is_identical
    )
    st.markdown(f"### {sentence}")


def figures(chosen: Chosen) -> None:
    """Peak, heap since start, capacity used, fragmentation and allocations of both sides."""
    cards(key_figures(chosen.figures, chosen.pair.comparison.per))


def key_figures(figures: Figures, per: str) -> list[KeyFigure]:
    """The key figures of two memories."""
    allocations = figures.get("allocations_per_step") or figures["allocations"]
    used = [
        peak / capacity if capacity > 0 else math.nan
        for peak, capacity in zip(figures["peak_bytes"], figures["capacity_bytes"], strict=True)
    ]
    fragmentation = figures["fragmentation"]
    return [
        _size("Peak in use", figures["peak_bytes"], "The largest sum of stack and heap within the profile."),
        _size(
            "Peak heap since start",
            figures["peak_heap_bytes"],
            "The largest heap since the program began, as reported by the allocator: it may be before the profile.",
        ),
        KeyFigure(
            "Capacity used at peak", "share", used[0], used[1], "neither",
            "Stack and heap as a share of the allocator's limit, which may be less than the machine's memory, or more.",
        ),
        KeyFigure(
            "Fragmentation at peak", "share", fragmentation[0], fragmentation[1], "neither",
            "Share of the free memory that lies in small pieces, as the allocator told it.",
        ),
        KeyFigure(
            f"Allocations per {per}", "", allocations[0], allocations[1], "neither",
            f"Allocations within the profile, per {per}.",
        ),
    ]  # fmt: skip


def _size(label: str, sides: tuple[float, float], meaning: str) -> KeyFigure:
    return KeyFigure(label, "bytes", sides[0], sides[1], "lower", meaning)


def timeline(chosen: Chosen) -> None:
    """Both memories over time on the same axes, with their widgets, and the full timelines as CSV."""
    level, align, parts = _timeline_controls(chosen)
    lines, on = _lines(chosen, level, align), (chosen.memories, level, align)
    if not any(len(frame) for _, frame in lines):
        st.info(f"No event tells the memory's {LEVELS[level]}.")
    else:
        draw(chosen.pair, "timeline", partial(_timeline, chosen, lines, level, align), on)
    if parts:
        drawn = [(side, frame) for side, frame in _lines(chosen, "in_use_bytes", align) if len(frame)]
        for place, (side, frame) in zip(side_by_side(len(drawn)), drawn, strict=True):
            with place:
                key, make = f"make_up_{side.position > 0}", partial(charts.memory_composition, side, frame, align)
                draw(chosen.pair, key, make, on)
    _explain_sampling(chosen)
    _timeline_csvs(chosen)


def _timeline(chosen: Chosen, lines: charts.Lines, level: Level, align: Align) -> Any:
    fragmentation = [] if level == "fragmentation" else _lines(chosen, "fragmentation", align)
    return charts.timeline(lines, fragmentation, level, align)


def _timeline_controls(chosen: Chosen) -> tuple[Level, Align, bool]:
    unmarked = [run.name for run in chosen.pair.runs if not has_steps(run)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        level = st.segmented_control(
            "Memory that is", list(LEVELS), default="in_use_bytes", required=True, format_func=LEVELS.__getitem__,
            key="level", bind="query-params", help="In use: stack and heap together",
        )  # fmt: skip
        align: Align = "time"
        if not unmarked:
            align = st.segmented_control(
                "Laid over one another", list(ALIGNMENTS), default="step", required=True,
                format_func=ALIGNMENTS.__getitem__, key="align", bind="query-params",
                help="Step by step: every step is drawn equally long, so that the k-th lies over the k-th",
            )  # fmt: skip
        parts = st.toggle(
            "Stack, heap and free", key="parts", bind="query-params", help="What each run's memory is made of over time"
        )
    if unmarked:
        names = " and ".join(as_code(name) for name in unmarked)
        call = step_marker_call(run.info for run in chosen.pair.runs)
        st.caption(
            f"The runs can be laid over one another by time only: no step markers in {names}. To have them step by "
            f"step, record again with each step inside `{call}`."
        )
    return level, align, parts


def _lines(chosen: Chosen, level: Level, align: Align) -> list[tuple[Side, pd.DataFrame]]:
    """Each side that has the memory, with the events to draw."""
    every = zip(chosen.pair.sides, chosen.pair.runs, chosen.memories.memories, strict=True)
    return [
        (side, _drawn((run.content_id, run.id), memory, level, align, run)) for side, run, memory in every if memory
    ]


@st.cache_data(max_entries=32, show_spinner=False)
def _drawn(key: tuple[str, str], memory: Memory, level: Level, align: Align, _run: Run) -> pd.DataFrame:
    del key
    return memory_series.drawn(_run, memory, level, align)


def _explain_sampling(chosen: Chosen) -> None:
    """Show how many events were left out of the lines."""
    events = [
        memory_series.event_count(run, memory.host, memory.memory_id)
        for run, memory in zip(chosen.pair.runs, chosen.memories.memories, strict=True)
        if memory
    ]
    if max(events) > memory_series.POINTS:
        st.caption(
            f"Of more than {memory_series.POINTS:,} events a line is drawn through about as many: the first, the last, "
            "the smallest and the largest of each stretch, so that no peak is lost. The CSV files have every event."
        )


def _timeline_csvs(chosen: Chosen) -> None:
    """A button per run: every event of all its memories, as a file made on request."""
    with st.container(horizontal=True):
        for side, run in zip(chosen.pair.sides, chosen.pair.runs, strict=True):
            host = chosen.pair.host_of(run)
            rows = memory_series.event_count(run, host)
            if rows:
                is_long = rows > GZIP_FROM_ROWS
                st.download_button(
                    f"CSV of the {side.role.lower()}'s timeline, {rows:,} events{', compressed' if is_long else ''}",
                    _timeline_csv(run, host, is_long),
                    file_name=f"memory_timeline_{file_stem(run.name)}.csv{'.gz' if is_long else ''}",
                    mime="application/gzip" if is_long else "text/csv",
                    icon=":material/download:",
                    on_click="ignore",
                    help="Every event of all memories, in full precision",
                    key=f"timeline_csv_{side.position > 0}",
                )


def _timeline_csv(run: Run, host: str | None, is_long: bool) -> Callable[[], bytes]:
    join = gzipped if is_long else b"".join
    return lambda: join(spreadsheet_csv_of(memory_series.timeline_parts(run, host)))
