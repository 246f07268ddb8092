"""`kernel_stats`: the kernels of one host's GPUs, by op and launch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.grouping import any_of, cells_by_step, combinations, largest, sums
from tfcompare.frames.ops.kernel_details import KERNEL_DETAILS, is_kernel, parse_kernel_details
from tfcompare.frames.ops.launches import launches
from tfcompare.frames.ops.tensor_cores import is_eligible, uses_tensor_cores
from tfcompare.frames.planes import device_rows
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

_VENDOR = "device_vendor"
_FLAGS = ["is_op_tensor_core_eligible", "is_kernel_using_tensor_core"]


class _Key(NamedTuple):
    """What identifies a row of `kernel_stats` of one host."""

    kernel_name: str
    op_name: str
    block_dim: str
    grid_dim: str
    registers_per_thread: int | None
    shared_memory_bytes: int | None


@dataclass(frozen=True, eq=False)
class Kernels:
    """`stats` is the table `kernel_stats`, longest total first; no rows if no GPU recorded a kernel.

    `cells` is `kernel_cells`, which breaks them down by step, without kernels outside all steps: row (in `stats`), step
    (its number), occurrences and time_us.
    """

    stats: pa.Table
    cells: pa.Table


def kernels_of(space: XSpace, steps: Steps) -> Kernels:
    """The kernels of one host.

    A kernel is an event on a recorded stream that has launch details and a duration, as in xprof.
    """
    rows = _kernels(space)
    if not len(rows):
        return Kernels(empty("kernel_stats"), empty("kernel_cells"))
    keys, flags, row = _rows(space, rows)
    duration_ps, count = space.events.duration_ps[rows], len(keys)
    occurrences, total_ps = np.bincount(row, minlength=count), sums(row, duration_ps, count)
    order = np.array(_longest_first(keys, total_ps.tolist()), np.int64)
    position = np.empty(count, np.int64)
    position[order] = np.arange(count)
    stats = {
        **dict(zip(_Key._fields, zip(*(keys[i] for i in order.tolist()), strict=True), strict=True)),
        "occurrences": occurrences[order],
        "total_duration_us": total_ps[order] / PS_PER_US,
        "avg_duration_us": (total_ps / occurrences)[order] / PS_PER_US,
        "min_duration_us": -largest(row, -duration_ps, count)[order] / PS_PER_US,
        "max_duration_us": largest(row, duration_ps, count)[order] / PS_PER_US,
        **{name: of_row[order] for name, of_row in flags.items()},
    }
    cells = _cells_of(position[row], steps.of_event[rows], duration_ps, steps)
    return Kernels(host_table("kernel_stats", stats), cells)


def _kernels(space: XSpace) -> Int32:
    rows = device_rows(space)
    took_time = space.events.duration_ps[rows] > 0
    kernels: Int32 = rows[is_kernel(space)[rows] & took_time]
    return kernels


def _rows(space: XSpace, rows: Int32) -> tuple[list[_Key], dict[str, Bools], Int64]:
    """(the key of each row of the table, its flags by column, the row of each event)."""
    size, metadata = len(space.events), space.events.metadata[rows]
    details, equations = space.strings(KERNEL_DETAILS), space.strings("equation")
    launch, launched = launches(space, rows)
    columns = (metadata, launch, details.spread(size)[rows], equations.spread(size)[rows])
    firsts, combination = combinations(*columns)
    parsed = [parse_kernel_details(label) for label in details.labels]
    vendors = [str(plane.stats.get(_VENDOR, "")) for plane in space.planes]
    is_kernel_using, is_op_eligible = cache(uses_tensor_cores), cache(is_eligible)
    keys: dict[_Key, int] = {}
    found = []
    for entry, of_launch, of_details, of_equation in zip(*(column[firsts].tolist() for column in columns), strict=True):
        kernel, it = str(space.metadata_names[entry]), launched[of_launch]
        op_name = it.op.name if it.op is not None else it.xla_name
        equation = equations.labels[of_equation] if of_equation >= 0 else ""
        is_used = is_kernel_using(kernel, vendors[space.metadata_plane[entry]])
        row = keys.setdefault(_Key(kernel, op_name, *parsed[of_details]), len(keys))
        found.append((row, is_used or is_op_eligible(op_name, equation), is_used))
    of_combination, *flags = np.array(found, np.int64).T
    flags_of_row = [any_of(of_combination, flag > 0, len(keys)) for flag in flags]
    return list(keys), dict(zip(_FLAGS, flags_of_row, strict=True)), of_combination[combination]


def _longest_first(keys: list[_Key], total_ps: list[int]) -> list[int]:
    """The order of the rows: by total time, then by their texts."""
    return sorted(
        range(len(keys)),
        key=lambda i: (-total_ps[i], keys[i].kernel_name, keys[i].grid_dim, keys[i].block_dim, keys[i].op_name),
    )


def _cells_of(row: Int64, step: Int32, duration_ps: Int64, steps: Steps) -> pa.Table:
    """The time and occurrences of each row in each step, from the row, step and duration of each kernel event.

    `step` is −1 outside all steps.
    """
    rows, numbers, inside, code = cells_by_step(row, step, steps.number)
    return host_table(
        "kernel_cells",
        {
            "row": rows,
            "step": numbers,
            "occurrences": np.bincount(code, minlength=len(rows)),
            "time_us": sums(code, duration_ps[inside], len(rows)) / PS_PER_US,
        },
    )
