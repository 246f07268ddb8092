"""How many iterations a step of one side has, each of them the work of a step of the other.

Keras runs several batches a step with `steps_per_execution`; a scan runs several microbatches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.attribution import OP
from tfcompare.compare.comparability import examples_per_step
from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.fused_rows import single_ops
from tfcompare.compare.matching.tiers import FUSED
from tfcompare.compare.per_device import computing_devices
from tfcompare.compare.stats.step_series import usual_step
from tfcompare.schema import DEVICE, HOST, OP_STATS, SIDES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfcompare.compare.side import Side

Iterations = tuple[int, int]
"""Of a step of the baseline, and of the candidate; at least one of them is 1."""
ALIKE: Iterations = (1, 1)
LEAST_SHARE = 0.9
"""Of the time of matched ops, in those that occur equally many times as often: others, such as the update after several
microbatches, may occur once a step. A single op that a change makes more frequent rarely takes that much."""
LEAST_MATCHED = 0.5
"""Of the time of all ops, in matched ones: the work of steps of mostly different programs cannot be compared."""
_LEAST_COUNTED = 0.01
"""Of the time, in ops of one number of occurrences: so at most 100 numbers a side are set against each other."""
_DIGITS = 6


def iterations_per_step(sides: tuple[Side, Side], matched: Callable[[], pd.DataFrame]) -> Iterations:
    """The iterations of a step on both sides: (1, 8) if a step of the candidate does 8 times the work of one of the
    baseline, `ALIKE` if it does as much or nobody knows.

    It does n times the work if the ops that take `LEAST_SHARE` of the time of matched ops on devices, on hosts where no
    device ran any, occur n times as often in the usual step, by device or host; and if it handles n times the examples,
    where these are known. `matched` gives the diff of `op_stats`, which is made only if the numbers of occurrences on
    both sides leave a chance. Of several captures, the first tells.
    """
    found = [_usual_ops(side) for side in sides]
    where = DEVICE if all((ops["host_or_device"] == DEVICE).any() for ops in found) else HOST
    found = [ops[ops["host_or_device"] == where] for ops in found]
    if not _may_differ(*found):
        return ALIKE
    diff = matched()
    diff = diff[(diff["status"] == MATCHED) & (diff["match"] != FUSED) & (diff["host_or_device"] == where)]
    ours, theirs = (
        ops.set_index(list(OP)).reindex(pd.MultiIndex.from_frame(single_ops(diff, name)[list(OP)]))
        for name, ops in zip(SIDES, found, strict=True)
    )
    whole_us = [ops["time_us"].sum() for ops in found]
    if any(of["time_us"].sum() < LEAST_MATCHED * us for of, us in zip((ours, theirs), whole_us, strict=True)):
        return ALIKE
    with np.errstate(divide="ignore", invalid="ignore"):
        times = (theirs["occurrences"].to_numpy() / ours["occurrences"].to_numpy()).round(_DIGITS)
    shares = [of["time_us"].groupby(times).sum() / of["time_us"].sum() for of in (ours, theirs)]
    least = pd.concat(shares, axis=1).min(axis=1)
    if least.empty or least.max() < LEAST_SHARE:
        return ALIKE
    often = float(least.index.to_numpy(np.float64)[least.argmax()])
    if not 0 < often < np.inf:
        return ALIKE
    iterations = (1, round(often)) if often >= 1 else (round(1 / often), 1)
    is_whole = round(iterations[1] / iterations[0], _DIGITS) == often
    return iterations if is_whole and _agrees_with_examples(sides, iterations) else ALIKE


def _usual_ops(side: Side) -> pd.DataFrame:
    """`OP`, `time_us` in all steps and `occurrences` in the usual step of one device or host, of the first capture."""
    run, host = side.run, side.host
    cells, steps = side.cells(0, OP_STATS.name), side.steps(0)
    time_us, occurrences = usual_step(cells, steps.numbers[: len(steps.included)])
    on_device = (cells.keys["host_or_device"] == DEVICE).to_numpy()
    places = np.where(on_device, computing_devices(run, host), len(run.host_names) if host is None else 1)
    return cells.keys[list(OP)].assign(time_us=time_us, occurrences=occurrences / places)


def _may_differ(ours: pd.DataFrame, theirs: pd.DataFrame) -> bool:
    """Whether ops of `_usual_ops` could be matched so that enough time is in some that occur n times as often."""
    times = [ops.groupby("occurrences")["time_us"].sum() for ops in (ours, theirs)]
    shares = [of_count[of_count.index > 0] / of_count.sum() for of_count in times]
    before, after = (of_count[of_count >= _LEAST_COUNTED] for of_count in shares)
    if before.empty or after.empty:
        return False
    ratios = np.divide.outer(after.index.to_numpy(), before.index.to_numpy()).round(_DIGITS)
    often, which = np.unique(ratios, return_inverse=True)
    of_after, of_before = np.broadcast_arrays(after.to_numpy()[:, np.newaxis], before.to_numpy())
    covered = np.minimum(*(np.bincount(which.ravel(), of.ravel()) for of in (of_before, of_after)))
    ignored = 1 - min(before.sum(), after.sum())
    return bool((covered[often != 1] + ignored >= LEAST_SHARE * LEAST_MATCHED).any())


def _agrees_with_examples(sides: tuple[Side, Side], iterations: Iterations) -> bool:
    """Whether the examples per step of a host on both sides are as many times as many, or unknown."""
    ours, theirs = (
        examples_per_step(side.run, side.host) / (len(side.run.host_names) if side.host is None else 1)
        for side in sides
    )
    return not (ours > 0 and theirs > 0) or ours * iterations[1] == theirs * iterations[0]
