"""Loops whose truth is known: each step runs these ops one after the other, on the host or as kernels on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from tests.frames.tables import run_of
from tests.xspace_builder import Event, Plane, Ref, event, line, plane, space
from tfcompare.run import Run

Step = tuple[str, Sequence[tuple[str, float]]]
"""The marker, and the ops in order, each with its time in µs; one without a name is a pause."""
_DETAILS = "regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:64,1,1 occ_pct:50"


def loop(steps: Sequence[Step], *, on_devices: int = 0, seed: int = 0) -> Run:
    """The run of a loop. The times vary by 1 % from step to step, in another order for another `seed`.

    With `on_devices`, the host launches a kernel for each op on each of so many devices and waits for it, unless the
    op's name begins with `host/`.
    """
    host: list[Event] = []
    kernels: list[Event] = []
    now = 0.0
    for number, (marker, ops) in enumerate(steps):
        begin = now
        now += 10
        for name, time_us in ops:
            if not name:
                now += time_us
                continue
            took = time_us * (1 + 0.01 * ((number * 7 + seed * 3) % 5 - 2) / 2)
            if on_devices and not name.startswith("host/"):
                correlation = len(kernels) + 1
                host.append(event("cuLaunchKernel", now, 2, correlation_id=correlation))
                stats = {"correlation_id": correlation, "tf_op": f"{name}:MatMul", "kernel_details": Ref(_DETAILS)}
                kernels.append(event(f"gemm_{name.rpartition('/')[2]}", now + 3, took, stats))
                now += took + 4
            else:
                host.append(event(f"{name}:MatMul", now, took))
                now += took + 2
        now += 10
        host.append(event(marker, begin, now - begin, _r=1, step_num=number))
        now += 5
    host.sort(key=lambda one: (one.offset_ps, -one.duration_ps))
    planes: list[Plane] = [plane("/host:CPU", line("python", *host, id=1), id=1)]
    planes += [
        plane(f"/device:GPU:{device}", line("Stream #7(Compute)", *kernels, id=7), id=2 + device)
        for device in range(on_devices)
    ]
    return run_of(space(*planes))
