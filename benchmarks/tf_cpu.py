"""What TensorFlow records on CPU: a convolutional model trained by Adam, its input decoded by tf.data.

Names, stats, nesting and links between threads are those of real recordings (`sample_logs/autoencoder`); times and
sizes are drawn at random.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.recording import UINT64, Changing, Names, Recording, Step, StepBuilder, Values

_VARIANTS = 8  # different steps that a recording is made of
_BATCH = 16
_PYTHON, _COMPUTE, _ITERATORS, _WORKERS = 0, (1, 2, 3, 4), (5, 6), (7, 8)
_LINES = ("python", *["tf_Compute"] * 4, *["tf_data_iterator_resource"] * 2, *["tf_data_private_threadpool"] * 2)
_PREFETCHED = 2  # batches that are ready ahead of the step that takes them
_GAP_NS = 300
_THREADPOOL, _FUNCTION = 15, 2  # kinds of contexts by which threads are linked (`_pt`, `_ct`)
_DATASET = "Iterator::Root::Prefetch::BatchV2::ParallelMapV2"
_ADAM = (
    "Mul",
    "AddV2",
    "Mul",
    "Square",
    "Sub",
    "AssignAddVariableOp",
    "Sqrt",
    "AddV2",
    "RealDiv",
    "AssignSubVariableOp",
)
_VARIABLES = ("kernel", "bias", "gamma", "beta")


_TAKEN: Values = {"name": "PrefetchDataset:3", "shapes": f"[{_BATCH},128,128,3] [{_BATCH}]", "types": "float int64"}
_BATCHED: Values = {**_TAKEN, "name": "BatchDatasetV2:5"}
_MAPPED: Values = {"name": "ParallelMapDatasetV2:7", "shapes": "[128,128,3] []", "types": "float int64"}
_FLATTENED: Values = {"name": "FlatMapDataset:9", "shapes": "[]", "types": "string"}
_READ: Values = {"name": "TFRecordDataset:11", "shapes": "<unknown>", "types": "string"}


class _Op(NamedTuple):
    name: str
    kind: str
    mean_us: float
    output_bytes: int = 0
    shape: str = ""


_DECODING = [
    _Op("DecodePng", "DecodePng", 450.0, 49152, "[128,128,3]"),
    _Op("resize/ResizeArea", "ResizeArea", 40.0),
    _Op("Cast", "Cast", 8.0),
]


class _Tensor(NamedTuple):
    at_ns: int
    line: int
    address: int
    size: int
    op: _Op | None  # None: freed


def recording(seed: int, layers: int) -> Recording:
    """A recording of a model of so many convolutional layers."""
    rng = np.random.default_rng(seed)
    events, stats = Names(), Names()
    forward, backward, update = _model(layers)
    iterators = {name: _id(rng) for name in ("Root", "Prefetch", "BatchV2", "ParallelMapV2", "FlatMap", "TFRecord")}
    steps = [
        _Simulation(StepBuilder(events, stats), rng, iterators).step([*forward, *backward, *update], len(forward))
        for _ in range(_VARIANTS)
    ]
    return Recording("/host:CPU", _LINES, events, stats, tuple(steps))


def _model(layers: int) -> tuple[list[_Op], list[_Op], list[_Op]]:
    forward: list[_Op] = []
    backward: list[_Op] = []
    update: list[_Op] = []
    for i in range(layers):
        width = 64 >> min(i // 4, 4)
        shape, size = f"[{_BATCH},{width},{width},64]", _BATCH * width * width * 64 * 4
        scope, heavy = f"model/block_{i}", 40.0 * width
        forward += [
            _Op(f"{scope}/conv/Conv2D/ReadVariableOp", "ReadVariableOp", 0.6),
            _Op(f"{scope}/conv/Conv2D", "Conv2D", heavy, size, shape),
            _Op(f"{scope}/conv/BiasAdd/ReadVariableOp", "ReadVariableOp", 0.6),
            _Op(f"{scope}/conv/BiasAdd", "BiasAdd", heavy / 20),
            _Op(f"{scope}/norm/ReadVariableOp", "ReadVariableOp", 0.6),
            _Op(f"{scope}/norm/ReadVariableOp_1", "ReadVariableOp", 0.6),
            _Op(f"{scope}/norm/FusedBatchNormV3", "FusedBatchNormV3", heavy / 8, size, shape),
            _Op(f"{scope}/relu/Relu", "Relu", heavy / 25),
        ]
        tape = f"gradient_tape/{scope}"
        backward[:0] = [
            _Op(f"{tape}/relu/ReluGrad", "ReluGrad", heavy / 25),
            _Op(f"{tape}/norm/FusedBatchNormGradV3", "FusedBatchNormGradV3", heavy / 5),
            _Op(f"{tape}/conv/BiasAdd/BiasAddGrad", "BiasAddGrad", heavy / 30),
            _Op(f"{tape}/conv/Conv2D/Conv2DBackpropInput", "Conv2DBackpropInput", heavy, size, shape),
            _Op(f"{tape}/conv/Conv2D/Conv2DBackpropFilter", "Conv2DBackpropFilter", 2 * heavy, 147456, "[3,3,64,64]"),
        ]
        update += [op for variable in range(len(_VARIABLES)) for op in _adam(len(_VARIABLES) * i + variable)]
    return forward, backward, update


def _adam(variable: int) -> list[_Op]:
    kernel = variable % len(_VARIABLES) == 0
    reads = [_Op(f"adam/Mul_{variable}/ReadVariableOp", "ReadVariableOp", 0.5)]
    return reads + [
        _Op(f"adam/{kind}_{len(_ADAM) * variable + i}", kind, 12.0 if kernel else 1.5) for i, kind in enumerate(_ADAM)
    ]


class _Simulation:
    """One step: what each thread does when. Times are nanoseconds since the step's begin."""

    def __init__(self, step: StepBuilder, rng: np.random.Generator, iterators: dict[str, Changing]) -> None:
        self.add = step.add
        self.build = step.build
        self.rng = rng
        self.free = dict.fromkeys(range(len(_LINES)), 1_000)
        self.tensors: list[_Tensor] = []
        self.held: list[_Tensor] = []
        self.contexts = 0
        self.iterators = iterators

    def step(self, ops: list[_Op], forward: int) -> Step:
        element = Changing(1 << 32, 1)
        started = self._get_next(20_000, element)
        step_id, run_id = self._id_of_run(), self._id_of_run()
        begin = started + 40_000
        self._run_ops(ops, forward, begin + 60_000, step_id, run_id)
        finished = max(self.free[line] for line in _COMPUTE) + 30_000
        self._train_step(begin, finished, step_id, run_id)
        self.add(_PYTHON, "train", 15_000, finished + 60_000, step_num=Changing(0, 1), _r=1)
        self._fill_batch(element._replace(value=element.value + _PREFETCHED))
        self._memory_events(step_id)
        return self.build(max(finished + 80_000, *(t + 5_000 for t in self.free.values())))

    # What the Python thread does.

    def _get_next(self, begin: int, element: Changing) -> int:
        """Ask the iterator for a batch: returns when it is there."""
        end = begin + self._draw(120)
        root, prefetch = self.iterators["Root"], self.iterators["Prefetch"]
        buffer: Values = {"buffer_limit": 4, "autotune": "true", "buffered_elements": int(self.rng.integers(5))}
        self._chain(
            begin,
            end,
            ("TFE_Py_FastPathExecute_C", {}),
            ("EagerExecute", {"eager_op": "IteratorGetNext", "is_func": 0}),
            ("EagerLocalExecute: IteratorGetNext", {}),
            ("EagerKernelExecute", {}),
            ("KernelAndDeviceFunc::Run", {}),
            ("IteratorGetNextOp::DoCompute", {"id": self._id_of_run(), "iter_num": 0, "element_size": 3_145_856}),
            ("Iterator::Root", {**_TAKEN, "id": root, "cpu_budget": 4, "warm_start": "false"}),
            ("Iterator::Root::Prefetch", {**_TAKEN, "id": prefetch, "parent_id": root, **buffer}),
            ("PrefetchConsume", {"element_id": element}),
        )
        return end

    def _train_step(self, begin: int, end: int, step_id: Changing, run_id: Changing) -> None:
        innermost = self._chain(
            begin,
            end,
            ("train_step", {"tf_function_call": "notTraced-nonXla", "tracing_count": 1}),
            ("TFE_Py_ExecuteCancelable", {}),
            ("EagerExecute", {"eager_op": "__inference_train_step_4242", "is_func": 1}),
            ("EagerLocalExecute: __inference_train_step_4242", {}),
            ("EagerKernelExecute", {}),
            ("KernelAndDeviceFunc::Run", {}),
        )
        run: Values = {"id": step_id, "_r": 1, "_pt": _FUNCTION, "_p": run_id}
        self.add(_PYTHON, "FunctionRun", innermost + _GAP_NS, innermost + 20_000, **run)
        for i in range(3):
            at = end + 5_000 + 4_000 * i
            self.add(_PYTHON, "TFE_DeleteTensorHandle", at, at + 2_000)

    def _chain(self, begin: int, end: int, *spans: tuple[str, Values]) -> int:
        """Spans on the Python thread, each within the one before; returns the begin of the innermost."""
        for depth, (name, stats) in enumerate(spans):
            self.add(_PYTHON, name, begin + 2 * _GAP_NS * depth, end - _GAP_NS * depth, **stats)
        return begin + 2 * _GAP_NS * (len(spans) - 1)

    # What the threads of the executor do.

    def _run_ops(self, ops: list[_Op], forward: int, begin: int, step_id: Changing, run_id: Changing) -> None:
        """Ops in groups, each group a closure that some thread picks up; a group schedules the one after the next."""
        scheduled = [(self._record(_PYTHON, begin - 55_000 + 1_000 * i), begin) for i in range(2)]
        done = 0
        while done < len(ops):
            size = 1 + min(int(self.rng.geometric(0.055)), 60)
            line = min(_COMPUTE, key=self.free.__getitem__)
            context, ready = scheduled.pop(0)
            start = max(self.free[line] + self._draw(2), ready)
            process: Values = {"id": step_id, "iter_num": 0, "_ct": _FUNCTION, "_c": run_id}
            scheduled.append((self._record(line, start + 2 * _GAP_NS), start + 3_000))
            self._region(line, start, context, ops[done : done + size], process, frees=done > forward)
            done += size

    def _region(self, line: int, start: int, context: Changing, ops: list[_Op], process: Values, frees: bool) -> None:
        """A closure on a thread of a pool: the executor, and the ops that it runs."""
        self.add(line, "ThreadpoolListener::StartRegion", start - _GAP_NS, start - _GAP_NS, _ct=_THREADPOOL, _c=context)
        at = start + 4 * _GAP_NS
        for op in ops:
            end = at + self._draw(op.mean_us)
            self.add(line, f"{op.name}:{op.kind}", at, end)
            if op.output_bytes:
                self._allocate(line, at + _GAP_NS // 2, op)
                if frees:
                    self._free_one(line, end + _GAP_NS // 2)
            at = end + _GAP_NS + self._draw(0.5)
        self.add(line, "ExecutorState::Process", start, at + _GAP_NS, **process)
        self.add(line, "ThreadpoolListener::StopRegion", at + 3 * _GAP_NS, at + 3 * _GAP_NS)
        self.free[line] = at + 5 * _GAP_NS

    def _record(self, line: int, at: int) -> Changing:
        """Schedule a closure: an instant on the thread that does it, with the context by which it is found again."""
        self.contexts += 1
        context = Changing(self.contexts, 4096)
        self.add(line, "ThreadpoolListener::Record", at, at, _pt=_THREADPOOL, _p=context)
        return context

    # What tf.data does.

    def _fill_batch(self, element: Changing) -> None:
        """A batch for a later step: elements of the parallel map, put together."""
        line, ids, begin = _ITERATORS[0], self.iterators, self.free[_ITERATORS[0]]
        at = begin + 3 * _GAP_NS
        for i in range(_BATCH):
            end = at + self._draw(3)
            self.add(
                line, _DATASET, at, end, **_MAPPED, id=ids["ParallelMapV2"], parent_id=ids["BatchV2"], parallelism=2
            )
            self.add(line, "ParallelMapConsume", at + 100, end - 100, element_id=Changing(i, _BATCH))
            self._map_element(i)
            at = end + _GAP_NS
        batch: Values = {**_BATCHED, "id": ids["BatchV2"], "parent_id": ids["Prefetch"], "batch_size": _BATCH}
        self.add(line, "Iterator::Root::Prefetch::BatchV2", begin + _GAP_NS, at + self._draw(20), **batch)
        self.free[line] = at + 200_000
        self.add(line, "PrefetchProduce", begin, self.free[line] - _GAP_NS, element_id=element)

    def _map_element(self, i: int) -> None:
        """One element of the parallel map: read, then decoded on a thread of tf.data's own pool."""
        line, begin, ids = _ITERATORS[1], self.free[_ITERATORS[1]], self.iterators
        flat: Values = {**_FLATTENED, "id": ids["FlatMap"], "parent_id": ids["ParallelMapV2"]}
        self.add(line, f"{_DATASET}::FlatMap", begin + _GAP_NS, begin + 9_000, **flat)
        read: Values = {**_READ, "id": ids["TFRecord"], "parent_id": ids["FlatMap"]}
        read_at = begin + 2 * _GAP_NS
        self.add(line, f"{_DATASET}::FlatMap[0]::TFRecord", read_at, read_at + self._draw(5, most_us=7), **read)
        function, run = self._id_of_run(), self._id_of_run()
        self.add(line, "InstantiatedCapturedFunction::RunAsync", begin + 10_000, begin + 16_000, id=function)
        self.add(line, "FunctionRun", begin + 11_000, begin + 15_000, id=function, _r=1, _pt=_FUNCTION, _p=run)
        context = self._record(line, begin + 12_000)
        self.add(line, "ParallelMapProduce", begin, begin + 17_000, element_id=Changing(i, _BATCH))
        self.free[line] = begin + 17_000 + self._draw(4)
        worker = _WORKERS[i % len(_WORKERS)]
        start = max(self.free[worker], begin + 20_000) + self._draw(2)
        process: Values = {"id": function, "iter_num": 0, "_ct": _FUNCTION, "_c": run}
        self._region(worker, start, context, _DECODING, process, frees=True)

    # Memory.

    def _allocate(self, line: int, at: int, op: _Op) -> None:
        tensor = _Tensor(at, line, 0x7F0000000000 + 256 * int(self.rng.integers(1 << 26)), op.output_bytes, op)
        self.tensors.append(tensor)
        self.held.append(tensor)

    def _free_one(self, line: int, at: int) -> None:
        """Free some tensor of those that are there by then, but for the last few."""
        there = [i for i, tensor in enumerate(self.held[:-4]) if tensor.at_ns < at]
        if there:
            tensor = self.held.pop(int(self.rng.choice(there)))
            self.tensors.append(tensor._replace(at_ns=at, line=line, op=None))

    def _memory_events(self, step_id: Changing) -> None:
        """All allocations in the order of time, each with what is then in use; what is left is freed at the end."""
        last = max(tensor.at_ns for tensor in self.tensors)
        left = [t._replace(at_ns=last + 200 * i, line=_PYTHON, op=None) for i, t in enumerate(self.held, 1)]
        in_use, peak = 1 << 26, (1 << 26) + sum(t.size for t in self.tensors if t.op) // 2
        for at, line, address, size, op in sorted([*self.tensors, *left], key=lambda tensor: tensor.at_ns):
            in_use += size if op else -size
            stats: Values = {
                "allocator_name": "cpu",
                "bytes_reserved": 0,
                "bytes_allocated": in_use,
                "bytes_available": (1 << 36) - in_use,
                "fragmentation": round(float(self.rng.random()), 6),
                "peak_bytes_in_use": peak,
                "requested_bytes": size,
                "allocation_bytes": size,
                "addr": address,
            }
            if op:
                stats |= {"tf_op": op.name, "id": step_id, "region_type": "output", "data_type": 1, "shape": op.shape}
                self.add(line, "MemoryAllocation", at, at, **stats)
            else:
                self.add(line, "MemoryDeallocation", at, at, **stats, id=0, data_type=0)

    def _draw(self, mean_us: float, most_us: float = 1e6) -> int:
        """A duration in nanoseconds, a little above 0 at least."""
        return _GAP_NS + int(1000 * min(mean_us * self.rng.lognormal(-0.08, 0.4), most_us))

    def _id_of_run(self) -> Changing:
        """An id that is a new one in each step."""
        return _id(self.rng)._replace(growth=2 * int(self.rng.integers(1 << 63)) + 1)


def _id(rng: np.random.Generator) -> Changing:
    """An id of 64 random bits."""
    return Changing(2 * int(rng.integers(1 << 63)) + 1, 0, UINT64)
