"""What the compiler made of a program, on the XLA page."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tfcompare.tools import xla_compiler
from tfcompare.ui.pages.xla import Program
from tfcompare.units import format_count, format_time_us


def what_the_compiler_did(program: Program) -> None:
    """How many instructions of each kind ran on both sides, and what they take per execution."""
    kinds = xla_compiler.kinds(program.rows)
    if kinds.empty:
        return
    st.subheader(
        "What the compiler did",
        help="Instructions of the program that ran, by kind, with their time per execution. An instruction may be of "
        "several kinds. " + " ".join(f"{kind}: {meaning}." for kind, meaning in xla_compiler.MEANINGS.items()),
    )
    st.table(_as_text(kinds, alone=program.pair.is_single).set_index(""), width="content")


def _as_text(kinds: pd.DataFrame, *, alone: bool) -> pd.DataFrame:
    columns: dict[str, list[str]] = {"": kinds["kind"].tolist()}
    sides = {"": "baseline"} if alone else {", baseline": "baseline", ", candidate": "candidate"}
    for label, role in sides.items():
        columns[f"Instructions{label}"] = kinds[f"count_{role}"].map(format_count).tolist()
    for label, role in sides.items():
        columns[f"Time per execution{label}"] = kinds[f"execution_time_us_{role}"].map(format_time_us).tolist()
    return pd.DataFrame(columns)
