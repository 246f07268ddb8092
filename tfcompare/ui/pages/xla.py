"""The upper part of the XLA page: the program, its key figures, its instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts.pair import Pair
from tfcompare.compare import executions
from tfcompare.compare.aggregate import metric_in
from tfcompare.markdown import as_code
from tfcompare.tools import xla
from tfcompare.tools.op_stats import ROLES, with_words
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.frame.sidebar import HOME, link
from tfcompare.ui.pages.xla_instruction import open_instruction, row_key
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.figures import cached
from tfcompare.ui.widgets.table_page import TablePage
from tfcompare.views import xla as view

CHANGE = ("baseline", "candidate", "delta")
CARD_PIXELS = 200
"""The width of a card that shows `18.8 GFLOP/s` in full."""


@dataclass(frozen=True)
class Program:
    """The program shown: its name, with its id if others have the same name, and its instructions on both sides."""

    pair: Pair
    name: str
    rows: pd.DataFrame


class Choice(NamedTuple):
    """The rows of the table of instructions: those of a group of the program's that have all words of `text`."""

    program: Program
    text: str
    rows: pd.DataFrame


def stop_without_programs(pair: Pair, selection: Selection, compilation: Callable[[Pair], None]) -> None:
    """Say which runs ran no XLA programs; if none did, show what was compiled, if anything, and stop the page."""
    shown = [run for _, run in pair.shown]
    without = [run for run, rows in zip(shown, pair.tables("hlo_ops"), strict=False) if rows.empty]
    if not without:
        return
    names = " and ".join(as_code(run.name) for run in without)
    st.info(
        f"{names} ran no compiled XLA programs while being captured. JAX compiles every `jit`; TensorFlow compiles a "
        "`tf.function` with `jit_compile=True`."
    )
    if len(without) == len(shown):
        if any(len(rows) for rows in pair.tables("compilations")):
            compilation(pair)
        link(HOME, "Choose other runs", selection, icon=":material/home:")
        st.stop()


def choose_program(pair: Pair) -> Program:
    """The program to show; a widget chooses it if there are several."""
    rows = cached(pair, "instructions", pair.instructions)
    programs = cached(pair, "programs", lambda: executions.programs(rows))
    keys = dict(zip(programs["label"], programs["program_key"], strict=True))
    label = next(iter(keys))
    if len(keys) > 1:
        label = st.selectbox(
            "Program", list(keys), key="program", bind="query-params", width=480,
            help="The longest comes first. Programs are paired by name, then by contents.",
        )  # fmt: skip
    return Program(pair, label, executions.of_program(rows, keys[label]))


def headline(program: Program) -> None:
    """The time per execution as a sentence, and the key figures."""
    pair, found = program.pair, xla.figures(program.rows)
    st.markdown(f"### {view.headline(pair, program.name, program.rows)}")
    shown = [figure.alone() for figure in found] if pair.is_single else found
    cards(shown)


def controls() -> str:
    """The filter of the table of instructions."""
    return st.text_input(
        "Filter", key="filter", bind="query-params", placeholder="words in instruction, category, op or source",
        width=360, icon=":material/filter_alt:",
        help="All words must be in an instruction's name, category, op or source; case does not matter",
    ) or ""  # fmt: skip


def _rows(pair: Pair, choice: Choice) -> pd.DataFrame:
    del pair
    names = ["hlo_op", "category", "hlo_op_candidate"]
    names += [f"{name}_{role}" for name in ("op_name", "source") for role in ROLES]
    return with_words(choice.rows, choice.text, names)


def _columns(pair: Pair, rows: pd.DataFrame, choice: Choice, every: bool) -> list[str]:
    """The table's columns, most important first; of a pair, those that fit beside each other.

    What could be saved is shown only if the peaks of a device are known.
    """
    sides = ROLES[:1] if pair.is_single else ROLES
    has_peaks = every or choice.program.rows[[f"excess_us_{role}" for role in sides]].notna().any(axis=None)
    names = ["hlo_op", "category", *(["host"] if rows["host"].nunique() > 1 or every else [])]
    names += [f"execution_time_us_{role}" for role in (*CHANGE, "ratio")]
    costs = [*(["excess_us"] if has_peaks else []), "flops_per_s"]
    costs += ["bandwidth_bytes_per_s"] if pair.is_single or every else []
    costs += ["bound_by"] if every else []
    names += [f"{name}_{role}" for name in costs for role in sides]
    if every:
        sums = ("self_time_us", "total_time_us", "executions", "occurrences", "flops", "bytes_accessed")
        names += [f"{metric_in(rows, name)}_{role}" for name in sums for role in CHANGE]
        more = ("operational_intensity", "peak_flops_per_s", "peak_bytes_per_s", "is_rematerialized")
        names += [f"{name}_{role}" for name in (*more, "op_name", "source") for role in sides]
        names += ["hlo_op_candidate", "program", "program_candidate", "status", "match", "verdict"]
    return names


def _open(pair: Pair, rows: pd.DataFrame, choice: Choice, chosen: str) -> None:
    del rows
    open_instruction(pair, choice.program.rows, chosen)


TABLE: TablePage[Choice] = TablePage(
    table=schema.HLO_OPS,
    title=lambda _choice: "Every instruction",
    rows=_rows,
    columns=_columns,
    details=_open,
    row_key=row_key,
    nothing=lambda choice: f"No row has all words of {as_code(choice.text)}. Clear the filter to see all.",
)
