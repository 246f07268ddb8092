"""The iterator graphs of one tf.data execution in both runs."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts.tf_data import pipeline_graphs
from tfcompare.compare.tf_data.tf_data_change import Analysis
from tfcompare.compare.tf_data.tf_data_graph import Graph, graphs
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.pages.tf_data_steps import Sides
from tfcompare.ui.widgets.figures import cached, show
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.ui.widgets.text import as_code
from tfcompare.units import format_count, format_time_us


def both_graphs(pair: Pair, sides: Sides) -> None:
    """The graphs of both runs side by side, with matched iterators at the same height."""
    st.caption(
        "Elements go up, to Root. Bold: the execution waited for it (critical path). Orange inner outline: the "
        "bottleneck. Dashed: not waited for. Start is since the begin of the call. Narrow nodes tell their self time "
        "alone; hovering tells all that is known."
    )
    which = tuple(None if side is None else (side.host, side.pipeline, side.rank) for side in sides)
    drawn, figures = cached(pair, ("graphs", which), lambda: _drawn(pair, sides))
    places = side_by_side(2)
    for place, run, graph, figure, key in zip(
        places, pair.runs, drawn, figures, ("baseline", "candidate"), strict=True
    ):
        with place:
            if graph.nodes.empty:
                st.info(f"{as_code(run.name)} does not have this execution.")
            else:
                show(figure, f"graph_{key}")
    _report_left_out(drawn)


def _drawn(pair: Pair, sides: Sides) -> tuple[tuple[Graph, Graph], tuple[Any, Any]]:
    """The graphs of both sides, and their figures."""
    ours, theirs = (schema.TF_DATA.empty() if side is None else side.iterators for side in sides)
    drawn = graphs(ours, theirs, _names(pair, sides))
    rank = next(side.rank for side in sides if side is not None)
    execution = "Slowest execution" if rank == 0 else f"Execution {rank}"
    texts = [_text(side) for side in sides]
    figures = pipeline_graphs(((pair.sides[0], drawn[0], texts[0]), (pair.sides[1], drawn[1], texts[1])), execution)
    return drawn, figures


def _names(pair: Pair, sides: Sides) -> tuple[set[str], set[str]]:
    """The long names in all executions of the pipelines shown."""
    ours, theirs = (
        set() if side is None else set(table.loc[_is_of(table, side), "long_name"])
        for side, table in zip(sides, pair.tables("tf_data"), strict=True)
    )
    return ours, theirs


def _is_of(table: pd.DataFrame, side: Analysis) -> pd.Series:
    return (table["host"] == side.host) & (table["pipeline"] == side.pipeline)


def _text(side: Analysis | None) -> str:
    return "" if side is None else f"{side.pipeline}, took {format_time_us(side.latency_us)}"


def _report_left_out(drawn: tuple[Graph, Graph]) -> None:
    for role, graph in zip(("baseline", "candidate"), drawn, strict=True):
        if graph.left_out:
            st.info(
                f"Of the {role}'s graph {format_count(len(graph.nodes))} nodes are drawn: what the execution waited "
                f"for first, the slowest first. {format_count(graph.left_out)} more iterators are in the table below."
            )
