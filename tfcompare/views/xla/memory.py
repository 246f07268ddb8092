"""The memory of a compiled program at its peak: buffers, and what changed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import ADDED, change
from tfcompare.compare.groups.aggregate import compared
from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.hlo.buffers import TEMPORARY
from tfcompare.schema import SIDES
from tfcompare.schema.arrays import Int64
from tfcompare.schema.hlo import MAIN_MEMORY
from tfcompare.text import as_code
from tfcompare.units import format_bytes
from tfcompare.views.blocks import Block, Chart, Opens, Section, Table, Text
from tfcompare.views.columns import row_keys
from tfcompare.views.memory.curve import POINTS, thin
from tfcompare.views.view import CHANGE, by_role, largest_first
from tfcompare.views.xla import charts

NO_ORDER = "The compiler recorded no order of allocations: all of it counts as live throughout."
ADDRESS = "memory_"
_KEYS = ("host", "program", "memory_space", "hlo_op", "output_index", "status")


def blocks(pair: Pair, program: str, rows: pd.DataFrame, chosen: str) -> Iterator[Block]:
    """The memory of the program with these instructions; the charts show the buffer with the key `chosen`."""
    buffers = _buffers(pair, program, rows)
    if buffers.empty:
        yield Text("The profile has no buffers of this program.", "notice")
        return
    shown = buffers[buffer_key(buffers) == chosen]
    for space, *largest in peaks(buffers).itertuples(index=False, name=None):
        here = buffers[buffers["memory_space"] == space]
        over_time: Block = Text(NO_ORDER, "quiet")
        if _any_has_order(_lines(pair, program, rows, space)):
            name = "xla_memory" if space == MAIN_MEMORY else f"xla_memory_{space}"
            over_time = Chart(name, partial(chart, pair, program, rows, chosen, space), on=(program, chosen))
        if space == MAIN_MEMORY or (shown["memory_space"] == space).any():
            yield Text(_peak(pair, f"**{_name(space)}**", list(map(as_code, pair.called)), here, largest))
            yield over_time
        else:
            yield Section(_peak(pair, _name(space), pair.called, here, largest), [over_time])
    names, every = (_columns(pair, buffers, every=is_whole) for is_whole in (False, True))
    sorted_rows = largest_first(pair, schema.HLO_MEMORY, buffers)
    opens = Opens(None, buffer_key, "Select a row at its left end to see in the chart when the buffer is live.")
    title = "Buffers at the peak"
    yield Table(schema.HLO_MEMORY, title, sorted_rows, names, pair.is_single, every, opens=opens, address=ADDRESS)


def chart(pair: Pair, program: str, rows: pd.DataFrame, chosen: str, space: int = MAIN_MEMORY) -> Any:
    """The live bytes over program order as a figure, with the chosen buffer; None if the compiler recorded no order."""
    lines = _lines(pair, program, rows, space)
    if not _any_has_order(lines):
        return None
    every = _buffers(pair, program, rows)
    of_space = every[(buffer_key(every) == chosen) & (every["memory_space"] == space)]
    return charts.memory_over_program_order(lines, _name(space), _spans(pair, of_space))


def _name(space: int) -> str:
    return "Device memory" if space == MAIN_MEMORY else f"Memory space {space}"


def _lines(pair: Pair, program: str, rows: pd.DataFrame, space: int) -> list[tuple[Side, pd.DataFrame]]:
    """The live bytes of both sides over program order."""

    def make() -> list[tuple[Side, pd.DataFrame]]:
        every = zip(pair.shown, pair.tables("hlo_memory"), program_names(rows), strict=False)
        return [(side, over_program_order(table, names, space)) for (side, _), table, names in every]

    return pair.cached(("xla_program_order", program, space), make)


def _any_has_order(lines: list[tuple[Side, pd.DataFrame]]) -> bool:
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
    changes = zip(("added", "removed", "grown", "shrunk"), counts(rows), strict=True)
    counted = ", ".join(f"{count:,} {what}" for what, count in changes if count) or "none changed"
    return f"{name}, as XLA planned it: {theirs} in {called[1]}, {ours} in {called[0]}. Buffers: {counted}."


def _buffers(pair: Pair, program: str, rows: pd.DataFrame) -> pd.DataFrame:
    return pair.cached(("xla_buffers", program), lambda: buffers(pair.diff("hlo_memory"), rows))


def _columns(pair: Pair, buffers: pd.DataFrame, *, every: bool) -> list[str]:
    sides = SIDES[: len(pair.shown)]
    places = ("output_index", "memory_space", "host")
    names = ["hlo_op", *(name for name in places if every or buffers[name].nunique() > 1)]
    names += [*by_role("peak_size_bytes", CHANGE[:3]), *by_role("shape", sides), f"kind_{sides[-1]}"]
    if every:
        more = ["kind", "source", "op_name", "size_bytes", "is_live_at_peak"]
        more += ["first_position", "last_position", "positions"]
        names += [f"{name}_{role}" for name in more for role in sides]
        names += ["hlo_op_candidate", "status", "match"]
    return list(dict.fromkeys(names))


def buffers(memory: pd.DataFrame, instructions: pd.DataFrame) -> pd.DataFrame:
    """The rows of a diff of `hlo_memory` that are live at the peak of one program on either side, grown most first.

    `instructions` are `executions.instructions` of the program. Adds `peak_size_bytes_baseline`, `_candidate`, `_delta`
    and `_ratio`: the size of a buffer that is live at the peak, 0 of another, missing on a side without it. They add up
    to the peak of the program's memory space on each host.
    """
    ours, theirs = program_names(instructions)
    is_added = memory["status"] == ADDED
    rows = memory[memory["program"].isin(ours) & ~is_added | memory["program"].isin(theirs) & is_added]
    sizes = []
    for role in SIDES:
        size = rows[f"size_bytes_{role}"].astype("float64")
        is_live = rows[f"is_live_at_peak_{role}"].astype("boolean").fillna(False).astype(bool)
        sizes.append(size.where(is_live | size.isna(), 0.0))
    rows = rows.assign(**compared("peak_size_bytes", *sizes))
    rows = rows[(sizes[0] > 0) | (sizes[1] > 0)]
    order = change(rows["peak_size_bytes_baseline"], rows["peak_size_bytes_candidate"]).abs()
    by = pd.DataFrame({"change": order, "size": rows[by_role("peak_size_bytes")].max(axis=1)})
    return rows.loc[by.sort_values(["change", "size"], ascending=False, kind="stable").index]


def program_names(instructions: pd.DataFrame) -> tuple[set[str], set[str]]:
    """The names of the program in baseline and candidate."""
    is_added = instructions["status"] == ADDED
    ours = instructions.loc[~is_added, "program"]
    theirs = [*instructions["program_candidate"].dropna(), *instructions.loc[is_added, "program"]]
    return set(ours), set(theirs)


def peaks(rows: pd.DataFrame) -> pd.DataFrame:
    """The peak of each memory space of `buffers`: of the host where it is largest.

    Columns: `memory_space`, `baseline_bytes` and `candidate_bytes`, missing where a side has no buffers there.
    """
    of_hosts = rows.groupby(["memory_space", "host"])[by_role("peak_size_bytes")].sum(min_count=1)
    found = of_hosts.groupby(level="memory_space").max().set_axis(["baseline_bytes", "candidate_bytes"], axis=1)
    return found.reset_index()


def counts(rows: pd.DataFrame) -> tuple[int, int, int, int]:
    """How many buffers at the peak were added, removed, have grown and have shrunk."""
    ours, theirs = (rows[f"peak_size_bytes_{role}"].fillna(0.0) for role in SIDES)
    return (
        int(((ours == 0) & (theirs > 0)).sum()),
        int(((ours > 0) & (theirs == 0)).sum()),
        int(((ours > 0) & (theirs > ours)).sum()),
        int(((theirs > 0) & (theirs < ours)).sum()),
    )


def buffer_key(rows: pd.DataFrame) -> pd.Series:
    """A key for each row of `buffers` that is unique and short enough for a URL."""
    return row_keys(rows, _KEYS)


def over_program_order(memory: pd.DataFrame, programs: set[str], space: int, points: int = POINTS) -> pd.DataFrame:
    """The bytes that are live in one memory space of a program wherever they change, in program order.

    `memory` is one run's `hlo_memory`, `programs` are the names of the program there, of which the one with the largest
    peak is chosen. Columns: `position`, an allocation or free, counted from 1; `positions`, how many there are;
    `live_bytes` from there on; `event`, what is allocated or freed there; `is_peak`, true for the first row with the
    most bytes. Of more than `points` rows, those that `memory_timeline.thin` selects. Empty if the program has no
    buffers there.
    """
    here = memory[memory["program"].isin(programs) & (memory["memory_space"] == space)]
    if here.empty:
        return pd.DataFrame(columns=["position", "positions", "live_bytes", "event", "is_peak"])
    at_peak = here["size_bytes"].where(here["is_live_at_peak"], 0)
    groups = here.groupby(["host", "program"]).ngroup()
    own = here[groups == at_peak.groupby(groups).sum().idxmax()]
    position, live = _live_bytes_over(own)
    peak = int(live.argmax())
    kept = thin(position.astype(np.float64), live.astype(np.float64), peak, points)
    events = _events(own)
    rows = pd.DataFrame(
        {"position": position[kept], "positions": int(own["positions"].max()), "live_bytes": live[kept]}
    )
    return rows.assign(event=[events.get(int(one), "") for one in position[kept]], is_peak=kept == peak)


def _live_bytes_over(buffers: pd.DataFrame) -> tuple[Int64, Int64]:
    """(the positions where the live bytes change, what is live from there on); the first position is 1."""
    sizes = buffers["size_bytes"].to_numpy()
    begin, end = buffers["first_position"].to_numpy(), buffers["last_position"].to_numpy() + 1
    position, which = np.unique(np.concatenate([[1], begin, end]), return_inverse=True)
    changes = np.zeros(len(position), np.int64)
    np.add.at(changes, which, np.concatenate([[0], sizes, -sizes]))
    is_within = position <= int(buffers["positions"].max())
    return position[is_within], np.cumsum(changes)[is_within]


def _events(buffers: pd.DataFrame) -> dict[int, str]:
    """What the program allocates or frees at each position, for instance `allocates dot.1, 4.00 MB`."""
    temporary = buffers[buffers["kind"] == TEMPORARY]
    names = temporary["hlo_op"].where(temporary["hlo_op"] != "", "a value of an unknown instruction")
    spans = zip(temporary["first_position"], temporary["last_position"], names, temporary["size_bytes"], strict=True)
    events = {}
    for first, last, name, size in spans:
        events[int(last) + 1] = f"frees {name}, {format_bytes(size)}"
        events[int(first)] = f"allocates {name}, {format_bytes(size)}"
    return events
