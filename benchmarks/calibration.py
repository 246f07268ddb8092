"""False-claim rates and power of verdicts: `python -m benchmarks.calibration` writes them to docs/verdicts.md.

Step times are simulated: noise with a lag-1 correlation from step to step, and a factor that each capture has of its
own, as two captures of one program do. In trials without a change every claim is a false one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tfcompare.compare.stats.estimates import (
    FEWEST_REPEATS,
    LEVEL,
    Sides,
    changes,
    changes_of_family,
    plain_sides,
    robust_sides,
)
from tfcompare.compare.stats.verdict import FASTER, SLOWER, claimed_together, words

Floats = npt.NDArray[np.float64]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "verdicts.md"
_BEGIN, _END = "<!-- begin of what benchmarks/calibration.py writes -->\n", "<!-- end -->\n"

STEPS = (9, 20, 40)
CORRELATIONS = (0.0, 0.3, 0.6)
NOISES = (0.02, 0.05, 0.12)
SPREADS = (0.0, 0.01, 0.05)
EFFECTS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3)
REPEATS = 5
CAPTURES = (1, 2, 3, 5)
WIDE_SPREADS = ((0.10, 0.10), (0.10, 0.02), (0.19, 0.19), (0.19, 0.04))
"""(declared, true) spread between captures: what is declared for CPU steps of 10 ms and of 1 ms; quiet machines do
better."""
WIDE_EFFECTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
SLOWDOWNS = (0.1, 0.3, 1.0)
"""How much a busy machine slows a capture down on average; single captures are often not slowed down at all."""
OPS = 30


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
    sides: list[list[Sides]] = [
        [
            robust_sides(
                simulated(rng, (trials, steps), correlation, noise, spread, change=by) * slowed(rng, trials, slowdown)
            )
            for _ in range(repeats)
        ]
        for by in (0.0, change)
    ]
    found = changes(*sides, spread if declared is None else declared)
    called = words(found, measured_spread=repeats >= FEWEST_REPEATS)
    return float(np.isin(called, [FASTER, SLOWER]).mean())


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
        sides = [
            [plain_sides(simulated(rng, (OPS, steps), correlation, noise, 0.0) * _factors(rng, spread, common))]
            for _ in range(2)
        ]
        found = changes_of_family(*sides, spread)
        called = np.isin(words(found, measured_spread=False), [FASTER, SLOWER]) & claimed_together(found.p)
        wrong += bool(called.any())
    return wrong / trials


def _factors(rng: np.random.Generator, spread: float, common: bool) -> Floats:
    factors: Floats = np.exp(spread * rng.standard_normal((1 if common else OPS, 1)))
    return factors


def cells() -> list[tuple[int, float, float, float]]:
    """Every combination of steps, correlation, noise and spread."""
    return list(product(STEPS, CORRELATIONS, NOISES, SPREADS))


def false_claims(rng: np.random.Generator, trials: int) -> str:
    """A row for each number of steps and correlation, a column for each noise and spread."""
    return _grid(lambda cell: claim_share(rng, trials, cell))


def false_discoveries(rng: np.random.Generator, trials: int, *, common: bool) -> str:
    """As `false_claims`, for the ops of a program."""
    return _grid(lambda cell: false_discovery_share(rng, trials, cell, common=common))


def power(rng: np.random.Generator, trials: int, steps: int, repeats: int = 1) -> str:
    """The share of trials that is claimed, for each correlation, noise and spread, by how large the change is."""
    rows = [
        [
            f"{correlation:g}", _percent(noise), _percent(spread),
            *(_percent(claim_share(rng, trials, (steps, correlation, noise, spread), change=e, repeats=repeats))
              for e in EFFECTS),
        ]
        for correlation, noise, spread in product(CORRELATIONS, NOISES, SPREADS)
    ]  # fmt: skip
    return table(["correlation", "noise", "spread", *(f"+{_percent(e)}" for e in EFFECTS)], rows)


def power_by_captures(rng: np.random.Generator, trials: int) -> str:
    """The share of trials that is claimed with wide spreads, by the number of captures a side and the change."""
    rows = [
        [
            _percent(declared), _percent(true), str(captures),
            *(_percent(claim_share(rng, trials, (20, 0.3, 0.05, true), change=e, repeats=captures, declared=declared))
              for e in WIDE_EFFECTS),
        ]
        for (declared, true), captures in product(WIDE_SPREADS, CAPTURES)
    ]  # fmt: skip
    return table(["assumed", "true spread", "captures", *(f"+{_percent(e)}" for e in WIDE_EFFECTS)], rows)


def false_claims_under_load(rng: np.random.Generator, trials: int) -> str:
    """The share of false claims on a busy machine, by how much it slows captures down and their number a side."""
    captures = (*CAPTURES[:3], 4, *CAPTURES[3:])
    cell = (20, 0.3, 0.05, 0.02)
    rows = [
        [
            _percent(slowdown),
            *(f"{100 * claim_share(rng, trials, cell, repeats=n, declared=0.1, slowdown=slowdown):.1f} %"
              for n in captures),
        ]
        for slowdown in SLOWDOWNS
    ]  # fmt: skip
    return table(["slowed down by", *(f"{n} a side" for n in captures)], rows)


def _grid(share: Callable[[tuple[int, float, float, float]], float]) -> str:
    columns = list(product(NOISES, SPREADS))
    rows = [
        [str(steps), f"{correlation:g}", *(f"{100 * share((steps, correlation, *c)):.1f}" for c in columns)]
        for steps, correlation in product(STEPS, CORRELATIONS)
    ]
    return table(["steps", "correlation", *(f"{_percent(n)}, {_percent(s)}" for n, s in columns)], rows)


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
{trials:,} trials a cell ({few:,} for ops and repeats), seed {seed}; intervals at {LEVEL:.0%}.

**False claims on step time**, in percent of pairs of recordings of one program. Columns: noise of a step, spread
between recordings.

{false_claims(rng, trials)}
**Pairs in which any of {OPS} ops is claimed to have changed**, though none did, in percent; all ops of a recording
share its factor:

{false_discoveries(rng, few, common=True)}
… and each op has one of its own:

{false_discoveries(rng, few, common=False)}
**What is seen**: the share of trials with 20 steps a side that is called, by how much longer the candidate takes.

{power(rng, few, 20)}
**With {REPEATS} recordings a side**, whose spread is measured:

{power(rng, few, 20, REPEATS)}
**By number of captures a side**, 20 steps each (correlation 0.3, noise 5 %), for the spreads that are assumed for CPU
steps of 10 ms (10 %) and 1 ms (19 %), on machines as noisy as assumed and on quieter ones:

{power_by_captures(rng, few)}
**False claims on a busy machine**, whose load slows each capture down by a random (exponential) amount, by its mean:

{false_claims_under_load(rng, trials)}"""


def main(argv: Sequence[str] | None = None) -> None:
    """Simulate and write the figures into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000, help="simulated pairs a cell (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    put(report(args.trials, args.seed), _BEGIN, _END)


def put(text: str, begin: str, end: str) -> None:
    """Write `text` into the page, in place of what stands between these marks."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(begin)
    PAGE.write_text(before + begin + text + end + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
