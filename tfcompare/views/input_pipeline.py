"""Input: how long steps wait for it, and what the host does meanwhile, as TensorBoard's Input Pipeline Analyzer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfcompare import schema
from tfcompare.charts import input_pipeline
from tfcompare.charts.pair import Pair, may_draw
from tfcompare.compare.straggler import steps_of_straggler
from tfcompare.tools import input_bound, input_ops
from tfcompare.tools.input_bound import InputWait
from tfcompare.views.blocks import Block, Text
from tfcompare.views.view import Make, View, charts_of, sides_of, table_of, without_rows


def blocks(pair: Pair, options: Any) -> Iterator[Block]:
    """How long the steps wait in a sentence, per step and by what the host does, and every input op."""
    yield Text(f"{headline(pair, waits_of(pair))}.")
    yield from charts_of(pair, CHARTS, options)
    rows = pair.diff("input_pipeline")
    names = ["op_name", "category", *sides_of(rows, "self_time_us")]
    yield from table_of(pair, schema.INPUT_PIPELINE, "Input ops", rows, names)


def waits_of(pair: Pair) -> tuple[InputWait, InputWait]:
    """How long each run waits for input, on the host that is shown or on the slowest host of each step."""
    ours, theirs = (input_bound.wait_of(run, pair.host_of(run)) for run in pair.runs)
    return ours, theirs


def headline(pair: Pair, waits: tuple[InputWait, InputWait]) -> str:
    """How long the runs wait for input, or why that is unknown, without a full stop."""
    if pair.is_single:
        found = input_bound.finding(waits[0])
        return f"{found[:1].upper()}{found[1:]}"
    return input_bound.headline(*waits, pair.marked, identical=pair.is_identical).removesuffix(".")


def _wait(pair: Pair, _options: Any = None) -> Any:
    series = []
    for side, run in pair.shown:
        frame = steps_of_straggler(run.table("steps", host=pair.host_of(run)))
        known = input_bound.wait_of(run, pair.host_of(run)).is_known
        frame = frame if known else frame.iloc[:0]
        series.append((side, frame.assign(input_share=input_bound.share_by_step(frame))))
    return input_pipeline.step_times(series) if may_draw(frame for _, frame in series) else None


def category_times(pair: Pair, _options: Any = None) -> Any:
    """What the host does to prepare the input, as a figure; None without input ops."""
    diff = pair.diff("input_pipeline")
    if diff.empty:
        return None
    shown = [side for side, _ in pair.shown]
    return input_pipeline.category_times(input_ops.category_times(diff), shown, per=pair.comparison.per)


CHARTS: dict[str, Make] = {"input_wait": _wait, "input_host": category_times}
VIEW = View(
    "input_pipeline", "Input pipeline", blocks, CHARTS,
    without_rows("No steps and no input ops were captured.", "steps", "input_pipeline"),
)  # fmt: skip
