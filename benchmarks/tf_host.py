"""What the threads of TensorFlow do in a step, whatever device it is for: Python, executors, and tf.data's own.

Names, stats, nesting and links between threads are those of real recordings (`sample_logs/autoencoder`); times and
sizes are drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.recording import UINT64, Changing, Plane, StepBuilder, Values

GAP_NS = 300
BATCH = 16
_PREFETCHED = 2  # batches that are ready ahead of the step that takes them
_THREADPOOL, FUNCTION = 15, 2  # kinds of contexts by which threads are linked (`_pt`, `_ct`)
_CONTEXTS_A_STEP = 4096
_HOST_BYTES = 1 << 36
_DATASET = "Iterator::Root::Prefetch::BatchV2::ParallelMapV2"
_ITERATORS = ("Root", "Prefetch", "BatchV2", "ParallelMapV2", "FlatMap", "TFRecord")

_TAKEN: Values = {"name": "PrefetchDataset:3", "shapes": f"[{BATCH},128,128,3] [{BATCH}]", "types": "float int64"}
_BATCHED: Values = {**_TAKEN, "name": "BatchDatasetV2:5"}
_MAPPED: Values = {"name": "ParallelMapDatasetV2:7", "shapes": "[128,128,3] []", "types": "float int64"}
_FLATTENED: Values = {"name": "FlatMapDataset:9", "shapes": "[]", "types": "string"}
_READ: Values = {"name": "TFRecordDataset:11", "shapes": "<unknown>", "types": "string"}

_BEFORE_BYTES = 1 << 26  # in use before the recording began
_KEPT = 4  # the latest tensors, which nothing frees yet
_GRANULE_BYTES = 256


class Op(NamedTuple):
    """An op, and how long it takes on the host; `output_bytes`: 0 where it allocates nothing."""

    name: str
    kind: str
    mean_us: float
    output_bytes: int = 0
    shape: str = ""


_DECODING = [
    Op("DecodePng", "DecodePng", 450.0, 49152, "[128,128,3]"),
    Op("resize/ResizeArea", "ResizeArea", 40.0),
    Op("Cast", "Cast", 8.0),
]


class _Tensor(NamedTuple):
    at_ns: int
    line: int
    address: int
    size_bytes: int
    op: str
    shape: str
    region: str
    is_freed: bool = False


class Tensors:
    """The tensors of one step, in the memory of one allocator."""

    def __init__(self, allocator: str, capacity_bytes: int, rng: np.random.Generator) -> None:
        self._allocator = allocator
        self._capacity_bytes = capacity_bytes
        self._rng = rng
        self._changes: list[_Tensor] = []
        self._held: list[_Tensor] = []

    def allocate(self, line: int, at_ns: int, size_bytes: int, op: str, shape: str) -> None:
        """The output of an op."""
        self._held.append(self._allocated(line, at_ns, size_bytes, op, shape, "output"))

    def borrow(self, line: int, begin_ns: int, end_ns: int, size_bytes: int, op: str, shape: str) -> None:
        """What an op needs for as long as it runs."""
        tensor = self._allocated(line, begin_ns, size_bytes, op, shape, "temp")
        self._changes.append(tensor._replace(at_ns=end_ns, is_freed=True))

    def free_one(self, line: int, at_ns: int) -> None:
        """Free some tensor of those that are there by then, but for the last few."""
        there = [i for i, tensor in enumerate(self._held[:-_KEPT]) if tensor.at_ns < at_ns]
        if there:
            tensor = self._held.pop(int(self._rng.choice(there)))
            self._changes.append(tensor._replace(at_ns=at_ns, line=line, is_freed=True))

    def write(self, add: Callable[..., None], line: int, step_id: Changing) -> None:
        """All changes in the order of time, each with what is then in use; what is left is freed on `line` at last."""
        last = max(tensor.at_ns for tensor in self._changes)
        left = [t._replace(at_ns=last + 200 * i, line=line, is_freed=True) for i, t in enumerate(self._held, 1)]
        peak = _BEFORE_BYTES + sum(_rounded(t.size_bytes) for t in self._changes if not t.is_freed)
        in_use = _BEFORE_BYTES
        for tensor in sorted([*self._changes, *left], key=lambda t: t.at_ns):
            in_use += _rounded(tensor.size_bytes) * (-1 if tensor.is_freed else 1)
            stats: Values = {
                "allocator_name": self._allocator,
                "bytes_reserved": 0,
                "bytes_allocated": in_use,
                "bytes_available": self._capacity_bytes - in_use,
                "fragmentation": round(float(self._rng.random()), 6),
                "peak_bytes_in_use": peak,
                "requested_bytes": tensor.size_bytes,
                "allocation_bytes": _rounded(tensor.size_bytes),
                "addr": tensor.address,
            }
            if tensor.is_freed:
                add(tensor.line, "MemoryDeallocation", tensor.at_ns, tensor.at_ns, **stats, id=0, data_type=0)
                continue
            stats |= {"tf_op": tensor.op, "id": step_id, "region_type": tensor.region, "data_type": 1}
            add(tensor.line, "MemoryAllocation", tensor.at_ns, tensor.at_ns, **stats, shape=tensor.shape)

    def _allocated(self, line: int, at_ns: int, size_bytes: int, op: str, shape: str, region: str) -> _Tensor:
        address = 0x7F0000000000 + _GRANULE_BYTES * int(self._rng.integers(1 << 26))
        self._changes.append(_Tensor(at_ns, line, address, size_bytes, op, shape, region))
        return self._changes[-1]


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // _GRANULE_BYTES) * _GRANULE_BYTES


class Threads(NamedTuple):
    """The lines of the host's threads."""

    python: int
    iterators: tuple[int, int]
    workers: tuple[int, int]


class HostStep:
    """One step on the host. Times are nanoseconds since the step's begin; `free`: since when each line is idle."""

    def __init__(
        self, planes: Sequence[Plane], threads: Threads, iterators: dict[str, Changing], rng: np.random.Generator
    ) -> None:
        builder = StepBuilder(planes)
        self.add, self.build = builder.add, builder.build
        self.threads = threads
        self.rng = rng
        self.free = dict.fromkeys(range(sum(len(plane.lines) for plane in planes)), 1_000)
        self.tensors = Tensors("cpu", _HOST_BYTES, rng)
        self._iterators = iterators
        self._element = Changing(1 << 32, 1)
        self._contexts = 0

    def draw(self, mean_us: float, most_us: float = 1e6) -> int:
        """A duration in nanoseconds, a little above 0 at least."""
        return GAP_NS + int(1000 * min(mean_us * self.rng.lognormal(-0.08, 0.4), most_us))

    def new_id(self) -> Changing:
        """An id that is a new one in each step."""
        return _id(self.rng)._replace(growth=2 * int(self.rng.integers(1 << 63)) + 1)

    def chain(self, begin: int, end: int, *spans: tuple[str, Values]) -> int:
        """Spans on the Python thread, each within the one before; returns the begin of the innermost."""
        for depth, (name, stats) in enumerate(spans):
            self.add(self.threads.python, name, begin + 2 * GAP_NS * depth, end - GAP_NS * depth, **stats)
        return begin + 2 * GAP_NS * (len(spans) - 1)

    def get_next(self, begin: int, mean_us: float = 120) -> int:
        """Ask the iterator for a batch: returns when it is there."""
        end = begin + self.draw(mean_us)
        root, prefetch = self._iterators["Root"], self._iterators["Prefetch"]
        buffer: Values = {"buffer_limit": 4, "autotune": "true", "buffered_elements": int(self.rng.integers(5))}
        self.chain(
            begin,
            end,
            ("TFE_Py_FastPathExecute_C", {}),
            ("EagerExecute", {"eager_op": "IteratorGetNext", "is_func": 0}),
            ("EagerLocalExecute: IteratorGetNext", {}),
            ("EagerKernelExecute", {}),
            ("KernelAndDeviceFunc::Run", {}),
            ("IteratorGetNextOp::DoCompute", {"id": self.new_id(), "iter_num": 0, "element_size": 3_145_856}),
            ("Iterator::Root", {**_TAKEN, "id": root, "cpu_budget": 4, "warm_start": "false"}),
            ("Iterator::Root::Prefetch", {**_TAKEN, "id": prefetch, "parent_id": root, **buffer}),
            ("PrefetchConsume", {"element_id": self._element}),
        )
        return end

    def train_step(self, begin: int, end: int, step_id: Changing, run_id: Changing) -> None:
        """The call of the function from Python, and the handles that it lets go of."""
        innermost = self.chain(
            begin,
            end,
            ("train_step", {"tf_function_call": "notTraced-nonXla", "tracing_count": 1}),
            ("TFE_Py_ExecuteCancelable", {}),
            ("EagerExecute", {"eager_op": "__inference_train_step_4242", "is_func": 1}),
            ("EagerLocalExecute: __inference_train_step_4242", {}),
            ("EagerKernelExecute", {}),
            ("KernelAndDeviceFunc::Run", {}),
        )
        run: Values = {"id": step_id, "_r": 1, "_pt": FUNCTION, "_p": run_id}
        self.add(self.threads.python, "FunctionRun", innermost + GAP_NS, innermost + 20_000, **run)
        for i in range(3):
            at = end + 5_000 + 4_000 * i
            self.add(self.threads.python, "TFE_DeleteTensorHandle", at, at + 2_000)

    def mark(self, begin: int, end: int) -> None:
        """The marker of the step."""
        self.add(self.threads.python, "train", begin, end, step_num=Changing(0, 1), _r=1)

    def record(self, line: int, at: int) -> Changing:
        """Schedule a closure: an instant on the thread that does it, with the context by which it is found again."""
        self._contexts += 1
        context = Changing(self._contexts, _CONTEXTS_A_STEP)
        self.add(line, "ThreadpoolListener::Record", at, at, _pt=_THREADPOOL, _p=context)
        return context

    def region(self, line: int, start: int, context: Changing, ops: list[Op], process: Values, frees: bool) -> None:
        """A closure on a thread of a pool: the executor, and the ops that it runs."""
        at = self.begin_region(line, start, context)
        for op in ops:
            end = at + self.draw(op.mean_us)
            self.add(line, f"{op.name}:{op.kind}", at, end)
            if op.output_bytes:
                self.tensors.allocate(line, at + GAP_NS // 2, op.output_bytes, op.name, op.shape)
                if frees:
                    self.tensors.free_one(line, end + GAP_NS // 2)
            at = end + GAP_NS + self.draw(0.5)
        self.end_region(line, start, at, process)

    def begin_region(self, line: int, start: int, context: Changing) -> int:
        """A closure begins on a thread of a pool: returns when its first op does."""
        self.add(line, "ThreadpoolListener::StartRegion", start - GAP_NS, start - GAP_NS, _ct=_THREADPOOL, _c=context)
        return start + 4 * GAP_NS

    def end_region(self, line: int, start: int, at: int, process: Values) -> None:
        """The closure ends: all of it was the executor's."""
        self.add(line, "ExecutorState::Process", start, at + GAP_NS, **process)
        self.add(line, "ThreadpoolListener::StopRegion", at + 3 * GAP_NS, at + 3 * GAP_NS)
        self.free[line] = at + 5 * GAP_NS

    def fill_batch(self) -> None:
        """A batch for a later step: elements of the parallel map, put together."""
        line, ids = self.threads.iterators[0], self._iterators
        begin = self.free[line]
        at = begin + 3 * GAP_NS
        mapped: Values = {**_MAPPED, "id": ids["ParallelMapV2"], "parent_id": ids["BatchV2"], "parallelism": 2}
        for i in range(BATCH):
            end = at + self.draw(3)
            self.add(line, _DATASET, at, end, **mapped)
            self.add(line, "ParallelMapConsume", at + 100, end - 100, element_id=Changing(i, BATCH))
            self._map_element(i)
            at = end + GAP_NS
        batch: Values = {**_BATCHED, "id": ids["BatchV2"], "parent_id": ids["Prefetch"], "batch_size": BATCH}
        self.add(line, "Iterator::Root::Prefetch::BatchV2", begin + GAP_NS, at + self.draw(20), **batch)
        self.free[line] = at + 200_000
        element = self._element._replace(value=self._element.value + _PREFETCHED)
        self.add(line, "PrefetchProduce", begin, self.free[line] - GAP_NS, element_id=element)

    def _map_element(self, i: int) -> None:
        """One element of the parallel map read, then decoded on a thread of tf.data's own pool."""
        line, ids = self.threads.iterators[1], self._iterators
        begin = self.free[line]
        flat: Values = {**_FLATTENED, "id": ids["FlatMap"], "parent_id": ids["ParallelMapV2"]}
        self.add(line, f"{_DATASET}::FlatMap", begin + GAP_NS, begin + 9_000, **flat)
        read: Values = {**_READ, "id": ids["TFRecord"], "parent_id": ids["FlatMap"]}
        read_at = begin + 2 * GAP_NS
        self.add(line, f"{_DATASET}::FlatMap[0]::TFRecord", read_at, read_at + self.draw(5, most_us=7), **read)
        function, run = self.new_id(), self.new_id()
        self.add(line, "InstantiatedCapturedFunction::RunAsync", begin + 10_000, begin + 16_000, id=function)
        self.add(line, "FunctionRun", begin + 11_000, begin + 15_000, id=function, _r=1, _pt=FUNCTION, _p=run)
        context = self.record(line, begin + 12_000)
        self.add(line, "ParallelMapProduce", begin, begin + 17_000, element_id=Changing(i, BATCH))
        self.free[line] = begin + 17_000 + self.draw(4)
        worker = self.threads.workers[i % len(self.threads.workers)]
        start = max(self.free[worker], begin + 20_000) + self.draw(2)
        process: Values = {"id": function, "iter_num": 0, "_ct": FUNCTION, "_c": run}
        self.region(worker, start, context, _DECODING, process, frees=True)


def new_iterators(rng: np.random.Generator) -> dict[str, Changing]:
    """The iterators of the input pipeline, by name."""
    return {name: _id(rng) for name in _ITERATORS}


def _id(rng: np.random.Generator) -> Changing:
    """An id of 64 random bits."""
    return Changing(2 * int(rng.integers(1 << 63)) + 1, 0, UINT64)
