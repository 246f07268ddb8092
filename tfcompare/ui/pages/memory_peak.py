"""The lower parts of the memory page: allocations live at the peaks, and the summary of each memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import memory as charts
from tfcompare.charts import ops
from tfcompare.charts.style import Quantity
from tfcompare.compare.aggregate import largest_changes
from tfcompare.frames.memory import UNEXPLAINED
from tfcompare.tools import memory as memory_sides
from tfcompare.tools.memory import Figures, MemoryPair, Part
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.pages.memory import Chosen
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.table_page import TablePage
from tfcompare.ui.widgets.text import as_code
from tfcompare.units import MINUS, MISSING, format_delta, format_percent_change, format_value

MOVERS = 15
HELD = Quantity("memory at the peak", "bytes", "less memory", "more memory")
PARTS: dict[Part, str] = {"scope": "name scope", "region": "region"}
BOTH = ("baseline", "candidate")
CHANGES = (*BOTH, "delta", "ratio")


def breakdown(chosen: Chosen) -> None:
    """Allocations that are live at the peak of only one run: the largest changes, a table, a treemap."""
    rows = _peak_rows(chosen.pair, chosen)
    _remarks(chosen, rows)
    if rows.empty:
        return
    changes = largest_changes(memory_sides.named(rows), n=MOVERS, metric="allocation_bytes")
    if changes.empty:
        st.info("Both runs hold the same at their peaks.")
    else:
        bars = partial(ops.movers, changes, "allocation_bytes", per="", by="what", quantity=HELD)
        draw(chosen.pair, "movers", bars, chosen.memories)
    PEAK_TABLE.show_rows(chosen.pair, chosen)
    by = st.segmented_control(
        "Parts by", list(PARTS), default="scope", required=True, format_func=PARTS.__getitem__, key="parts_by",
        bind="query-params",
    )  # fmt: skip
    draw(chosen.pair, "treemap", partial(_treemap, chosen, rows, by), (chosen.memories, by))


def _treemap(chosen: Chosen, rows: pd.DataFrame, by: Part) -> Any:
    return charts.peak_treemap(memory_sides.peak_tree(rows, by), chosen.pair.sides, by=PARTS[by])


def _rows(chosen: Chosen) -> pd.DataFrame:
    whole, memory_tables = chosen.pair.diff("memory_peak"), chosen.pair.tables("memory_peak")
    return memory_sides.peak_diff(
        whole,
        chosen.memories,
        chosen.hosts,
        memory_tables,
        identical=chosen.is_identical,
        manual_pairs=chosen.pair.manual_pairs,
        evidence=chosen.pair.evidence,
    )


def _remarks(chosen: Chosen, rows: pd.DataFrame) -> None:
    """Explain why the breakdown may be shorter than expected."""
    figures = chosen.figures
    allocations = figures.get("allocations_per_step") or figures["allocations"]
    for run, peak, allocated in zip(chosen.pair.runs, figures["peak_bytes"], allocations, strict=True):
        if peak == 0:
            st.info(f"{as_code(run.name)} held nothing in this memory while it was profiled.")
        elif allocated == 0:
            st.info(
                f"{as_code(run.name)} only freed memory while it was profiled, so what it held then was allocated "
                "before, and no op is known for it. Start the profiler earlier to see the allocations."
            )
    if (rows["op_name"] == UNEXPLAINED).any():
        st.caption(
            f"`{UNEXPLAINED}` was allocated before the profile began, or is kept in reserve: no event tells what for."
        )


def _columns(pair: Pair, rows: pd.DataFrame, chosen: Chosen, every: bool) -> list[str]:
    del pair, rows, chosen
    names = ["op_name", "region_type", "data_type", "shape", *(f"allocation_bytes_{role}" for role in CHANGES[:3])]
    names += [f"occurrences_{role}" for role in BOTH]
    if every:
        names += ["status", "match", "verdict", "allocation_bytes_ratio"]
        names += [f"requested_bytes_{role}" for role in CHANGES]
        names += ["op_name_candidate", "shape_candidate", "host", "memory_id"]
    return names


def _with_missing_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with missing values in place of empty texts."""
    texts = ["op_name", "region_type", "data_type", "shape", "op_name_candidate", "shape_candidate"]
    masked = {name: rows[name].mask(rows[name].isin(_NO_INFORMATION)) for name in texts}
    return rows.assign(**masked)


_NO_INFORMATION = (*memory_sides.NOT_NAMED, "INVALID", "unknown")


def _peak_rows(pair: Pair, chosen: Chosen) -> pd.DataFrame:
    return cached(pair, ("peaks", chosen.memories), lambda: _rows(chosen))


PEAK_TABLE = TablePage(
    table=schema.MEMORY_PEAK,
    title=lambda _chosen: "Every allocation at the peak",
    rows=_peak_rows,
    columns=_columns,
    cells=_with_missing_texts,
    is_section=False,
)


def fields(chosen: Chosen) -> None:
    """The six fields that the TensorFlow guide lists for a memory, for both sides."""
    sides = [f"{side.role}: {side.name}" for side in chosen.pair.sides]
    rows = guide_fields(chosen.figures, chosen.memories)
    to_the_right = {name: st.column_config.TextColumn(alignment="right") for name in (*sides, "Change")}
    st.dataframe(
        pd.DataFrame(rows, columns=["Field", *sides, "Change"]),
        hide_index=True,
        height="content",
        key="fields",
        column_config=to_the_right,
    )


_SUB = "\u2003"
_PEAK_TIME = f"{_SUB}time since the profile's start"
"""A point in time: its difference between two captures has no meaning."""
_FIELDS = {
    "capacity_bytes": "Memory capacity",
    "peak_heap_bytes": "Peak heap usage since the program began",
    "peak_bytes": "Peak memory usage within the profile",
    "peak_time_us": _PEAK_TIME,
    "stack_bytes": f"{_SUB}stack reservation",
    "heap_bytes": f"{_SUB}heap allocation",
    "free_bytes": f"{_SUB}free memory",
    "fragmentation": f"{_SUB}fragmentation",
}


def guide_fields(figures: Figures, memories: MemoryPair) -> list[tuple[str, str, str, str]]:
    """The fields in the guide's order, as texts: (name, baseline's value, candidate's value, change).

    `figures` comes from `memory_sides.figures`.
    """
    ids = [memory.memory_id if memory else MISSING for memory in memories.memories]
    rows = [("Memory ID", ids[0], ids[1], "")]
    for name in list(figures)[:2]:  # allocations and deallocations: per step if the figures are
        label = name.removesuffix("_per_step").capitalize() + (" per step" if name.endswith("_per_step") else "")
        rows.append(_field(figures[name], label, ""))
    units = {name: "share" if name == "fragmentation" else name.rpartition("_")[2] for name in _FIELDS}
    fields = [_field(figures[name], label, units[name].replace("us", "µs")) for name, label in _FIELDS.items()]
    return rows + [(*field[:3], "") if field[0] == _PEAK_TIME else field for field in fields]


def _field(values: tuple[float, float], label: str, unit: str) -> tuple[str, str, str, str]:
    ours, theirs = values
    text, delta = (_fraction, _fraction_delta) if unit == "share" else (format_value, format_delta)
    is_known = ours == ours and theirs == theirs
    change = "" if not is_known else "unchanged" if ours == theirs else delta(theirs - ours, unit)
    percent = f" · {format_percent_change(theirs / ours)}" if unit == "bytes" and ours > 0 and theirs != ours else ""
    return label, text(ours, unit), text(theirs, unit), change + percent * bool(change)


def _fraction(value: float, unit: str) -> str:
    del unit
    return f"{value:.3f}" if value == value else MISSING


def _fraction_delta(value: float, unit: str) -> str:
    del unit
    return f"{value:+.3f}".replace("-", MINUS)


def _summary_columns(pair: Pair, rows: pd.DataFrame, chosen: Chosen, every: bool) -> list[str]:
    del pair, chosen
    names = ["memory_id", *(["host"] if rows["host"].nunique() > 1 or every else [])]
    names += [f"peak_bytes_{role}" for role in CHANGES]
    names += [f"peak_heap_bytes_{role}" for role in BOTH]
    names += [f"capacity_bytes_{role}" for role in BOTH]
    if every:
        rest = [name for name in rows.columns if name.startswith(_METRICS) and name not in names]
        names += [name for name in rest if not name.endswith("_ratio")]
        names += ["status", "match", "verdict"]
    return names


_METRICS = tuple(column.name for column in schema.MEMORY_SUMMARY.metrics)

SUMMARY_TABLE = TablePage(
    table=schema.MEMORY_SUMMARY,
    title=lambda _chosen: "All memories of both runs",
    rows=lambda pair, _chosen: pair.diff("memory_summary"),
    columns=_summary_columns,
    is_section=False,
    switch="all_columns_summary",
    address="summary_",
)
