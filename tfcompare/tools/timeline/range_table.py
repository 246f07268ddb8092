"""What ran in a range of the common axis on each side, op by op, with how much of the range that covers."""

from __future__ import annotations

import pandas as pd

from tfcompare.compare.diff import change
from tfcompare.schema import DEVICE, HOST, SIDES, SPARSE_CORE
from tfcompare.tools.timeline.aligned import Aligned
from tfcompare.tools.timeline.drawing import Viewport, axes
from tfcompare.tools.timeline.ops_in_range import wall_times
from tfcompare.tools.timeline.pairs import OP


def range_table(aligned: Aligned, look: Viewport, range_us: tuple[float, float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(the ops that ran in the range, the largest change first; how much of the range they cover).

    The first has one row for each op: `host_or_device`, `op_type`, `op_name`, and for each side
    `wall_time_us_<role>`, `occurrences_<role>` (0 where it did not run), and `wall_time_us_delta`. An instant is
    divided equally among the ops that run then at one place (the device, SparseCores, the host), so the times of each
    add up to the time in which any op ran there. The second has `host_or_device` and `<role>`: that time as a share of
    the range.
    """
    timelines = aligned.timelines
    parts, coverage = [], []
    for place in (DEVICE, SPARSE_CORE, HOST):
        sides, shares = [], {}
        for number, (side, axis) in enumerate(zip(timelines.sides, axes(aligned, look), strict=True)):
            lanes = [
                lane for pair in timelines.lanes if pair.place == place and (lane := pair.lanes[number]) is not None
            ]
            times, share = wall_times(
                side.timeline, lanes, timelines.op_rows(number), (axis.ps(range_us[0]), axis.ps(range_us[1]))
            )
            sides.append(times.add_suffix(f"_{SIDES[number]}"))
            shares[SIDES[number]] = share
        parts.append(pd.concat(sides, axis=1).fillna(0.0))
        coverage.append({"host_or_device": place} | shares)
    rows = pd.concat(parts)
    table = timelines.op_stats.loc[rows.index, list(OP)].reset_index(drop=True).join(rows.reset_index(drop=True))
    size = table["wall_time_us_baseline"]
    if len(timelines.sides) > 1:
        table["wall_time_us_delta"] = change(table["wall_time_us_baseline"], table["wall_time_us_candidate"])
        size = table["wall_time_us_delta"].abs()
    order = size.sort_values(ascending=False, kind="stable").index
    used = [one for one in coverage if any(one.get(role, 0.0) for role in SIDES)]
    return table.loc[order].reset_index(drop=True), pd.DataFrame(used, columns=["host_or_device", *shares])
