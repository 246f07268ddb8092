"""The memory of a program on the XLA page: over program order, and its buffers at the peak."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import xla_memory as charts
from tfcompare.charts.pair import Pair
from tfcompare.charts.style import Side
from tfcompare.markdown import as_code
from tfcompare.tools import xla_memory
from tfcompare.tools.op_stats import ROLES
from tfcompare.ui.pages.xla import CHANGE, Program
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.table_page import TablePage
from tfcompare.units import format_bytes

ADDRESS = "memory_"
MAIN = 0
"""The memory space that is a device's main memory."""


def memory(program: Program) -> None:
    """The peak of each memory space, its bytes over program order, and the buffers at the peak with their changes."""
    st.subheader("Memory", help="As the compiler placed the program's buffers, for one execution")
    rows = _buffers(program.pair, program)
    if rows.empty:
        st.info("The profile has no buffers of this program.")
        return
    chosen = rows[xla_memory.row_key(rows) == st.query_params.get(f"{ADDRESS}row", "")]
    for space, *peaks in xla_memory.peaks(rows).itertuples(index=False, name=None):
        here, name = chosen[chosen["memory_space"] == space], _name(space)
        text = _peak(program.pair, name, rows[rows["memory_space"] == space], peaks)
        if space == MAIN:
            st.markdown(text)
            _program_order(program, space, name, here)
            continue
        with st.expander(text, expanded=not here.empty):
            _program_order(program, space, name, here)
    BUFFERS.show_rows(program.pair, program)


def _name(space: int) -> str:
    return "Device memory" if space == MAIN else f"Memory space {space}"


def _program_order(program: Program, space: int, name: str, chosen: pd.DataFrame) -> None:
    """The live bytes over program order, if the compiler recorded one, with the selected buffer."""
    lines = cached(program.pair, ("program_order", program.name, space), partial(_lines, program, space))
    if all(frame.empty or frame["positions"].iloc[0] < 2 for _, frame in lines):
        st.caption("The compiler recorded no order of allocations: all of it counts as live throughout.")
        return
    spans = _spans(program.pair, chosen)
    key = "".join(xla_memory.row_key(chosen))
    draw(
        program.pair,
        f"xla_memory_{space}",
        lambda: charts.memory_over_program_order(lines, name, spans),
        program.name,
        key,
    )


def _lines(program: Program, space: int) -> list[tuple[Side, pd.DataFrame]]:
    names = xla_memory.program_names(program.rows)
    tables = program.pair.tables("hlo_memory")
    return [
        (side, xla_memory.over_program_order(table, programs, space))
        for (side, _), table, programs in zip(program.pair.shown, tables, names, strict=False)
    ]


def _spans(pair: Pair, chosen: pd.DataFrame) -> list[tuple[Side, Any]]:
    """The selected buffer on each side that has it, with the columns of `hlo_memory`."""
    columns = ("size_bytes", "first_position", "last_position", "positions")
    found = []
    for (side, _), role in zip(pair.shown, ROLES, strict=False):
        for _, row in chosen[chosen[f"size_bytes_{role}"].notna()].iterrows():
            is_renamed = role == "candidate" and pd.notna(row["hlo_op_candidate"])
            name = row["hlo_op_candidate"] if is_renamed else row["hlo_op"]
            found.append((side, pd.Series({"hlo_op": name} | {one: row[f"{one}_{role}"] for one in columns})))
    return found


def _peak(pair: Pair, name: str, rows: pd.DataFrame, peaks: list[float]) -> str:
    """The peak of one memory space on both sides, and how many of its buffers changed."""
    ours, theirs = map(format_bytes, peaks)
    if pair.is_single:
        return f"**{name}**: {ours}"
    changes = zip(("added", "removed", "grown", "shrunk"), xla_memory.counts(rows), strict=True)
    counted = ", ".join(f"{count:,} {what}" for what, count in changes if count) or "none changed"
    baseline, candidate = map(as_code, pair.letters)
    sides = f"{theirs} in {candidate}, {ours} in {baseline}"
    return f"**{name}**: {sides}. Buffers: {counted}."


def _buffers(pair: Pair, program: Program) -> pd.DataFrame:
    def make() -> pd.DataFrame:
        return xla_memory.buffers(pair.diff("hlo_memory"), program.rows)

    return cached(pair, ("buffers", program.name), make)


def _columns(pair: Pair, rows: pd.DataFrame, program: Program, every: bool) -> list[str]:
    del program
    sides = ROLES[:1] if pair.is_single else ROLES
    names = [
        "hlo_op",
        *(name for name in ("output_index", "memory_space", "host") if rows[name].nunique() > 1 or every),
    ]
    names += [f"peak_size_bytes_{role}" for role in CHANGE]
    names += [f"shape_{role}" for role in sides]
    names += [f"kind_{sides[-1]}"]
    if every:
        more = (
            "kind",
            "source",
            "op_name",
            "size_bytes",
            "is_live_at_peak",
            "first_position",
            "last_position",
            "positions",
        )
        names += [f"{name}_{role}" for name in more for role in sides]
        names += ["hlo_op_candidate", "status", "match"]
    return list(dict.fromkeys(names))


BUFFERS: TablePage[Program] = TablePage(
    table=schema.HLO_MEMORY,
    title=lambda _program: "Buffers at the peak",
    rows=_buffers,
    columns=_columns,
    is_section=False,
    switch="all_columns_memory",
    address=ADDRESS,
    row_key=xla_memory.row_key,
    how_to_select="Select a row at its left end to see in the chart when the buffer is live.",
)
