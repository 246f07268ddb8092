"""What is shown of a series: when its metric changed, by how much, which ops explain that, and its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.markdown import as_code, as_markdown
from tfcompare.tools.columns import Shown
from tfcompare.tools.runs.series_changes import FAMILY_RUNS, Series
from tfcompare.units import format_percent_change
from tfcompare.views.blocks import Block, Chart, Link, Links, Section, Table, Text
from tfcompare.views.options import option
from tfcompare.views.series import charts, words
from tfcompare.views.view import View

_OP = ("op_name", "op_type", "host_or_device")
_TIME, _RATIO, _RUNS = "Time per step (µs)", "After ÷ before", "Runs"
_LEVELS = (
    "Before and after a change, the geometric mean of the runs up to the neighbouring change, strays clipped. Of a "
    "run, its value, with the 95 % confidence interval from its own steps."
)
_INTERVAL = "end of the 95 % confidence interval"
_FIRST_RUN = Shown("label", "", "First run after", "The commit or name of the first run after the change.", "text")
_RECORDED = Shown("recorded", "", "Recorded (UTC)", "When the run was recorded.", "text")
_TIMES = (
    Shown("before_us", _TIME, "Before", "Mean of the runs before the change.", "number", "µs", is_figure=True),
    Shown("after_us", _TIME, "After", "Mean of the runs after the change.", "number", "µs", is_figure=True),
    Shown("delta_us", _TIME, "Change", "After − before.", "change", "µs", is_figure=True),
)
_DELTA = replace(_TIMES[-1], heading="", label="Change (µs/step)")
_RATIOS = (
    Shown("ratio", _RATIO, "Ratio", "Of the levels on both sides of the change.", "ratio", is_figure=True),
    Shown("ratio_low", _RATIO, "At least", f"Lower {_INTERVAL} of the ratio.", "ratio"),
    Shown("ratio_high", _RATIO, "At most", f"Upper {_INTERVAL} of the ratio.", "ratio"),
)
_COUNTS = (
    Shown("runs_before", _RUNS, "Before", "How many runs the level before the change rests on.", "number"),
    Shown("runs_after", _RUNS, "After", "How many runs the level after the change rests on.", "number"),
)
_P = Shown("p", "", "p", "How likely chance alone makes such a change.", "number")
_CHANGE_IDS = (
    Shown("run_before", "", "Last run before", "The id of the last run before the change.", "text"),
    Shown("run", "", "Id", "The id of the first run after the change.", "text"),
)
_RUN = Shown("name", "", "Run", "The run; a double click shows the whole name.", "text")
_RUN_TEXTS = (
    Shown("label", "", "Label", "The commit or name, or what orders the runs.", "text"),
    Shown("tags", "", "Tags", "From the run's metadata.", "text"),
    Shown("problem", "", "Problem", "Why there is no value.", "text"),
)
_RUN_FACTS = (
    Shown("device", "", "Device", "The device that the run computed on.", "text"),
    Shown("versions", "", "Versions", "Of the tables that the value comes from.", "text"),
    Shown("run", "", "Id", "The run's id.", "text"),
)


def _choices(series: Series, _options: Any) -> dict[str, str]:
    """The changes by the first run after them, the last one first."""
    changes = series.changes.iloc[::-1]
    rows = zip(changes["run"], changes["label"], changes["ratio"], strict=True)
    return {run: f"{label} ({format_percent_change(ratio)})" for run, label, ratio in rows}


@dataclass(frozen=True)
class Options:
    """Which change is explained, all of them where nothing can be clicked; whether changes of every op are sought."""

    change: str = option("", "Change to explain", _choices, is_list=True)
    every_op: bool = option(
        False,
        "Look for changes in every op",
        help=f"Of at most the last {FAMILY_RUNS} runs. All ops are tested together, so that of those claimed at most "
        "one in twenty is claimed wrongly.",
    )


def blocks(series: Series, options: Options) -> Iterator[Block]:
    """The last change in a sentence, the chart, all changes with what explains them, changes of every op, the runs."""
    yield Text(words.headline(series), "headline")
    if series.count:
        draw = partial(charts.over_runs, series.rows, series.changes, series.metric, words.title(series.metric))
        yield Chart("series", draw, draw_narrow=partial(draw, ticks=charts.NARROW_TICKS))
    yield from (Text(remark, "quiet") for remark in words.remarks(series))
    if len(series.changes):
        yield _changes(series)
        yield Section("What explains a change", partial(_explanations, series, options), True, ["change"])
    yield Section("Changes in every op", partial(_every_op, series, options), True, ["every_op"])
    yield _runs(series)


def _table(name: str, title: str, rows: pd.DataFrame, columns: Sequence[Shown], more: Sequence[Shown] = ()) -> Table:
    """A table of rows or, if these have them, of ops; `more` are columns that are shown on request."""
    names = [*(column for column in _OP if column in rows), *(one.name for one in columns)]
    every = [*names, *(one.name for one in more)] if more else []
    others = {one.name: one for one in (*columns, *more)}
    if "recorded" in rows:
        rows = rows.assign(recorded=rows["recorded"].dt.strftime("%Y-%m-%d %H:%M:%S"))
    return Table(schema.OP_STATS, title, rows, names, every=every, others=others, address=f"{name}_", file=name)


def _figures(series: Series, **labels: str) -> list[Shown]:
    """Columns with values of the metric, or ends of their intervals; `labels` by their names."""
    unit = series.metric.unit
    heading = f"{words.KINDS[series.metric.kind]} ({unit})"
    return [Shown(name, heading, label, _LEVELS, "number", unit, is_figure=True) for name, label in labels.items()]


def _changes(series: Series) -> Table:
    """Every change with the levels on its sides, the last one first."""
    columns = [_FIRST_RUN, _RECORDED, *_figures(series, before="Before", after="After"), *_RATIOS, *_COUNTS]
    rows = series.changes.iloc[::-1].reset_index(drop=True)
    return _table("series_changes", "Changes", rows, columns, [_P, *_CHANGE_IDS])


def _explanations(series: Series, options: Options) -> Iterator[Block]:
    """The ops that explain the chosen change, or each of them, the last one first."""
    for position, change in reversed(list(enumerate(series.changes.to_dict("records")))):
        if options.change not in ("", change["run"]):
            continue
        label, moves = change["label"], series.moves(position)
        if series.metric.is_in_index and (sentence := words.explanation(label, moves)):
            yield Text(sentence)
        to = (change["run_before"], change["run"])
        link = Link(f"Compare the runs before and after {as_markdown(label)}", "overview", runs=to)
        yield Links([link], f"Last run before: {as_code(to[0])}, first run after: {as_code(to[1])}.")
        if moves.empty:
            yield Text(
                "The runs next to this change cannot be opened, or have no steps, so no ops explain it.", "quiet"
            )
        else:
            yield Text(words.basis_of_moves(moves), "quiet")
            yield _table("series_ops", "Ops that explain the change", moves, _TIMES)


def _every_op(series: Series, options: Options) -> Iterator[Block]:
    """Changes in any op, tested together; on request, since it opens the runs."""
    if not options.every_op:
        return
    found, tested = series.op_changes()
    if found.empty:
        yield Text(f"None of {tested:,} ops changed.", "notice")
        return
    yield Text(f"{found['op_name'].nunique():,} of {tested:,} tested ops changed.", "quiet")
    yield _table("series_every_op", "Ops that changed", found, [_FIRST_RUN, _DELTA, *_RATIOS], [_P])


def _runs(series: Series) -> Table:
    """Every run, the last one first."""
    rows = series.rows.iloc[::-1].reset_index(drop=True)
    texts = [one for one in _RUN_TEXTS if rows[one.name].any()]
    figures = _figures(series, value="Value", low="At least", high="At most")
    return _table("series", _RUNS, rows, [_RUN, _RECORDED, *figures, *texts], _RUN_FACTS)


VIEW = View("series", "Series", blocks, options=Options)
