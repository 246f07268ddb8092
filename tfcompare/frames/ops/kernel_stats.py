"""`kernel_stats`: the kernels of one host's GPUs, by op and launch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.combinations import combinations, distinct, sums
from tfcompare.frames.ops.kernel_details import KERNEL_DETAILS, KernelDetails, is_kernel, parse_kernel_details
from tfcompare.frames.ops.launches import Launch, launches, stream_events
from tfcompare.frames.ops.tensor_cores import is_eligible, uses_tensor_cores
from tfcompare.frames.planes import device_planes
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema.kernels import KERNEL_STATS
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_VENDOR = "device_vendor"
_KEYS = [name for name in KERNEL_STATS.keys if name != "host"]
_FLAGS = ["is_op_tensor_core_eligible", "is_kernel_using_tensor_core"]


@dataclass(frozen=True, eq=False)
class Kernels:
    """`stats` has the columns of `schema.KERNEL_STATS`, longest total first; no rows if no GPU recorded a kernel.

    `cells` breaks them down by step, like `StepCells.cells`, without kernels outside all steps.
    """

    stats: pd.DataFrame
    cells: pd.DataFrame


def kernels_of(space: XSpace, host: str, steps: Steps) -> Kernels:
    """The kernels of one host.

    A kernel is an event on a recorded stream that has launch details and a duration, as in xprof.
    """
    rows = _kernels(space)
    if not len(rows):
        nothing = np.zeros(0, np.int64)
        return Kernels(KERNEL_STATS.empty(), _cells_of(nothing, nothing, nothing, steps))
    of_launch, combination = _launches(space, rows)
    duration_ps = space.events.duration_ps[rows]
    durations = pd.DataFrame({"combination": combination, "ps": duration_ps})
    times = durations.groupby("combination")["ps"].agg(occurrences="size", total_ps="sum", min_ps="min", max_ps="max")
    stats, row = _table(pd.concat([of_launch, times], axis=1), host)
    return Kernels(stats, _cells_of(row[combination], steps.of_event[rows], duration_ps, steps))


def _cells_of(row: Int64, step: Int32 | Int64, duration_ps: Int64, steps: Steps) -> pd.DataFrame:
    """The time and occurrences of each row in each step, from the row, step and duration of each kernel event.

    `step` is −1 outside all steps.
    """
    inside = step >= 0
    count = max(len(steps.number), 1)
    of_cell, code = distinct(row[inside] * count + step[inside], (int(row.max(initial=0)) + 1) * count)
    return pd.DataFrame(
        {
            "row": of_cell // count,
            "step": steps.number[of_cell % count] if len(of_cell) else of_cell,
            "occurrences": np.bincount(code, minlength=len(of_cell)).astype(np.int64),
            "time_us": sums(code, duration_ps[inside], len(of_cell)) / PS_PER_US,
        }
    )


def _kernels(space: XSpace) -> Int32:
    planes = [plane for plane in device_planes(space) if plane.event_count]
    rows = np.concatenate([stream_events(space, plane) for plane in planes]) if planes else np.zeros(0, np.int32)
    took_time = space.events.duration_ps[rows] > 0
    kernels: Int32 = rows[is_kernel(space)[rows] & took_time]
    return kernels


def _launches(space: XSpace, rows: Int32) -> tuple[pd.DataFrame, Int64]:
    """(the key columns and flags of each distinct combination, the combination of each event)."""
    size = len(space.events)
    details, equations = space.strings(KERNEL_DETAILS), space.strings("equation")
    launch, launched = launches(space, rows)
    columns: list[Int32 | Int64] = [
        launch, details.spread(size)[rows], equations.spread(size)[rows], space.plane_of_event[rows]
    ]  # fmt: skip
    firsts, combination = combinations(space.events.metadata[rows], *columns)
    parsed = [parse_kernel_details(label) for label in details.labels]
    vendors = [str(plane.stats.get(_VENDOR, "")) for plane in space.planes]
    cells = []
    for i in firsts.tolist():
        of_launch, of_details, of_equation, of_plane = (int(column[i]) for column in columns)
        equation = equations.labels[of_equation] if of_equation >= 0 else ""
        kernel = str(space.metadata_names[space.events.metadata[rows[i]]])
        cells.append(_cells(kernel, launched[of_launch], parsed[of_details], equation, vendors[of_plane]))
    return pd.DataFrame(cells), combination


def _cells(kernel: str, launch: Launch, details: KernelDetails, equation: str, vendor: str) -> dict[str, object]:
    op_name = launch.op.name if launch.op is not None else launch.xla_name
    is_used = uses_tensor_cores(kernel, vendor)
    return {
        "kernel_name": kernel,
        "op_name": op_name,
        **details._asdict(),
        "is_op_tensor_core_eligible": is_used or is_eligible(op_name, equation),
        "is_kernel_using_tensor_core": is_used,
    }


def _table(of_launch: pd.DataFrame, host: str) -> tuple[pd.DataFrame, Int64]:
    """(one row per distinct launch, the row of each combination). The input has one row per combination, in
    picoseconds."""
    of_launch = of_launch.astype({name: KERNEL_STATS.column(name).dtype for name in _KEYS})
    groups = of_launch.groupby(_KEYS, sort=False, dropna=False, as_index=False)
    rows = groups.agg(
        occurrences=("occurrences", "sum"),
        total_ps=("total_ps", "sum"),
        min_ps=("min_ps", "min"),
        max_ps=("max_ps", "max"),
        **{flag: (flag, "any") for flag in _FLAGS},
    )
    rows = rows.sort_values(
        ["total_ps", "kernel_name", "grid_dim", "block_dim", "op_name"], ascending=[False, *[True] * 4]
    )
    position = np.empty(len(rows), np.int64)
    position[rows.index] = np.arange(len(rows))
    table = KERNEL_STATS.conform(
        rows.assign(
            host=host,
            total_duration_us=rows["total_ps"] / PS_PER_US,
            avg_duration_us=rows["total_ps"] / rows["occurrences"] / PS_PER_US,
            min_duration_us=rows["min_ps"] / PS_PER_US,
            max_duration_us=rows["max_ps"] / PS_PER_US,
        ).reset_index(drop=True)
    )
    return table, position[groups.ngroup().to_numpy()]
