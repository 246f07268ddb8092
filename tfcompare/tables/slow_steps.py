"""Steps that take much longer than the others, and single steps that stand apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.schema.arrays import Bools, Floats
from tfcompare.tables.step_times import StepCells, are_on_all_hosts, common_step_ids, on_slowest_host, run_steps

SLOW_RATIO = 1.5
"""A slow step takes more than this many times the median …"""
_DEVIATIONS = 5.0
"""… and is this many robust standard deviations above it, so that the noise of noisy steps is not called slow."""
_MAD_OF_NORMAL = 1.4826
_FEWEST_OF_A_PERIOD = 3
"""Two slow steps are some distance apart, whatever causes them."""
_REGULAR = 0.8
"""The minimum share of equal distances between slow steps for these to be called regular."""
_WORTH_NAMING = 0.3
"""The minimum share of the extra time for a part or op to be named as its cause."""
_FEWEST_STEPS = 6
"""Of fewer steps, nothing is excluded: neither the ends nor a stray."""
_STRAY_DEVIATIONS = 10.0
"""A stray lies this many robust standard deviations above the median …"""
_LEAST_DEVIATION = 0.01
"""… which are taken to be at least this share of it, since a few steps may be equal by chance …"""
BEYOND_SECOND = 1.5
"""… and takes this many times as long as the second longest step: two long steps are no accident."""


def is_slow(values: Floats) -> Bools:
    """Which values of each row are far beyond the row's median, both as a multiple and by its variation."""
    middle = np.median(values, axis=1, keepdims=True)
    deviation = _MAD_OF_NORMAL * np.median(np.abs(values - middle), axis=1, keepdims=True)
    slow: Bools = values > np.maximum(SLOW_RATIO * middle, middle + _DEVIATIONS * deviation)
    return slow


def slow_included(times: Floats, included: Bools) -> Bools:
    """Which of these times of steps are slow; of the included ones alone."""
    slow = np.zeros(len(times), np.bool_)
    if included.any():
        slow[included] = is_slow(times[included][np.newaxis])[0]
    return slow


@dataclass(frozen=True)
class _Extra:
    """What some steps take more than the usual ones: time, and the part and op that take most of it (or empty)."""

    us: float = math.nan
    part: str = ""
    part_share: float = math.nan
    op_name: str = ""
    op_share: float = math.nan


def slow_steps_frame(every: pd.DataFrame, shares_of: Callable[[str], StepCells], host: str) -> pd.DataFrame:
    """The table `schema.SLOW_STEPS` of a run: one row for `host`, none without included steps of known time.

    `every` is the table of the steps of all its hosts, or of one; `shares_of` is `RunTables.op_shares`. Of several
    hosts, the extra time is that of the host with most of the slow steps.
    """
    steps = on_slowest_host(every)
    included = steps["included"].to_numpy(np.bool_) & steps["duration_us"].notna().to_numpy()
    if not included.any():
        return schema.SLOW_STEPS.empty()
    times = steps["duration_us"].to_numpy(np.float64)
    slow = slow_included(times, included)
    usual, stray = included & ~slow, steps["stray"].to_numpy(np.bool_)
    extra, of_stray = (_extra(every, shares_of, steps[chosen], steps[usual]) for chosen in (slow, stray))
    distances = np.diff(np.flatnonzero(slow))
    period = int(np.median(distances)) if slow.sum() >= _FEWEST_OF_A_PERIOD else None
    row = {
        "host": host,
        "steps": int(included.sum()),
        "slow_steps": int(slow.sum()),
        "every": period if period is not None and (distances == period).mean() >= _REGULAR else None,
        "slow_step_us": times[slow].mean() if slow.any() else math.nan,
        "usual_step_us": times[usual].mean(),
        "slow_share": times[slow].sum() / times[included].sum() if times[included].any() else math.nan,
        "slow_excess_us": extra.us * slow.sum() / included.sum() if slow.any() else 0.0,
        "part": extra.part,
        "part_share": extra.part_share,
        "op_name": extra.op_name,
        "op_share": extra.op_share,
        "stray_step": int(steps["step"][stray].iloc[0]) if stray.any() else None,
        "stray_us": times[stray].sum() if stray.any() else math.nan,
        "stray_part": of_stray.part,
        "stray_part_share": of_stray.part_share,
        "stray_op_name": of_stray.op_name,
        "stray_op_share": of_stray.op_share,
    }
    return schema.SLOW_STEPS.conform(pd.DataFrame([row]))


def _extra(
    every: pd.DataFrame, shares_of: Callable[[str], StepCells], chosen: pd.DataFrame, usual: pd.DataFrame
) -> _Extra:
    """What the chosen steps take more than the usual ones, on average; not in what, if their host has no usual one."""
    if chosen.empty or usual.empty:
        return _Extra()
    host = str(chosen["host"].mode().iloc[0])
    places, is_own = common_step_ids(every), every["host"] == host
    slow, others = (every[is_own & places.isin(some["step"])] for some in (chosen, usual))
    if others.empty:
        return _Extra(chosen["duration_us"].mean() - usual["duration_us"].mean())
    columns = ["duration_us", *schema.STEP_PARTS]
    more = slow[columns].mean() - others[columns].mean()
    total_us, part = float(more["duration_us"]), str(more[list(schema.STEP_PARTS)].idxmax())
    part_share = float(more[part]) / total_us if total_us > 0 else 0.0
    if part_share < _WORTH_NAMING:
        return _Extra(total_us)
    shares = shares_of(host)
    of_ops = _op_means(shares, part, slow["step"]).sub(_op_means(shares, part, others["step"]), fill_value=0.0)
    if of_ops.empty or of_ops.max() < _WORTH_NAMING * total_us:
        return _Extra(total_us, part, part_share)
    return _Extra(total_us, part, part_share, str(of_ops.idxmax()), float(of_ops.max()) / total_us)


def _op_means(shares: StepCells, part: str, steps: pd.Series) -> pd.Series:
    """The mean wall time of each op in a part of these steps; ops in a tf.data function count for its iterator."""
    own = shares.of_steps(steps).sums("wall_time_us")
    own = own[own["step_part"] == part]
    names = own["op_name"].mask(own["stage"] != "", own["stage"])
    times: pd.Series = own.groupby(names)["wall_time_us"].sum() / len(steps)
    return times


def with_stray(steps: pd.DataFrame, *, is_excluded: bool) -> pd.DataFrame:
    """The steps of all hosts of a run, of which those that are not on every host are not included, with its stray in
    the column `stray`, and without it in `included` if `is_excluded`.

    It is looked for among the run's included steps, each as long as on its slowest host.
    """
    steps = steps.assign(included=steps["included"] & are_on_all_hosts(steps))
    of_run = run_steps(steps)
    included = of_run["included"].to_numpy(np.bool_)
    times = of_run["duration_us"].to_numpy(np.float64)[included]
    position = stray_of(times) if len(of_run) >= _FEWEST_STEPS else None
    if position is None:
        return steps.assign(stray=False)
    is_stray = common_step_ids(steps) == of_run["step"].to_numpy()[included][position]
    return steps.assign(stray=is_stray, included=steps["included"] & ~(is_stray & is_excluded))


def stray_of(durations_us: npt.NDArray[np.float64]) -> int | None:
    """The position of the one step that is far longer than all others; None if there is none."""
    if len(durations_us) < 2:
        return None
    longest = int(durations_us.argmax())
    middle = float(np.median(durations_us))
    deviation = max(_MAD_OF_NORMAL * float(np.median(np.abs(durations_us - middle))), _LEAST_DEVIATION * middle)
    second = float(np.delete(durations_us, longest).max())
    is_far = durations_us[longest] > max(middle + _STRAY_DEVIATIONS * deviation, BEYOND_SECOND * second)
    return longest if is_far else None
