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

_SHORTEST_US = 100.0
"""What takes less was not measured, and is taken to differ no more."""


@dataclass(frozen=True)
class Spread:
    """How far recordings of one program are apart, as a standard deviation of the logarithm, and where that comes from.

    `share` holds for what takes `steady_us` a step or longer. What is shorter differs more, with the fourth root of how
    much shorter it is.
    """

    share: float
    source: str
    steady_us: float = 0.0

    def of(self, typical_us: Floats) -> Floats:
        """The spread of what takes so long a step."""
        shorter = self.steady_us / np.maximum(typical_us, _SHORTEST_US)
        shares: Floats = self.share * np.maximum(shorter, 1.0) ** 0.25
        return shares

    def told(self, *typical_us: float) -> str:
        """`9.59 % (declared for a CPU and times this short)`: the figures for series of such typical steps."""
        shares = [float(self.of(np.array(us))) for us in typical_us]
        figures = " and ".join(dict.fromkeys(map(format_percent, shares)))
        wider = " and times this short" if max(shares) > self.share else ""
        return f"{figures} ({self.source}{wider})"


DECLARED_SPREAD = {
    "CPU": Spread(0.05, "declared for a CPU", steady_us=200_000),
    "GPU": Spread(0.03, "declared for a GPU"),
    "TPU": Spread(0.02, "declared for a TPU"),
}
"""What is taken for device types where nothing is measured; `docs/verdicts.md` tells where the figures come from."""

OF_HOSTS = DECLARED_SPREAD["CPU"]
"""What runs on the host is spread like a CPU's, whatever the device; so is an unknown device."""


def declared_spread(*device_types: str) -> Spread:
    """What is declared for the device type, of several the largest; for an unknown one, a CPU's."""
    known = [DECLARED_SPREAD[kind] for kind in device_types if kind in DECLARED_SPREAD] or [OF_HOSTS]
    return max(known, key=lambda spread: spread.share)


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
    found = changes(ours, theirs, spread.of)
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
    measured = [measured_spread(side) for side in (ours, theirs) if len(side) >= FEWEST_REPEATS]
    if not measured:
        return f"a spread between recordings of {spread.told(_typical(ours), _typical(theirs))}"
    of_side = f"a measured spread between {len(ours)} and {len(theirs)} recordings of "
    if len(measured) == 2:
        return of_side + " and ".join(map(format_percent, measured))
    single = ours if len(ours) < FEWEST_REPEATS else theirs
    return f"{of_side}{format_percent(measured[0])}, the other side's {spread.told(_typical(single))}"


def _typical(side: Sequence[Sides]) -> float:
    return float(np.mean([recording.location[0] for recording in side]))


def measured_spread(side: Sequence[Sides]) -> float:
    """The standard deviation of the logarithm of the typical step between a side's recordings."""
    logs = [math.log(float(recording.location[0])) for recording in side]
    return float(np.std(logs, ddof=1))
