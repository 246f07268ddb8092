"""The table of the kernel stats page, its CSV downloads, and the selected kernel."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts.pair import Pair
from tfcompare.compare.aggregate import metric_in, of_side
from tfcompare.compare.diff import INTERVAL
from tfcompare.compare.matching.manual import Name, names_of_rows
from tfcompare.markdown import as_code
from tfcompare.tools import kernel_stats as kernel_figures
from tfcompare.tools.columns import of_one_run, shown_alone
from tfcompare.tools.row_keys import row_keys
from tfcompare.ui.pages.kernel_stats import GROUPINGS, NO_OP, By, Choice, controls, launches_of, readings_of, rows_of
from tfcompare.ui.widgets import manual, op_view, tables
from tfcompare.ui.widgets.details import open_details
from tfcompare.ui.widgets.links import show_link
from tfcompare.ui.widgets.table_page import TablePage
from tfcompare.views import links

BOTH = ("baseline", "candidate")
CHANGE = ("baseline", "candidate", "delta")
KEYS: dict[By, list[str]] = {
    "kernel_name": ["kernel_name"],
    "op_name": ["op_name"],
    "kernel_and_op": ["kernel_name", "op_name"],
    "launch": ["kernel_name", "op_name", "block_dim", "grid_dim"],
}
LAUNCH = ["block_dim", "grid_dim", "registers_per_thread", "shared_memory_bytes"]
FLAGS = ["is_op_tensor_core_eligible", "is_kernel_using_tensor_core"]
TIMES = ["avg_duration_us", "min_duration_us", "max_duration_us"]


def columns(pair: Pair, rows: pd.DataFrame, choice: Choice, every: bool) -> list[str]:
    """The table's columns, most important first; with `every`, all of TensorBoard's GPU kernel stats."""
    del pair
    by = choice.by
    time, count = (metric_in(rows, name) for name in (kernel_figures.TIME, kernel_figures.COUNT))
    names = [*KEYS[by], *_sides(time, BOTH if by == "launch" else CHANGE)]
    if by in ("kernel_name", "op_name"):
        names += _sides(count, CHANGE)
    names += ["verdict"]
    if every:
        names += [*_sides("time_rank", BOTH), f"{time}_delta", f"{time}_ratio", *_sides("time_share", BOTH)]
        names += [*_sides("cumulative_time_share", BOTH), *_sides(count, CHANGE), f"{count}_ratio"]
        names += [*_sides(TIMES[0], CHANGE), *(name for time in TIMES[1:] for name in _sides(time, BOTH))]
        names += [name for flag in FLAGS for name in _sides(flag, BOTH)]
        if by == "launch":
            names += [name for key in LAUNCH for name in (key, f"{key}_candidate")]
            names += ["host", "kernel_name_candidate", "op_name_candidate"]
        names += ["status", "match", "evidence", *INTERVAL]
    return list(dict.fromkeys(names))


def _sides(name: str, roles: tuple[str, ...]) -> list[str]:
    return [f"{name}_{role}" for role in roles]


def everything(pair: Pair) -> pd.DataFrame:
    """All rows and columns of all candidates, launch by launch."""
    diff = pair.comparison.table("kernel_stats")
    parts = [kernel_figures.with_ranks_and_shares(part) for _, part in diff.groupby("candidate", sort=False)]
    return pd.concat(parts, ignore_index=True)


def row_key(rows: pd.DataFrame) -> pd.Series:
    """A key for each row that is unique and short enough for a URL."""
    keys = [name for name in ("host", "kernel_name", "op_name", *LAUNCH, "status") if name in rows]
    return row_keys(rows, keys)


def open_row(pair: Pair, rows: pd.DataFrame, choice: Choice, chosen: str) -> None:
    """Open the selected op, or the selected kernel with its launches and its op if it has only one."""
    picked = rows[row_key(rows) == chosen]
    if picked.empty:
        return
    row = picked.iloc[0]
    readings = readings_of(pair)
    launches = launches_of(pair, row, choice.by)
    if choice.by == "op_name":
        open_details(
            str(row["op_name"]) or NO_OP,
            partial(_op_details, pair, launches, str(row["match"])),
        )
        return
    kernel = str(row["kernel_name"])
    open_details(
        readings.get(kernel, kernel), partial(_kernel_details, pair, launches, kernel, str(row["match"]), choice.by)
    )


def _op_details(pair: Pair, launches: pd.DataFrame, match: str) -> None:
    _show_launches(pair, launches)
    for op in _ops_of(launches):
        show_link(pair, links.to_op(op))
        op_view.show_times(pair, op)
        op_view.show_memory(pair, op, op)
    _pair_manually(pair, launches, match, "op_name")


def _kernel_details(pair: Pair, launches: pd.DataFrame, kernel: str, match: str, by: By) -> None:
    st.code(kernel, language=None, wrap_lines=True)
    for other in [] if pair.is_single else launches["kernel_name_candidate"].dropna().unique():
        if other != kernel:
            st.caption("In the candidate:")
            st.code(other, language=None, wrap_lines=True)
    show_link(pair, links.to_kernel(kernel))
    _show_launches(pair, launches)
    if len(ops := _ops_of(launches)) == 1:
        st.markdown(f"**Op** {as_code(ops[0])}")
        op_view.show_times(pair, ops[0])
        op_view.show_memory(pair, ops[0], ops[0])
    _pair_manually(pair, launches, match, by)


def _ops_of(launches: pd.DataFrame) -> list[str]:
    """The names of the ops of the launches: the baseline's, if it has the row."""
    return [name for name in launches["op_name"].unique() if name]


def _show_launches(pair: Pair, launches: pd.DataFrame) -> None:
    readings = readings_of(pair)
    shown = _launch_columns(pair, launches)
    tables.sortable(launches, shown, key="launches", address="launches_", readings=readings)


def _pair_manually(pair: Pair, launches: pd.DataFrame, match: str, by: By) -> None:
    """Match or separate the selected op, or the selected kernel of an op; not a kernel of many ops."""
    if pair.is_single:
        return
    if by == "kernel_name":
        st.caption("Group by op, or by kernel and op, to pair rows manually.")
        return
    columns = ("op_name",) if by == "op_name" else ("op_name", "kernel_name")
    found = [_names(launches, side, columns) for side in BOTH]
    if any(len(names) > 1 for names in found):
        return
    ours, theirs = (names[0] if names else None for names in found)
    times = launches[[f"{metric_in(launches, kernel_figures.TIME)}_{side}" for side in BOTH]].sum()
    rows = manual.Rows(
        pair.diff("kernel_stats"),
        columns,
        kernel_figures.TIME,
        lambda name, _, status: _address(name, columns, status),
        lambda name: readings_of(pair).get(name, name),
    )
    manual.of_row(pair, manual.Subject(ours, theirs, time_us=float(times.max()), match=match), rows)


def _address(name: Name, columns: tuple[str, ...], status: str) -> str:
    """The key of the row that aggregates this name."""
    return str(row_key(pd.DataFrame([{**dict(zip(columns, name, strict=True)), "status": status}])).iloc[0])


def _names(launches: pd.DataFrame, side: str, columns: tuple[str, ...]) -> list[Name]:
    """The names of the launches on one side."""
    own = "_candidate" if side == "candidate" else ""
    return list(dict.fromkeys(names_of_rows(of_side(launches, side), [f"{column}{own}" for column in columns])))


def _launch_columns(pair: Pair, launches: pd.DataFrame) -> list[tables.Shown]:
    """The columns of the launches: first those that differ between them, then their figures."""
    time, count = (metric_in(launches, name) for name in (kernel_figures.TIME, kernel_figures.COUNT))
    keys = [name for name in ("op_name", "kernel_name", "host") if launches[name].nunique() > 1] or ["op_name"]
    differ = [key for key in LAUNCH if not _is_same(launches, key)]
    launch = {key: [key, f"{key}_candidate"] if key in differ else [key] for key in LAUNCH}
    names = [*keys, *launch["block_dim"], *launch["grid_dim"], *_sides(time, CHANGE), *_sides(count, BOTH)]
    names += [*launch["registers_per_thread"], *launch["shared_memory_bytes"]]
    names += [name for time in TIMES for name in _sides(time, BOTH)]
    names += [*(name for flag in FLAGS for name in _sides(flag, BOTH)), "status"]
    if pair.is_single:
        return [shown_alone(name, schema.KERNEL_STATS) for name in of_one_run(names)]
    return [tables.shown(name, schema.KERNEL_STATS) for name in names]


def _is_same(launches: pd.DataFrame, key: str) -> bool:
    """Whether all launches have the same value on both sides."""
    there = launches[launches["status"] == "matched"]
    return there[key].astype("str").tolist() == there[f"{key}_candidate"].astype("str").tolist()


TABLE = TablePage(
    table=schema.KERNEL_STATS,
    title=lambda choice: "Every launch" if choice.by == "launch" else f"Every {GROUPINGS[choice.by]}",
    controls=controls,
    rows=rows_of,
    columns=columns,
    details=open_row,
    row_key=row_key,
    everything=everything,
    readings=readings_of,
    nothing=lambda choice: f"No row has all words of {as_code(choice.text)}. Clear the filter to see all.",
)
