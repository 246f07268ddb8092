"""Memory: TensorBoard's memory profile of both runs: its use in time, and what is live at the peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tfcompare import schema
from tfcompare.compare.pair import Pair
from tfcompare.schema import SIDES
from tfcompare.text import as_code
from tfcompare.views import links
from tfcompare.views.blocks import MORE, Block, Choose, Link, Links, Section, Table, Text, later
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.links import Moment
from tfcompare.views.memory import choice as memory_choice
from tfcompare.views.memory import figures as memory_sides
from tfcompare.views.memory import over_time
from tfcompare.views.memory import peak as memory_peak
from tfcompare.views.memory.charts import LEVELS, Axis
from tfcompare.views.memory.choice import EACH, Chosen, chosen
from tfcompare.views.memory.curve import Align, Level
from tfcompare.views.memory.figures import Part
from tfcompare.views.memory.over_time import Span
from tfcompare.views.options import option
from tfcompare.views.pair_words import DIFFERENT_PROGRAMS
from tfcompare.views.view import CHANGE, Make, View, by_role, cards, largest_first, without_rows
from tfcompare.views.xla import changed_buffers

HOW_TO_RECORD = (
    "To record them in TensorFlow, set `tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)` or higher. JAX "
    "records them with `jax.profiler.start_trace` on GPUs and TPUs."
)
OF_BASELINE, OF_CANDIDATE = (partial(memory_choice.side_memories, role=role) for role in SIDES)
MEMORY_HELP = "The name of the allocator, or the number of the device; the largest peak comes first"
LEVEL_LABELS = {level: label for level, (label, *_) in LEVELS.items()}
DETAILS = ("heap_bytes", "stack_bytes", "free_bytes", "capacity_bytes")
_METRICS = tuple(column.name for column in schema.MEMORY_SUMMARY.metrics)


def _has(name: str, value: str) -> Callable[[Pair, Any], bool]:
    """For `Option.when`: whether the option of that name has this value."""
    return lambda _pair, options: bool(getattr(options, name) == value)


def _has_tiles(pair: Pair, options: Any) -> bool:
    found = chosen(pair, options)
    return found is not None and memory_peak.has_tiles(found)


@dataclass(frozen=True)
class Options:
    """Which memory of each run is shown, and how."""

    memory: str = option("", "Memory", memory_choice.by_name, is_list=True, help=MEMORY_HELP)
    memory_baseline: str = option("", "Memory of the baseline", OF_BASELINE, when=_has("memory", EACH), is_list=True)
    memory_candidate: str = option("", "Memory of the candidate", OF_CANDIDATE, when=_has("memory", EACH), is_list=True)
    span: Span = option("step", "Show", over_time.spans, help=over_time.SPAN_HELP)
    level: Level = option("in_use_bytes", "Level", LEVEL_LABELS, help="In use: stack and heap together")
    axis: Axis = option("time", "Horizontal axis", over_time.AXES, when=_has("span", "step"), help=over_time.AXIS_HELP)
    align: Align = option(
        "step", "Horizontal axis", over_time.alignments, when=_has("span", "run"), help=over_time.ALIGN_HELP
    )
    parts: bool = option(
        False, "Stack, heap and free", when=_has("span", "run"), help="Composition of the memory over time"
    )
    parts_by: Part = option("scope", "Group by", memory_peak.PARTS, when=_has_tiles)


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """The peaks in a sentence and as figures, the use in time, what is live at the peak, and all memories."""
    tables = pair.tables("memory_summary")
    for (_, run), table in zip(pair.shown, tables, strict=False):
        if table.empty:
            why = f"{as_code(run.name)} has no memory events, so only the other run is shown. {HOW_TO_RECORD}"
            yield Text(why, "notice")
    yield Choose(["memory", "memory_baseline", "memory_candidate"])
    if (found := chosen(pair, options)) is None:
        return
    yield later(partial(_top, found))
    choices = ["span", "level", "axis", "align", "parts"]
    yield Section("Over time", partial(over_time.over_time, found, options), True, choices)
    yield later(partial(memory_peak.live_at_the_peak, found))
    yield Section(MORE, partial(_more, found, options))


def _more(chosen: Chosen, options: Options) -> Iterator[Block]:
    """What changed most, what is live at the peak by size, and all memories."""
    if not (chosen.pair.is_single or chosen.pair.are_unrelated):
        yield later(partial(memory_peak.what_changed, chosen))
    yield Choose(["parts_by"])
    yield later(partial(memory_peak.tiles, chosen, options.parts_by))
    yield _summary(chosen.pair)


def _top(chosen: Chosen) -> Iterator[Block]:
    """The peaks in a sentence and as figures, and where they are in the timeline."""
    yield Text(headline(chosen), "headline")
    yield cards(chosen.pair, figures(chosen))
    if sentence := memory_peak.moments(chosen):
        yield Text(sentence)
    if chosen.pair.baseline.choice.kind is not None:
        yield Text("Peaks and allocations are those of all steps; the typical step is of the chosen kind.", "quiet")
    yield Links(_links_to_peaks(chosen))


def headline(chosen: Chosen) -> str:
    """The change of the peak of a memory, in Markdown."""
    pair, memories, peaks = chosen.pair, chosen.memories, chosen.figures["peak_bytes"]
    if pair.is_single:
        return memory_sides.headline_alone(peaks[0], as_code(pair.baseline.name))
    if pair.are_unrelated:
        return f"{DIFFERENT_PROGRAMS}."
    names = [as_code(name) for name in pair.called]
    if not memories.has_one_name:
        ids = (as_code(memory.memory_id) for memory in memories.memories if memory)
        names = [f"{name} in {memory_id}" for name, memory_id in zip(names, ids, strict=True)]
    return memory_sides.headline(memories, peaks, (names[0], names[1]), identical=chosen.is_identical)


def figures(chosen: Chosen) -> list[KeyFigure]:
    """Peak, heap since start, capacity used, fragmentation and allocations of a memory."""
    found = memory_sides.key_figures(chosen.figures, chosen.pair.per)
    return [replace(one, candidate=one.baseline).alone() for one in found] if chosen.pair.is_single else found


def _links_to_peaks(chosen: Chosen) -> list[Any]:
    """A link to the moment of the peak of each run that has the memory."""
    pair, times_us = chosen.pair, chosen.figures["peak_time_us"]
    what = ["the peak"] if pair.is_single else [f"the peak of {name}" for name in pair.letters]
    return [
        links.to_moment(pair, Moment(side, time_us, 0.0), memory.host, f"Show {of_side} in timeline")
        for side, (of_side, memory, time_us) in enumerate(zip(what, chosen.memories.memories, times_us, strict=False))
        if memory
    ]


def _summary(pair: Pair) -> Table:
    """The peaks of several memories, and what the figures above do not tell of each."""
    rows = largest_first(pair, schema.MEMORY_SUMMARY, pair.diff("memory_summary"))
    names, every = _summary_columns(rows, every=False), _summary_columns(rows, every=True)
    table = Table(schema.MEMORY_SUMMARY, "All memories", rows, names, pair.is_single, every, address="summary_")
    return replace(table, sums_per=pair.sums_per())


def _summary_columns(rows: Any, *, every: bool) -> list[str]:
    names = ["memory_id", *(["host"] if rows["host"].nunique() > 1 or every else [])]
    if len(rows) > 1 or every:
        names += by_role("peak_bytes", CHANGE)
    names += [f"{name}_{role}" for name in DETAILS for role in SIDES]
    if every:
        rest = [name for name in rows.columns if name.startswith(_METRICS) and name not in names]
        names += [name for name in rest if not name.endswith("_ratio")]
        names += ["status", "match", "verdict"]
    return names


def _chart(make: Any) -> Make:
    """A chart of the chosen memory; None if there is none."""

    def of_pair(pair: Pair, options: Options) -> Any:
        found = chosen(pair, options)
        return None if found is None else make(found, options)

    return of_pair


CHARTS: dict[str, Make] = {
    "memory_step": _chart(lambda found, options: over_time.typical_step(found, options.level, options.axis)),
    "memory_run": _chart(lambda found, options: over_time.whole_run(found, options.level)),
    "memory_peak": _chart(lambda found, options: memory_peak.treemap(found, options.parts_by)),
    "memory_peak_changes": _chart(lambda found, _options: None if found.pair.is_single else memory_peak.changes(found)),
}


def _planned_memory(pair: Pair) -> Iterator[Block]:
    """Where the memory is that XLA planned, for runs without memory events: of JAX on CPUs nothing else is recorded."""
    changed = list(changed_buffers.blocks(pair))
    yield from changed
    if not changed and any(len(rows) for rows in pair.tables("hlo_memory")):
        yield Links([Link("Show the buffers that XLA planned", "xla", links.OPENS_MORE)])


WHY_NOT = without_rows("No memory events were captured.", "memory_summary")
VIEW = View("memory", "Memory", blocks, CHARTS, WHY_NOT, HOW_TO_RECORD, Options, instead=_planned_memory)
