"""The copies on the kernel stats page: their count, bytes, time and bandwidth."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts.pair import Pair
from tfcompare.compare.aggregate import group_copies, metric_in
from tfcompare.tools.columns import of_one_run, shown_alone
from tfcompare.ui.widgets import tables
from tfcompare.ui.widgets.downloads import csv_buttons

BOTH = ("baseline", "candidate")


def copies(pair: Pair) -> None:
    """The table of copies, by kind or device by device, and its CSVs."""
    diff = pair.diff("copies")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Copies", width="content")
        if len(diff[["host", "device"]].drop_duplicates()) > 1:
            st.toggle("Device by device", key="by_device", bind="query-params")
    if diff.empty:
        st.info("No copies were recorded. On AMD GPUs, copies within a device are kernels (`__amd_rocclr_copyBuffer`).")
        return
    by_device = bool(st.session_state.get("by_device"))
    rows = diff if by_device else group_copies(diff)
    shown = columns(pair, rows, by_device=by_device)
    ordered, _ = tables.sortable(rows, shown, key=f"copies_{by_device}", address="copies_")
    csv_buttons(
        ordered[[column.name for column in shown]],
        lambda: pair.tables("copies")[0] if pair.is_single else pair.comparison.table("copies"),
        name=" ".join(["copies", *(run.name for _, run in pair.shown)]),
        key="copies_csv",
    )


def columns(pair: Pair, rows: pd.DataFrame, *, by_device: bool) -> list[tables.Shown]:
    """Kind and place, then time, count, bytes and bandwidth of the runs shown."""
    time, count, size = (metric_in(rows, name) for name in ("duration_us", "occurrences", "size_bytes"))
    names = ["kind", *(["host", "device"] if by_device else [])]
    names += [f"{time}_{role}" for role in (*BOTH, "delta")]
    names += [f"{name}_{role}" for name in (count, size, "bandwidth_bytes_per_s") for role in BOTH]
    if pair.is_single:
        return [shown_alone(name, schema.COPIES) for name in of_one_run(names)]
    return [tables.shown(name, schema.COPIES) for name in names]
