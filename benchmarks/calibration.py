"""False-claim rates and power of verdicts: `python -m benchmarks.calibration` writes them to docs/verdicts.md.

Step times are simulated: noise with a lag-1 correlation from step to step, and a factor that each capture has of its
own, as two captures of one program do; some programs also have slow steps. Strays are excluded as in a run. In trials
without a change every claim is a false one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks import kinds_of_steps
from benchmarks.kinds_of_steps import clock_states
from benchmarks.page import put
from tfcompare.compare.stats.estimates import (
    FEWEST_REPEATS,
    LEVEL,
    Changes,
    Estimates,
    Times,
    changes,
    changes_of_family,
    estimates,
)
from tfcompare.compare.stats.verdict import FASTER, SLOWER, claimed_together, words
from tfcompare.schema.arrays import Floats
from tfcompare.tables.slow_steps import stray_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "verdicts.md"

STEPS = (9, 20, 40)
CORRELATIONS = (0.0, 0.3, 0.6)
NOISES = (0.02, 0.05, 0.12)
SPREADS = (0.0, 0.01, 0.05)
CAPTURES = (1, 3, 5)
WIDE_SPREADS = ((0.10, 0.10), (0.10, 0.02), (0.19, 0.04))
"""(declared, true) spread between captures: what is declared for CPU steps of 10 ms and of 1 ms; quiet machines do
better."""
WIDE_EFFECTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
SLOWDOWNS = (0.1, 0.3, 1.0)
"""How much a busy machine slows a capture down on average; single captures are often not slowed down at all."""
OPS = 30
SLOW_SHARES = (0.03, 0.05, 0.1, 0.2)
SLOW_FACTORS = (2.0, 3.0, 10.0)


def simulated(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    correlation: float,
    noise: float,
    spread: float,
    *,
    change: float = 0.0,
    factors: int = 1,
) -> Floats:
    """Step times of shape (…, steps), 1 on average. `factors`: how many of the leading axes have a factor each of
    their own for the recording; what lies in the others shares it."""
    normal = rng.standard_normal(shape)
    deviations = normal.copy()
    for step in range(1, shape[-1]):
        deviations[..., step] = (
            correlation * deviations[..., step - 1] + np.sqrt(1 - correlation**2) * normal[..., step]
        )
    recordings = rng.standard_normal(shape[:factors] + (1,) * (len(shape) - factors))
    times: Floats = np.exp(noise * deviations + spread * recordings + np.log1p(change))
    return times


def claim_share(
    rng: np.random.Generator,
    trials: int,
    cell: tuple[int, float, float, float],
    *,
    change: float = 0.0,
    repeats: int = 1,
    declared: float | None = None,
    slowdown: float = 0.0,
) -> float:
    """The share of trials in which a candidate that takes `change` more is called faster or slower.

    `cell`: steps, correlation, noise, spread between captures. That spread is what is declared, unless `declared` is
    given; `slowdown`: how much the machine's load slows a capture down on average.
    """
    steps, correlation, noise, spread = cell
    found = compared(
        *(
            lambda by=by: (
                simulated(rng, (trials, steps), correlation, noise, spread, change=by) * slowed(rng, trials, slowdown)
            )
            for by in (0.0, change)
        ),
        captures=repeats,
        declared=spread if declared is None else declared,
    )
    return claimed(found, repeats)


def compared(
    baseline: Callable[[], Floats], candidate: Callable[[], Floats], *, captures: int, declared: float
) -> Changes:
    """The changes between captures of two programs; each function makes one capture of every trial."""
    return changes(*([captured(make()) for _ in range(captures)] for make in (baseline, candidate)), declared)


def claimed(found: Changes, captures: int) -> float:
    """The share of trials that is called faster or slower."""
    called = words(found, measured_spread=captures >= FEWEST_REPEATS)
    return float(np.isin(called, [FASTER, SLOWER]).mean())


def captured(times: Floats) -> Estimates:
    """The estimates of captures with these steps (trials, steps), each without its stray."""
    strays = [stray_of(row) for row in times]
    whole, rows = estimates(Times(times)), np.flatnonzero([stray is not None for stray in strays])
    if not rows.size:
        return whole
    is_stray = np.arange(times.shape[1]) == np.array([[strays[row]] for row in rows])
    some = times[rows]
    part = estimates(Times(some[~is_stray].reshape(len(rows), -1), some[is_stray]))
    merged = {name: getattr(whole, name).copy() for name in ("location", "variance", "products")}
    for name, values in merged.items():
        values[rows] = getattr(part, name)
    return replace(whole, **merged, with_stray=whole)


def slowed(rng: np.random.Generator, trials: int, slowdown: float) -> Floats:
    """The factor by which load slows down each capture: 1 or more, exponentially distributed."""
    factors: Floats = 1 + slowdown * rng.standard_exponential((trials, 1)) if slowdown else np.ones((trials, 1))
    return factors


def false_discovery_share(
    rng: np.random.Generator, trials: int, cell: tuple[int, float, float, float], *, common: bool
) -> float:
    """The share of pairs of recordings of one program in which any of its ops is claimed to have changed.

    `common`: all ops of a recording share its factor; else each op has one of its own.
    """
    steps, correlation, noise, spread = cell
    wrong = 0
    for _ in range(trials):
        both = [
            [estimates(Times(simulated(rng, (OPS, steps), correlation, noise, 0.0) * _factors(rng, spread, common)))]
            for _ in range(2)
        ]
        found = changes_of_family(*both, spread)
        called = np.isin(words(found, measured_spread=False), [FASTER, SLOWER]) & claimed_together(found.p)
        wrong += bool(called.any())
    return wrong / trials


def _factors(rng: np.random.Generator, spread: float, common: bool) -> Floats:
    factors: Floats = np.exp(spread * rng.standard_normal((1 if common else OPS, 1)))
    return factors


def cells() -> list[tuple[int, float, float, float]]:
    """Every combination of steps, correlation, noise and spread."""
    return list(product(STEPS, CORRELATIONS, NOISES, SPREADS))


def false_claims(rng: np.random.Generator, trials: int, few: int) -> str:
    """A row for each number of steps: the mean and the largest share of false claims over all other parameters, on the
    step time and on any of the ops of a program."""
    rows = []
    for steps in STEPS:
        every = [(steps, *cell) for cell in product(CORRELATIONS, NOISES, SPREADS)]
        of_steps = [claim_share(rng, trials, cell) for cell in every]
        of_ops = [[false_discovery_share(rng, few, cell, common=common) for cell in every] for common in (True, False)]
        figures = [f"{100 * figure:.1f}" for shares in (of_steps, *of_ops) for figure in (np.mean(shares), max(shares))]
        rows.append([str(steps), *figures])
    of_what = ("step time", f"any of {OPS} ops, one factor for all", "any op, a factor for each")
    return table(["steps", *(f"{what}: {which}" for what in of_what for which in ("mean", "largest"))], rows)


def power_by_captures(rng: np.random.Generator, trials: int) -> str:
    """The share of trials that is claimed with wide spreads, by the number of captures a side and the change."""
    rows = [
        [
            _percent(declared),
            _percent(true),
            str(n),
            *(
                f"{100 * claim_share(rng, trials, (20, 0.3, 0.05, true), change=e, repeats=n, declared=declared):.0f}"
                for e in WIDE_EFFECTS
            ),
        ]
        for (declared, true), n in product(WIDE_SPREADS, CAPTURES)
    ]
    return table(["assumed", "true spread", "captures", *(f"+{_percent(e)}" for e in WIDE_EFFECTS)], rows)


def false_claims_under_load(rng: np.random.Generator, trials: int) -> str:
    """The share of false claims on a busy machine, by how much it slows captures down and their number a side."""
    captures = (1, 2, 3, 4, 5)
    cell = (20, 0.3, 0.05, 0.02)
    rows = [
        [
            _percent(slowdown),
            *(
                f"{100 * claim_share(rng, trials, cell, repeats=n, declared=0.1, slowdown=slowdown):.1f}"
                for n in captures
            ),
        ]
        for slowdown in SLOWDOWNS
    ]
    return table(["slowed down by", *(f"{n} a side" for n in captures)], rows)


def false_claims_with_slow_steps(rng: np.random.Generator, trials: int) -> str:
    """The share of false claims where some steps, at random, take several times as long: the largest over how many
    times."""
    rows = []
    for steps, captures in product((20, 40), CAPTURES):

        def share_of(share: float, factor: float, steps: int = steps, captures: int = captures) -> float:
            def make() -> Floats:
                return with_slow_steps(rng, _steady(rng, trials, steps), share, factor)

            return claimed(compared(make, make, captures=captures, declared=0.0), captures)

        largest = [max(share_of(share, factor) for factor in SLOW_FACTORS) for share in SLOW_SHARES]
        rows.append([str(steps), str(captures), *(f"{100 * share:.1f}" for share in largest)])
    return table(["steps", "captures a side", *map(_percent, SLOW_SHARES)], rows)


def with_slow_steps(rng: np.random.Generator, times: Floats, share: float, factor: float) -> Floats:
    """The steps, of which a random share takes `factor` times as long."""
    slow: Floats = times * np.where(rng.random(times.shape) < share, factor, 1.0)
    return slow


def _steady(rng: np.random.Generator, trials: int, steps: int, spread: float = 0.0) -> Floats:
    return simulated(rng, (trials, steps), 0.3, 0.03, spread)


def _periodic(rng: np.random.Generator, times: Floats, every: int, slow: float, fast: float) -> Floats:
    phase = rng.integers(0, every, (len(times), 1))
    is_slow = (np.arange(times.shape[1]) + phase) % every == 0
    found: Floats = times * np.where(is_slow, slow, fast)
    return found


def _two_slow(rng: np.random.Generator, times: Floats, slow: float, fast: float) -> Floats:
    ranks = rng.random(times.shape).argsort(axis=1)
    found: Floats = times * np.where(ranks < 2, slow, fast)
    return found


def _drifting(times: Floats, start: float, end: float) -> Floats:
    found: Floats = times * np.linspace(start, end, times.shape[1])
    return found


PROGRAMS: dict[str, Callable[[np.random.Generator, Floats], Floats]] = {
    "even, 4 ms": lambda _rng, times: 4 * times,
    "even, 6 ms": lambda _rng, times: 6 * times,
    "each 2nd 7 ms, the others 3 ms": lambda rng, times: _periodic(rng, times, 2, 7, 3),
    "each 5th 42 ms, the others 2 ms": lambda rng, times: _periodic(rng, times, 5, 42, 2),
    "each 10th 30 ms, the others 3.6 ms": lambda rng, times: _periodic(rng, times, 10, 30, 3.6),
    "two of 60 ms, the others 4 ms": lambda rng, times: _two_slow(rng, times, 60, 4),
    "5 % at random 42 ms, the others 3 ms": lambda rng, times: with_slow_steps(rng, 3 * times, 0.05, 14),
    "drift from 4 to 6 ms": lambda _rng, times: _drifting(times, 4, 6),
}
"""Programs that are compared with even steps of 4 ms."""


def outcomes_of_programs(rng: np.random.Generator, trials: int) -> str:
    """What becomes of each of `PROGRAMS`, 40 steps a capture, and how often the interval has the true mean."""
    rows = []
    for name, program in PROGRAMS.items():
        many = program(rng, _steady(rng, 4_000, 40)).mean() / 4
        row = [name, f"{many:.2f}×"]
        for captures, spread in ((1, 0.1), (3, 0.03)):
            found = compared(
                lambda spread=spread: 4 * _steady(rng, trials, 40, spread),
                lambda program=program, spread=spread: program(rng, _steady(rng, trials, 40, spread)),
                captures=captures,
                declared=0.1,
            )
            word = words(found, measured_spread=captures >= FEWEST_REPEATS)
            shares = [(word == one).mean() for one in (SLOWER, FASTER)]
            shares.append(((found.low <= many) & (many <= found.high)).mean())
            row += [f"{100 * share:.0f}" for share in shares]
        rows.append(row)
    head = [
        f"{what}{a_side}" for a_side in ("", ", 3 a side") for what in ("slower", "faster", "interval has the truth")
    ]
    return table(["candidate", "true ratio", *head], rows)


def verdicts_on_kinds(rng: np.random.Generator, trials: int) -> str:
    """A row for each kind of step: false claims, coverage and power, by the number of captures a side."""
    each = ["false claims", "interval has the truth", *(f"+{_percent(change)}" for change in kinds_of_steps.CHANGES)]
    return table(["step", *_by_captures(each)], kinds_of_steps.kinds_of_steps(rng, trials))


def verdicts_on_families(rng: np.random.Generator, trials: int) -> str:
    """A row for each family of ops: false claims and power, by the number of captures a side."""
    each = ["any false claim", *(f"+{_percent(change)}" for change in kinds_of_steps.CHANGES)]
    return table(["ops", *_by_captures(each)], kinds_of_steps.families_of_ops(rng, trials))


def _by_captures(each: Sequence[str]) -> list[str]:
    return [f"{one}, {captures} a side" for captures in kinds_of_steps.CAPTURES for one in each]


def false_claims_in_clock_states(rng: np.random.Generator, trials: int) -> str:
    """A row for each number of steps: false claims, and the pairs that nothing can tell, by how long a state lasts."""
    rows = []
    for steps in (11, 15, 20):
        shares = [clock_states(rng, trials, steps, dwell) for dwell in kinds_of_steps.DWELLS]
        rows.append([str(steps), *(f"{100 * share:.1f}" for pair in shares for share in pair)])
    each = ("claimed", "of one state each")
    return table(["steps", *(f"{what}, {dwell} steps" for dwell in kinds_of_steps.DWELLS for what in each)], rows)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---:"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def report(trials: int, seed: int) -> str:
    """All tables, as Markdown."""
    rng = np.random.default_rng(seed)
    few = max(trials // 10, 10)
    return f"""
{trials:,} trials a cell ({few:,} where several captures, several ops or whole verdicts are made), seed {seed}; shares
in percent, intervals at {LEVEL:.0%}.

**Kinds of steps**, {kinds_of_steps.STEPS} steps a capture: what is claimed where nothing changed, and where all takes
so much more.

{verdicts_on_kinds(rng, few)}
**Ops**: pairs in which one that did not change is claimed to have changed, and how often the first is found to have.

{verdicts_on_families(rng, max(few // 4, 10))}
**Clock states**: the device runs at one of two speeds {_percent(kinds_of_steps.APART)} apart and stays there for so
many steps on average. False claims on the device time; in pairs *of one state each*, either capture stays in one state
and the other in the other, which the steps of neither can show.

{false_claims_in_clock_states(rng, few)}
**False claims** with normal noise, over {len(CORRELATIONS) * len(NOISES) * len(SPREADS)} combinations of correlation,
noise and spread:

{false_claims(rng, trials, few)}
**By number of captures a side**, 20 steps each (correlation 0.3, noise 5 %), for the spreads that are assumed for CPU
steps of 10 ms (10 %) and 1 ms (19 %), on machines as noisy as assumed and on quieter ones:

{power_by_captures(rng, few)}
**Slow steps, false claims**: this share of the steps of both sides, at random, takes {SLOW_FACTORS[0]:g} to
{SLOW_FACTORS[-1]:g} times as long (the worst of these); noise 3 %, correlation 0.3, no spread between captures.

{false_claims_with_slow_steps(rng, few)}
**Slow steps, outcomes** against even steps of 4 ms, 40 steps a capture; the spread between captures is 10 % and assumed
for single captures, 3 % and measured for three. A stray is excluded from the mean, so where a capture has one slow
step, the interval is about the others:

{outcomes_of_programs(rng, few)}
**False claims on a busy machine** of unknown load, which slows each capture down by a random (exponential) amount, by
its mean:

{false_claims_under_load(rng, trials)}"""


def main(argv: Sequence[str] | None = None) -> None:
    """Simulate and write the figures into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000, help="simulated pairs a cell (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    put(PAGE, "calibration", report(args.trials, args.seed))


if __name__ == "__main__":
    main()
