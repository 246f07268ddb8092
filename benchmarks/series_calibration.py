"""False alarms and delay of change points: `python -m benchmarks.series_calibration` writes them to docs/verdicts.md.

The value of each run is simulated: noise between runs of several kinds, and a step in some. A series is looked at once
when it is complete, or again after each new run, as somebody does who looks every morning.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.calibration import PAGE, table
from benchmarks.page import put
from tfcompare.compare.stats.change_points import (
    ALARM_LEVEL,
    FEWEST_RUNS,
    ChangePoint,
    change_points,
    change_points_of_family,
)
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import declared_spread
from tfcompare.schema.arrays import Floats

CHECKED_AGAINST, CHECKED_STEPS, STEP_NOISE = 10, 20, 0.03
"""A new run is compared with so many; the steps of each run and their noise."""
MARGINS = (0.0, 0.05, 0.1)
"""Of the conditions `step_time>+0%` and so on."""


RUNS, NOISE = 100, 0.05
BEFORE = (10, 20, 50)
STEPS = (0.05, 0.1, 0.2)
NEAR = 3
"""A change point this many runs from the true step has found it."""
OPS, OPS_CHANGED, FAMILY_RUNS = 500, 25, 60
KINDS = {
    "independent, normal": (0.0, "normal"),
    "independent, heavy tails (Student's t, 3 degrees of freedom)": (0.0, "heavy"),
    "one run in fifty takes twice as long": (0.0, "strays"),
    "one run in twenty takes twice as long": (0.0, "many strays"),
    "load slows each run down by 30 % on average (exponential)": (0.0, "load"),
    "neighbouring runs are alike (correlation 0.3)": (0.3, "normal"),
    "neighbouring runs are alike (correlation 0.6)": (0.6, "normal"),
}
"""(correlation, kind of noise) by the words for it."""


def simulated(rng: np.random.Generator, runs: int, correlation: float = 0.0, kind: str = "normal") -> Floats:
    """The values of runs of one program, about 1."""
    if kind == "load":
        slowed: Floats = np.exp(0.02 * rng.standard_normal(runs)) * (1 + 0.3 * rng.standard_exponential(runs))
        return slowed
    normal = rng.standard_t(3, runs) / np.sqrt(3) if kind == "heavy" else rng.standard_normal(runs)
    for run in range(1, runs):
        normal[run] = correlation * normal[run - 1] + np.sqrt(1 - correlation**2) * normal[run]
    values: Floats = np.exp(NOISE * normal)
    if "strays" in kind:
        values = np.where(rng.random(runs) < (0.02 if kind == "strays" else 0.05), 2 * values, values)
    return values


def false_alarms(
    rng: np.random.Generator, trials: int, looks: int, correlation: float, kind: str
) -> tuple[float, float]:
    """The share of series without a change in which one is claimed: (looked at once, in any of all looks)."""
    once = np.mean([bool(change_points(simulated(rng, RUNS, correlation, kind))) for _ in range(trials)])
    ever = []
    for _ in range(looks):
        values = simulated(rng, RUNS, correlation, kind)
        ever.append(any(change_points(values[:seen]) for seen in range(FEWEST_RUNS, RUNS + 1)))
    return float(once), float(np.mean(ever))


def delays(rng: np.random.Generator, trials: int, before: int, step: float) -> tuple[list[int], int]:
    """(after how many runs with the step it was found, if within 50; in how many its interval had the true size)."""
    found, covered = [], 0
    for _ in range(trials):
        values = simulated(rng, before + 50)
        values[before:] *= 1 + step
        for seen in range(before + 1, before + 51):
            if (point := _near(change_points(values[:seen]), before)) is not None:
                found.append(seen - before)
                covered += point.low <= 1 + step <= point.high
                break
    return found, covered


def _near(points: Sequence[ChangePoint], at: int) -> ChangePoint | None:
    return next((point for point in points if abs(point.at - at) <= NEAR), None)


def checks(rng: np.random.Generator, series: int, correlation: float, kind: str) -> Floats:
    """The share of runs that fail `step_time>+MARGIN` against the ten runs before them, although none differs.

    That is what `check --against-series` does with each new run. Shape (margins,).
    """
    lows = []
    for _ in range(series):
        values = simulated(rng, RUNS, correlation, kind)
        runs = [Times.of(value * np.exp(STEP_NOISE * rng.standard_normal(CHECKED_STEPS))) for value in values]
        for i in range(CHECKED_AGAINST, RUNS):
            before, test = runs[i - CHECKED_AGAINST : i], ChangeTest(declared_spread("CPU"))
            verdict = replace(test, spread=test.measured_spread(before) or test.spread)(before, [runs[i]])
            lows.append(verdict.low)
    shares: Floats = (np.array(lows)[:, np.newaxis] > 1 + np.array(MARGINS)).mean(axis=0)
    return shares


def family(rng: np.random.Generator, changed: int, step: float) -> tuple[int, int]:
    """(how many of the changed ops, and how many of the others, are claimed to have changed)."""
    rows = np.array([simulated(rng, FAMILY_RUNS) for _ in range(OPS)])
    rows[:changed, FAMILY_RUNS // 2 :] *= 1 + step
    claimed = np.array([bool(points) for points in change_points_of_family(rows)])
    return int(claimed[:changed].sum()), int(claimed[changed:].sum())


def report(trials: int, seed: int) -> str:
    """All tables, as Markdown."""
    rng = np.random.default_rng(seed)
    looks = max(trials // 4, 10)
    alarms = []
    for words, (correlation, kind) in KINDS.items():
        once, ever = false_alarms(rng, trials, looks, correlation, kind)
        alarms.append([words, f"{100 * once:.1f} %", f"{100 * ever:.1f} %"])
    late = []
    for before in BEFORE:
        for step in STEPS:
            found, covered = delays(rng, looks, before, step)
            every = [*found, *[np.inf] * (looks - len(found))]
            median, ninetieth = (_delay(float(np.quantile(every, q, method="higher"))) for q in (0.5, 0.9))
            late.append(
                [
                    *(str(before), f"+{100 * step:.0f} %", median, ninetieth, f"{100 * len(found) / looks:.0f} %"),
                    f"{100 * covered / max(len(found), 1):.0f} %",
                ]
            )
    checked = []
    for words, (correlation, kind) in KINDS.items():
        shares = checks(rng, max(looks // 2, 2), correlation, kind)
        checked.append([words, *(f"{100 * share:.1f} %" for share in shares)])
    together = []
    for changed, step in ((0, 0.0), (OPS_CHANGED, 0.05), (OPS_CHANGED, 0.1), (OPS_CHANGED, 0.2)):
        claims = [family(rng, changed, step) for _ in range(looks)]
        right, wrong = (np.array([one[i] for one in claims]) for i in (0, 1))
        shares = wrong / np.maximum(right + wrong, 1)
        of_right = f"{100 * right.mean() / changed:.0f} %" if changed else "–"
        of_ops = f"{changed} by +{100 * step:.0f} %" if changed else "none"
        together.append([of_ops, of_right, f"{100 * (wrong > 0).mean():.0f} %", f"{100 * shares.mean():.1f} %"])
    of_alarms = ["noise", "looked at once", "at any of 95 looks, one after each run"]
    of_checked = ["noise", *(f"`step_time>+{100 * margin:g}%`" for margin in MARGINS)]
    of_late = ["runs before", "step", "median", "90 % of the time", "found within 50 runs", "true size in interval"]
    of_together = ["ops that changed", "of these found", "any false claim", "false among claimed, mean"]
    return f"""
{trials:,} series ({looks:,} for repeated looks, delays and ops), seed {seed}; {100 * NOISE:.0f} % of noise
between runs, claimed from p < {ALARM_LEVEL:g}.

**False alarms** in series of {RUNS} runs of one program:

{table(of_alarms, alarms)}
**Delay** until a step is found, looking after each run, by how many runs there were before. Intervals are those of the
moment when it was found:

{table(of_late, late)}
**Runs that `check --against-series` fails wrongly**, each compared with the {CHECKED_AGAINST} before it;
{CHECKED_STEPS} steps per run with {100 * STEP_NOISE:.0f} % of noise:

{table(of_checked, checked)}
**{OPS} ops at once**, series of {FAMILY_RUNS} runs, looked at once:

{table(of_together, together)}"""


def _delay(runs: float) -> str:
    return "later" if np.isinf(runs) else f"{runs:.0f} runs"


def main(argv: Sequence[str] | None = None) -> None:
    """Simulate and write the figures into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.series_calibration", description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000, help="simulated series a row (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    put(PAGE, "series_calibration", report(args.trials, args.seed))


if __name__ == "__main__":
    main()
