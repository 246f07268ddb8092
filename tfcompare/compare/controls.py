"""Controls: ops that surely do the same work on both sides, and the factor by which all of them take longer or less.

Such a factor is no effect of what changed in the program. It tells of the machine, its clock, or a setting that touches
everything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.stats.change_test import SMALLEST_SHARE
from tfcompare.compare.stats.estimates import LEVEL
from tfcompare.compare.stats.robust import effective_count, half_width, location_and_scale
from tfcompare.compare.table_diff import sure_ops, unjudged_ops
from tfcompare.schema import DEVICE, HOST, SIDES
from tfcompare.schema.arrays import Bools, Floats, Int64

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.stats.verdict import Spread

MOST_OF_ONE = 0.1
"""An op counts for at most this share of the time: otherwise a convolution with 77 % of it speaks for the whole."""
LEAST_COVER = 0.5
"""The share of the time that controls must have on both sides: the rest may be what the program changed."""
FEWEST_CONTROLS = 8
"""The fewest effective controls, and name scopes if names go so deep: of fewer, a few that are alike decide."""
LARGEST_SPREAD = 0.1
"""The largest standard deviation of log ratios that are one factor. Where threads of the program contend it was 30 %,
between H100 captures of one program it is 0.2 to 3 %."""
ALIKE = 0.02
"""Large and small controls that differ by less agree, however little they vary: kernels of a few µs vary so much."""
CLEAR = 1.05
"""A factor is reported if its whole interval is beyond this: captures of one program differ by 1 % on an H100, and on a
quiet CPU, with steps of 0.3 s, by 5 % (44 of 45 pairs)."""
NEARLY_ALL = 0.9
"""A factor is reported if controls with this share of their time changed by at least half of it, since a robust mean
does not see a third that stayed as it was. Not all must, since tails are heavy: between captures of one program, one
op in twenty differs by more than 2 to 14 % on an H100."""

LEAST_SCALE = 0.25
"""However alike the controls are, others vary by at least this share of what is assumed: between H100 captures of one
program whose other ops agree within 2 %, one differs by 13 %."""
TWO_SIGMA = 1.96
"""Within so many standard deviations are 95 % of normally distributed values."""

_EQUAL = 1e-9
"""Relative difference of counts that are equal but for rounding: sums are divided by steps."""
_MATTERS = 0.001
"""The share of the time from which on an op must be known for a whole program to be equal; jitter adds tiny ones."""
_DEEPEST = 8
"""Levels of name scopes that are tried."""
_PRODUCTS = "Conv|MatMul|Einsum"
"""In op types of what multiplies by a variable; in training, each has two gradients, the first of a network one."""
_GRADIENT = "gradient"
"""In names of gradients: `gradient_tape/`, `gradients/`."""
_NUMBERS = ("occurrences", "self_time_us", "flops", "bytes_accessed")


@dataclass(frozen=True, eq=False)
class Controls:
    """The controls on hosts or on devices; arrays have one element per control.

    `baseline_us` and `candidate_us`: self times, as in the diff; `weights`: their share of the time there, at most
    `MOST_OF_ONE` each; `cover`: the sum of such shares on each side; `ratio`: the common factor, candidate ÷ baseline,
    NaN without controls; `low` and `high`: its confidence interval, NaN if a gate is closed; `spread`: the standard
    deviation of the log ratios around it; `time_ratio`: that of the time of all ops there; `closed`: why there is no
    common factor, empty if there is one.
    """

    baseline_us: Floats
    candidate_us: Floats
    weights: Floats
    cover: tuple[float, float]
    ratio: float
    low: float
    high: float
    spread: float
    time_ratio: float
    closed: str

    @property
    def log_ratios(self) -> Floats:
        """The logarithms of candidate ÷ baseline."""
        found: Floats = np.log(self.candidate_us / self.baseline_us)
        return found

    @property
    def is_clear(self) -> bool:
        """Whether what did not change takes clearly longer, or less, by `CLEAR`, and `NEARLY_ALL` of it does."""
        if not (self.low > CLEAR or self.high < 1 / CLEAR):
            return False
        has_changed = self.log_ratios / math.log(self.ratio) >= 0.5
        times = (self.baseline_us, self.candidate_us)
        return all(float(of_side[has_changed].sum()) >= NEARLY_ALL * float(of_side.sum()) for of_side in times)

    def scaled(self, assumed: Spread) -> Spread:
        """The assumed spread between captures, made as large as these controls, which did not change, vary by.

        Their log ratios are not taken around their common factor: between other captures that may be another one.
        """
        is_tested = self.weights >= SMALLEST_SHARE
        time_us = np.sqrt(self.baseline_us * self.candidate_us)[is_tested]
        each = np.abs(self.log_ratios[is_tested] / assumed.of(time_us)) / math.sqrt(2)
        most = float(np.quantile(each, LEVEL)) / TWO_SIGMA
        scale = max(math.sqrt(float(np.square(each).mean())), most, LEAST_SCALE)
        return replace(assumed, share=assumed.share * scale, source="as ops that did not change vary")


def have_equal_work(rows: pd.DataFrame) -> pd.Series:
    """Which rows of a diff of `op_stats`, or of parts of it, are pairs of ops of equal, known work, equally often."""
    facts = _facts(rows)
    return (rows["status"] == MATCHED) & _are_equal(facts, "occurrences") & _have_known_work(facts)


def controls_of(pair: Pair) -> dict[str, Controls]:
    """The controls by place, `schema.HOST` and `schema.DEVICE`, where ops ran; none between copies of one capture."""
    if pair.is_identical:
        return {}
    shapes = [of_side.shapes for of_side in pair.evidence]
    rows, is_sure = unjudged_ops(pair), sure_ops(pair)
    names = (rows["op_name"], rows["op_name_candidate"])
    columns = {f"shapes_{side}": name.map(found) for side, name, found in zip(SIDES, names, shapes, strict=True)}
    rows = without_idle(rows.assign(is_sure=is_sure, **columns))
    return {
        place: controls_among(rows[rows["host_or_device"] == place])
        for place in (HOST, DEVICE)
        if (rows["host_or_device"] == place).any()
    }


def controls_among(rows: pd.DataFrame) -> Controls:
    """The controls among the rows of the diff of `op_stats` of one place.

    `rows` have its columns, `is_sure`, and `shapes_baseline` and `shapes_candidate`: the shapes of an op's results.
    """
    facts = _facts(rows)
    times = [facts[f"self_time_us_{side}"].fillna(0.0) for side in SIDES]
    whole_us = [float(of_side.sum()) for of_side in times]
    if not all(whole_us):
        return _none("no ops on one side", math.nan)
    shares = pd.concat([of_side / us for of_side, us in zip(times, whole_us, strict=True)], axis=1)
    is_same = rows["is_sure"] & (rows["status"] == MATCHED) & _are_equal(facts, "occurrences")
    is_control = is_same & (shares > 0).all(axis=1) & _have_known_work(facts)
    if (shares[is_control].sum() < LEAST_COVER).any() and _is_one_program(rows, is_same, shares):
        is_control = is_same & (shares > 0).all(axis=1)
    time_ratio = whole_us[1] / whole_us[0]
    if not is_control.any():
        return _none("no op is surely one of equal, known work", time_ratio)
    names = rows.loc[is_control, ["op_name", "op_name_candidate"]]
    ours, theirs = (of_side[is_control].to_numpy() for of_side in times)
    return _controls(names, ours, theirs, shares[is_control].to_numpy(), time_ratio)


def _facts(rows: pd.DataFrame) -> pd.DataFrame:
    """The numbers of both sides that tell of work and time."""
    return pd.DataFrame(
        {f"{name}_{side}": rows[f"{name}_{side}"].astype("float64") for name in _NUMBERS for side in SIDES}
    )


def _are_equal(facts: pd.DataFrame, name: str) -> pd.Series:
    ours, theirs = (facts[f"{name}_{side}"] for side in SIDES)
    return (ours - theirs).abs() <= _EQUAL * ours.abs()


def _have_known_work(facts: pd.DataFrame) -> pd.Series:
    """Whether FLOPs and bytes are equal, and known: an op has some of either."""
    is_known = (facts["flops_baseline"] > 0) | (facts["bytes_accessed_baseline"] > 0)
    return is_known & _are_equal(facts, "flops") & _are_equal(facts, "bytes_accessed")


def _is_one_program(rows: pd.DataFrame, is_same: pd.Series, shares: pd.DataFrame) -> bool:
    """Whether the whole program is equal, as far as shapes tell: of ops without costs only those of results are known.

    An operand is the result of another op, input, whose shapes are those of the ops of the pipeline, or a variable,
    whose gradient has its shape: a convolution with a larger filter has the same result. So all ops must be pairs that
    occur equally often, with equal shapes where these are known, which they must be for half of the time and for all
    products; and each product must have its gradients, since that of a frozen layer is not there.
    """
    ours, theirs = (rows[f"shapes_{side}"] for side in SIDES)
    is_known, matters = ours.notna() & theirs.notna(), shares.max(axis=1) >= _MATTERS
    is_product = rows["op_type"].str.contains(_PRODUCTS)
    gradients = int((is_product & rows["op_name"].str.contains(_GRADIENT)).sum())
    forward = int(is_product.sum()) - gradients
    return bool(
        not (matters & ~is_same).any()
        and not (is_known & (ours != theirs)).any()
        and (shares[is_known & is_same].sum() >= LEAST_COVER).all()
        and not (is_product & matters & ~is_known).any()
        and gradients >= 2 * forward - 1 > 0
    )


def _controls(
    names: pd.DataFrame, baseline_us: Floats, candidate_us: Floats, shares: Floats, time_ratio: float
) -> Controls:
    """From the names, times and shares of time of the controls, one column per side."""
    ours, theirs = np.minimum(shares, MOST_OF_ONE).sum(axis=0).tolist()
    mean_shares = shares.mean(axis=1)
    weights = np.minimum(mean_shares, MOST_OF_ONE)
    log_ratios = np.log(candidate_us / baseline_us)
    location, spread = location_and_scale(log_ratios, weights)
    closed = _closed_gate(log_ratios, weights, mean_shares, min(ours, theirs), spread)
    reach = math.nan if closed else half_width(log_ratios, weights, _clusters(names, weights))
    low, ratio, high = np.exp([location - reach, location, location + reach]).tolist()
    return Controls(baseline_us, candidate_us, weights, (ours, theirs), ratio, low, high, spread, time_ratio, closed)


def _closed_gate(log_ratios: Floats, weights: Floats, shares: Floats, cover: float, spread: float) -> str:
    """Why the controls have no common factor; empty if they have."""
    if cover < LEAST_COVER:
        return f"controls cover {cover:.0%} of the time, {LEAST_COVER:.0%} needed"
    if (count := effective_count(weights)) < FEWEST_CONTROLS:
        return f"{count:.1f} effective controls, {FEWEST_CONTROLS} needed"
    if spread > LARGEST_SPREAD:
        return f"controls vary by {spread:.0%}, at most {LARGEST_SPREAD:.0%} is one factor"
    is_large = _is_larger_half(weights, shares)
    halves = [(log_ratios[of], weights[of]) for of in (is_large, ~is_large)]
    large, small = (location_and_scale(*half)[0] for half in halves)
    error = spread * math.sqrt(sum(1 / effective_count(of) for _, of in halves))
    if abs(large - small) > max(2 * error, ALIKE):
        return f"large controls take {math.exp(large):.3g}×, small ones {math.exp(small):.3g}×"
    return ""


def _is_larger_half(weights: Floats, shares: Floats) -> Bools:
    """Which controls are the longest that have half of the weight together; at least one is and one is not."""
    order = np.argsort(-shares, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    found = np.zeros(len(weights), np.bool_)
    found[order] = before < weights.sum() / 2
    found[order[-1]] = False
    return found


def _clusters(names: pd.DataFrame, weights: Floats) -> Int64:
    """The name scope of each control, numbered: the outermost of which there are `FEWEST_CONTROLS` effective ones, else
    those of the depth with most. Scopes of both sides count, so that exchanging them changes nothing."""
    most, found = 0.0, np.zeros(len(names), np.int64)
    for depth in range(1, _DEEPEST + 1):
        scopes = [names[side].str.extract(rf"^((?:[^/]+/){{0,{depth}}})", expand=False) for side in names]
        codes = scopes[0].groupby(scopes).ngroup().to_numpy().astype(np.int64)
        count = effective_count(np.bincount(codes, weights).astype(np.float64))
        if count > most:
            most, found = count, codes
        if most >= FEWEST_CONTROLS:
            break
    return found


def _none(why: str, time_ratio: float) -> Controls:
    none, unknown = np.zeros(0), math.nan
    return Controls(none, none, none, (0.0, 0.0), unknown, unknown, unknown, unknown, time_ratio, why)
