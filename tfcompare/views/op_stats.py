"""Ops: TensorBoard's TensorFlow Stats of both runs, and what changed between them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tfcompare import schema
from tfcompare.charts import ops, scopes
from tfcompare.charts.changes import changes_of_pair
from tfcompare.charts.pair import Pair
from tfcompare.charts.style import SELF_TIME
from tfcompare.compare.aggregate import largest_changes, metric_in, without_idle
from tfcompare.schema import DEVICE, HOST
from tfcompare.tools import op_figures
from tfcompare.tools.key_figures import KeyFigure
from tfcompare.views.blocks import Block, Cards, Text
from tfcompare.views.view import SIDES, Make, View, charts_of, sides_of, table_of


def blocks(pair: Pair) -> Iterator[Block]:
    """The self time in a sentence and as figures, what changed most, the name scopes, and every op."""
    yield Text(headline(pair))
    yield Cards(figures(pair), pair.headings)
    if outside := op_figures.outside_of_steps(pair.comparison, pair.candidate):
        yield Text(outside, quiet=True)
    yield from charts_of(pair, CHARTS)
    rows = without_idle(pair.diff())
    names = ["op_name", "op_type", "host_or_device", *sides_of(rows, "self_time_us"), "verdict"]
    names += [f"{metric_in(rows, 'occurrences')}_{role}" for role in SIDES]
    yield from table_of(pair, schema.OP_STATS, "Every op", rows, names)


def headline(pair: Pair) -> str:
    """The change of the self time, in Markdown."""
    rows, per = pair.ops(idle=False), pair.comparison.per
    if pair.is_single:
        return op_figures.sentence_alone(rows, per)
    return "Both runs are the same capture: no op differs." if pair.is_identical else op_figures.sentence(rows, per)


def figures(pair: Pair) -> list[KeyFigure]:
    """Self times, the number of ops, and of two runs how much of the time has a counterpart."""
    found = op_figures.figures(pair.ops(idle=False), pair.comparison.per)
    if pair.is_single:
        return [figure.alone() for figure in found]
    shares = pair.comparison.coverage()
    row = shares[shares["candidate"] == pair.candidate.id].iloc[0]
    return [*found, op_figures.matched_time(row["matched_share"], row["exact_share"])]


def _changes(pair: Pair) -> Any:
    changes = largest_changes(pair.diff(), n=ops.TOP)
    if pair.is_single or changes.empty:
        return None
    return changes_of_pair(pair, changes, "self_time_us", by="op_name", quantity=SELF_TIME)


def scopes_of(pair: Pair, place: str) -> Any:
    """The self time on host or device by name scope, as a figure; None if no op took any."""
    if not (pair.diff()["host_or_device"] == place).any():
        return None
    tree = pair.scopes()
    metric = metric_in(tree, "self_time_us")
    took_time = tree[[f"{metric}_{role}" for role in SIDES]].max(axis=1) > 0
    here = tree[took_time & (tree["node"].str.split("/", n=1).str[0] == place)]
    make = scopes.scope_icicle_alone if pair.is_single else scopes.scope_icicle
    return None if here.empty else make(here, metric, per=pair.comparison.per, place=place.lower())


CHARTS: dict[str, Make] = {
    "op_changes": _changes,
    "scopes_device": partial(scopes_of, place=DEVICE),
    "scopes_host": partial(scopes_of, place=HOST),
}
VIEW = View("op_stats", "Op stats", blocks, CHARTS)
