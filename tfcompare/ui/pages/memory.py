"""The upper part of the memory page: choice of memory, headline and key figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from tfcompare.charts.pair import Pair
from tfcompare.compare.matching.matching import pair_hosts
from tfcompare.markdown import as_code
from tfcompare.tools import memory as memory_sides
from tfcompare.tools.memory import Figures, Hosts, MemoryPair
from tfcompare.tools.memory_timeline import Memory
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.frame.shell import stop
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.figures import cached
from tfcompare.ui.widgets.links import show_link
from tfcompare.views import links
from tfcompare.views import memory as view
from tfcompare.views.links import Moment

ONE_OF_EACH = "a different one for each run …"
HOW_TO_RECORD = (
    "To record them in TensorFlow, set `tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)` or higher. JAX "
    "records them with `jax.profiler.start_trace` on GPUs and TPUs."
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
    tables = pair.tables("memory_summary")
    silent = [run for (_, run), table in zip(pair.shown, tables, strict=False) if table.empty]
    if len(silent) == len(pair.shown):
        stop("No memory events were captured.", HOW_TO_RECORD, selection)
    for run in silent:
        st.info(f"{as_code(run.name)} has no memory events, so only the other run is shown. {HOW_TO_RECORD}")


def choose_memories(pair: Pair) -> Chosen:
    """A widget that chooses the memory: by its name on both sides, or separately for each side."""
    ours, theirs = pair.tables("memory_summary")
    hosts = pair_hosts(ours["host"].unique(), theirs["host"].unique())
    pairs = memory_sides.memory_pairs(ours, theirs, hosts)
    several_hosts = any(table["host"].nunique() > 1 for table in (ours, theirs))
    options = {_pair_label(one, several_hosts): one for one in pairs}
    of_each = [memory_sides.by_peak(table) for table in (ours, theirs)]
    meet = any(None not in one.memories for one in pairs)
    may_differ = all(of_each) and len(pairs) > 1 and not pair.is_single
    labels = [*options] if meet or not all(of_each) else []
    labels += [ONE_OF_EACH] if may_differ and labels else []
    label: str | None = next(iter(labels), None)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(labels) > 1:
            label = st.selectbox("Memory", labels, key="memory", bind="query-params", width=420, help=_MEMORY_HELP)
        chosen = options.get(str(label)) or MemoryPair(
            *(_choose(run.name, role, memories, several_hosts) for run, role, memories in zip(
                pair.runs, memory_sides.ROLES, of_each, strict=True))
        )  # fmt: skip
    return Chosen(pair, chosen, hosts)


_MEMORY_HELP = "The name of the allocator, or the number of the device; the largest peak comes first"


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
    """A sentence about the peaks of the runs, or of the run that is shown alone."""
    st.markdown(f"### {view.headline(chosen.pair, chosen.memories, chosen.figures)}")


def figures(chosen: Chosen) -> None:
    """Peak, heap since start, capacity used, fragmentation and allocations."""
    cards(view.figures(chosen.pair, chosen.figures))
    _links_to_peaks(chosen)


def _links_to_peaks(chosen: Chosen) -> None:
    """A link to the moment of the peak of each run that has the memory."""
    pair, times_us = chosen.pair, chosen.figures["peak_time_us"]
    shown = zip(pair.letters, chosen.memories.memories, times_us, strict=False)
    with st.container(horizontal=True):
        for side, (name, memory, time_us) in enumerate(shown):
            if memory:
                what = "the peak" if pair.is_single else f"the peak of {name}"
                show_link(
                    pair, links.to_moment(pair, Moment(side, time_us, 0.0), memory.host, f"Show {what} in timeline")
                )
