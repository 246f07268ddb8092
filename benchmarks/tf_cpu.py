"""What TensorFlow records on CPU: a convolutional model trained by Adam, its input decoded by tf.data."""

from __future__ import annotations

import numpy as np

from benchmarks.recording import Changing, Plane, Recording, Step, Values
from benchmarks.tf_host import BATCH, FUNCTION, GAP_NS, HostStep, Op, Threads, new_iterators

_VARIANTS = 8  # different steps that a recording is made of
_COMPUTE = (1, 2, 3, 4)
_THREADS = Threads(python=0, iterators=(5, 6), workers=(7, 8))
_LINES = ("python", *["tf_Compute"] * 4, *["tf_data_iterator_resource"] * 2, *["tf_data_private_threadpool"] * 2)
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


def recording(seed: int, layers: int) -> Recording:
    """A recording of a model of so many convolutional layers."""
    rng = np.random.default_rng(seed)
    plane = Plane("/host:CPU", _LINES)
    forward, backward, update = _model(layers)
    iterators = new_iterators(rng)
    ops = [*forward, *backward, *update]
    steps = [_step(HostStep([plane], _THREADS, iterators, rng), ops, len(forward)) for _ in range(_VARIANTS)]
    return Recording((plane,), tuple(steps))


def _step(host: HostStep, ops: list[Op], forward: int) -> Step:
    """A step of these ops, of which so many are the forward pass."""
    begin = host.get_next(20_000) + 40_000
    step_id, run_id = host.new_id(), host.new_id()
    _run_ops(host, ops, forward, begin + 60_000, step_id, run_id)
    finished = max(host.free[line] for line in _COMPUTE) + 30_000
    host.train_step(begin, finished, step_id, run_id)
    host.mark(15_000, finished + 60_000)
    host.fill_batch()
    host.tensors.write(host.add, host.threads.python, step_id)
    return host.build(max(finished + 80_000, *(t + 5_000 for t in host.free.values())))


def _run_ops(host: HostStep, ops: list[Op], forward: int, begin: int, step_id: Changing, run_id: Changing) -> None:
    """Ops in groups, each group a closure that some thread picks up; a group schedules the one after the next."""
    scheduled = [(host.record(host.threads.python, begin - 55_000 + 1_000 * i), begin) for i in range(2)]
    done = 0
    while done < len(ops):
        size = 1 + min(int(host.rng.geometric(0.055)), 60)
        line = min(_COMPUTE, key=host.free.__getitem__)
        context, ready = scheduled.pop(0)
        start = max(host.free[line] + host.draw(2), ready)
        process: Values = {"id": step_id, "iter_num": 0, "_ct": FUNCTION, "_c": run_id}
        scheduled.append((host.record(line, start + 2 * GAP_NS), start + 3_000))
        host.region(line, start, context, ops[done : done + size], process, frees=done > forward)
        done += size


def _model(layers: int) -> tuple[list[Op], list[Op], list[Op]]:
    forward: list[Op] = []
    backward: list[Op] = []
    update: list[Op] = []
    for i in range(layers):
        width = 64 >> min(i // 4, 4)
        shape, size = f"[{BATCH},{width},{width},64]", BATCH * width * width * 64 * 4
        scope, heavy = f"model/block_{i}", 40.0 * width
        forward += [
            Op(f"{scope}/conv/Conv2D/ReadVariableOp", "ReadVariableOp", 0.6),
            Op(f"{scope}/conv/Conv2D", "Conv2D", heavy, size, shape),
            Op(f"{scope}/conv/BiasAdd/ReadVariableOp", "ReadVariableOp", 0.6),
            Op(f"{scope}/conv/BiasAdd", "BiasAdd", heavy / 20),
            Op(f"{scope}/norm/ReadVariableOp", "ReadVariableOp", 0.6),
            Op(f"{scope}/norm/ReadVariableOp_1", "ReadVariableOp", 0.6),
            Op(f"{scope}/norm/FusedBatchNormV3", "FusedBatchNormV3", heavy / 8, size, shape),
            Op(f"{scope}/relu/Relu", "Relu", heavy / 25),
        ]
        tape = f"gradient_tape/{scope}"
        backward[:0] = [
            Op(f"{tape}/relu/ReluGrad", "ReluGrad", heavy / 25),
            Op(f"{tape}/norm/FusedBatchNormGradV3", "FusedBatchNormGradV3", heavy / 5),
            Op(f"{tape}/conv/BiasAdd/BiasAddGrad", "BiasAddGrad", heavy / 30),
            Op(f"{tape}/conv/Conv2D/Conv2DBackpropInput", "Conv2DBackpropInput", heavy, size, shape),
            Op(f"{tape}/conv/Conv2D/Conv2DBackpropFilter", "Conv2DBackpropFilter", 2 * heavy, 147456, "[3,3,64,64]"),
        ]
        update += [op for variable in range(len(_VARIABLES)) for op in _adam(len(_VARIABLES) * i + variable)]
    return forward, backward, update


def _adam(variable: int) -> list[Op]:
    kernel = variable % len(_VARIABLES) == 0
    reads = [Op(f"adam/Mul_{variable}/ReadVariableOp", "ReadVariableOp", 0.5)]
    return reads + [
        Op(f"adam/{kind}_{len(_ADAM) * variable + i}", kind, 12.0 if kernel else 1.5) for i, kind in enumerate(_ADAM)
    ]
