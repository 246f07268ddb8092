"""What is live at the peak of a memory: a table, the largest changes, and a treemap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import ADDED, MATCHED
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.groups.fused_rows import CONSTITUENTS
from tfcompare.compare.matching.tiers import FUSED
from tfcompare.compare.pair import Pair
from tfcompare.compare.stats.verdict import SAME, verdict_on_size
from tfcompare.frames.memory_events import UNEXPLAINED
from tfcompare.text import as_code
from tfcompare.units import format_delta, format_percent
from tfcompare.views import bars
from tfcompare.views.blocks import Block, Chart, Details, Opens, Table, Text
from tfcompare.views.memory import charts
from tfcompare.views.memory import choice as memory_choice
from tfcompare.views.memory import figures as memory_sides
from tfcompare.views.memory.choice import Chosen
from tfcompare.views.memory.figures import Part
from tfcompare.views.ops import op
from tfcompare.views.short_names import shorten_distinct
from tfcompare.views.view import CHANGE, by_role, changed, largest_first
from tfcompare.views.xla import changed_buffers

PARTS: dict[Part, str] = {"scope": "name scope", "region": "region"}
_LETTERS = 48
"""Of an op in a sentence on several."""
_MOSTLY = 0.5
"""Of the bytes that are live at the peaks."""
FEWEST_TILES = 3
"""Fewer allocations are shown in the table only."""
ONLY_FREED = (
    "only freed memory while it was profiled, so the ops of its allocations are unknown. Start the profiler earlier to "
    "see them."
)
COLUMNS = ["op_name", "region_type", "shape", *by_role("allocation_bytes", CHANGE[:3])]
"""So few that names of ops have room for what tells them apart."""
NO_CHANGE = "Both runs have the same allocations at their peaks."
_NO_INFORMATION = (*memory_sides.NOT_NAMED, memory_sides.NO_OP, "INVALID", "unknown")


def rows_of(chosen: Chosen) -> pd.DataFrame:
    """The diff of what is live at the peaks."""

    def make() -> pd.DataFrame:
        pair = chosen.pair
        whole, tables = pair.diff("memory_peak"), pair.tables("memory_peak")
        diff = partial(memory_sides.peak_diff, whole, chosen.memories, chosen.hosts, tables)
        return diff(identical=chosen.is_identical, manual_pairs=pair.manual_pairs, evidence=pair.evidence)

    return chosen.pair.cached(("memory_peaks", chosen.memories), make)


def has_tiles(chosen: Chosen) -> bool:
    """Whether there are enough allocations for a treemap."""
    return len(rows_of(chosen)) >= FEWEST_TILES


def live_at_the_peak(chosen: Chosen) -> Iterator[Block]:
    """The allocations as a table, and why there may be fewer than expected."""
    yield from _remarks(chosen)
    every = [*COLUMNS, "data_type", *by_role("occurrences"), "status", "match", "verdict", "allocation_bytes_ratio"]
    every += by_role("requested_bytes", CHANGE)
    every += ["op_name_candidate", "shape_candidate", "host", "memory_id"]
    rows = _shown(chosen)
    if len(rows) and rows["shape"].isin(_NO_INFORMATION).all():
        text = "The profile names no op and no shape of an allocation; JAX records none. XLA's plan has both."
        yield Text(text, "quiet", more="xla")
        yield from changed_buffers.blocks(chosen.pair)
    opens, alone = Opens(partial(_details, chosen), buffer_key), chosen.pair.is_single
    yield Table(schema.MEMORY_PEAK, "Live at the peak", _readable(rows), COLUMNS, alone, every, opens=opens)


def _shown(chosen: Chosen) -> pd.DataFrame:
    """The rows of the table, the last of which is the sum of the small ones."""
    return memory_sides.with_small_rows_as_one(largest_first(chosen.pair, schema.MEMORY_PEAK, rows_of(chosen)))


def _remarks(chosen: Chosen) -> Iterator[Block]:
    peaks, allocations = (chosen.figures[name] for name in ("peak_bytes", "allocations"))
    for (_, run), peak, allocated in zip(chosen.pair.shown, peaks, allocations, strict=False):
        if peak == 0:
            yield Text(f"{as_code(run.name)} used nothing of this memory while it was profiled.", "notice")
        elif allocated == 0:
            yield Text(f"{as_code(run.name)} {ONLY_FREED}", "notice")


def _readable(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with missing values in place of texts that say nothing; those of no op say so."""
    texts = ["op_name", "region_type", "data_type", "shape", "op_name_candidate", "shape_candidate"]
    rows = rows.assign(**{name: rows[name].mask(rows[name].isin(_NO_INFORMATION)) for name in texts})
    return rows.assign(op_name=rows["op_name"].fillna(memory_sides.NO_OP))


def buffer_key(rows: pd.DataFrame) -> pd.Series:
    """A unique key of each row, of the diff or as it is shown; an added row may have the same keys as a removed one."""
    names = list(schema.MEMORY_PEAK.keys)
    known = rows[names].mask(rows[names].isin(_NO_INFORMATION)).fillna("").astype("str")
    keys = known[names[0]].str.cat(known[names[1:]], sep="|")
    return keys.mask(rows["status"] == ADDED, "+" + keys)


def _details(chosen: Chosen, key: str) -> Details | None:
    """The op that made the selected allocation, if the profile names one; or the small ones, of the row of all."""
    rows = rows_of(chosen)
    small, last = memory_sides.small_rows(rows), _shown(chosen).tail(1)
    if len(small) and buffer_key(last).iloc[0] == key:
        return Details(str(last["op_name"].iloc[0]), partial(_smaller, chosen, small))
    found = rows.loc[buffer_key(rows) == key, "op_name"]
    if found.empty or found.iloc[0] in (*memory_sides.NOT_NAMED, UNEXPLAINED):
        return None
    return op.details_by_name(chosen.pair, str(found.iloc[0]))


def _smaller(chosen: Chosen, small: pd.DataFrame) -> Iterator[Block]:
    """The allocations that the table has as one row."""
    yield Text(f"Each is less than {format_percent(memory_sides.SMALLEST_ROW)} of the peak.", "quiet")
    rows = largest_first(chosen.pair, schema.MEMORY_PEAK, small)
    yield op.small_table(chosen.pair, schema.MEMORY_PEAK, "Allocations", _readable(rows), COLUMNS, "smaller_")


def moments(chosen: Chosen) -> str:
    """That the peaks are at different moments, in Markdown: most of what is live at one is not at the other.

    Empty where that is not so, or unknown.
    """
    pair = chosen.pair
    if pair.is_single or chosen.is_identical or len(chosen.shown) < 2:
        return ""
    ours, theirs = (memory_sides.op_at_peak(run, memory) for _, run, memory in chosen.shown)
    rows = rows_of(chosen)
    live = rows[by_role("allocation_bytes")].astype("float64").sum(axis=1)
    is_other = live[rows["status"] != MATCHED].sum() >= _MOSTLY * live.sum()
    if not ours or not theirs or ours == theirs or not is_other or _are_fused(pair, ours, theirs):
        return ""
    named = zip(pair.marked, shorten_distinct([ours, theirs], _LETTERS), strict=True)
    places = [f"that of {name} while {as_code(op_name)} allocates" for name, op_name in named]
    return f"The peaks are at different moments, so other tensors are live: {', '.join(places)}."


def _are_fused(pair: Pair, ours: str, theirs: str) -> bool:
    """Whether these ops are one, which one of the runs has fused with others."""
    diff = pair.diff()
    fused = diff[diff["match"] == FUSED]
    sides = zip(fused[f"{CONSTITUENTS}_baseline"], fused[f"{CONSTITUENTS}_candidate"], strict=True)
    names = ([{one.rpartition(":")[0] for one in side} for side in both] for both in sides)
    return any(ours in before and theirs in after for before, after in names)


def largest_change(pair: Pair) -> str:
    """Which allocation changed the peak most, if the peak changed, and whether the peaks are at different moments, in
    Markdown; else empty."""
    found = memory_choice.largest(pair)
    if found is None or pair.is_single or found.is_identical:
        return ""
    before, after = found.figures["peak_bytes"]
    if verdict_on_size(before, after) == SAME:
        return ""
    first = _moved_most(found)
    if first is None:
        return moments(found)
    op_name = as_code(first["op_name"], _LETTERS) if first["op_name"] else "memory allocated outside of ops"
    what = " ".join(filter(None, [op_name, first["shape"] and as_code(first["shape"])]))
    much = format_delta(float(first["allocation_bytes_change"]), "bytes")
    change = f"Peak memory {format_delta(after - before, 'bytes')}: above all {what} ({much})."
    return " ".join(filter(None, [change, moments(found)]))


def names_no_op(pair: Pair) -> bool:
    """Whether allocations do not tell what changed the peak memory: none were recorded, or those of no op changed it
    most."""
    found = memory_choice.largest(pair)
    if found is None:
        return True
    first = None if verdict_on_size(*found.figures["peak_bytes"]) == SAME else _moved_most(found)
    return first is not None and not first["op_name"]


def _moved_most(chosen: Chosen) -> pd.Series | None:
    """The allocation that changed most in the direction of the peak; None without any."""
    before, after = chosen.figures["peak_bytes"]
    moved = _largest(chosen)
    moved = moved[(moved["allocation_bytes_change"] > 0) == (after > before)]
    return None if moved.empty else moved.iloc[0]


def what_changed(chosen: Chosen) -> Iterator[Block]:
    """The largest changes of what is live at the peaks."""
    if not rows_of(chosen).empty:
        make, on = partial(changes, chosen), chosen.memories
        yield from changed("memory_peak_changes", _largest(chosen), make, on=on, nothing=NO_CHANGE, is_time=False)


def changes(chosen: Chosen, letters: int = bars.MOVER_LENGTH) -> Any:
    """The largest changes as a figure; None if nothing changed."""
    if (found := _largest(chosen)).empty:
        return None
    draw = partial(bars.changes_of_pair, chosen.pair, found, "allocation_bytes", by="what", quantity=charts.LIVE)
    return draw(letters=letters, per="")


def _largest(chosen: Chosen) -> pd.DataFrame:
    return largest_changes(memory_sides.with_labels(rows_of(chosen)), n=bars.TOP, metric="allocation_bytes")


def tiles(chosen: Chosen, by: Part) -> Iterator[Block]:
    """The allocations as a treemap, unless there are few."""
    if has_tiles(chosen):
        yield Chart("memory_peak", partial(treemap, chosen, by), on=(chosen.memories, by))


def treemap(chosen: Chosen, by: Part) -> Any:
    """The allocations as a treemap by scope or region; None if there are none."""
    rows = rows_of(chosen)
    if rows.empty:
        return None
    tree, sides = memory_sides.peak_tree(rows, by), [side for side, _ in chosen.pair.shown]
    return charts.peak_treemap(memory_sides.tree_alone(tree) if chosen.pair.is_single else tree, sides, by=PARTS[by])
