"""The iterator graphs of one tf.data execution."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts.pair import Pair
from tfcompare.charts.tf_data import pipeline_graphs
from tfcompare.compare.tf_data.tf_data_change import Analysis, Sides
from tfcompare.compare.tf_data.tf_data_graph import Graph, graphs
from tfcompare.markdown import as_code
from tfcompare.ui.widgets.figures import cached, show
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.units import format_count, format_time_us

HOW_TO_READ = (
    "Each call to the pipeline is one execution. In the graph, data flows up to Root. Bold: on the critical path, for "
    "which the call waits. Dashed: not waited for. Orange: the slowest of these. Start times count from the call. "
    "Self times add up all calls of an iterator, also parallel and earlier ones, so they can exceed the execution."
)


def show_graphs(pair: Pair, sides: Sides) -> None:
    """The graph of each run, next to each other, with matched iterators at the same height."""
    which = tuple(None if side is None else (side.host, side.pipeline, side.rank) for side in sides)
    drawn, figures = cached(pair, ("graphs", which), lambda: _drawn(pair, sides))
    places = side_by_side(len(pair.shown))
    for place, (_, run), graph, figure, key in zip(
        places, pair.shown, drawn, figures, ("baseline", "candidate"), strict=False
    ):
        with place:
            if graph.nodes.empty:
                st.info(f"{as_code(run.name)} does not have this execution.")
            else:
                show(figure, f"graph_{key}")
            if graph.left_out:
                st.caption(
                    f"{format_count(len(graph.nodes))} iterators are drawn, those on the critical path and the slowest "
                    f"first. {format_count(graph.left_out)} more are in the table."
                )


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
    return "" if side is None else f"{side.pipeline}, {format_time_us(side.latency_us)}"
