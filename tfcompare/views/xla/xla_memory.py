"""The memory of an XLA program: the peak of each memory space, its bytes over program order, and its buffers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.charts.xla import xla_memory as charts
from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.markdown import as_code
from tfcompare.schema import SIDES
from tfcompare.tools.xla import xla_memory
from tfcompare.tools.xla.xla_memory import MAIN_MEMORY
from tfcompare.units import format_bytes
from tfcompare.views.blocks import Block, Chart, Opens, Section, Table, Text
from tfcompare.views.view import CHANGE, by_role, largest_first

ADDRESS = "memory_"


def blocks(pair: Pair, program: str, rows: pd.DataFrame, chosen: str) -> Iterator[Block]:
    """The memory of the program with these instructions; the charts show the buffer with the key `chosen`."""
    buffers = _buffers(pair, program, rows)
    if buffers.empty:
        yield Text("The profile has no buffers of this program.", "notice")
        return
    shown = buffers[xla_memory.buffer_key(buffers) == chosen]
    for space, *largest in xla_memory.peaks(buffers).itertuples(index=False, name=None):
        here = buffers[buffers["memory_space"] == space]
        over_time = _over_program_order(pair, program, rows, space, chosen)
        if space == MAIN_MEMORY or (shown["memory_space"] == space).any():
            yield Text(_peak(pair, f"**{_name(space)}**", list(map(as_code, pair.called)), here, largest))
            yield over_time
        else:
            yield Section(_peak(pair, _name(space), pair.called, here, largest), [over_time])
    yield Table(
        schema.HLO_MEMORY,
        "Buffers at the peak",
        largest_first(pair, schema.HLO_MEMORY, buffers),
        _columns(pair, buffers, every=False),
        every=_columns(pair, buffers, every=True),
        is_alone=pair.is_single,
        opens=Opens(
            None, xla_memory.buffer_key, "Select a row at its left end to see in the chart when the buffer is live."
        ),
        address=ADDRESS,
    )


def chart(pair: Pair, program: str, rows: pd.DataFrame, chosen: str, space: int = MAIN_MEMORY) -> Any:
    """The live bytes over program order as a figure, with the chosen buffer; None if the compiler recorded no order."""
    lines = _lines(pair, program, rows, space)
    if not _has_order(lines):
        return None
    every = _buffers(pair, program, rows)
    of_space = every[(xla_memory.buffer_key(every) == chosen) & (every["memory_space"] == space)]
    return charts.memory_over_program_order(lines, _name(space), _spans(pair, of_space))


def _name(space: int) -> str:
    return "Device memory" if space == MAIN_MEMORY else f"Memory space {space}"


def _over_program_order(pair: Pair, program: str, rows: pd.DataFrame, space: int, chosen: str) -> Block:
    if not _has_order(_lines(pair, program, rows, space)):
        return Text("The compiler recorded no order of allocations: all of it counts as live throughout.", "quiet")
    name = "xla_memory" if space == MAIN_MEMORY else f"xla_memory_{space}"
    return Chart(name, partial(chart, pair, program, rows, chosen, space), on=(program, chosen))


def _lines(pair: Pair, program: str, rows: pd.DataFrame, space: int) -> list[tuple[Side, pd.DataFrame]]:
    """The live bytes of both sides over program order."""

    def make() -> list[tuple[Side, pd.DataFrame]]:
        every = zip(pair.shown, pair.tables("hlo_memory"), xla_memory.program_names(rows), strict=False)
        return [(side, xla_memory.over_program_order(table, names, space)) for (side, _), table, names in every]

    return pair.cached(("xla_program_order", program, space), make)


def _has_order(lines: list[tuple[Side, pd.DataFrame]]) -> bool:
    return any(len(frame) and frame["positions"].iloc[0] > 1 for _, frame in lines)


def _spans(pair: Pair, chosen: pd.DataFrame) -> list[tuple[Side, Any]]:
    """The chosen buffer on each side that has it, with the columns of `hlo_memory`."""
    columns = ("size_bytes", "first_position", "last_position", "positions")
    found = []
    for (side, _), role in zip(pair.shown, SIDES, strict=False):
        for _, row in chosen[chosen[f"size_bytes_{role}"].notna()].iterrows():
            is_renamed = role == "candidate" and pd.notna(row["hlo_op_candidate"])
            name = row["hlo_op_candidate"] if is_renamed else row["hlo_op"]
            found.append((side, pd.Series({"hlo_op": name} | {one: row[f"{one}_{role}"] for one in columns})))
    return found


def _peak(pair: Pair, name: str, called: list[str] | tuple[str, str], rows: pd.DataFrame, peaks: list[float]) -> str:
    """The planned peak of one memory space on both sides, called so, and how many of its buffers changed."""
    ours, theirs = map(format_bytes, peaks)
    if pair.is_single:
        return f"{name}, as XLA planned it: {ours}"
    changes = zip(("added", "removed", "grown", "shrunk"), xla_memory.counts(rows), strict=True)
    counted = ", ".join(f"{count:,} {what}" for what, count in changes if count) or "none changed"
    return f"{name}, as XLA planned it: {theirs} in {called[1]}, {ours} in {called[0]}. Buffers: {counted}."


def _buffers(pair: Pair, program: str, rows: pd.DataFrame) -> pd.DataFrame:
    return pair.cached(("xla_buffers", program), lambda: xla_memory.buffers(pair.diff("hlo_memory"), rows))


def _columns(pair: Pair, buffers: pd.DataFrame, *, every: bool) -> list[str]:
    sides = SIDES[: len(pair.shown)]
    places = ("output_index", "memory_space", "host")
    names = ["hlo_op", *(name for name in places if every or buffers[name].nunique() > 1)]
    names += by_role("peak_size_bytes", CHANGE[:3])
    names += by_role("shape", sides)
    names += [f"kind_{sides[-1]}"]
    if every:
        more = ["kind", "source", "op_name", "size_bytes", "is_live_at_peak"]
        more += ["first_position", "last_position", "positions"]
        names += [f"{name}_{role}" for name in more for role in sides]
        names += ["hlo_op_candidate", "status", "match"]
    return list(dict.fromkeys(names))
