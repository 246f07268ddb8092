"""The steps: what the host's threads do in each, and with what the GPU is busy.

Whenever the GPU does nothing in a step, the host does what the step's parts say: it is in a call that launches a kernel
or a copy, waits for input, or is in Python, where hardly anything is traced.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from device_memory import DeviceMemory
from gpu import Gpu, Launch, launch_all
from input_pipeline import InputPipeline
from kernels import IMAGES, Copy, Kernel
from training_step import DECODED, LOSS, Op
from xspace_writer import Line, Plane

_FUNCTION = "__inference_train_step_7020"
_BETWEEN_THREADS, _OF_FUNCTIONS = 15, 2  # kinds of producers and consumers: TensorFlow's ContextType
_BEGIN_NS = 14_600

_CALL_NS = 4_000  # that starts a copy from Python
_SCALARS = 3
_SCALAR_COPY_NS, _HALF_BATCH_COPY_NS, _LOSS_COPY_NS = 1_600, 16_000, 2_400
COPIED_TO_DEVICE_NS = _SCALARS * _SCALAR_COPY_NS + 2 * _HALF_BATCH_COPY_NS
"""How long the copies to the device take in a step: with the wait for the batch, its input."""

# Around what the other parts of a step are made of.
_BEFORE_NS, _AFTER_NS = 2_000, 4_000
_BEFORE_INPUT_NS, _AFTER_INPUT_NS = 6_000, 4_000
_BEFORE_LAUNCHES_NS, _AFTER_FUNCTION_NS = 20_000, 6_000
_AROUND_NS = _BEFORE_NS + _AFTER_NS + _BEFORE_INPUT_NS + _AFTER_INPUT_NS + _BEFORE_LAUNCHES_NS + _AFTER_FUNCTION_NS
# Of the rest of `other`: before the input and before the function. What then remains is before the loss is read.
_IN_PYTHON = (0.25, 0.35)

# Until an op launches anything. No kernel is shorter: when the GPU runs out of them, the next launch is under way.
_BEFORE_LAUNCH_NS = 1_000
_EFFORT_OF_CONVOLUTION = 1.6
_EFFORT_SPREAD = 0.15


@dataclass(frozen=True)
class StepParts:
    """What a step's time goes to."""

    launch_ns: int
    compute_ns: int
    input_ns: int
    output_ns: int
    other_ns: int


class Steps:
    """Writes steps onto the planes of the host and the device."""

    def __init__(self, host: Plane, device: Plane, memory: DeviceMemory, ops: list[Op], rng: random.Random) -> None:
        self._python = _thread(host, "python", rng)
        self._executor = _thread(host, "tf_Compute", rng)
        self._event_manager = _thread(host, "tf_GPU_Event_Manager", rng)
        self._input = InputPipeline(self._python, _thread(host, "tf_data_iterator_resource", rng), rng)
        self._gpu = Gpu(device)
        self._memory = memory
        self._ops = ops
        self._rng = rng

    def add(self, number: int, start_ns: int, parts: StepParts, times_ns: list[int]) -> int:
        """Add a step whose kernels take `times_ns`, and return its end."""
        in_python_ns = parts.other_ns - _AROUND_NS
        before_input_ns, before_function_ns = (int(share * in_python_ns) for share in _IN_PYTHON)
        now = self._send_scalars(start_ns + _BEFORE_NS)
        now = self._wait_for_input(now + before_input_ns, parts.input_ns - COPIED_TO_DEVICE_NS)
        now = self._run_function(now + before_function_ns, parts, times_ns)
        now += in_python_ns - before_input_ns - before_function_ns
        end_ns = self._read_loss(now)
        self._python.add("train", start_ns, end_ns, step_num=number, _r=1)
        return end_ns

    def _send_scalars(self, now: int) -> int:
        """Copy constants to the device, one by one, each an eager op."""
        for _ in range(_SCALARS):
            self._eager("_EagerConst", now - 1_000, now + _CALL_NS + 400)
            now = self._copy(now, Copy("MemcpyH2D", 4), _SCALAR_COPY_NS)
        return now

    def _wait_for_input(self, now: int, wait_ns: int) -> int:
        begin_ns = now + _BEFORE_INPUT_NS
        end_ns = begin_ns + wait_ns
        self._python.add("TFE_Py_FastPathExecute_C", now, end_ns + 3_000)
        self._eager("IteratorGetNext", now + 1_500, end_ns + 2_400)
        self._python.add("ValidateInputTypeAndPlacement", now + 3_800, now + 4_300)
        self._python.add("EagerKernelExecute", now + 4_600, end_ns + 1_000)
        self._python.add("KernelAndDeviceFunc::Run", now + 5_000, end_ns + 500)
        stats = {"id": self._new_id(), "iter_num": 0, "element_size": 2 * IMAGES.size_bytes}
        self._python.add("IteratorGetNextOp::DoCompute", begin_ns, end_ns, **stats)
        self._input.take(begin_ns + 600, end_ns - 600)
        return end_ns + _AFTER_INPUT_NS

    def _run_function(self, now: int, parts: StepParts, times_ns: list[int]) -> int:
        """Have another thread run the function, and wait until the host has the images that it returns."""
        launch_ns, run_id = now + _BEFORE_LAUNCHES_NS, self._new_id()
        launches = self._launches(launch_ns, parts, times_ns)
        launched_ns = self._run_ops(launch_ns - _BEFORE_LAUNCH_NS, launches, run_id)
        self._hand_over(now + 10_000, (launch_ns - 1_600, launched_ns + 800), run_id)
        self._input.make(launch_ns + 20_000)
        copied_ns = launches[-1].ended_ns
        self._memory.free(self._event_manager, copied_ns + 1_200, DECODED)
        self._surround(now, copied_ns + _AFTER_FUNCTION_NS)
        return copied_ns + _AFTER_FUNCTION_NS

    def _launches(self, begin_ns: int, parts: StepParts, times_ns: list[int]) -> list[Launch]:
        """When each kernel and copy of the function is launched, starts and ends."""
        copies_ns = {"MemcpyH2D": _HALF_BATCH_COPY_NS, "MemcpyD2H": parts.output_ns - _LOSS_COPY_NS}
        kernels_ns = iter(times_ns)
        works = [work for op in self._ops for work in op.work]
        all_ns = [next(kernels_ns) if isinstance(work, Kernel) else copies_ns[work.name] for work in works]
        idle_ns = parts.launch_ns - (_SCALARS + 1) * _CALL_NS
        return launch_all(begin_ns, all_ns, [self._effort(op) for op in self._ops for _ in op.work], idle_ns)

    def _effort(self, op: Op) -> float:
        """Of each launch of the op."""
        is_convolution = len(op.work) > 1
        effort = _EFFORT_OF_CONVOLUTION if is_convolution else 1.0
        return effort * (1 + _EFFORT_SPREAD * (2 * self._rng.random() - 1))

    def _run_ops(self, now: int, launches: list[Launch], run_id: int) -> int:
        """Run the ops on the executor's thread; returns when the last launch has ended."""
        waiting = iter(launches)
        for op in self._ops:
            now = self._run_op(op, now, [next(waiting) for _ in op.work], run_id)
        return now

    def _run_op(self, op: Op, now: int, launches: list[Launch], run_id: int) -> int:
        """Run an op after the launches of the one before it ended, `now`; returns when its own have."""
        if op.reads:
            self._executor.add(f"{op.reads}:ReadVariableOp", now + 420, now + 520)
        begin_ns, full_name = now + 560, f"{op.name}:{op.type}"
        self._memory.begin(self._executor, begin_ns + 200, op, run_id)
        for work, launch in zip(op.work, launches, strict=True):
            self._gpu.run(self._executor, now + _BEFORE_LAUNCH_NS, work, launch, tf_op=full_name)
            now = launch.launched_ns
        self._executor.add(full_name, begin_ns, now + 200)
        self._memory.end(self._executor, now + 300, op)
        return now

    def _hand_over(self, begin_ns: int, process_ns: tuple[int, int], run_id: int) -> None:
        """The events that link the call of the function to the thread that runs its ops."""
        link, region = self._rng.getrandbits(64), self._rng.getrandbits(20)
        recorded_ns, start_ns, stop_ns = begin_ns + 4_000, process_ns[0] - 700, process_ns[1] + 500
        producer = {"id": run_id, "_r": 1, "_pt": _OF_FUNCTIONS, "_p": link}
        self._python.add("FunctionRun", begin_ns, begin_ns + 5_000, **producer)
        self._python.add("ThreadpoolListener::Record", recorded_ns, recorded_ns, _pt=_BETWEEN_THREADS, _p=region)
        self._executor.add("ThreadpoolListener::StartRegion", start_ns, start_ns, _ct=_BETWEEN_THREADS, _c=region)
        consumer = {"id": run_id, "iter_num": 0, "_ct": _OF_FUNCTIONS, "_c": link}
        self._executor.add("ExecutorState::Process", *process_ns, **consumer)
        self._executor.add("ThreadpoolListener::StopRegion", stop_ns, stop_ns)

    def _surround(self, begin_ns: int, end_ns: int) -> None:
        """The calls around the function, from Python inwards."""
        self._python.add("train_step", begin_ns, end_ns, tf_function_call="notTraced-nonXla", tracing_count=1)
        self._python.add("TFE_Py_ExecuteCancelable", begin_ns + 1_600, end_ns - 300)
        self._eager(_FUNCTION, begin_ns + 2_600, end_ns - 700, is_func=1)
        self._python.add("EagerCopyToDevice", begin_ns + 4_200, begin_ns + 4_900)
        self._python.add("ValidateInputTypeAndPlacement", begin_ns + 5_200, begin_ns + 5_700)
        self._python.add("EagerKernelExecute", begin_ns + 6_000, end_ns - 1_400)
        self._python.add("KernelAndDeviceFunc::Run", begin_ns + 6_400, end_ns - 1_800)

    def _eager(self, op: str, begin_ns: int, end_ns: int, is_func: int = 0) -> None:
        self._python.add("EagerExecute", begin_ns, end_ns, eager_op=op, is_func=is_func)
        self._python.add(f"EagerLocalExecute: {op}", begin_ns + 300, end_ns - 300)

    def _read_loss(self, now: int) -> int:
        """Copy the loss to the host and let go of it; returns the end of the step."""
        now = self._copy(now, Copy("MemcpyD2H", 4), _LOSS_COPY_NS)
        self._python.add("TFE_DeleteTensorHandle", now + 1_000, now + 1_800)
        self._memory.free(self._python, now + 1_400, LOSS)
        return now + _AFTER_NS

    def _copy(self, now: int, copy: Copy, time_ns: int) -> int:
        """Copy from Python, while the GPU does nothing else; returns the copy's end."""
        called_ns = now + _CALL_NS
        self._gpu.run(self._python, now, copy, Launch(called_ns, called_ns, called_ns + time_ns))
        return called_ns + time_ns

    def _new_id(self) -> int:
        return self._rng.getrandbits(64) - 2**63


def _thread(host: Plane, name: str, rng: random.Random) -> Line:
    number = rng.getrandbits(64) - 2**63
    return host.line(name if name == "python" else f"{name}/{number}", number, _BEGIN_NS)
