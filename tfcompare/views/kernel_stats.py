"""GPU kernels: TensorBoard's kernel stats of both runs, and what changed between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfcompare import schema
from tfcompare.charts import ops, shares
from tfcompare.charts.changes import changes_of_pair
from tfcompare.charts.kernels import KERNEL_TIME
from tfcompare.charts.pair import Pair
from tfcompare.compare.aggregate import largest_changes, metric_in
from tfcompare.tools import kernel_stats
from tfcompare.tools.key_figures import KeyFigure
from tfcompare.tools.op_figures import outside_of_steps
from tfcompare.views.blocks import Block, Cards, Text
from tfcompare.views.view import SIDES, Make, View, charts_of, sides_of, table_of, without_rows


def blocks(pair: Pair, options: Any) -> Iterator[Block]:
    """The kernel time in a sentence and as figures, what changed most, tensor cores, and every kernel."""
    if sentence := headline(pair):
        yield Text(sentence)
    yield Cards(figures(pair), pair.headings)
    if outside := outside_of_steps(pair.comparison, pair.candidate, "kernel_stats"):
        yield Text(outside, look="quiet")
    yield from charts_of(pair, CHARTS, options)
    rows = pair.kernels
    names = ["kernel_name", *sides_of(rows, kernel_stats.TIME), "verdict"]
    names += [f"{metric_in(rows, 'occurrences')}_{role}" for role in SIDES]
    yield from table_of(pair, schema.KERNEL_STATS, "Every kernel", rows, names)


def headline(pair: Pair) -> str:
    """The change of the kernel time, in Markdown; empty where no run has any."""
    diff = pair.diff("kernel_stats")
    if pair.is_single:
        return kernel_stats.sentence_alone(diff)
    if pair.is_identical:
        return "Both runs are the same capture: no kernel differs."
    return kernel_stats.kernel_sentence(diff)


def figures(pair: Pair) -> list[KeyFigure]:
    """Kernel time, launches and copies, and of two runs how much of the time has a counterpart."""
    found = kernel_stats.kernel_figures(pair.diff("kernel_stats"), pair.diff("copies"))
    if not pair.is_single:
        return found
    return [figure.alone() for figure in found if figure.label != kernel_stats.MATCHED_TIME]


def _changes(pair: Pair, _options: Any = None) -> Any:
    if pair.is_single or pair.diff("kernel_stats").empty:
        return None
    changes = largest_changes(pair.kernels, n=ops.TOP, metric=kernel_stats.TIME).assign(detail="")
    if changes.empty:
        return None
    return changes_of_pair(pair, changes, kernel_stats.TIME, by="kernel_name", quantity=KERNEL_TIME)


def _tensor_cores(pair: Pair, _options: Any = None) -> Any:
    use = kernel_stats.tensor_core_use(pair.diff("kernel_stats"))
    if not use[[f"share_{role}" for role in SIDES[: len(pair.shown)]]].iloc[:2].to_numpy().any():
        return None
    title, axis = "Kernel time by use of tensor cores", f"Kernel time per {pair.comparison.per}"
    return shares.time_bars(use, [side for side, _ in pair.shown], kernel_stats.TIME, title=title, axis=axis)


CHARTS: dict[str, Make] = {"kernel_changes": _changes, "tensor_cores": _tensor_cores}
VIEW = View(
    "kernel_stats", "Kernel stats", blocks, CHARTS, without_rows("No GPU kernels were captured.", "kernel_stats")
)
