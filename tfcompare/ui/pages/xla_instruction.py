"""The dialog of one instruction of an XLA program: its text on both sides, its numbers, its place in the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from tfcompare.charts.pair import Pair
from tfcompare.compare.aggregate import metric_in
from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.errors import TfcompareError
from tfcompare.markdown import as_code, as_markdown
from tfcompare.tools.op_stats import ROLES
from tfcompare.tools.row_keys import row_keys
from tfcompare.tools.xla_text import (
    instruction_diff,
    instruction_lines,
    lines_diff,
    neighbours_that_ran,
    surroundings,
)
from tfcompare.ui.widgets.details import open_details
from tfcompare.ui.widgets.links import show_link
from tfcompare.units import MISSING, format_percent_change, format_value
from tfcompare.views import links

NUMBERS = {
    "execution_time_us": ("Time per execution of the program", "µs"),
    "excess_us": ("Could still save", "µs"),
    "executions": ("Executions", ""),
    "flops_per_s": ("FLOP rate", "FLOP/s"),
    "peak_flops_per_s": ("Peak FLOP rate", "FLOP/s"),
    "bandwidth_bytes_per_s": ("Bandwidth", "bytes/s"),
    "peak_bytes_per_s": ("Peak bandwidth", "bytes/s"),
    "operational_intensity": ("Intensity", "FLOP/byte"),
}
NEIGHBOURS = {"Inputs come from": "operands", "Result is used by": "users", "Fused instructions": "fused"}
MOST_NEIGHBOURS = 20
_KEYS = ("host", "program", "hlo_op", "category", "status")


def row_key(rows: pd.DataFrame) -> pd.Series:
    """A key for each row that is unique and short enough for a URL."""
    return row_keys(rows, _KEYS)


def open_instruction(pair: Pair, rows: pd.DataFrame, chosen: str) -> None:
    """Open the dialog of the row with this key, if there is one."""
    found = rows[row_key(rows) == chosen]
    if not found.empty:
        row = found.iloc[0]
        open_details(str(row["hlo_op"]), partial(_show, pair, rows, row))


def _show(pair: Pair, rows: pd.DataFrame, row: pd.Series) -> None:
    if row["status"] in (ADDED, REMOVED):
        run = pair.candidate if row["status"] == ADDED else pair.baseline
        st.markdown(f"**Only in {as_code(run.name)}.**")
    elif row["hlo_op"] != row["hlo_op_candidate"]:
        st.markdown(f"In {as_code(pair.candidate.name)}: {as_code(str(row['hlo_op_candidate']))}")
    st.table(_numbers(pair, row).set_index(""), width="content")
    for label, column in (("Op", "op_name"), ("Source", "source")):
        _texts(pair, row, label, column)
    _link(pair, row)
    _expressions(pair, row)
    try:
        texts = surroundings(*pair.tables("hlo_texts"), row)
    except TfcompareError as error:  # the profile is not there any more, or another one
        st.caption(as_markdown(error))
        return
    for heading, column in NEIGHBOURS.items():
        _lines(texts, heading, column)
    _open_neighbour(rows, row, texts)


def _link(pair: Pair, row: pd.Series) -> None:
    if op := _text(row, "op_name", "baseline") or _text(row, "op_name", "candidate"):
        show_link(pair, links.to_op(op))
    else:
        show_link(pair, links.to_text(str(row["hlo_op"])))


def _numbers(pair: Pair, row: pd.Series) -> pd.DataFrame:
    """The numbers of one instruction as texts: a row for each, with the columns of both sides and the change."""
    lines = []
    for name, (label, unit) in NUMBERS.items():
        column = metric_in(row.to_frame().T, name)
        ours, theirs = (row[f"{column}_{role}"] for role in ROLES)
        if pd.isna(ours) and pd.isna(theirs):
            continue
        what = label if column == name else f"{label} per {pair.comparison.per}"
        line = {"": what, "Value" if pair.is_single else "Baseline": format_value(ours, unit)}
        if not pair.is_single:
            is_known = pd.notna(ours) and pd.notna(theirs) and ours > 0
            changed = "unchanged" if ours == theirs else format_percent_change(theirs / ours)
            line |= {"Candidate": format_value(theirs, unit), "Change": changed if is_known else MISSING}
        lines.append(line)
    return pd.DataFrame(lines)


def _texts(pair: Pair, row: pd.Series, label: str, column: str) -> None:
    """A text of both sides: once if they agree."""
    texts = dict.fromkeys(text for role in ROLES[: len(pair.shown)] if (text := _text(row, column, role)))
    if texts:
        st.markdown(f"**{label}** {' → '.join(map(as_code, texts))}")


def _expressions(pair: Pair, row: pd.Series) -> None:
    """The instruction in XLA's notation: as a diff if the runs have different ones."""
    ours, theirs = (_text(row, "expression", role) for role in ROLES)
    if not ours and not theirs:
        return
    if ours and theirs and (changes := instruction_diff(ours, theirs)):
        st.markdown("**HLO**", help="`-` only in the baseline, `+` only in the candidate; names without their numbers")
        st.code(changes, language=None, wrap_lines=True)
        return
    is_equal = bool(ours and theirs) and not pair.is_single
    st.markdown("**HLO**, the same in both runs except for numbers of names" if is_equal else "**HLO**")
    st.code("\n".join(instruction_lines(ours or theirs)), language=None, wrap_lines=True)


def _lines(texts: Mapping[str, str], heading: str, column: str) -> None:
    """A text of several lines on both sides: as a diff if they differ by more than numbers of names."""
    ours, theirs = (texts[f"{column}_{role}"] for role in ROLES)
    if text := (ours and theirs and lines_diff(ours, theirs)) or ours or theirs:
        st.markdown(f"**{heading}**")
        st.code(text, language=None, wrap_lines=True)


def _open_neighbour(rows: pd.DataFrame, row: pd.Series, texts: Mapping[str, str]) -> None:
    """Lets the user choose a neighbour that ran, whose dialog then opens instead of this one."""
    found = neighbours_that_ran(rows, row, texts).head(MOST_NEIGHBOURS)
    if found.empty:
        return
    keys = dict(zip(row_key(found), found["hlo_op"], strict=True))
    chosen = st.pills(
        "Open a neighbour",
        list(keys),
        format_func=keys.__getitem__,
        key=f"neighbours {'_'.join(str(row[name]) for name in _KEYS)}",
    )
    if chosen is not None:
        st.query_params["row"] = chosen
        st.rerun()


def _text(row: pd.Series, column: str, role: str) -> str:
    value = row[f"{column}_{role}"]
    return "" if pd.isna(value) else str(value)
