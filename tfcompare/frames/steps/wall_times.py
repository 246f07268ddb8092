"""Wall time of ops: each op's share of the parts of each step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.combinations import combinations
from tfcompare.frames.ops.op_parts import NO_WALL, OpEvents
from tfcompare.frames.ops.op_segments import op_segments
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.step_parts import Activities, explain, part_of_activity
from tfcompare.frames.steps.steps import Steps
from tfcompare.frames.tf_data.tf_data_functions import TfDataFunctions
from tfcompare.schema import STEP_PARTS
from tfcompare.xspace import XSpace

Int64 = npt.NDArray[np.int64]


def op_wall_times(
    space: XSpace, steps: Steps, ops: Sequence[OpEvents], functions: TfDataFunctions, activities: Activities
) -> tuple[Int64, pd.DataFrame]:
    """(time that each `Activity` explains of each step, in picoseconds; the wall times of `ops`).

    Wall times have the columns of `OpParts.wall`, but `part` and `stage` index the parts of all `ops` together, and
    `step` is a position. Empty if nothing marks steps. `activities` is the result of `find_activities`.
    """
    if not steps.has_markers:
        return np.zeros((len(steps.number), len(Activity)), np.int64), NO_WALL
    segments = op_segments(space, steps, ops, activities.of_event(space), functions)
    times, shares = explain(space, steps, activities, segments)
    step_part = part_of_activity(segments.activity)
    first, cell = combinations(segments.stage, segments.op, segments.step * len(STEP_PARTS) + step_part)
    total = np.bincount(cell, shares, len(first))
    wall = pd.DataFrame(
        {
            "part": segments.op[first].astype(np.int32),
            "step": segments.step[first],
            "step_part": step_part[first].astype(np.int8),
            "stage": segments.stage[first].astype(np.int32),
            "wall_time_ps": total,
        }
    )
    return times, wall[total > 0].reset_index(drop=True)


def wall_of_parts(ops: Sequence[OpEvents], wall: pd.DataFrame, step_numbers: Int64) -> pd.DataFrame:
    """`OpParts.wall`, renumbered for `ops` without the parts that have no events."""
    if wall.empty:
        return NO_WALL
    by_plane, first = [], 0
    for plane in ops:
        used = np.unique(plane.part)
        of_plane = np.full(len(plane.parts), -1)
        of_plane[used] = first + np.arange(len(used))
        by_plane.append(of_plane)
        first += len(used)
    new_part = np.concatenate([*by_plane, [-1]]).astype(np.int32)
    return wall.assign(part=new_part[wall["part"]], stage=new_part[wall["stage"]], step=step_numbers[wall["step"]])[
        list(NO_WALL)
    ]
