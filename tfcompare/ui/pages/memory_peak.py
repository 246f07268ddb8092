"""The lower part of the memory page: allocations live at the peaks, and the summary of each memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import memory_peak as charts
from tfcompare.charts.pair import Pair
from tfcompare.compare.aggregate import largest_changes
from tfcompare.compare.diff import ADDED
from tfcompare.frames.memory import UNEXPLAINED
from tfcompare.markdown import as_code
from tfcompare.tools import memory as memory_sides
from tfcompare.tools.memory import Part
from tfcompare.ui.pages.memory import Chosen
from tfcompare.ui.widgets.changes import largest
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.op_view import open_op
from tfcompare.ui.widgets.table_page import TablePage

MOVERS = 15
FEWEST_TILES = 3
"""Fewer allocations are shown in the table only."""

PARTS: dict[Part, str] = {"scope": "name scope", "region": "region"}
BOTH = ("baseline", "candidate")
CHANGES = (*BOTH, "delta", "ratio")


def breakdown(chosen: Chosen) -> None:
    """Allocations that are live at the peak: a table, the largest changes, a treemap."""
    rows = _peak_rows(chosen.pair, chosen)
    _remarks(chosen)
    PEAK_TABLE.show_rows(chosen.pair, chosen)
    if rows.empty:
        return
    if not chosen.pair.is_single:
        _show_changes(chosen, rows)
    if len(rows) < FEWEST_TILES:
        return
    by = st.segmented_control(
        "Group by", list(PARTS), default="scope", required=True, format_func=PARTS.__getitem__, key="parts_by",
        bind="query-params",
    )  # fmt: skip
    draw(chosen.pair, "treemap", partial(_treemap, chosen, rows, by), (chosen.memories, by))


def _show_changes(chosen: Chosen, rows: pd.DataFrame) -> None:
    changes = largest_changes(memory_sides.named(rows), n=MOVERS, metric="allocation_bytes")
    if changes.empty:
        st.info("Both runs have the same allocations at their peaks.")
    else:
        largest(chosen.pair, changes, "allocation_bytes", by="what", quantity=charts.LIVE, on=chosen.memories)


def _treemap(chosen: Chosen, rows: pd.DataFrame, by: Part) -> Any:
    tree, sides = memory_sides.peak_tree(rows, by), [side for side, _ in chosen.pair.shown]
    return charts.peak_treemap(memory_sides.tree_alone(tree) if chosen.pair.is_single else tree, sides, by=PARTS[by])


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


def _remarks(chosen: Chosen) -> None:
    """Explain why the breakdown may be shorter than expected."""
    figures = chosen.figures
    allocations = next(both for name, both in figures.items() if name.startswith("allocations"))
    for (_, run), peak, allocated in zip(chosen.pair.shown, figures["peak_bytes"], allocations, strict=False):
        if peak == 0:
            st.info(f"{as_code(run.name)} used nothing of this memory while it was profiled.")
        elif allocated == 0:
            st.info(
                f"{as_code(run.name)} only freed memory while it was profiled, so the ops of its allocations are "
                "unknown. Start the profiler earlier to see them."
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


def row_key(rows: pd.DataFrame) -> pd.Series:
    """A unique key of each row, with or without missing texts; an added row may have the same keys as a removed one."""
    names = list(schema.MEMORY_PEAK.keys)
    known = rows[names].mask(rows[names].isin(_NO_INFORMATION)).fillna("").astype("str")
    keys = known[names[0]].str.cat(known[names[1:]], sep="|")
    return keys.mask(rows["status"] == ADDED, "+" + keys)


def _open_op(pair: Pair, rows: pd.DataFrame, chosen: Chosen, key: str) -> None:
    """The view of the op that made the selected allocation, if the profile names one."""
    del chosen
    found = rows.loc[row_key(rows) == key, "op_name"]
    if len(found) and found.iloc[0] not in (*memory_sides.NOT_NAMED, UNEXPLAINED):
        open_op(pair, str(found.iloc[0]))


PEAK_TABLE = TablePage(
    table=schema.MEMORY_PEAK,
    title=lambda _chosen: "Live at the peak",
    rows=_peak_rows,
    columns=_columns,
    cells=_with_missing_texts,
    row_key=row_key,
    details=_open_op,
)


def _summary_columns(pair: Pair, rows: pd.DataFrame, chosen: Chosen, every: bool) -> list[str]:
    """The peaks of several memories; what the cards do not show of each."""
    del pair, chosen
    names = ["memory_id", *(["host"] if rows["host"].nunique() > 1 or every else [])]
    if len(rows) > 1 or every:
        names += [f"peak_bytes_{role}" for role in CHANGES]
    names += [f"{name}_{role}" for name in DETAILS for role in BOTH]
    if every:
        rest = [name for name in rows.columns if name.startswith(_METRICS) and name not in names]
        names += [name for name in rest if not name.endswith("_ratio")]
        names += ["status", "match", "verdict"]
    return names


DETAILS = ("heap_bytes", "stack_bytes", "free_bytes", "capacity_bytes")
_METRICS = tuple(column.name for column in schema.MEMORY_SUMMARY.metrics)

SUMMARY_TABLE = TablePage(
    table=schema.MEMORY_SUMMARY,
    title=lambda _chosen: "All memories",
    rows=lambda pair, _chosen: pair.diff("memory_summary"),
    columns=_summary_columns,
    switch="all_columns_summary",
    address="summary_",
)
