"""tf.data: the bottleneck of the slowest call to an input pipeline, and the graph of its iterators."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.charts.pair import Pair
from tfcompare.charts.tf_data import pipeline_graphs
from tfcompare.compare.aggregate import metric_in
from tfcompare.compare.tf_data.tf_data_change import Sides, analyse, change, finding
from tfcompare.compare.tf_data.tf_data_graph import graphs
from tfcompare.markdown import as_markdown
from tfcompare.units import format_time_us
from tfcompare.views.blocks import Block, Text
from tfcompare.views.input_pipeline import waits_of
from tfcompare.views.view import CHANGE, SIDES, Make, View, charts_of, table_of, without_rows


def blocks(pair: Pair, options: Any) -> Iterator[Block]:
    """The bottlenecks in a sentence, the graphs of the slowest executions, and every pipeline."""
    ours, theirs = (analyse(*tables) for tables in _tables(pair))
    if ours is not None or theirs is not None:
        yield Text(f"{headline(pair, (ours, theirs))}.")
    yield from charts_of(pair, CHARTS, options)
    rows = pair.diff("tf_data_pipelines")
    names = ["pipeline", *(f"mean_latency_us_{role}" for role in CHANGE), "verdict"]
    names += [f"max_latency_us_{role}" for role in SIDES] + [f"{metric_in(rows, 'calls')}_{role}" for role in SIDES]
    yield from table_of(pair, schema.TF_DATA_PIPELINES, "Pipelines", rows, names)


def headline(pair: Pair, sides: Sides) -> str:
    """Where the input is slow in both runs, in Markdown without a full stop; one of them must have tf.data calls."""
    are_bound = tuple(wait.is_bound for wait in waits_of(pair))
    if not pair.is_single or sides[0] is None:
        sentence = change(sides, (are_bound[0], are_bound[1]), pair.called, identical=pair.is_identical)
    elif sides[0].feeds_device_only:
        sentence = "Only pipelines that pass elements to a device were recorded"
    else:
        sentence = f"{'Input-bound' if are_bound[0] else 'Not input-bound'}: {finding(sides[0], are_bound[0])}"
    return as_markdown(sentence.removesuffix("."))


def _tables(pair: Pair) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """The calls and the executions of each side."""
    return list(zip(pair.tables("tf_data_pipelines"), pair.tables("tf_data"), strict=True))


def _graph(pair: Pair, _options: Any, role: int) -> Any:
    """The iterators of the slowest call to tf.data on one side."""
    if role >= len(pair.shown):
        return None
    tables = _tables(pair)
    found = [analyse(*of_side) for of_side in tables]
    iterators = [schema.TF_DATA.empty() if one is None else one.iterators for one in found]
    names = [
        set() if one is None else set(table.loc[_is_of(table, one.host, one.pipeline), "long_name"])
        for one, (_, table) in zip(found, tables, strict=True)
    ]
    drawn = graphs(iterators[0], iterators[1], (names[0], names[1]))
    if drawn[role].nodes.empty:
        return None
    texts = ["" if one is None else f"{one.pipeline}, {format_time_us(one.latency_us)}" for one in found]
    of_sides = [(side, *of) for side, of in zip(pair.sides, zip(drawn, texts, strict=True), strict=True)]
    return pipeline_graphs((of_sides[0], of_sides[1]), "Slowest execution")[role]


def _is_of(table: pd.DataFrame, host: str, pipeline: str) -> pd.Series:
    return (table["host"] == host) & (table["pipeline"] == pipeline)


CHARTS: dict[str, Make] = {"tf_data_baseline": partial(_graph, role=0), "tf_data_candidate": partial(_graph, role=1)}
VIEW = View("tf_data", "tf.data", blocks, CHARTS, without_rows("No tf.data events were captured.", "tf_data_pipelines"))
