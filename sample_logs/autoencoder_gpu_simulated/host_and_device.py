"""One step after the other on a host and its GPU: what the threads do, and with what the streams are busy.

Whenever the device does nothing in a step, the host does what the step's parts say: it calls for a launch or a copy,
waits for input, or is in Python, where hardly anything is traced.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from device_memory import DeviceMemory
from launches import Launch, launch_all
from training_step import DECODED, IMAGES, LOSS, Op, Tensor
from xspace_writer import Line, Plane, Value

_FUNCTION = "__inference_train_step_7020"
_BETWEEN_THREADS, _OF_FUNCTIONS = 15, 2  # kinds of producers and consumers: TensorFlow's ContextType
_SHAPE = f"[{','.join(map(str, IMAGES.shape))}]"
_CALL_OF_COPY = {"MemcpyH2D": "hipMemcpyHtoDAsync", "MemcpyD2H": "hipMemcpyDtoHAsync"}
_BATCH: dict[str, Value] = {"shapes": f"{_SHAPE} {_SHAPE}", "types": "float float"}

_THREADS_BEGIN_NS, _STREAMS_BEGIN_NS = 14_600, 21_300
_CALL_NS = 4_000
_SCALARS = 3
_CALLS = _SCALARS + 4  # of copies: two halves of a batch, images and loss
_SCALAR_COPY_NS = 1_600
_BATCH_COPY_NS = 16_000
_LOSS_COPY_NS = 2_400
_COPIES_IN_NS = _SCALARS * _SCALAR_COPY_NS + 2 * _BATCH_COPY_NS - _CALL_NS  # one call is made during a copy
_BEFORE_NS, _AFTER_NS = 2_000, 4_000  # of the device's part of a step
_BEFORE_INPUT_NS, _AFTER_INPUT_NS = 6_000, 4_000
_BEFORE_FUNCTION_NS, _AFTER_FUNCTION_NS = 6_000, 8_000
_SURROUNDINGS_NS = (
    _BEFORE_NS + _AFTER_NS + _BEFORE_INPUT_NS + _AFTER_INPUT_NS + _BEFORE_FUNCTION_NS + _AFTER_FUNCTION_NS
)
_IN_PYTHON = (0.25, 0.35)  # of what is left: before input and before the function; the rest is before the loss is read
_BEFORE_LAUNCH_NS = 1_000  # in an op; shorter than any kernel, so that a device without work is always being launched to
_EFFORT_SPREAD = 0.15
_EFFORT_OF_CONVOLUTION = 1.6


@dataclass(frozen=True)
class StepParts:
    """What a step's time goes to."""

    launch_ns: int
    compute_ns: int
    input_ns: int
    output_ns: int
    other_ns: int


@dataclass(frozen=True)
class _Call:
    """A call of the function: when its first launch may begin, its id, and what links the threads that run it."""

    launch_ns: int
    run_id: int
    link: int


class Steps:
    """Writes steps onto the planes of the host and the device."""

    def __init__(self, host: Plane, device: Plane, memory: DeviceMemory, ops: list[Op], rng: random.Random) -> None:
        self._rng = rng
        self._memory = memory
        self._ops = ops
        self._python, self._executor, self._prefetcher = (
            _thread(host, name, rng) for name in ("python", "tf_Compute", "tf_data_iterator_resource")
        )
        self._compute = device.line("Stream #13(Compute)", 13, _STREAMS_BEGIN_NS)
        self._copies = {
            "MemcpyH2D": device.line("Stream #14(MemcpyH2D)", 14, _STREAMS_BEGIN_NS),
            "MemcpyD2H": device.line("Stream #15(MemcpyD2H)", 15, _STREAMS_BEGIN_NS),
        }
        self._calls = 0
        self._root, self._prefetch, self._repeat, self._slice = (2**63 + rng.getrandbits(63) for _ in range(4))
        self._buffered = [rng.getrandbits(60) for _ in range(2)]

    def add(self, number: int, start_ns: int, parts: StepParts, times_ns: list[int]) -> int:
        """Add a step whose kernels take `times_ns`, and return its end."""
        in_python_ns = parts.other_ns - _SURROUNDINGS_NS
        before_input_ns, before_function_ns = (int(share * in_python_ns) for share in _IN_PYTHON)
        now = self._send_scalars(start_ns + _BEFORE_NS)
        now = self._wait_for_input(now + before_input_ns, parts.input_ns - _COPIES_IN_NS)
        function_ns = now + before_function_ns
        call = self._send_batch(function_ns + _BEFORE_FUNCTION_NS)
        launched_ns, computed_ns = self._run(call, times_ns, parts.launch_ns - _CALLS * _CALL_NS)
        self._surround(function_ns, launched_ns, computed_ns)
        now = self._read_images(computed_ns + _AFTER_FUNCTION_NS, parts.output_ns - _LOSS_COPY_NS)
        now += in_python_ns - before_input_ns - before_function_ns
        end_ns = self._read_loss(now)
        self._python.add("train", start_ns, end_ns, step_num=number, _r=1)
        return end_ns

    def _send_scalars(self, now: int) -> int:
        """Copy constants to the device, one by one, each an eager op."""
        for _ in range(_SCALARS):
            self._eager("_EagerConst", now - 1_000, now + _CALL_NS + 400)
            now = self._copy("MemcpyH2D", now, _SCALAR_COPY_NS, 4, "pinned")
        return now

    def _wait_for_input(self, now: int, wait_ns: int) -> int:
        begin_ns = now + _BEFORE_INPUT_NS
        end_ns = begin_ns + wait_ns
        self._python.add("TFE_Py_FastPathExecute_C", now, end_ns + 3_000)
        self._eager("IteratorGetNext", now + 1_500, end_ns + 2_400)
        self._python.add("ValidateInputTypeAndPlacement", now + 3_800, now + 4_300)
        self._python.add("EagerKernelExecute", now + 4_600, end_ns + 1_000)
        self._python.add("KernelAndDeviceFunc::Run", now + 5_000, end_ns + 500)
        stats = {"id": self._signed_id(), "iter_num": 0, "element_size": 2 * IMAGES.size_bytes}
        self._python.add("IteratorGetNextOp::DoCompute", begin_ns, end_ns, **stats)
        self._take_from_buffer(begin_ns + 600, end_ns - 600)
        return end_ns + _AFTER_INPUT_NS

    def _take_from_buffer(self, begin_ns: int, end_ns: int) -> None:
        root: dict[str, Value] = {"name": "OptionsDataset:4", **_BATCH, "id": self._root, "warm_start": "false"}
        limits = {"buffer_limit": 2, "autotune": "false", "autotune_mode": "performance", "interleave_depth": 0}
        ids = {"id": self._prefetch, "parent_id": self._root}
        self._python.add("Iterator::Root", begin_ns, end_ns, **root)
        prefetch = {"name": "PrefetchDataset:3", **_BATCH, **ids, **limits}
        self._python.add("Iterator::Root::Prefetch", begin_ns + 500, end_ns - 200, **prefetch)
        element_id = self._buffered.pop(0)
        self._python.add("PrefetchConsume", begin_ns + 900, begin_ns + 1_000, element_id=element_id)

    def _fill_buffer(self, now: int) -> None:
        """Slice a batch from memory, on a thread of its own."""
        end_ns = now + 90_000 + int(30_000 * self._rng.random())
        self._buffered.append(self._rng.getrandbits(60))
        self._prefetcher.add("PrefetchProduce", now, end_ns, element_id=self._buffered[-1])
        path = "Iterator::Root::Prefetch::ForeverRepeat"
        repeat: dict[str, Value] = {"name": "RepeatDataset:2", **_BATCH, "id": self._repeat}
        self._prefetcher.add(path, now + 800, end_ns - 500, **repeat, parent_id=self._prefetch)
        batch: dict[str, Value] = {"name": "TensorSliceDataset:1", **_BATCH, "id": self._slice}
        self._prefetcher.add(f"{path}[0]::TensorSlice", now + 1_600, end_ns - 900, **batch, parent_id=self._repeat)

    def _send_batch(self, now: int) -> _Call:
        """Copy both halves of the batch to the device and have another thread run the function meanwhile."""
        second_ns = now + _CALL_NS + 2_000
        self._python.add("EagerCopyToDevice", now - 1_200, second_ns + _CALL_NS + 500)
        for name, at_ns in (("noisy", now - 600), ("clean", second_ns - 600)):
            self._memory.allocate(self._python, at_ns, name, IMAGES.size_bytes, id=0, data_type=0)
        copied_ns = self._copy("MemcpyH2D", now, _BATCH_COPY_NS, IMAGES.size_bytes, "pinned")
        self._copy("MemcpyH2D", second_ns, _BATCH_COPY_NS, IMAGES.size_bytes, "pinned", after_ns=copied_ns)
        call = _Call(copied_ns + _BATCH_COPY_NS, self._signed_id(), self._rng.getrandbits(64))
        run_ns, region = now + 14_000, self._rng.getrandbits(20)
        links = {"_pt": _OF_FUNCTIONS, "_p": call.link}
        self._python.add("FunctionRun", run_ns, run_ns + 5_000, id=call.run_id, _r=1, **links)
        self._python.add("ThreadpoolListener::Record", run_ns + 4_000, run_ns + 4_000, _pt=_BETWEEN_THREADS, _p=region)
        begin_ns = call.launch_ns - 2_500
        self._executor.add("ThreadpoolListener::StartRegion", begin_ns, begin_ns, _ct=_BETWEEN_THREADS, _c=region)
        return call

    def _run(self, call: _Call, times_ns: list[int], idle_ns: int) -> tuple[int, int]:
        """Run the ops; returns when the last kernel is launched and when it has ended."""
        efforts = [self._effort(op) for op in self._ops for _ in op.kernels]
        launches = launch_all(call.launch_ns, times_ns, efforts, idle_ns)
        waiting = iter(launches)
        now = call.launch_ns - _BEFORE_LAUNCH_NS
        for op in self._ops:
            now = self._run_op(op, now, [next(waiting) for _ in op.kernels], call.run_id)
        begin_ns, end_ns = call.launch_ns - 1_600, now + 800
        links = {"_ct": _OF_FUNCTIONS, "_c": call.link}
        self._executor.add("ExecutorState::Process", begin_ns, end_ns, id=call.run_id, iter_num=0, **links)
        self._executor.add("ThreadpoolListener::StopRegion", end_ns + 400, end_ns + 400)
        self._fill_buffer(call.launch_ns + 20_000)
        return now, launches[-1].ended_ns

    def _effort(self, op: Op) -> float:
        """Of launching one of the op's kernels."""
        is_convolution = len(op.kernels) > 1
        effort = _EFFORT_OF_CONVOLUTION if is_convolution else 1.0
        return effort * (1 + _EFFORT_SPREAD * (2 * self._rng.random() - 1))

    def _run_op(self, op: Op, now: int, launches: list[Launch], run_id: int) -> int:
        """Run an op after the last one's launch ended, `now`; returns when its own launches have."""
        if op.reads:
            self._executor.add(f"{op.reads}:ReadVariableOp", now + 420, now + 520)
        begin_ns, full_name = now + 560, f"{op.name}:{op.type}"
        self._memory.begin(self._executor, begin_ns + 200, op, run_id)
        for kernel, launch in zip(op.kernels, launches, strict=True):
            number = self._call(self._executor, "hipModuleLaunchKernel", now + _BEFORE_LAUNCH_NS, launch.launched_ns)
            stats = {"correlation_id": number, "kernel_details": kernel.details, "tf_op": full_name}
            self._compute.add(kernel.name, launch.started_ns, launch.ended_ns, **stats)
            now = launch.launched_ns
        self._executor.add(full_name, begin_ns, now + 200)
        self._memory.end(self._executor, now + 300, op)
        return now

    def _surround(self, function_ns: int, launched_ns: int, computed_ns: int) -> None:
        """The calls around the function, from Python inwards, then the wait for what it computes."""
        end_ns = launched_ns + 4_000
        self._python.add("train_step", function_ns, end_ns, tf_function_call="notTraced-nonXla", tracing_count=1)
        self._python.add("TFE_Py_ExecuteCancelable", function_ns + 1_600, end_ns - 200)
        self._eager(_FUNCTION, function_ns + 2_600, end_ns - 500, is_func=1)
        sent_ns = function_ns + _BEFORE_FUNCTION_NS + 2 * _CALL_NS + 2_500
        self._python.add("ValidateInputTypeAndPlacement", sent_ns + 200, sent_ns + 700)
        self._python.add("EagerKernelExecute", sent_ns + 900, end_ns - 1_100)
        self._python.add("KernelAndDeviceFunc::Run", sent_ns + 1_300, end_ns - 1_400)
        if end_ns < computed_ns:
            self._call(self._python, "hipStreamSynchronize", end_ns, computed_ns)

    def _read_images(self, now: int, time_ns: int) -> int:
        """Copy the decoded images to the host, then let go of them and of the batch."""
        now = self._copy("MemcpyD2H", now, time_ns, IMAGES.size_bytes, "pageable")
        for i, name in enumerate(("noisy", "clean", DECODED)):
            self._delete(now + 1_000 * (i + 1), name)
        return now

    def _read_loss(self, now: int) -> int:
        now = self._copy("MemcpyD2H", now, _LOSS_COPY_NS, Tensor(()).size_bytes, "pinned")
        self._delete(now + 1_000, LOSS)
        return now + _AFTER_NS

    def _delete(self, now: int, name: str) -> None:
        self._python.add("TFE_DeleteTensorHandle", now, now + 700)
        self._memory.free(self._python, now + 300, name)

    def _eager(self, op: str, begin_ns: int, end_ns: int, is_func: int = 0) -> None:
        self._python.add("EagerExecute", begin_ns, end_ns, eager_op=op, is_func=is_func)
        self._python.add(f"EagerLocalExecute: {op}", begin_ns + 300, end_ns - 300)

    def _copy(self, name: str, now: int, time_ns: int, size_bytes: int, kind: str, after_ns: int = 0) -> int:
        """Copy from Python, once the call is made and what is to come before has ended; returns the copy's end."""
        details = f"kind:{kind} size:{size_bytes} dest:0 async:1"
        start_ns = max(now + _CALL_NS, after_ns)
        number = self._call(self._python, _CALL_OF_COPY[name], now, now + _CALL_NS, memcpy_details=details)
        stats = {"correlation_id": number, "memcpy_details": details}
        self._copies[name].add(name, start_ns, start_ns + time_ns, **stats)
        return start_ns + time_ns

    def _call(self, thread: Line, name: str, begin_ns: int, end_ns: int, **stats: Value) -> int:
        """Call into the GPU's runtime; returns the number by which the device's event refers to the call."""
        self._calls += 1
        thread.add(name, begin_ns, end_ns, device_id=0, correlation_id=self._calls, **stats)
        return self._calls

    def _signed_id(self) -> int:
        return self._rng.getrandbits(64) - 2**63


def _thread(host: Plane, name: str, rng: random.Random) -> Line:
    number = rng.getrandbits(64) - 2**63
    return host.line(name if name == "python" else f"{name}/{number}", number, _THREADS_BEGIN_NS)
