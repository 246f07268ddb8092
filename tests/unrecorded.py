"""A program on a GPU, whose truth is known, as profilers record it that lose some or all of what the GPU did."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tests.frames.tables import run_of, threads
from tests.xspace_builder import event, line, plane, space
from tfcompare.run import Run

PERIOD_US = 2_000.0
"""From step to step; the work of a step takes 1,500 µs on the GPU."""
NO_CUPTI = "Failed to load libcupti (is it installed and accessible?)"
DROPPED = "Detected GPU events dropped on worker: Profiler has collected 1000 driver events."


def profile(
    recorded: Collection[int] | None = None,
    *,
    steps: int = 30,
    waits: bool = False,
    complaint: str = "",
    has_plane: bool = True,
    has_launches: bool = True,
    kernel_us: float = 700.0,
) -> bytes:
    """The profile of `steps` steps of two kernels each; the GPU's work is recorded in the steps `recorded`, by default
    in all.

    The host `waits` for the GPU in each step, or only dispatches it, in 100 µs, 50 of them for an op of its own.
    """
    recorded = range(steps) if recorded is None else recorded
    host, kernels = [], []
    for i in range(steps):
        at = i * PERIOD_US
        host.append(event("train", at, 1_800 if waits else 100, _r=1, step_num=i))
        host.append(event("loader/Decode:DecodeJpeg", at + 20, 50))
        for k in range(2):
            launch = {"correlation_id": 10 * i + k + 1}
            if has_launches:
                host.append(event("cuLaunchKernel", at + 10 + k, 1, launch))
            if i in recorded:
                details = {"tf_op": f"dense_{k}/MatMul:MatMul", "kernel_details": "regs:32 block:64,1,1 grid:8,1,1"}
                kernels.append(event(f"gemm_{k}", at + 50 + 750 * k, kernel_us, launch | details))
    device = [plane("/device:GPU:0", line("Stream #1", *kernels, id=7))] if has_plane else []
    return space(threads(host), *device, errors=[complaint] if complaint else ())


def program(recorded: Collection[int] | None = None, **options: Any) -> Run:
    """The run of a `profile` with these options."""
    return run_of(profile(recorded, **options))
