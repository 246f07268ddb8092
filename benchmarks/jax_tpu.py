"""What JAX records on four cores of a TPU host: a transformer trained by one program, fed by tf.data.

Lines, names and stats are those of real recordings: a program's ops by the device's own clock, some of them loops
around others, copies beside them, and the host's threads that prepare, enqueue and wait.
"""

from __future__ import annotations

import numpy as np

from benchmarks.recording import (
    NUMBERED,
    Changing,
    Clock,
    Constant,
    Described,
    Plane,
    Recording,
    Step,
    Values,
    number,
)
from benchmarks.tf_host import HostStep, Threads, new_iterators
from benchmarks.tpu_program import MODULE, PROGRAM_ID, Instruction, instructions

_VARIANTS = 6
_CORES = 4
_THREADS = Threads(python=0, iterators=(1, 2), workers=(3, 4))
_EXECUTE = (5, 6, 7, 8)
_CALLBACKS = 9
_HOST_LINES = (
    "main",
    *["tf_data_iterator_resource"] * 2,
    *["tf_data_private_threadpool"] * 2,
    *["py_xla_execute"] * _CORES,
    "EventFDAsyncWorker",
)
_DEVICE_LINES = ("Steps", "XLA Modules", "XLA Ops", "Async XLA Ops")
_STEPS, _MODULES, _OPS, _ASYNC = range(len(_DEVICE_LINES))
_DEVICE: dict[str, Constant] = {
    "device_type_string": "TPU v6 Lite",
    "peak_teraflops_per_second": 918.0,
    "peak_hbm_bw_gigabytes_per_second": 1637.993152512,
    "peak_cmem_rd_bw_gigabytes_per_second": 0.0,
    "peak_cmem_wr_bw_gigabytes_per_second": 0.0,
    "peak_vmem_rd_bw_gigabytes_per_second": 23296.0099876864,
    "peak_vmem_wr_bw_gigabytes_per_second": 16128.031693209601,
    "has_megacore": 0,
    "has_merged_vmem": 1,
}
_CLOCKED: Values = {"device_offset_ps": Clock.BEGIN, "device_duration_ps": Clock.DURATION}
_ENQUEUED = 12  # the kind of context by which a program on the device is linked to the host (`_pt`, `_ct`)
_STEP_BEGIN_NS = 10_000  # since the one before ended, as on real TPUs: with the wait for input
_BUFFERS = 6
_BUFFER_BYTES = 8 << 20
_DEVICE_BYTES = 33_550_236_672
_RESERVED_BYTES = 5_414_912
_SPREAD = 0.06  # of an op's time, from core to core and from step to step


def recording(seed: int, layers: int) -> Recording:
    """A recording of a model of so many transformer layers."""
    rng = np.random.default_rng(seed)
    program = instructions(layers)
    host = Plane("/host:CPU", _HOST_LINES)
    cores = [
        Plane(
            f"/device:TPU:{core}",
            _DEVICE_LINES,
            {"core_details": _core_details(core), **_DEVICE},
            _described(program),
            is_numbered=True,
        )
        for core in range(_CORES)
    ]
    iterators = new_iterators(rng)
    steps = [_Simulation(HostStep([host, *cores], _THREADS, iterators, rng)).step(program) for _ in range(_VARIANTS)]
    return Recording((host, *cores), tuple(steps))


def _core_details(core: int) -> bytes:
    """XLA's message on where the core is: numbers of chip and core, on this host and among all."""
    return number(2, core) + number(4, core) + number(5, _CORES + core) + number(6, _CORES + core)


def _described(program: list[Instruction]) -> dict[str, Described]:
    out: dict[str, Described] = {}
    waiting = list(program)
    for instruction in waiting:
        out[instruction.text] = Described(instruction.name, instruction.stats)
        waiting += instruction.body
    return out


class _Simulation:
    """One step: the host takes a batch and enqueues the program on each core, the cores run it side by side."""

    def __init__(self, host: HostStep) -> None:
        self._host = host
        self._flows = 0

    def step(self, program: list[Instruction]) -> Step:
        """All of it."""
        host = self._host
        begin = host.get_next(20_000, mean_us=80) + 30_000
        enqueued = [self._enqueue(core, begin + 40_000) for core in range(_CORES)]
        self._dispatch(begin, begin + 60_000)
        at = np.array([end + 30_000 for end, _ in enqueued])
        begun = at.copy()
        for instruction in program:
            at = self._run(instruction, at)
        for core, (_, run) in enumerate(enqueued):
            self._end(core, int(begun[core]), int(at[core]), run)
        finished = int(at.max()) + 60_000
        host.mark(15_000, finished)
        host.fill_batch()
        host.tensors.write(host.add, host.threads.python, Changing(0, 0))
        return host.build(max(finished + 40_000, *(t + 5_000 for t in host.free.values())))

    # On the host.

    def _dispatch(self, begin: int, end: int) -> None:
        python = self._host.threads.python
        self._host.chain(begin, end, ("PjitFunction(train_step)", {}), ("PjitFunction(train_step)", {}))
        self._host.add(python, "ParseArguments", begin + 2_000, begin + 6_000)
        self._host.add(python, "PJRT_LoadedExecutable_Execute", begin + 8_000, end - 4_000)

    def _enqueue(self, core: int, begin: int) -> tuple[int, Changing]:
        """A core's thread allocates and enqueues: (when that is done, the context that links the program to it)."""
        host, line = self._host, _EXECUTE[core]
        begin += 2_000 * core + host.draw(4)
        at, run = begin + 8_000, host.new_id()
        for buffer in range(_BUFFERS):
            in_use = _BUFFER_BYTES * (2 + buffer)
            self._allocation(line, "MemoryAllocation", at + 1_000, core, in_use, buffer)
            at += host.draw(5)
        launch: Values = {
            "continuation": 0,
            "run_id": Changing(1, 1),
            "queue_id": 0,
            "device_ordinal": core,
            "core_type": 0,
        }
        host.add(line, "DoEnqueueProgram", at + 1_000, at + 9_000, **launch, _pt=_ENQUEUED, _p=run)
        host.add(line, "tpu::System::Execute", at, at + 10_000, device_ordinal=core)
        host.add(line, "TfrtTpuLoadedExecutable::ExecutePrepare", begin, at + 12_000)
        return at + 12_000, run

    def _allocation(self, line: int, name: str, at: int, core: int, in_use: int, buffer: int) -> None:
        stats: Values = {
            "index_on_host": core,
            "bytes_reserved": _RESERVED_BYTES,
            "bytes_allocated": in_use,
            "bytes_available": _DEVICE_BYTES - _RESERVED_BYTES - in_use,
            "fragmentation": round(float(self._host.rng.random()) / 10, 6),
            "peak_bytes_in_use": _BUFFER_BYTES * (2 + _BUFFERS),
            "addr": _BUFFER_BYTES * buffer,
        }
        if name == "MemoryAllocation":
            stats |= {
                "requested_bytes": _BUFFER_BYTES - 512,
                "allocation_bytes": _BUFFER_BYTES,
                "id": 0,
                "data_type": 0,
            }
        self._host.add(line, name, at, at, **stats)

    # On the device.

    def _run(self, instruction: Instruction, at: np.ndarray) -> np.ndarray:
        """An instruction on each core, which begins it then. Returns its ends."""
        noise = self._host.rng.lognormal(0, _SPREAD, _CORES)
        if instruction.body:
            end = at + 400
            for _ in range(instruction.repetitions):
                for inner in instruction.body:
                    end = self._run(inner, end)
            end = end + 200
        else:
            end = at + 20 + (1000 * instruction.mean_us * noise).astype(np.int64)
            if instruction.is_collective:
                end = np.full(_CORES, end.max())
        for core in range(_CORES):
            self._host.add(self._line(core, _OPS), instruction.text, int(at[core]), int(end[core]), **_CLOCKED)
            if instruction.copied_until_us:
                self._copy(core, instruction, int(at[core]))
        return end + 10

    def _copy(self, core: int, instruction: Instruction, begin: int) -> None:
        """What an instruction begins to copy, while others run."""
        self._flows += 1
        end = begin + int(1000 * instruction.copied_until_us)
        stats: Values = {"hlo_op": instruction.done, "_a": 1, "flow": Changing(self._flows, 4096), "id": core}
        self._host.add(self._line(core, _ASYNC), instruction.text, begin, end, **stats)

    def _end(self, core: int, begin: int, end: int, run: Changing) -> None:
        """The program and the step around the ops, and what the host does when told of their end."""
        program: Values = {"run_id": Changing(1, 1), "replica_id": core, "queue_id": 0, "core_type": 0}
        module = self._line(core, _MODULES)
        self._host.add(module, f"{MODULE}({PROGRAM_ID})", begin - 2_000, end, **program, _ct=_ENQUEUED, _c=run)
        self._host.add(self._line(core, _STEPS), NUMBERED, _STEP_BEGIN_NS, end + 1_000, **_CLOCKED)
        at = end + 5_000 + 8_000 * core
        done: Values = {"run_id": Changing(1, 1), "device_ordinal": core, "_ct": _ENQUEUED, "_c": run}
        self._host.add(_CALLBACKS, "CompleteCallbacks", at, at + 4_000, **done)
        for buffer in reversed(range(_BUFFERS)):
            freed = at + 4_200 + 200 * (_BUFFERS - buffer)
            self._allocation(_CALLBACKS, "MemoryDeallocation", freed, core, _BUFFER_BYTES * (1 + buffer), buffer)

    def _line(self, core: int, line: int) -> int:
        return len(_HOST_LINES) + len(_DEVICE_LINES) * core + line
