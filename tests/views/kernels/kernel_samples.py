"""Small diffs of kernels and copies, shaped like those of real runs."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import SideRows, diff_table

STEPS = 2
SLOW = [  # kernel, op, launches and time per step, eligible, on tensor cores
    ("gemm_hmma", "dense/MatMul", 2, 600.0, True, True),
    ("conv", "conv/Conv2D", 1, 100.0, True, False),
    ("relu", "conv/Relu", 6, 300.0, False, False),
]
FAST = [
    ("new_gemm", "dense/MatMul", 2, 150.0, True, False),
    ("conv", "conv/Conv2D", 1, 50.0, True, False),
    ("relu", "conv/Relu", 5, 100.0, False, False),
]


def kernel_stats(rows: list[tuple[str, str, int, float, bool, bool]]) -> pd.DataFrame:
    """A `kernel_stats` frame of `STEPS` steps."""
    frame = pd.DataFrame([_kernel(*row) for row in rows], columns=schema.KERNEL_STATS.column_names)
    return schema.KERNEL_STATS.conform(frame)


def _kernel(name: str, op: str, count: int, us: float, eligible: bool, used: bool) -> dict[str, Any]:
    return {
        "host": "worker",
        "kernel_name": name,
        "op_name": op,
        "block_dim": "256,1,1",
        "grid_dim": "8,1,1",
        "registers_per_thread": 32,
        "shared_memory_bytes": 0,
        "occurrences": count * STEPS,
        "total_duration_us": us * STEPS,
        "avg_duration_us": us / count,
        "min_duration_us": us / count,
        "max_duration_us": us / count,
        "is_op_tensor_core_eligible": eligible,
        "is_kernel_using_tensor_core": used,
    }


@cache
def kernel_diff(*, swap: bool = False, same: bool = False) -> pd.DataFrame:
    """The diff of the slow and the fast run's kernels, per step; `swap` the other way round, `same` slow with slow."""
    frames = [kernel_stats(SLOW), kernel_stats(SLOW if same else FAST)]
    sides = [SideRows(frame, STEPS) for frame in (reversed(frames) if swap else frames)]
    return diff_table(schema.KERNEL_STATS, "fast", sides[0], sides[1], identical=same)


@cache
def copies_diff() -> pd.DataFrame:
    """The diff of two runs' copies, per step."""
    frames = [
        schema.COPIES.conform(
            pd.DataFrame(
                {
                    "host": "worker",
                    "device": "/device:GPU:0",
                    "kind": ["host to device", "device to host", "memory set"],
                    "occurrences": [2, 2, 2],
                    "size_bytes": [3000, 1000, 50_000],
                    "duration_us": [30.0 * factor, 10.0 * factor, 2.0],
                    "bandwidth_bytes_per_s": [1e8 / factor, 1e8 / factor, 2.5e10],
                }
            )
        )
        for factor in (1.0, 0.5)
    ]
    sides = [SideRows(frame, STEPS) for frame in frames]
    return diff_table(schema.COPIES, "fast", sides[0], sides[1], identical=False)
