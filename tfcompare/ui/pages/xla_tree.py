"""Where a program's time goes, on the XLA page: an icicle of its instructions, and a table of their groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import xla as charts
from tfcompare.markdown import as_code
from tfcompare.tools.columns import Shown, of_one_run, shown, shown_alone
from tfcompare.tools.xla_tree import TIME, By, below_node, groups, time_tree
from tfcompare.ui.pages.xla import CHANGE, Program
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.tables import sortable

GROUPINGS: dict[By, str] = {"category": "category", "source": "source line", "scope": "name scope"}
ADDRESS = "tree_"
PIXELS = 600
"""The least width of the icicle and of the table beside it; in a narrower window the table is below."""
INDENT = "\u2003"


def within_group(program: Program) -> pd.DataFrame:
    """The instructions of the group that is selected in the table of groups, or all; says which group it is."""
    key = st.query_params.get(f"{ADDRESS}row", "")
    found = below_node(program.rows, program.name, key) if key else None
    if found is None:
        return program.rows
    label, rows = found
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Only instructions of {as_code(label)}", width="content")
        st.button("Show all", on_click=_deselect)
    return rows


def _deselect() -> None:
    st.query_params.pop(f"{ADDRESS}row", None)


def where_the_time_goes(program: Program) -> None:
    """An icicle of the program's instructions by category, source line or name scope, and its groups as a table."""
    alone = program.pair.is_single
    st.subheader("Where the time goes" if alone else "Where the time changed")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.segmented_control(
            "Group by", list(GROUPINGS), default="category", required=True, format_func=GROUPINGS.__getitem__, key="by",
            bind="query-params",
        )  # fmt: skip
        by_change = not alone and st.toggle(
            "Size by change", key="by_change", bind="query-params",
            help="Size each instruction by how much its time changed instead of by its time",
        )  # fmt: skip
    if by_change and not program.rows["execution_time_us_delta"].fillna(1.0).any():
        st.info("No instruction of this program changed its time.")
        return
    width = "change_us" if by_change else "width_us"
    tree = cached(program.pair, ("time_tree", program.name, by), lambda: time_tree(program.rows, program.name, by))
    with st.grid(2, min_column_width=PIXELS):
        draw(program.pair, "xla_time", partial(_icicle, program, tree, by, width), program.name, by, width)
        with st.container():
            _table(program, groups(tree, by), by)


def _icicle(program: Program, tree: pd.DataFrame, by: By, width: str) -> Any:
    return charts.time_icicle(tree, by=GROUPINGS[by], alone=program.pair.is_single, width=width)


def _table(program: Program, nodes: pd.DataFrame, by: By) -> None:
    """The groups, indented by their depth; selecting one filters the table of instructions."""
    alone = program.pair.is_single
    names = [f"{TIME}_{role}" for role in CHANGE]
    figures = [
        (shown_alone if alone else shown)(name, schema.HLO_OPS) for name in (of_one_run(names) if alone else names)
    ]
    what = "Its part of the program's time" + (
        "" if alone else ", with the longer time of both runs for each instruction"
    )
    indented = [INDENT * (depth - 1) + label for depth, label in zip(nodes["depth"], nodes["label"], strict=True)]
    sortable(
        nodes.assign(label=indented),
        [
            Shown(
                "label",
                "",
                GROUPINGS[by].capitalize(),
                "Groups are indented below the one that they are part of",
                "text",
            ),
            *figures,
            Shown("width_share", "", "Share", what, "bar"),
        ],
        key=f"time_tree {by}",
        row_key=lambda rows: rows["key"],
        address=ADDRESS,
        page_pixels=PIXELS,
    )
    st.caption("Select a row at its left end to show only its instructions in the table above.")
