"""Key figures: a number of both runs with its unit, and the texts of a card."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.stats.verdict import SAME, Verdict, verdict_on_size
from tfcompare.schema import DEVICE, HOST, SIDES
from tfcompare.units import (
    MINUS,
    MISSING,
    format_delta,
    format_percent,
    format_percent_change,
    format_ratio,
    format_value,
    ratio_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

Unit = Literal["ms", "µs", "share", "bytes", "bytes/s", "FLOP/s", "steps/s", "examples/s", ""]
Better = Literal["lower", "neither"]
SMALLEST_POINTS = 5e-5
"""A smaller change of a share would be 0.00 percentage points."""
_UNCHANGED = 0.01
"""Of a share that is itself tiny, a smaller part is as good as none."""
_TINY_SHARE = 1e-3
"""Two decimals of a smaller one, in percent, are less than two digits."""
MOST_FIRST = 5
"""A row of a window of 1,440 pixels has room for as many cards, or for one less and what leads to the others."""


@dataclass(frozen=True)
class KeyFigure:
    """One figure of both sides. A `share` is a fraction of 1.

    A side without the figure is NaN; so is the `baseline` of a figure that describes both runs together. Shares are not
    judged, because the share of an unchanged part grows when the rest gets faster. One that does not `matter` for these
    runs is not among the first.
    """

    label: str
    unit: Unit
    baseline: float
    candidate: float
    better: Better
    meaning: str
    matters: bool = True

    @property
    def has_baseline(self) -> bool:
        """Whether both sides have the figure."""
        return not math.isnan(self.baseline)

    def alone(self) -> KeyFigure:
        """The figure of a run that is shown alone, without a baseline."""
        return replace(self, baseline=math.nan)

    @property
    def judgement(self) -> Literal["better", "worse", "same", "neither"]:
        """How the candidate compares with the baseline; `neither` if neither direction is better."""
        if self.better == "neither" or math.isnan(self.baseline) or math.isnan(self.candidate):
            return "neither"
        is_size = self.unit == "bytes" and verdict_on_size(self.baseline, self.candidate) == SAME
        if is_size or self.candidate == self.baseline:
            return "same"
        return "better" if self.candidate < self.baseline else "worse"


def first_of(figures: Sequence[KeyFigure]) -> list[KeyFigure]:
    """The figures that are seen first: those that matter, in their order, as many as a row has room for."""
    found = [one for one in figures if one.matters]
    return found if len(found) == len(figures) <= MOST_FIRST else found[: MOST_FIRST - 1]


def in_pairs(figures: Sequence[KeyFigure]) -> Sequence[KeyFigure]:
    """As many of the figures as fill rows of two; a single one stays."""
    return figures[: max(len(figures) // 2 * 2, 1)]


def better_by(verdict: Verdict | None) -> Better:
    """The direction that counts as better, if the verdict claims a change; else `neither`."""
    return "lower" if verdict is not None and verdict.is_claim else "neither"


def op_times(diff: pd.DataFrame, per: Callable[[str], str]) -> list[KeyFigure]:
    """The self time of all ops of one candidate's diff on each of device and host that ran any; `per` says what the
    sums of each are per."""
    ops, figures = without_idle(diff), []
    for side in (DEVICE, HOST):
        here = ops[ops["host_or_device"] == side]
        if len(here):
            ours, theirs = (float(here[f"self_time_us_{role}"].astype("float64").sum(min_count=1)) for role in SIDES)
            meaning = (
                f"Self time of all {side.lower()} ops added up over all hosts, threads and streams, per {per(side)}"
            )
            label = f"{side} op time per {per(side)}"
            figures.append(KeyFigure(label, "µs", ours, theirs, "neither", f"{meaning}; without IDLE."))
    return figures


def card_texts(figure: KeyFigure) -> tuple[str, str, str]:
    """The candidate's value, the change, and `from` the baseline's value; the last two are empty without a baseline."""
    return value_text(figure, figure.candidate), change_text(figure), before_text(figure) if figure.has_baseline else ""


def row_texts(figure: KeyFigure) -> list[str]:
    """The baseline's value, the candidate's, the change and the ratio, for a row of a table."""
    before, after = figure.baseline, figure.candidate
    change = after - before
    if figure.unit == "share":
        changed = MISSING if math.isnan(change) else _points_text(before, after)
    else:
        changed = format_delta(change, figure.unit)
    return [value_text(figure, before), value_text(figure, after), changed, format_ratio(ratio_of(before, after))]


def change_text(figure: KeyFigure) -> str:
    """The change: in percent, or as a ratio if large; in percentage points for shares; empty without one."""
    if not figure.has_baseline or math.isnan(figure.candidate):
        return ""
    if figure.candidate == figure.baseline:
        return "unchanged"
    if figure.unit == "share":
        return _points_text(figure.baseline, figure.candidate)
    if math.isnan(figure.baseline) or figure.baseline <= 0:
        return ""
    return format_percent_change(figure.candidate / figure.baseline)


def points_text(change: float) -> str:
    """`+1.20 pp`: a change of a share, in percentage points, with at most two decimals; a tiny one is none."""
    if abs(change) < SMALLEST_POINTS:
        return "unchanged"
    return f"{'+' if change > 0 else MINUS}{_two_decimals(abs(change))} pp"


def _points_text(before: float, after: float) -> str:
    """As `points_text`, but a change of a share that is itself tiny has one digit."""
    change = after - before
    if abs(change) >= SMALLEST_POINTS or abs(change) < _UNCHANGED * before:
        return points_text(change)
    return f"{'+' if change > 0 else MINUS}{abs(change) * 100:.1g} pp"


def before_text(figure: KeyFigure) -> str:
    """`from 213`: the baseline's value, without its unit if it is that of the candidate's.

    Shares of 0.1 % and more have at most two decimals: a narrow card has no room for more beside the change.
    """
    if figure.unit == "share" and 0 < figure.baseline < SMALLEST_POINTS:
        return "from < 0.01"
    if figure.unit == "share" and _TINY_SHARE <= figure.baseline < 0.01:
        return f"from {_two_decimals(figure.baseline)}"
    before, unit = value_text(figure, figure.baseline), value_text(figure, figure.candidate).rpartition(" ")[2]
    return f"from {before.removesuffix(f' {unit}')}"


def _two_decimals(share: float) -> str:
    """A share in percent without the sign, with three digits and at most two decimals."""
    return f"{share * 100:.2f}" if share < 0.01 else format_percent(share).removesuffix(" %")


def value_text(figure: KeyFigure, value: float) -> str:
    """A value of the figure with its unit."""
    return format_value(value, figure.unit)
