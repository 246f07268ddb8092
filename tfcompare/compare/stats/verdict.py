"""Verdicts on a ratio with its interval, and the assumed spread between captures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tfcompare.compare.stats.estimates import (
    FEWEST_REPEATS,
    FEWEST_REPLICATES,
    LEVEL,
    Changes,
    Declared,
    detectable_log,
)
from tfcompare.schema.arrays import Floats

SAME = "same"
UNTESTED = "untested"
UNCLEAR = "unclear"
FASTER = "faster"
SLOWER = "slower"
LESS = "less"
MORE = "more"

SINGLE = "single"
"""Evidence from too few captures per side for a definite claim: their variation is assumed or poorly known."""
REPLICATES = "replicates"
"""Evidence from at least `FEWEST_REPLICATES` captures per side."""

SMALLEST_EFFECT = 0.02
"""The smallest change claimed from single captures; also the equivalence margin within which a change is `same`."""
_CLEAR_OF_NOTHING = 0.01
"""With single captures, the interval must be this far from no change; otherwise +1 % would be claimed too often."""
SMALLEST_SIZE = 0.01
"""Sizes of memory that differ by less are the `same`: the peaks of two captures of one program differ by 0.07 %."""
FALSE_DISCOVERIES = 0.04
"""The target false discovery rate among the ops that are claimed to have changed."""

MOST_CAPTURES = 100
"""The largest number of captures per side that is suggested."""
USUAL_MARGIN = 0.05
"""The default change for which the required number of captures is given."""
_HUGE = 10.0
"""Larger changes are reported as "more than" this."""
UNDER_LOAD = 0.5
"""The standard deviation of the logarithm that captures of a busy machine have more: 0.3 to 0.55 was measured, of steps
of 20 ms as of 2 s (`docs/verdicts.md`). Shorter times vary more, as on idle machines."""
_STEADY_UNDER_LOAD_US = 20_000.0


@dataclass(frozen=True)
class Sensitivity:
    """The sample sizes and the sensitivity of a comparison.

    `captures`: the number of captures of baseline and candidate; `steps`: the mean number of steps per capture;
    `capture_spread`: the standard deviation of the logarithm of one capture's mean step; `smallest_change`: the
    smallest slowdown, as a share, that is detected with a power of 80 % by an interval at `level`.
    """

    captures: tuple[int, int]
    steps: int
    capture_spread: float
    smallest_change: float
    level: float = LEVEL

    def captures_for(self, change: float) -> int | None:
        """The number of captures per side, of equally many steps, that detect this change with a power of 80 %.

        None if that is more than `MOST_CAPTURES`.
        """
        for captures in range(FEWEST_REPLICATES, MOST_CAPTURES + 1):
            error = np.array([self.capture_spread * math.sqrt(2 / captures)])
            freedom = np.array([2.0 * (captures - 1)])
            if detectable_log(error, freedom, level=self.level)[0] <= abs(math.log1p(change)):
                return captures
        return None

    def how_to_detect(self, change: float = USUAL_MARGIN) -> str:
        """`Detecting a change of 5 % takes about 66 captures of 20 steps per side (80 % power, assumed variation)`"""
        captures = self.captures_for(change)
        count = f"more than {MOST_CAPTURES}" if captures is None else f"about {captures}"
        size = f"{100 * abs(change):.2g} %"
        variation = "measured" if min(self.captures) >= FEWEST_REPEATS else "assumed"
        return (
            f"Detecting a change of {size} takes {count} captures of {self.steps} steps per side "
            f"(80 % power, {variation} variation)"
        )

    def what_would_show(self) -> str:
        """`These runs can show only changes above 53 %; 5 captures per side would measure how much they vary.`

        Where their variation is measured, how many captures detect a change of `USUAL_MARGIN`.
        """
        if min(self.captures) >= FEWEST_REPEATS:
            return f"{self.how_to_detect()}."
        size = percent(self.smallest_change) if self.smallest_change < _HUGE else f"{100 * _HUGE:,.0f} %"
        return (
            f"These runs can show only changes above {size}; {FEWEST_REPLICATES} captures per side would measure how "
            "much they vary."
        )

    def details(self) -> str:
        """The summary and the captures needed to detect a change of `USUAL_MARGIN`, as sentences."""
        return f"{self.summary()}. {self.how_to_detect()}."

    def summary(self) -> str:
        """`1 capture per side; smallest detectable change: 21 %`."""
        ours, theirs = self.captures
        each = (
            f"{ours} capture{'s' if ours > 1 else ''} per side" if ours == theirs else f"{ours} and {theirs} captures"
        )
        change = self.smallest_change
        size = percent(change) if change < _HUGE else f"more than {100 * _HUGE:,.0f} %"
        return f"{each}; smallest detectable change: {size}"


@dataclass(frozen=True)
class Verdict:
    """A verdict: its word, the reason or basis in one phrase, and the ratio candidate ÷ baseline with its interval.

    The ratio and interval are NaN if there are none; `ratio_with_strays` is the ratio if strays are counted, None where
    no stray was excluded. `evidence`: `single` or `replicates`, empty if nothing was tested;
    `sensitivity`: the smallest detectable change, None if nothing was tested; `caveat`: why the verdict does not apply
    to the program itself, empty if it does.
    """

    word: str
    reason: str
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    caveat: str = ""
    evidence: str = ""
    sensitivity: Sensitivity | None = None
    ratio_with_strays: float | None = None

    @property
    def has_interval(self) -> bool:
        """Whether the ratio could be estimated."""
        return not math.isnan(self.low)

    @property
    def is_claim(self) -> bool:
        """Whether the verdict states a change: significant for times, exact for bytes."""
        return self.word in (FASTER, SLOWER, LESS, MORE)

    @property
    def text(self) -> str:
        """The verdict in words: `likely faster`, `faster`, `inconclusive`."""
        return wording(self.word, self.evidence)


IDENTICAL = Verdict(SAME, "identical file")

_TEXTS = {UNCLEAR: "inconclusive", UNTESTED: "not tested"}


def verdict_on_size(baseline: float, candidate: float) -> str:
    """`less`, `more` or `same`, for sizes of memory."""
    if abs(candidate - baseline) < SMALLEST_SIZE * baseline or candidate == baseline:
        return SAME
    return LESS if candidate < baseline else MORE


def evidence_of(captures: tuple[int, int]) -> str:
    """The evidence that these numbers of captures of baseline and candidate provide."""
    return REPLICATES if min(captures) >= FEWEST_REPLICATES else SINGLE


def wording(word: str, evidence: str) -> str:
    """A verdict in words; a claim from fewer than `FEWEST_REPLICATES` captures a side is `likely`."""
    likely = "likely " if evidence == SINGLE and word in (FASTER, SLOWER) else ""
    return likely + _TEXTS.get(word, word)


def words(changes: Changes, *, measured_spread: bool, margin: float = SMALLEST_EFFECT) -> npt.NDArray[np.object_]:
    """`faster`, `slower`, `same` or `unclear` for each row, by its interval; `untested` for a row without one.

    Whether a stray is an accident or a rare slow step, one capture cannot tell: a claim must hold with it, too.

    `measured_spread`: the spread between captures was measured on both sides, so changes below `SMALLEST_EFFECT` can be
    claimed. `margin`: the equivalence margin.
    """
    with np.errstate(divide="ignore"):  # a ratio of 0: one of several captures lacks the row
        low, high, effect = (np.log(x) for x in (changes.low, changes.high, changes.ratio))
        with_strays = np.log(changes.ratio_with_strays)
    clear, least = _margins(measured_spread)
    within = np.log1p(margin)
    conditions = [
        np.isnan(low) | np.isnan(high),
        (low > clear) & (effect > least) & (with_strays > least),
        (high < -clear) & (effect < -least) & (with_strays < -least),
        (low >= -within) & (high <= within),
    ]
    return np.select(conditions, [UNTESTED, SLOWER, FASTER, SAME], UNCLEAR).astype(object)


def smallest_change(changes: Changes, *, measured_spread: bool) -> Floats:
    """The smallest slowdown of each row, as a share, that `words` claims with a power of 80 %."""
    clear, least = _margins(measured_spread)
    needed = detectable_log(changes.error, changes.freedom, clear, changes.level)
    with np.errstate(over="ignore"):
        found: Floats = np.expm1(np.maximum(needed, least))
    return found


def _margins(measured_spread: bool) -> tuple[float, float]:
    """The minimum distance of a claim's interval from no change, and the smallest claimed effect, as logarithms."""
    return (0.0, 0.0) if measured_spread else (math.log1p(_CLEAR_OF_NOTHING), math.log1p(SMALLEST_EFFECT))


def claimed_together(p: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which claims hold at a false discovery rate of `FALSE_DISCOVERIES` (Benjamini and Hochberg 1995).

    A claim whose `p` is NaN does not hold.
    """
    order = np.argsort(p, kind="stable")  # NaN last
    allowed = FALSE_DISCOVERIES * np.arange(1, len(p) + 1) / max(len(p), 1)
    holds = np.flatnonzero(p[order] <= allowed)
    claimed = np.zeros(len(p), np.bool_)
    claimed[order[: holds[-1] + 1 if holds.size else 0]] = True
    return claimed


@dataclass(frozen=True)
class Spread:
    """The variation between captures of one program, as a standard deviation of the logarithm, and its source.

    `share` applies to times of `steady_us` per step or longer. Shorter times vary more: by `steady_us` ÷ time to the
    power of `exponent`, down to times of `shortest_us`; `load` adds to that. With a `device`, it is that of a step of
    which devices take `device_share`, and this the variation of the rest. If it `is_known`, as a `share` of all times,
    it has no heavy tails.
    """

    share: float
    source: str
    steady_us: float = 0.0
    remark: str = ""
    load: float = 0.0
    exponent: float = 0.25
    shortest_us: float = 100.0
    device: Spread | None = None
    device_share: float = 0.0
    is_known: bool = False

    def of(self, mean_us: Floats) -> Floats:
        """The spread of times of `mean_us` per step."""
        times_us = np.maximum(mean_us * (1 - self.device_share), self.shortest_us)
        shares: Floats = self.share * np.maximum(self.steady_us / times_us, 1.0) ** self.exponent
        if self.load:
            shares = np.hypot(shares, self.load * np.maximum(_STEADY_UNDER_LOAD_US / times_us, 1.0) ** self.exponent)
        if self.device is None:
            return shares
        on_device = self.device_share * self.device.of(mean_us * self.device_share)
        return np.hypot((1 - self.device_share) * shares, on_device)

    @property
    def declared(self) -> Declared:
        """As the estimates take it."""
        return self.share if self.is_known else self.of

    def assumed(self, *mean_us: float) -> str:
        """`assumed to be 9.6 % (CPU default for times this short)`, for series with these means."""
        shares = [float(self.of(np.array(us))) for us in mean_us]
        figures = " and ".join(dict.fromkeys(map(percent, shares)))
        wider = " for times this short" if self.device is None and min(mean_us) < self.steady_us else ""
        return f"assumed to be {figures} ({self.source}{wider}{self.remark})"

    def under_load(self) -> Spread:
        """The spread between captures if any of them was recorded on a busy machine, whose devices are not slower."""
        return replace(self, load=UNDER_LOAD, remark=", widened for captures under load")

    def beside(self, device: Spread, device_share: float) -> Spread:
        """The spread of steps of which devices take that share, and work that varies like this the rest."""
        if not device_share > 0:
            return self
        source = f"{percent(1 - device_share)} of the step is not on a device"
        return replace(self, source=source, device=device, device_share=device_share)


def percent(share: float) -> str:
    """`9.6 %`; from 100 % on without digits behind the point: `240 %`."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


OF_HOSTS = Spread(0.05, "CPU default", steady_us=200_000)
"""The spread of host work, and of unknown devices."""
BESIDE_DEVICES = replace(OF_HOSTS, shortest_us=6_000.0)
"""The spread of what steps do beside the work of devices. From 6 ms on it is that of host work, 12 %; shorter times,
mostly launches, do not vary more (`docs/verdicts.md`)."""
_OF_DEVICES = {
    "GPU": Spread(0.03, "GPU default", steady_us=400, exponent=0.5, shortest_us=5.0),
    "TPU": Spread(0.02, "TPU default"),
}
"""The spread of what devices do, if none is measured; `docs/verdicts.md` derives the figures."""


def declared_spread(*device_types: str) -> Spread:
    """The default spread of the device type; the largest of several, and a CPU's for an unknown type."""
    return max((_OF_DEVICES.get(kind, OF_HOSTS) for kind in device_types), key=lambda spread: spread.share)
