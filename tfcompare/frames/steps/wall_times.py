"""Wall time of ops: each op's share of the parts of each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.grouping import combinations, distinct
from tfcompare.frames.host_annotations import HostAnnotations
from tfcompare.frames.ops.op_parts import OpEvents, OpParts
from tfcompare.frames.ops.op_segments import AROUND, concat, op_segments
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.step_parts import Activities, explain, part_of_activity
from tfcompare.frames.steps.steps import Steps
from tfcompare.frames.tf_data.tf_data_functions import TfDataFunctions
from tfcompare.schema.arrays import Int64
from tfcompare.xspace import XSpace


class WallTimes(NamedTuple):
    """How the time of each step is explained.

    `activities` is the time that each `Activity` (columns) explains of each step (rows), in picoseconds. `wall` is the
    table `op_wall`: part, step (its number), step_part (a position in `schema.STEP_PARTS`), stage (the part of the
    tf.data iterator that the op worked for, −1 for none) and wall_time_ps, the op's share of that part of the step;
    part and stage are rows of `op_parts`. `totals` is `op_wall_totals`: part, and wall_time_ps in all steps together.
    `annotations` is `annotation_wall`: the same for the rows of `host_annotations`, of the time in which no op runs;
    their time between the steps has step and part −1.
    """

    activities: Int64
    wall: pa.Table
    totals: pa.Table
    annotations: pa.Table


def op_wall_times(
    space: XSpace,
    steps: Steps,
    ops: Sequence[OpEvents],
    parts: OpParts,
    functions: TfDataFunctions,
    activities: Activities,
    annotations: HostAnnotations,
) -> WallTimes:
    """The wall times of `ops`, and of what encloses them; none if nothing marks steps, nor in steps that were not
    recorded as a whole; `parts` are the parts of `ops`, `activities` the result of `find_activities`."""
    if not steps.has_markers:
        times = np.zeros((len(steps.number), len(Activity)), np.int64)
        return WallTimes(times, empty("op_wall"), empty("op_wall_totals"), empty("annotation_wall"))
    of_ops = op_segments(space, steps, ops, activities.of_event(space), functions)
    around = annotations.segments(steps, activities, len(parts.row))
    segments = concat([of_ops, around]) if len(around.op) else of_ops
    times, shares = explain(space, steps, activities, segments)
    step_part = part_of_activity(segments.activity)
    first, cell = combinations(segments.stage, segments.op, segments.step, step_part)
    wall_ps = np.bincount(cell, shares, len(first))
    counts = (wall_ps > 0) & ~steps.is_lost[segments.step[first]]
    is_around = counts & (segments.rank[first] == AROUND)
    between = annotations.between_steps(steps)
    outside = {
        "annotation": segments.op[first[is_around]] - len(parts.row),
        "step": steps.number[segments.step[first[is_around]]],
        "step_part": step_part[first[is_around]],
        "wall_time_ps": wall_ps[is_around],
    }
    outside = {name: np.concatenate([values, between[name]]) for name, values in outside.items()}
    counts &= ~is_around
    first, wall_ps = first[counts], wall_ps[counts]
    part, row = parts.row[segments.op[first]], np.append(parts.row, -1)
    used, code = distinct(part.astype(np.int64), len(parts.parts))
    wall = {
        "part": part,
        "step": steps.number[segments.step[first]],
        "step_part": step_part[first],
        "stage": row[segments.stage[first]],
        "wall_time_ps": wall_ps,
    }
    totals = {"part": used.astype(np.int32), "wall_time_ps": np.bincount(code, wall_ps, len(used))}
    tables = (host_table("op_wall", wall), host_table("op_wall_totals", totals), host_table("annotation_wall", outside))
    return WallTimes(times, *tables)
