"""Throughput, time between steps and dispatch time of two runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tfcompare.compare.comparability import examples_per_step
from tfcompare.compare.pooling import mean_of
from tfcompare.compare.side import window_of
from tfcompare.compare.stats.estimates import FEWEST_STEPS, Times, estimates, levels
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.schema.arrays import Floats
from tfcompare.tables.step_windows import Window
from tfcompare.tables.straggler import steps_of_straggler
from tfcompare.tools.key_figures import KeyFigure, Unit, better_by

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side
    from tfcompare.run import Run

LEAST_CHANGE = 0.01
"""The share of the window below which a change of the time between steps is not mentioned, even if significant."""

BETWEEN = "Between steps, per step"
THROUGHPUT = "Throughput"
EXAMPLES = "Examples"
_FIGURES: dict[str, tuple[Unit, str]] = {
    BETWEEN: (
        "µs",
        "Mean time after each step that is in no step, up to the start of the next; no part of the step time.",
    ),
    THROUGHPUT: (
        "steps/s",
        "Steps by the time from the start of the first to that of the last, which includes the time between steps.",
    ),
    EXAMPLES: (
        "examples/s",
        "Throughput times the batch size of the input pipeline that is asked once a step.",
    ),
    "Host dispatch per step": (
        "µs",
        "Mean length of the step's marker on the host, where steps are timed on the device because the host does not "
        "wait for it.",
    ),
}


def steps_per_s(run: Run) -> tuple[float, float, float]:
    """(the throughput of a run in steps per second, its 95 % confidence interval).

    The interval is that of the mean time from one step's start to the next, from the run's own steps alone. NaN for
    what too few steps do not give.
    """
    window = window_of(run)
    if window is None:
        return math.nan, math.nan, math.nan
    periods = levels([estimates(Times.of(window.periods_us))], 0.0)
    shortest, mean, longest = (float(times[0]) for times in (periods.low, periods.location, periods.high))
    if len(window.periods_us) < FEWEST_STEPS or not 0 < shortest <= longest < math.inf:
        return window.steps_per_s, math.nan, math.nan
    return window.steps_per_s, window.steps_per_s * (mean / longest), window.steps_per_s * (mean / shortest)


def verdict_on_gaps(pair: Pair) -> Verdict:
    """The verdict on the time between steps, from the individual gaps."""
    return _verdict(pair, "gaps between steps", lambda window: window.gaps_us)


def verdict_on_loop(pair: Pair) -> Verdict:
    """The verdict on the time from step to step, from the individual times."""
    return _verdict(pair, "step periods", lambda window: window.periods_us)


def _verdict(pair: Pair, of: str, series: Callable[[Window], Floats]) -> Verdict:
    return pair.among.cached((pair.candidate.id, of), partial(_tested, pair, of, series))


def _tested(pair: Pair, of: str, series: Callable[[Window], Floats]) -> Verdict:
    ours, theirs = ([Times.of(series(found)) for found in side.windows] for side in pair.sides)
    if not ours or not theirs:
        return Verdict("untested", "a run has fewer than two steps")
    return pair.time_verdict((ours, theirs), of)


def between_steps_changed(pair: Pair) -> bool:
    """Whether the time between steps changed significantly, by a good part of the whole."""
    ours, theirs = (side.window for side in pair.sides)
    if ours is None or theirs is None or abs(theirs.share - ours.share) < LEAST_CHANGE:
        return False
    return verdict_on_gaps(pair).is_claim


def dispatch_us(run: Run, host: str | None = None) -> float:
    """The mean host time of a step marker if most steps of the run are timed on the device; else NaN."""
    steps = steps_of_straggler(run.table("steps", host=host))
    counted = steps[steps["included"].astype(bool)]
    on_device = counted["host_span_us"].notna() & (counted["duration_us"] == counted["device_span_us"])
    return float(counted["host_span_us"].mean()) if len(counted) and on_device.mean() > 0.5 else math.nan


def window_figures(pair: Pair) -> list[KeyFigure]:
    """Key figures of both runs over their windows: time between steps, throughput and, if known, dispatch time.

    With replicates, means over all captures; throughput is that of the mean time from step to step.
    """
    ours, theirs = map(_figures_of, pair.sides)
    figures = [
        KeyFigure(
            label, unit, ours[label], theirs[label],
            better_by(verdict_on_gaps(pair)) if label == BETWEEN else "neither", meaning,
        )
        for label, (unit, meaning) in _FIGURES.items()
    ]  # fmt: skip
    return [figure for figure in figures if not (math.isnan(figure.baseline) and math.isnan(figure.candidate))]


def _figures_of(side: Side) -> dict[str, float]:
    found = side.window
    per_s = math.nan if found is None else found.steps_per_s
    return {
        BETWEEN: math.nan if found is None else found.between_us,
        THROUGHPUT: per_s,
        EXAMPLES: per_s * examples_per_step(side.run, side.host) / side.iterations,
        "Host dispatch per step": mean_of(side.each(dispatch_us)) / side.iterations,
    }
