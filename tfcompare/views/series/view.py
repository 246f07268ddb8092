"""What is shown of a series: when its metric changed, by how much, which ops explain that, and its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.text import as_code, as_markdown
from tfcompare.units import format_percent_change
from tfcompare.views.blocks import Block, Chart, Link, Links, Section, Table, Text
from tfcompare.views.columns import Format, Shown
from tfcompare.views.options import option
from tfcompare.views.series import charts, words
from tfcompare.views.series.changes import FAMILY_RUNS, Series
from tfcompare.views.view import View

_OP = ("op_name", "op_type", "host_or_device")


def _texts(**labels: str) -> list[Shown]:
    """Columns with texts: `labels` by their names."""
    return [Shown(name, "", label, "", "text") for name, label in labels.items()]


def _figures(heading: str, unit: str, format_: Format = "number", **labels: str) -> list[Shown]:
    """Columns with figures below a heading: `labels` by their names."""
    return [Shown(name, heading, label, "", format_, unit, is_figure=True) for name, label in labels.items()]


_RATIOS = _figures("After ÷ before", "", "ratio", ratio="Ratio", ratio_low="95 % CI, low", ratio_high="95 % CI, high")
_P = _figures("", "", p="p")


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


def _changes(series: Series) -> Table:
    """Every change with the levels on its sides, the last one first."""
    columns = [
        *_texts(label="First run after", recorded="Recorded (UTC)"),
        *_figures(words.value_and_unit(series.metric), series.metric.unit, before="Before", after="After"),
        *_RATIOS,
        *_figures("Runs", "", runs_before="Before", runs_after="After"),
    ]
    more = [*_P, *_texts(run_before="Id of the last run before", run="Id of the first run after")]
    return _table("series_changes", "Changes", series.changes.iloc[::-1].reset_index(drop=True), columns, more)


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
            times = _figures("Time per step (µs)", "µs", before_us="Before", after_us="After")
            times += _figures("Time per step (µs)", "µs", "change", delta_us="Change")
            yield _table("series_ops", "Ops that explain the change", moves, times)


def _every_op(series: Series, options: Options) -> Iterator[Block]:
    """Changes in any op, tested together; on request, since it opens the runs."""
    if not options.every_op:
        return
    found, tested = series.op_changes()
    if found.empty:
        yield Text(f"None of {tested:,} ops changed.", "notice")
        return
    yield Text(f"{found['op_name'].nunique():,} of {tested:,} tested ops changed.", "quiet")
    delta = _figures("", "µs", "change", delta_us="Change (µs/step)")
    yield _table("series_every_op", "Ops that changed", found, [*_texts(label="First run after"), *delta, *_RATIOS], _P)


def _runs(series: Series) -> Table:
    """Every run, the last one first."""
    rows = series.rows.iloc[::-1].reset_index(drop=True)
    labels = {"tags": "Tags", "problem": "Problem"}
    if (rows["label"] != rows["name"]).any():
        labels = {"label": "Label", **labels}
    heading, unit = words.value_and_unit(series.metric), series.metric.unit
    columns = [
        *_texts(name="Run", recorded="Recorded (UTC)"),
        *_figures(heading, unit, value="Value", low="95 % CI, low", high="95 % CI, high"),
        *_texts(**{name: label for name, label in labels.items() if rows[name].any()}),
    ]
    return _table("series", "Runs", rows, columns, _texts(device="Device", versions="Versions of tables", run="Id"))


VIEW = View("series", "Series", blocks, options=Options)
