"""The verdict on two series of steps: step times, or calls of an input pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tfcompare.compare.stats.estimates import (
    FEWEST_REPEATS,
    FEWEST_STEPS,
    LEVEL,
    Changes,
    Sides,
    changes,
    robust_sides,
)
from tfcompare.compare.stats.sensitivity import Sensitivity
from tfcompare.compare.stats.verdict import UNTESTED, Verdict, evidence_of, smallest_change, words
from tfcompare.units import format_ratio

Floats = npt.NDArray[np.float64]

_SHORTEST_US = 100.0
"""What takes less was not measured, and is taken to differ no more."""
UNDER_LOAD = 5.0
"""How many times as far apart captures of a busy machine are as those of a quiet one (`docs/verdicts.md`)."""
_CORRELATED, _STRONGLY_CORRELATED = 0.75, 0.25
"""Steps whose effective number is below this share of their number are called so."""


@dataclass(frozen=True)
class Spread:
    """How far captures of one program are apart, as a standard deviation of the logarithm, and where that comes from.

    `share` holds for what takes `steady_us` a step or longer. What is shorter differs more, with the fourth root of how
    much shorter it is.
    """

    share: float
    source: str
    steady_us: float = 0.0
    remark: str = ""

    def of(self, typical_us: Floats) -> Floats:
        """The spread of what takes so long a step."""
        shorter = self.steady_us / np.maximum(typical_us, _SHORTEST_US)
        shares: Floats = self.share * np.maximum(shorter, 1.0) ** 0.25
        return shares

    def assumed(self, *typical_us: float) -> str:
        """`assumed to be 9.6 % (CPU default for steps this short)`: the figures for series of such typical steps."""
        shares = [float(self.of(np.array(us))) for us in typical_us]
        figures = " and ".join(dict.fromkeys(map(_percent, shares)))
        wider = " for steps this short" if max(shares) > self.share else ""
        return f"assumed to be {figures} ({self.source}{wider}{self.remark})"

    def under_load(self) -> Spread:
        """The spread between captures of which any was recorded on a busy machine."""
        return replace(self, share=UNDER_LOAD * self.share, remark=", widened for captures under load")


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


DECLARED_SPREAD = {
    "CPU": Spread(0.05, "CPU default", steady_us=200_000),
    "GPU": Spread(0.03, "GPU default"),
    "TPU": Spread(0.02, "TPU default"),
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

    Each side holds the series of one capture or, of the same program, of several. `estimate` says what is typical,
    `of` what the series are of (`steps`, `calls`).
    """
    few = min((len(series) for series in (*baseline, *candidate)), default=0)
    if few < FEWEST_STEPS:
        return Verdict(UNTESTED, f"too few {of}: {few}; a verdict needs {FEWEST_STEPS} on each side")
    if any(not np.isfinite(series).all() or not (series > 0).any() for series in (*baseline, *candidate)):
        return Verdict(UNTESTED, "a side has no time above zero")
    ours, theirs = ([estimate(series[np.newaxis]) for series in side] for side in (baseline, candidate))
    found = changes(ours, theirs, spread.of)
    is_measured = min(len(ours), len(theirs)) >= FEWEST_REPEATS
    captures = len(ours), len(theirs)
    steps = sum(one.steps for one in (*ours, *theirs)) / sum(captures)
    smallest = float(smallest_change(found, measured_spread=is_measured)[0])
    return Verdict(
        str(words(found, measured_spread=is_measured)[0]),
        _basis(ours, theirs, spread, found, of),
        ratio=float(found.ratio[0]),
        low=float(found.low[0]),
        high=float(found.high[0]),
        evidence=evidence_of(captures),
        sensitivity=Sensitivity(captures, round(steps), float(found.capture_spread[0]), smallest),
    )


def _basis(ours: Sequence[Sides], theirs: Sequence[Sides], spread: Spread, found: Changes, of: str) -> str:
    """What the interval rests on, in one or two sentences without the last full stop."""
    interval = f"{format_ratio(float(found.low[0]))}–{format_ratio(float(found.high[0]))}"
    correlated = _correlation(ours, theirs, found, of)
    variation = f"run-to-run variation is {_variation(ours, theirs, spread)}"
    second = f"{correlated} and {variation}" if correlated else variation[0].upper() + variation[1:]
    return f"{LEVEL * 100:.0f} % confidence interval {interval}, from {_counts(ours, theirs, of)}. {second}"


def level_basis(side: Sequence[Sides], spread: Spread, of: str) -> str:
    """What the interval of one side's typical step rests on, in one line."""
    steps = sum(one.steps for one in side)
    captures = f" of {len(side)} captures" if len(side) > 1 else ""
    variation = f"measured: {_percent(measured_spread(side))}" if len(side) >= FEWEST_REPEATS else ""
    return (
        f"{LEVEL * 100:.0f} % confidence interval from {steps} {of}{captures} of the candidate; run-to-run variation "
        f"is {variation or spread.assumed(_typical(side))}"
    )


def _counts(ours: Sequence[Sides], theirs: Sequence[Sides], of: str) -> str:
    """`20 steps per run`, `20 and 18 steps`, `20 and 60 steps (1 and 3 captures)`."""
    steps = [sum(one.steps for one in side) for side in (ours, theirs)]
    both = f"{steps[0]} and {steps[1]} {of}"
    if len(ours) == len(theirs) == 1:
        return f"{steps[0]} {of} per run" if steps[0] == steps[1] else both
    captures = f"{len(ours)} captures each" if len(ours) == len(theirs) else f"{len(ours)} and {len(theirs)} captures"
    return f"{both} ({captures})"


def _correlation(ours: Sequence[Sides], theirs: Sequence[Sides], found: Changes, of: str) -> str:
    """`Steps are strongly correlated (effective n = 2.0)`, where that matters for the interval; else empty."""
    if min(len(ours), len(theirs)) >= FEWEST_REPEATS:
        return ""
    effective = [float(n[0]) for n in found.effective_steps]
    share = min(n / sum(one.steps for one in side) for n, side in zip(effective, (ours, theirs), strict=True))
    if share >= _CORRELATED:
        return ""
    counts = " and ".join(dict.fromkeys(_count(n) for n in effective))
    how = "strongly correlated" if share < _STRONGLY_CORRELATED else "correlated"
    return f"{of[0].upper()}{of[1:]} are {how} (effective n = {counts})"


def _count(effective: float) -> str:
    return f"{effective:.0f}" if effective >= 10 else f"{effective:.1f}"


def _variation(ours: Sequence[Sides], theirs: Sequence[Sides], spread: Spread) -> str:
    """`assumed to be 5 % (CPU default)`, or what was measured between the captures of either side."""
    measured = [measured_spread(side) for side in (ours, theirs) if len(side) >= FEWEST_REPEATS]
    if not measured:
        return spread.assumed(_typical(ours), _typical(theirs))
    figures = f"measured: {' and '.join(map(_percent, measured))}"
    if len(measured) == 2:
        return figures
    single = ours if len(ours) < FEWEST_REPEATS else theirs
    return f"{figures}; that of the other side is {spread.assumed(_typical(single))}"


def _typical(side: Sequence[Sides]) -> float:
    return float(np.mean([one.location[0] for one in side]))


def measured_spread(side: Sequence[Sides]) -> float:
    """The standard deviation of the logarithm of the typical step between a side's captures."""
    logs = [math.log(float(one.location[0])) for one in side]
    return float(np.std(logs, ddof=1))
