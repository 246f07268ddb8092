"""What charts of kernels show: their time and their launches, and how kernels and ops are labelled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd

from tfcompare.schema import SIDES
from tfcompare.units import format_value
from tfcompare.views import bars as ops
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import Quantity
from tfcompare.views.kernels.figures import COUNT, TIME

KERNEL_TIME = Quantity("kernel time", "µs", "less time", "more time")
LAUNCHES = Quantity("kernel launches", "", "fewer launches", "more launches")
HALF_A_LABEL = 23


def labelled(rows: pd.DataFrame, metric: str, by: str, readings: Mapping[str, str]) -> pd.DataFrame:
    """Changes of `metric` with `name` (in full), `label` (short) and `detail` (what else there is to know of each).

    `by` is `kernel_name`, `op_name`, `kernel_and_op` or `launch`. `readings` are the short names of kernels, and the
    text for no op.
    """
    named = _named(rows, by, readings)
    return named.assign(detail=(named["detail"] + " · " + _other(rows, metric)).str.removeprefix(" · "))


def _named(rows: pd.DataFrame, by: str, readings: Mapping[str, str]) -> pd.DataFrame:
    op = rows["op_name"].replace("", readings[""]) if "op_name" in rows else pd.Series("", rows.index, dtype="str")
    if by == "op_name":
        return rows.assign(name=op, label=style.shorten_distinct(op.tolist(), ops.MOVER_LENGTH), detail="")
    label, detail = rows["kernel_name"].map(readings), op
    if by == "launch":
        detail = op + " · block " + rows["block_dim"] + " · grid " + rows["grid_dim"]
    if by != "kernel_name":
        halves = (style.shorten_distinct(half.tolist(), HALF_A_LABEL) for half in (label, op))
        label = _numbered(pd.Series([f"{kernel} · {of}" for kernel, of in zip(*halves, strict=True)], op.index))
    return rows.assign(name=rows["kernel_name"], label=label, detail=detail)


def _numbered(labels: pd.Series) -> pd.Series:
    """The labels, with a number added to duplicates."""
    place = labels.groupby(labels).cumcount()
    return labels.where(place == 0, labels + " #" + (place + 1).astype("str"))


def _other(rows: pd.DataFrame, metric: str) -> pd.Series:
    """The launches of both sides as a text where `metric` is the time, and the other way round."""
    other, unit, what = (COUNT, "", " launches") if metric == TIME else (TIME, "µs", "")
    sides = (rows[f"{other}_{role}"].map(partial(format_value, unit=unit)) for role in SIDES)
    return next(sides) + " → " + next(sides) + what
