"""The sentences on a series: its changes, what explains them, and what to know of its values. They are Markdown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tfcompare.compare.attribution import NEGLIGIBLE_US
from tfcompare.compare.stats.change_points import FEWEST_RUNS
from tfcompare.text import as_code, as_markdown, some_of
from tfcompare.units import format_delta, format_value
from tfcompare.views.series.changes import BETWEEN, NEAREST, Series
from tfcompare.views.series.figures import Metric

KINDS = {
    "step_time": "Step time",
    "throughput": "Throughput",
    "op:": "Op",
    "kernel:": "Kernel",
    "part:": "Part of the step",
    "peak_memory": "Peak memory",
}
"""What the kinds of metrics are called."""
_NAMED, _NAMED_PLACES = 2, 3


def title(metric: Metric) -> str:
    """The metric as the title of a chart, as plain text."""
    return f"{KINDS[metric.kind]} {metric.pattern}".rstrip()


def value_and_unit(metric: Metric) -> str:
    """The heading of columns with values of the metric."""
    return f"{KINDS[metric.kind]} ({metric.unit})"


def headline(series: Series) -> str:
    """The last change; or that there is none."""
    if series.count < FEWEST_RUNS:
        text = f"{series.count} runs with a value: at least {FEWEST_RUNS} are needed to find changes."
        text += f" Capture {FEWEST_RUNS - series.count} more of this program"
        return f"{text}, or compare two of them on the Overview." if series.count > 1 else f"{text}."
    name = _name(series.metric)
    if series.changes.empty:
        return f"No change of {name[0].lower()}{name[1:]} in the last {series.count:,} runs."
    last = series.changes.iloc[-1]
    verb = "rose" if last["ratio"] > 1 else "fell"
    size, low, high = (100 * abs(last[column] - 1) for column in ("ratio", "ratio_low", "ratio_high"))
    interval = f"{min(low, high):.1f}–{max(low, high):.1f} %"
    if (last["ratio_low"] - 1) * (last["ratio_high"] - 1) < 0:
        interval = f"{100 * (last['ratio_low'] - 1):+.1f} to {100 * (last['ratio_high'] - 1):+.1f} %"
    before, after = (format_value(last[column], series.metric.unit) for column in ("before", "after"))
    where = f"at {as_code(last['label'])} on {last['recorded']:%Y-%m-%d}"
    return f"{name} {verb} by {size:.1f} % ({interval}) {where}, from {before} to {after}."


def _name(metric: Metric) -> str:
    """The metric, to begin a sentence."""
    if not metric.pattern:
        return KINDS[metric.kind]
    return f"{metric.kind.removesuffix(':').capitalize()} time of {as_code(metric.pattern)}"


def explanation(label: str, moves: pd.DataFrame) -> str:
    """`The change at c0ffee12 is explained by MatMul +1.1 ms and Relu +0.2 ms of +1.4 ms per step.`; empty if no op
    moved.

    The largest opposite change is named as well if it is as large as the sum of all changes.
    """
    total = float(moves["delta_us"].sum())
    same_way = moves[np.sign(moves["delta_us"]) == np.sign(total)].head(_NAMED)
    if abs(total) < NEGLIGIBLE_US or same_way.empty:
        return ""
    opposite = moves[moves["delta_us"] * -np.sign(total) >= abs(total)].head(1)
    named, against = (
        " and ".join(f"{as_code(row.op_name)} {format_delta(row.delta_us, 'µs')}" for row in some.itertuples())
        for some in (same_way, opposite)
    )
    of_all = f"against {against}, together with the rest" if against else "of"
    return f"The change at {as_code(label)} is explained by {named} {of_all} {format_delta(total, 'µs')} per step."


def basis_of_moves(moves: pd.DataFrame) -> str:
    """What the times of the ops that explain a change are, and what they add up to."""
    gaps = " and the time between steps" if BETWEEN in set(moves["op_name"]) else ""
    return (
        f"Mean wall time per step of at most {NEAREST} runs on either side of the change. "
        f"The rows add up to the change of the mean step{gaps}, {format_delta(moves['delta_us'].sum(), 'µs')}."
    )


def remarks(series: Series) -> Iterator[str]:
    """Which runs are left out or have no value, and where the tables come from different versions of tfcompare."""
    rows = series.rows
    if series.left_out:
        yield f"Only runs on {as_markdown(rows['device'].max())}: {series.left_out:,} on other devices are left out."
    for problem, names in rows[rows["value"].isna()].groupby("problem")["name"]:
        yield f"Without a value: {as_markdown(some_of(names, _NAMED_PLACES))}: {as_markdown(problem)}."
    yield from filter(None, [version_remark(rows)])


def version_remark(rows: pd.DataFrame) -> str:
    """Where the versions of the tables changed that the values of a series come from, as Markdown; empty if nowhere."""
    known = rows[rows["value"].notna()]
    made_by = [dict(each.split(" ") for each in text.split(", ")) for text in known["versions"]]
    pairs = zip(known["label"].iloc[1:], made_by, made_by[1:], strict=False)
    places = [(label, [name for name in now if now[name] != before[name]]) for label, before, now in pairs]
    places = [(label, names) for label, names in places if names]
    if not places:
        return ""
    last = [as_code(label) for label, _ in places[-_NAMED_PLACES:]]
    named = some_of(last, _NAMED_PLACES, len(places))
    tables = ", ".join(as_code(name) for name in dict.fromkeys(name for _, names in places for name in names))
    return (
        f"Different versions of tfcompare made {tables}, which may itself change values: the version changed at "
        f"{named}. `tfcompare ingest` again, where the profiles still exist, makes them alike."
    )
