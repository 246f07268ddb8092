"""The view of one op: what it took on both sides, in every step, its kernels, and its memory at the peak."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import steps
from tfcompare.charts.verdicts import text_of
from tfcompare.compare.aggregate import metric_in
from tfcompare.compare.diff import MATCHED
from tfcompare.compare.fused_rows import CONSTITUENTS, single_ops
from tfcompare.compare.matching.kernel_labels import kernel_labels
from tfcompare.compare.matching.manual import Name
from tfcompare.compare.matching.tiers import FUSED
from tfcompare.markdown import as_code
from tfcompare.schema import DEVICE
from tfcompare.tools import step_series
from tfcompare.tools.columns import of_one_run, shown, shown_alone
from tfcompare.ui.frame.pair import Pair, has_steps, steps_of
from tfcompare.ui.widgets import manual, tables
from tfcompare.ui.widgets.details import open_details
from tfcompare.ui.widgets.figures import draw
from tfcompare.ui.widgets.timeline_links import link_to_op
from tfcompare.units import MISSING, format_percent, format_percent_change, format_ratio, format_value

ROLES = ("baseline", "candidate")
SIDES = ("Baseline", "Candidate")
LACKING = {"baseline": "added", "candidate": "removed"}
"""The status of a row that a side lacks."""

NUMBERS = {
    "self_time_us": ("Self time", "µs"),
    "total_time_us": ("Total time", "µs"),
    "occurrences": ("Occurrences", ""),
    "avg_self_time_us": ("Average self time", "µs"),
    "self_share": ("Share of self time", "share"),
}

COSTS = ("flops", "bytes_accessed", "flops_per_s", "bandwidth_bytes_per_s", "operational_intensity")
"""Columns of `op_stats` that are shown where they are known."""

RowKey = Callable[[str, str, str], str]
"""Maps an op's (host or device, type, name) to the key of its row on the page that shows it."""


def open_op(pair: Pair, op_name: str, *, address: str = "") -> None:
    """Open the view of the op of that name, on either side, in a dialog; closing it deselects the row.

    `address` is the prefix of the URL key of the selected row, as in `tables.sortable`.
    """
    open_details(op_name, partial(op_view, pair, op_name), address=address)


def op_view(pair: Pair, op_name: str) -> None:
    """Everything about the op of that name: numbers and steps on device and host, kernels, memory at the peak."""
    if rows_named(pair.ops(idle=False), op_name, op_name).empty:
        st.info("No time was recorded for this op.")
    show_times(pair, op_name)
    link_to_op(pair, op_name)
    show_kernels(pair, op_name, op_name)
    show_memory(pair, op_name, op_name)


def show_times(pair: Pair, op_name: str) -> None:
    """The numbers and steps of the op of that name, where it ran: on the device, on the host, or on both."""
    for position, row in rows_named(pair.ops(idle=False), op_name, op_name).iterrows():
        st.markdown(f"**{as_code(str(row['op_type']))} on {str(row['host_or_device']).lower()}**")
        show_row(pair, row, key=f"op_{position}")


def open_op_row(pair: Pair, row: pd.Series, row_key: Callable[[str, str, str], str]) -> None:
    """Open the view of the op of one row of `pair.ops`; `row_key` gives the key of a row of the page by its op."""
    name = str(row["op_name"])
    theirs = name if row["status"] == LACKING["baseline"] else str(row["op_name_candidate"])
    names = (
        None if row["status"] == LACKING["baseline"] else name,
        None if row["status"] == LACKING["candidate"] else theirs,
    )

    def body() -> None:
        show_row(pair, row, key="op")
        link_to_op(pair, name)
        show_kernels(pair, *names)
        show_memory(pair, *names)
        pair_manually(pair, row, row_key)

    open_details(name, body)


def rows_named(rows: pd.DataFrame, baseline: str | None, candidate: str | None) -> pd.DataFrame:
    """The rows of a diff whose op has these names in baseline and candidate, those on the device first.

    None stands for a side without the op. Added rows are named as in the candidate.
    """
    is_added = rows["status"] == LACKING["baseline"]
    ours = (rows["op_name"] == baseline) & ~is_added
    theirs = rows["op_name_candidate"].where(~is_added, rows["op_name"]) == candidate
    found = rows[ours | (theirs & (rows["status"] != LACKING["candidate"]))]
    if "host_or_device" not in found:
        return found
    return found.assign(later=found["host_or_device"] != DEVICE).sort_values("later", kind="stable")


def show_row(pair: Pair, row: pd.Series, *, key: str) -> None:
    """The numbers of one row of `pair.ops`, and its self time in every step."""
    if not pair.is_single:
        st.markdown(verdict_sentence(row, pair.interval(row)))
        if row["status"] == MATCHED and row["op_name"] != row["op_name_candidate"]:
            st.markdown(f"In the candidate: {as_code(str(row['op_name_candidate']))}")
        if row["match"] == FUSED:
            st.markdown(_what_was_fused(row))
    st.table(numbers(pair, row).set_index(""), width="content")
    frames = [_in_steps(pair, row, role) for role in ROLES]
    if not all(frame.empty for frame in frames):
        series = list(zip(pair.sides, frames, strict=True))[: len(pair.shown)]
        draw(pair, key, lambda: steps.op_in_steps(series, str(row["op_name"])), _identity(row))


def _what_was_fused(row: pd.Series) -> str:
    """Markdown with the ops that a fused row stands for on both sides."""
    sides = [", ".join(as_code(op) for op in row[f"{CONSTITUENTS}_{role}"]) for role in ROLES]
    return f"Compared as one, since one side has fused them: {sides[0]} → {sides[1]}"


def _identity(row: pd.Series) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("host_or_device", "op_type", "op_name", "status"))


def verdict_sentence(row: pd.Series, interval_of_ratio: tuple[float, float]) -> str:
    """Markdown such as `▼ **faster**: 0.512× (95 % confidence interval 0.481× to 0.540×)`; of a row of a diff.

    `interval_of_ratio` is that of the ratio of the sums shown, NaN without one.
    """
    if row["status"] != MATCHED:
        return f"**Only in the {'candidate' if row['status'] == 'added' else 'baseline'}.**"
    ratio = row[f"{metric_in(row.to_frame().T, 'self_time_us')}_ratio"]
    interval = ""
    if interval_of_ratio[0] == interval_of_ratio[0]:
        low, high = map(format_ratio, interval_of_ratio)
        interval = f" (95 % confidence interval {low} to {high})"
    return f"**{text_of(str(row['verdict']), row['evidence'])}**: {format_ratio(ratio)} self time{interval}"


def numbers(pair: Pair, row: pd.Series) -> pd.DataFrame:
    """The numbers of one op as texts: a row for each, with the columns of both sides and the change."""
    per = pair.comparison.per
    lines = []
    known = {column.name: (column.label, column.unit) for column in map(schema.OP_STATS.column, COSTS)}
    for name, (label, unit) in (NUMBERS | known).items():
        column, what = name, label
        if f"{name}_baseline" not in row.index:
            column, what = f"{name}_per_{per}", f"{label} per {per}"
        ours, theirs = (row[f"{column}_{role}"] for role in ROLES)
        if name in known and pd.isna(ours) and pd.isna(theirs):
            continue
        text = format_percent if unit == "share" else partial(format_value, unit=unit)
        line = {"": what} | dict(zip(SIDES, (text(ours), text(theirs)), strict=True))
        if pair.is_single:
            line = {"": what, "Value": text(ours)}
        else:
            line["Change"] = _change(ours, theirs, unit)
        lines.append(line)
    return pd.DataFrame([*lines, *_bound_by(pair, row)])


def _bound_by(pair: Pair, row: pd.Series) -> list[dict[str, str]]:
    """The line that says what bounds the op on each side; none where neither is known."""
    ours, theirs = (str(row[f"bound_by_{role}"]) if row[f"bound_by_{role}"] == row[f"bound_by_{role}"] else ""
                    for role in ROLES)  # fmt: skip
    if not ours and not theirs:
        return []
    line = {"": schema.OP_STATS.column("bound_by").label}
    if pair.is_single:
        return [line | {"Value": ours}]
    change = "unchanged" if ours == theirs else f"{ours or MISSING} → {theirs or MISSING}"
    return [line | dict(zip(SIDES, (ours or MISSING, theirs or MISSING), strict=True)) | {"Change": change}]


def _change(ours: Any, theirs: Any, unit: str) -> str:
    if pd.isna(ours) or pd.isna(theirs):
        return MISSING
    if ours == theirs:
        return "unchanged"
    if unit == "share":
        return f"{100 * (theirs - ours):+.1f} pp".replace("-", "−")
    return format_percent_change(theirs / ours) if ours > 0 else MISSING


def _in_steps(pair: Pair, row: pd.Series, role: str) -> pd.DataFrame:
    """The row's op in each step of one side; no steps if that side does not have the op."""
    run = pair.runs[ROLES.index(role)]
    steps_of_run = steps_of(pair.comparison, run)
    if row["status"] == LACKING[role] or not has_steps(run):
        return steps_of_run.iloc[:0].assign(self_time_us=0.0)
    ops = single_ops(row.to_frame().T, role)
    return step_series.op_by_step(run.step_cells("op_stats", host=pair.host_of(run)), steps_of_run, ops)


def show_kernels(pair: Pair, baseline: str | None, candidate: str | None) -> None:
    """The launches of the op of these names, if it has any."""
    rows = rows_named(pair.diff("kernel_stats"), baseline, candidate)
    if rows.empty:
        return
    time, count = (metric_in(rows, name) for name in ("total_duration_us", "occurrences"))
    names = ["kernel_name", "block_dim", "grid_dim", *(f"{time}_{role}" for role in (*ROLES, "delta"))]
    names += [*(f"{count}_{role}" for role in ROLES), "verdict"]
    st.markdown("**Kernels**")
    readings = kernel_labels([*rows["kernel_name"], *rows["kernel_name_candidate"].dropna()])
    show_rows(pair, rows, names, schema.KERNEL_STATS, readings, key="op_kernels")


def show_memory(pair: Pair, baseline: str | None, candidate: str | None) -> None:
    """What is allocated for the op of these names at the peak of each memory, if anything."""
    rows = rows_named(pair.diff("memory_peak"), baseline, candidate)
    if rows.empty:
        return
    names = ["memory_id", "region_type", "data_type", "shape"]
    names += [f"allocation_bytes_{role}" for role in (*ROLES, "delta")]
    st.markdown("**Memory at the peak**")
    show_rows(pair, rows, names, schema.MEMORY_PEAK, {}, key="op_memory")


def show_rows(
    pair: Pair,
    rows: pd.DataFrame,
    names: list[str],
    table: schema.Table,
    readings: Mapping[str, str],
    *,
    key: str,
) -> None:
    """A small table of some rows of a diff, or of the columns of a run alone; `readings` as in `tables.sortable`."""
    chosen = [shown_alone(name, table) for name in of_one_run(names)] if pair.is_single else [
        shown(name, table) for name in names
    ]  # fmt: skip
    tables.sortable(rows, chosen, key=key, address=f"{key}_", readings=readings)


def pair_manually(pair: Pair, row: pd.Series, row_key: RowKey) -> None:
    """Widgets that pair the op of a row of `pair.ops` manually, or separate it from its counterpart."""
    if pair.is_single or row["op_type"] == schema.IDLE:
        return
    every = pair.ops(idle=True)
    here = every[every["host_or_device"] == row["host_or_device"]]
    side = "candidate" if row["status"] == "added" else "baseline"
    subject = manual.Subject(
        None if row["status"] == "added" else (str(row["op_name"]),),
        None if row["status"] == "removed" else (str(row["op_name_candidate"]),),
        kind=str(row["op_type"]),
        time_us=float(row[f"{metric_in(every, 'self_time_us')}_{side}"]),
        match=str(row["match"]),
    )
    place = str(row["host_or_device"])
    manual.of_row(pair, subject, manual.Rows(here, ("op_name",), "self_time_us", partial(_address, row_key, place)))


def _address(row_key: RowKey, place: str, name: Name, kind: str, status: str) -> str:
    del status
    return row_key(place, kind, name[0])
