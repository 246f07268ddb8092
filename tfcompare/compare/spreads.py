"""How much captures of the programs of a pair are assumed to vary, by what they do and where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfcompare.compare.stats.verdict import BESIDE_DEVICES, OF_HOSTS, Spread, declared_spread
from tfcompare.schema import DEVICE

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair


def spread_on(pair: Pair, place: str) -> Spread:
    """The assumed spread between captures of what a host or a device does."""
    if pair.among.spread is not None:
        return Spread(pair.among.spread, "as set", is_known=True)
    if place == DEVICE:
        found = declared_spread(*(run.info.device_type for run in pair.runs))
        if found != OF_HOSTS:
            return found
    return _widened(pair, OF_HOSTS)


def spread_of_steps(pair: Pair, device_shares: Sequence[float] = ()) -> Spread:
    """The assumed spread between captures of step times: of what devices, and the rest, take of a step.

    `device_shares`: the shares of the step that devices take on the sides, NaN where unknown; by default those of all
    steps.
    """
    share = float(np.min(device_shares or [side.device_share for side in pair.sides_as_recorded]))
    if pair.among.spread is not None or math.isnan(share):
        return spread_on(pair, DEVICE)
    return _widened(pair, BESIDE_DEVICES if share else OF_HOSTS).beside(spread_on(pair, DEVICE), share)


def _widened(pair: Pair, spread: Spread) -> Spread:
    return spread.under_load() if any(side.is_under_load for side in pair.sides_as_recorded) else spread
