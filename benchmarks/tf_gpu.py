"""What TensorFlow records on an NVIDIA GPU: a transformer trained by Adam in mixed precision, fed by tf.data.

Streams, kernels, copies and their stats are as TensorFlow 2.5 and later write them, with no derived lines.
"""

from __future__ import annotations

import numpy as np

from benchmarks.gpu_kernels import COPY_TO_DEVICE, COPY_TO_HOST, SET, GpuOp, Work, copy, training_step
from benchmarks.recording import Changing, Constant, Plane, Recording, Step, Values
from benchmarks.tf_host import FUNCTION, GAP_NS, HostStep, Tensors, Threads, new_iterators

_VARIANTS = 8
_COMPUTE, _EVENT_MANAGER = 1, 2
_THREADS = Threads(python=0, iterators=(3, 4), workers=(5, 6))
_HOST_LINES = (
    "python",
    "tf_Compute",
    "tf_GPU_Event_Manager",
    *["tf_data_iterator_resource"] * 2,
    *["tf_data_private_threadpool"] * 2,
)
_STREAM = {"": 7, COPY_TO_DEVICE: 8, COPY_TO_HOST: 9, SET: 7}
_DEVICE_LINES = ("Stream #13(Compute)", "Stream #14(MemcpyH2D)", "Stream #15(MemcpyD2H)")
_DEVICE: dict[str, Constant] = {
    "device_vendor": "Nvidia",
    "clock_rate": 1_410_000,
    "core_count": 108,
    "memory_bandwidth": 1_555_000_000_000,
    "memory_size": 42_505_273_344,
    "compute_cap_major": 8,
    "compute_cap_minor": 0,
}
_DEVICE_BYTES = 40_000_000_000
_CALLS = {
    "": "cuLaunchKernel",
    COPY_TO_DEVICE: "cuMemcpyHtoDAsync_v2",
    COPY_TO_HOST: "cuMemcpyDtoHAsync_v2",
    SET: "cuMemsetD32Async",
}
_LAUNCHES_A_STEP = 1 << 16
_CONTEXT = "$$1"
_LAUNCH_US, _PREPARING_US, _READING_US = 3.5, 2.5, 0.6
_UNTIL_STARTED_NS = 1_200
_BETWEEN_KERNELS_NS = 1_000


def recording(seed: int, layers: int) -> Recording:
    """A recording of a model of so many transformer layers."""
    rng = np.random.default_rng(seed)
    planes = (Plane("/host:CPU", _HOST_LINES), Plane("/device:GPU:0", _DEVICE_LINES, dict(_DEVICE)))
    ops, iterators = training_step(layers), new_iterators(rng)
    steps = [_Simulation(HostStep(planes, _THREADS, iterators, rng)).step(ops) for _ in range(_VARIANTS)]
    return Recording(planes, tuple(steps))


class _Simulation:
    """One step: the executor launches, the device follows."""

    def __init__(self, host: HostStep) -> None:
        self._host = host
        self._memory = Tensors("GPU_0_bfc", _DEVICE_BYTES, host.rng)
        self._launches = 0
        self._device_free = 1_000

    def step(self, ops: list[GpuOp]) -> Step:
        """All of it, in which the device runs these ops."""
        host, python = self._host, self._host.threads.python
        begin = host.get_next(20_000, mean_us=60) + 40_000
        step_id, run_id = host.new_id(), host.new_id()
        self._run_ops(ops, begin + 60_000, step_id, run_id)
        copied = self._launch(python, host.free[_COMPUTE] + 20_000, copy(COPY_TO_HOST, 4)) + 30_000
        finished = max(copied, self._device_free + 10_000)
        self._free_behind(finished)
        host.train_step(begin, finished, step_id, run_id)
        host.mark(15_000, finished + 60_000)
        host.fill_batch()
        host.tensors.write(host.add, python, step_id)
        self._memory.write(host.add, _EVENT_MANAGER, step_id)
        return host.build(max(finished + 80_000, *(t + 5_000 for t in host.free.values())))

    def _run_ops(self, ops: list[GpuOp], begin: int, step_id: Changing, run_id: Changing) -> None:
        """The ops in groups, each a closure on the executor's thread."""
        host, done = self._host, 0
        context, ready = host.record(host.threads.python, begin - 55_000), begin
        process: Values = {"id": step_id, "iter_num": 0, "_ct": FUNCTION, "_c": run_id}
        while done < len(ops):
            size = 1 + min(int(host.rng.geometric(0.03)), 100)
            start = max(host.free[_COMPUTE] + host.draw(2), ready)
            following = host.record(_COMPUTE, start + 2 * GAP_NS)
            at = host.begin_region(_COMPUTE, start, context)
            for op in ops[done : done + size]:
                at = self._run_op(op, at)
            host.end_region(_COMPUTE, start, at, process)
            context, done = following, done + size

    def _run_op(self, op: GpuOp, begin: int) -> int:
        """An op on the host: what it allocates, what it launches. Returns its end."""
        host = self._host
        at = begin + host.draw(_PREPARING_US if op.work else _READING_US)
        if op.output_bytes:
            self._memory.allocate(_COMPUTE, begin + 200, op.output_bytes, op.name, op.shape)
        name = f"{op.name}:{op.kind}"
        for work in op.work:
            at = self._launch(_COMPUTE, at, work, annotation=name, tf_op=name)
        end = at + GAP_NS
        host.add(_COMPUTE, name, begin, end)
        if op.workspace_bytes:
            self._memory.borrow(_COMPUTE, begin + 250, end - 100, op.workspace_bytes, op.name, op.shape)
        if op.is_backward:
            self._memory.free_one(_COMPUTE, end + 100)
        return end + GAP_NS

    def _launch(self, line: int, begin: int, work: Work, **op: str) -> int:
        """A call on the host, and what it leads to on the device, for this op, once that gets to it. Returns the call's
        end."""
        host = self._host
        self._launches += 1
        call: Values = {
            "device_id": 0,
            "context_id": _CONTEXT,
            "correlation_id": Changing(self._launches, _LAUNCHES_A_STEP),
        }
        details: Values = {work.stat: work.details}
        end = begin + host.draw(_LAUNCH_US)
        host.add(line, _CALLS[work.kind], begin, end, **call, **(details if work.kind else {}))
        start = max(self._device_free + _BETWEEN_KERNELS_NS, end + _UNTIL_STARTED_NS)
        self._device_free = start + host.draw(work.mean_us)
        host.add(_STREAM[work.kind], work.name, start, self._device_free, **call, **details, **op)
        return end + GAP_NS

    def _free_behind(self, finished: int) -> None:
        """The event manager lets go of what kernels have used, as it hears of their end."""
        for i in range(6):
            self._memory.free_one(_EVENT_MANAGER, finished - 9_000 + 1_000 * i)
