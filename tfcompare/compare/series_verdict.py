"""The verdict on two series of steps: step times, or calls of an input pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfcompare.compare.estimates import FEWEST_REPEATS, FEWEST_STEPS, LEVEL, Sides, changes, robust_sides
from tfcompare.compare.verdict import UNTESTED, Verdict, words
from tfcompare.units import format_percent

Floats = npt.NDArray[np.float64]

DECLARED_SPREAD = {"CPU": 0.05, "GPU": 0.03, "TPU": 0.02}
"""Standard deviation of the logarithm of the step time between recordings of one program; `docs/verdicts.md` tells
where the figures come from."""
_OF_UNKNOWN_DEVICES = "CPU"


@dataclass(frozen=True)
class Spread:
    """How far recordings of one program are apart, as a standard deviation, and where the figure comes from."""

    share: float
    source: str


def declared_spread(*device_types: str) -> Spread:
    """What is declared for the device type, of several the largest; for an unknown one, a CPU's."""
    known = [kind for kind in device_types if kind in DECLARED_SPREAD] or [_OF_UNKNOWN_DEVICES]
    widest = max(known, key=DECLARED_SPREAD.__getitem__)
    return Spread(DECLARED_SPREAD[widest], f"declared for {widest}")


def verdict_on_series(
    baseline: Sequence[Floats],
    candidate: Sequence[Floats],
    spread: Spread,
    *,
    estimate: Callable[[Floats], Sides] = robust_sides,
    of: str = "steps",
) -> Verdict:
    """Whether the candidate's typical step takes another time than the baseline's.

    Each side holds the series of one recording or, of the same program, of several. `estimate` says what is typical,
    `of` what the series are of (`steps`, `calls`).
    """
    few = min((len(series) for series in (*baseline, *candidate)), default=0)
    if few < FEWEST_STEPS:
        return Verdict(UNTESTED, f"too few {of}: {few}, and a verdict takes {FEWEST_STEPS} on each side")
    if any(not np.isfinite(series).all() or not (series > 0).any() for series in (*baseline, *candidate)):
        return Verdict(UNTESTED, "no times to judge by: a side has none above zero")
    ours, theirs = ([estimate(series[np.newaxis]) for series in side] for side in (baseline, candidate))
    found = changes(ours, theirs, spread.share)
    is_measured = min(len(ours), len(theirs)) >= FEWEST_REPEATS
    word = str(words(found, measured_spread=is_measured)[0])
    return Verdict(
        word,
        _basis(ours, theirs, spread, (float(found.effective_steps[0][0]), float(found.effective_steps[1][0])), of),
        ratio=float(found.ratio[0]),
        low=float(found.low[0]),
        high=float(found.high[0]),
    )


def _basis(
    ours: Sequence[Sides], theirs: Sequence[Sides], spread: Spread, effective: tuple[float, float], of: str
) -> str:
    """What the interval rests on, in one line."""
    steps = [sum(recording.steps for recording in side) for side in (ours, theirs)]
    return (
        f"{LEVEL:.0%}".replace("%", " %") + f" interval from {steps[0]} and {steps[1]} {of}, which say as much as "
        f"{_count(effective[0])} and {_count(effective[1])} independent ones, and {_spread(ours, theirs, spread)}"
    )


def _count(effective: float) -> str:
    return f"{effective:.0f}" if effective >= 10 else f"{effective:.1f}"


def _spread(ours: Sequence[Sides], theirs: Sequence[Sides], spread: Spread) -> str:
    measured = [_measured(side) for side in (ours, theirs) if len(side) >= FEWEST_REPEATS]
    if not measured:
        return f"a spread between recordings of {format_percent(spread.share)} ({spread.source})"
    of_side = f"a measured spread between {len(ours)} and {len(theirs)} recordings of "
    if len(measured) == 2:
        return of_side + " and ".join(map(format_percent, measured))
    alone = f", the single one's {format_percent(spread.share)} {spread.source}"
    return of_side + format_percent(measured[0]) + alone


def _measured(side: Sequence[Sides]) -> float:
    logs = [math.log(float(recording.location[0])) for recording in side]
    return float(np.std(logs, ddof=1))
