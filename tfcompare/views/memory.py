"""Memory: the memory with the largest peak in both runs, its use in time, and what is live at the peak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.charts import memory, memory_peak, ops
from tfcompare.charts.changes import changes_of_pair
from tfcompare.charts.memory_peak import LIVE
from tfcompare.charts.pair import Pair, has_steps
from tfcompare.charts.style import Side
from tfcompare.compare.aggregate import largest_changes
from tfcompare.compare.matching.matching import pair_hosts
from tfcompare.markdown import as_code
from tfcompare.run import Run
from tfcompare.tools import memory as memory_sides
from tfcompare.tools import memory_timeline
from tfcompare.tools.key_figures import KeyFigure
from tfcompare.tools.memory import NO_OP, Figures, Hosts, MemoryPair
from tfcompare.tools.memory_timeline import Memory
from tfcompare.views.blocks import Block, Cards, Text
from tfcompare.views.view import CHANGE, Make, View, charts_of, table_of, without_rows


def blocks(pair: Pair, options: Any) -> Iterator[Block]:
    """The peaks in a sentence and as figures, the use in time, what changed at the peak, and all memories."""
    if (found := largest_memory(pair)) is not None:
        memories, hosts = found
        sides = memory_sides.figures(pair.diff("memory_summary"), memories, hosts)
        yield Text(headline(pair, memories, sides))
        yield Cards(figures(pair, sides), pair.headings)
    yield from charts_of(pair, {name: make for name, make in CHARTS.items() if name != "memory_run"}, options)
    rows = pair.diff("memory_summary")
    names = ["host", "memory_id", *(f"peak_bytes_{role}" for role in CHANGE)]
    yield from table_of(pair, schema.MEMORY_SUMMARY, "All memories", rows, names)
    rows = pair.diff("memory_peak")
    rows = rows.assign(op_name=rows["op_name"].replace("", NO_OP))
    names = ["op_name", "region_type", "data_type", "shape", *(f"allocation_bytes_{role}" for role in CHANGE)]
    yield from table_of(pair, schema.MEMORY_PEAK, "Live at the peak", rows, names)


def headline(pair: Pair, memories: MemoryPair, sides: Figures) -> str:
    """The change of the peak of a memory, in Markdown."""
    peaks = sides["peak_bytes"]
    if pair.is_single:
        return memory_sides.headline_alone(peaks[0], as_code(pair.baseline.name))
    names = [as_code(name) for name in pair.called]
    if not memories.has_one_name:
        ids = (as_code(memory.memory_id) for memory in memories.memories if memory)
        names = [f"{name} in {memory_id}" for name, memory_id in zip(names, ids, strict=True)]
    identical = pair.is_identical and memories.has_one_name
    return memory_sides.headline(memories, peaks, (names[0], names[1]), identical=identical)


def figures(pair: Pair, sides: Figures) -> list[KeyFigure]:
    """Peak, heap since start, capacity used, fragmentation and allocations of a memory."""
    found = memory_sides.key_figures(sides, pair.comparison.per)
    return [replace(one, candidate=one.baseline).alone() for one in found] if pair.is_single else found


def largest_memory(pair: Pair) -> tuple[MemoryPair, Hosts] | None:
    """The memory with the largest peak, and the hosts that are paired; None without any memory."""
    ours, theirs = pair.tables("memory_summary")
    paired = pair_hosts(ours["host"].unique(), theirs["host"].unique())
    found = memory_sides.memory_pairs(ours, theirs, paired)
    return (found[0], paired) if found else None


def _of_each(pair: Pair) -> list[tuple[Side, Run, Memory]]:
    found = largest_memory(pair)
    if found is None:
        return []
    every = zip(pair.shown, found[0].memories, strict=False)
    return [(side, run, one) for (side, run), one in every if one is not None]


def _step(pair: Pair, _options: Any = None) -> Any:
    drawn = [
        (side, memory_timeline.typical_step(run, one, "in_use_bytes"))
        for side, run, one in _of_each(pair)
        if has_steps(run)
    ]
    return memory.typical_step(drawn, "in_use_bytes", "time") if any(len(frame) for _, frame in drawn) else None


def _run(pair: Pair, _options: Any = None) -> Any:
    drawn = [(side, memory_timeline.drawn(run, one, "in_use_bytes", "time")) for side, run, one in _of_each(pair)]
    return memory.timeline(drawn, [], "in_use_bytes", "time") if any(len(frame) for _, frame in drawn) else None


def _peak_rows(pair: Pair) -> pd.DataFrame | None:
    found = largest_memory(pair)
    if found is None:
        return None
    memories, paired = found
    rows = memory_sides.peak_diff(
        pair.diff("memory_peak"), memories, paired, pair.tables("memory_peak"),
        identical=pair.is_identical and memories.has_one_name, manual_pairs=pair.manual_pairs, evidence=pair.evidence,
    )  # fmt: skip
    return rows if len(rows) else None


def _peak(pair: Pair, _options: Any = None) -> Any:
    rows = _peak_rows(pair)
    if rows is None:
        return None
    tree, shown = memory_sides.peak_tree(rows, "scope"), [side for side, _ in pair.shown]
    return memory_peak.peak_treemap(memory_sides.tree_alone(tree) if pair.is_single else tree, shown, by="name scope")


def _peak_changes(pair: Pair, _options: Any = None) -> Any:
    rows = None if pair.is_single else _peak_rows(pair)
    if rows is None:
        return None
    changes = largest_changes(memory_sides.named(rows), n=ops.TOP, metric="allocation_bytes")
    return None if changes.empty else changes_of_pair(pair, changes, "allocation_bytes", by="what", quantity=LIVE)


CHARTS: dict[str, Make] = {
    "memory_step": _step,
    "memory_run": _run,
    "memory_peak": _peak,
    "memory_peak_changes": _peak_changes,
}
"""`memory_run` is too large for a report."""
VIEW = View("memory", "Memory", blocks, CHARTS, without_rows("No memory events were captured.", "memory_summary"))
