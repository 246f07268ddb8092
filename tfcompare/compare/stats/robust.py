"""Weighted statistics that a few odd values do not move: location and scale, and an interval by clusters."""

from __future__ import annotations

import math

import numpy as np

from tfcompare.compare.stats.estimates import LEVEL
from tfcompare.schema.arrays import Floats, Int64

_WITHIN_ONE_SCALE = 0.6827
"""The share of normally distributed values within one standard deviation."""
_LIMIT = 1.345
"""A deviation counts for at most so many scales: 95 % efficient for normally distributed values (Huber 1964)."""
_ROUNDS = 50
"""The most rounds of reweighting."""
_CONVERGED = 1e-12
"""The change of the location, in scales, from which on more rounds change nothing."""


def effective_count(weights: Floats) -> float:
    """The number of equal weights that say as much as these (Kish 1965); 0 without any."""
    return float(weights.sum() ** 2 / np.square(weights).sum()) if weights.any() else 0.0


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """The weighted quantile, interpolated between values: the median of negated values is the negated median."""
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    return float(np.interp(share * ends[-1], ends - weights[order] / 2, values[order]))


def location_and_scale(values: Floats, weights: Floats) -> tuple[float, float]:
    """Huber's weighted location, and the scale: the distance from it within which 68 % of the weight is.

    The median deviation, the usual scale, is far too small now and then where a few values have most of the weight.
    """
    location = weighted_quantile(values, weights, 0.5)
    limit = _LIMIT * _scale(values, weights, location)
    for _ in range(_ROUNDS if limit > 0 else 0):
        used = weights * limit / np.maximum(np.abs(values - location), limit)
        before, location = location, float(used @ values / used.sum())
        if abs(location - before) <= _CONVERGED * limit:
            break
    return location, _scale(values, weights, location)


def half_width(values: Floats, weights: Floats, clusters: Int64) -> float:
    """Half the width of the confidence interval of Huber's location at `LEVEL`, where values of one cluster, which are
    numbered from 0, may vary together; infinite for a single cluster.

    The standard error is that of sums over clusters (Liang and Zeger 1986), the degrees of freedom are the effective
    number of clusters less one (Carter, Schnepel and Steigerwald 2017).
    """
    from scipy.special import stdtrit

    count = effective_count(np.bincount(clusters, weights).astype(np.float64))
    if count < 1 + 1e-9:
        return math.inf
    location, scale = location_and_scale(values, weights)
    deviations, limit = values - location, _LIMIT * scale
    sums = np.bincount(clusters, weights * np.clip(deviations, -limit, limit))
    inside = float(weights[np.abs(deviations) <= limit].sum())
    error = math.sqrt(float(np.square(sums).sum()) * count / (count - 1)) / inside
    return float(stdtrit(count - 1, (1 + LEVEL) / 2)) * error


def _scale(values: Floats, weights: Floats, location: float) -> float:
    return weighted_quantile(np.abs(values - location), weights, _WITHIN_ONE_SCALE)
