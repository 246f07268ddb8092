"""Profiles made from nothing but the format's grammar: every message with the fields it may have, filled at random."""

from __future__ import annotations

import random

from tests.fuzz.edits import damaged_bytes
from tests.xspace import fuzz_inputs
from tests.xspace_builder import Event, Value, chunk, event, fixed32, fixed64, integer, line, meta, plane, space, varint

PLANES = (
    *("/host:CPU", "/host:CPU", "/device:GPU:0", "/device:GPU:1", "/device:TPU:0", "/host:metadata"),
    *("Task Environment", "/device:CUSTOM:x", "", "<b>plane</b>"),
)
LINES = (
    *(
        "python",
        "Stream #13(Compute)",
        "Stream #14(MemcpyH2D)",
        "XLA Ops",
        "XLA Modules",
        "Steps",
        "TensorFlow Ops",
        "",
    ),
)
EVENTS = (
    *("train", "train 7", "TraceContext", "EagerExecute", "FunctionRun", "ExecutorState::Process", "Profiled batch"),
    *("dense/MatMul:MatMul", "conv_1/Conv2D:Conv2D", "a/b/c:Relu", "IteratorGetNextOp::DoCompute", "cudaLaunchKernel"),
    *("Iterator::Root::Map", "Iterator::Root::Prefetch", "Iterator::Root", "MemoryAllocation", "MemoryDeallocation"),
    *("MemcpyH2D", "void gemm<float, half>(int)", "ncclAllReduce", "jit_f(1)", "fusion.1", "InfeedEnqueueTuple"),
    *("ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion", "InstantiatedCapturedFunction::Run"),
    *("<b>bold</b><script>x</script>", "=cmd|' /C calc'!A0", "a\0b:C", "two\nlines:A", "[md](x) `c` **b** $x$:M"),
)
STATS = (
    *("_r", "_pt", "_p", "_ct", "_c", "id", "parent_id", "group_id", "step_num", "step_name", "iter_num", "is_func"),
    *("correlation_id", "tf_op", "hlo_op", "program_id", "level 0", "annotation", "kernel_details", "memcpy_details"),
    *("is_eager", "long_name", "allocator_name", "allocation_bytes", "requested_bytes", "bytes_allocated", "addr"),
    *("bytes_reserved", "bytes_available", "peak_bytes_in_use", "region_type", "data_type", "shape", "fragmentation"),
    *("parallelism", "buffer_limit", "device_offset_ps", "device_duration_ps", "_ipl_stage_id", "_ipl_stage_cat"),
    *("profile_start_time", "device_vendor", "core_count", "hlo_category", "symbol_id", "tensor_shapes", "name"),
)
VALUES = (
    *("", "Nvidia", "GPU_0_bfc", "regs:16 shm:0 grid:1,1,1 block:1024,1,1", "regs:-1 shm:x grid:,, block:999999999999"),
    *("size:1024 kind_src:host", "kind:x size:99999999999999999999", "dense/MatMul:MatMul", "main::fusion.1", "float"),
    *("[2,3]", "a\0b", "<img src=x onerror=alert(1)>", "=1+1", "@SUM(A1)", "not a number", "1", "x" * 5000),
)
OPCODES = (
    *("fusion", "dot", "convolution", "custom-call", "reduce", "reduce-window", "scatter", "select-and-scatter", "map"),
    *("parameter", "add", "convert", "tuple", "bitcast", "dynamic-slice", "dynamic-update-slice", "gather", "while"),
    *("all-reduce", "copy-start", "copy-done", "all-gather-start", "cholesky", "triangular-solve", "call", "", "x"),
)
TARGETS = ("__cublas$gemm", "__cudnn$convForward", "__cudnn$convBackwardFilter", "__cudnn$fmhaSoftmax", "x")
CONFIGS = (
    '{"gemm_backend_config": {"dot_dimension_numbers": {"rhs_contracting_dimensions": ["0"]}}}',
    '{"cudnn_fmha_backend_config": {"bmm1_dot_dimension_numbers": {"rhs_contracting_dimensions": [1]}}}',
)


def generated(rng: random.Random) -> bytes:
    """A well-formed profile of up to six planes."""
    texts = [chunk(rng.choice((2, 3, 4)), rng.choice(VALUES)) for _ in range(rng.choice((0, 0, 1, 3)))]
    return space(*[chunk(1, _plane(rng)) for _ in range(rng.choice((1, 2, 2, 3, 6)))], *texts)


def with_program(rng: random.Random) -> bytes:
    """A GPU's profile with the XLA program that its kernels are part of, often damaged."""
    computations = b"".join(chunk(3, _computation(rng, i)) for i in range(rng.choice((1, 2, 4))))
    program = chunk(1, chunk(1, "module") + computations + integer(6, rng.randrange(4)) + _schedule(rng))
    program += chunk(3, b"".join(_placed(rng) for _ in range(rng.randrange(30))))
    if rng.random() < 0.5:
        program = damaged_bytes(program, rng)
    named = meta("jit_f", "", {"Hlo Proto": program})
    kernels = [event(f"k{i}", 10 * i, 5, hlo_op=f"main::op.{i}", program_id=77, correlation_id=i) for i in range(6)]
    kernels += [_in_command_buffer(rng, 100 + 10 * i) for i in range(rng.choice((0, 8)))]
    return space(
        plane("/device:GPU:0", line("Stream #1(Compute)", *kernels, id=1)),
        plane("/host:metadata", line("m", event(named, 0, 0)), ids={"jit_f": 77}),
    )


def _schedule(rng: random.Random) -> bytes:
    """The order of the instructions of some computations, also of ones that are not there."""
    ids = [b"".join(varint(rng.randrange(12)) for _ in range(9)) for _ in range(rng.choice((0, 1, 3)))]
    return chunk(7, b"".join(chunk(1, integer(1, i) + chunk(2, chunk(1, order))) for i, order in enumerate(ids)))


def _in_command_buffer(rng: random.Random, at_us: float) -> Event:
    stats: dict[str, Value] = {"correlation_id": rng.randrange(2), "cuda_graph_id": 3}
    if rng.random() < 0.5:
        stats |= {"hlo_op": rng.choice(("command_buffer_1", "op.3", "x")), "program_id": rng.choice((77, 77, 0, 5))}
    return event(rng.choice(("op_1", "op_2.kd", "op_4", "gemm", "Memset 3")), at_us, 5, **stats)


def _computation(rng: random.Random, number: int) -> bytes:
    instructions = b"".join(chunk(2, _instruction(rng, i)) for i in range(rng.randrange(1, 9)))
    return instructions + integer(5, number) + integer(6, rng.randrange(9))


def _instruction(rng: random.Random, number: int) -> bytes:
    parts = [chunk(1, f"op.{number}"), integer(35, number), chunk(3, _shape(rng, 4)), chunk(2, rng.choice(OPCODES))]
    parts += [integer(38, rng.randrange(5)) for _ in range(rng.choice((0, 1, 1, 2)))]
    parts += [chunk(15, chunk(1, _numbers(rng, 7)) * rng.randrange(3)), chunk(16, _numbers(rng, 13))]
    parts += [chunk(30, _numbers(rng, 5)), chunk(28, rng.choice(TARGETS)), chunk(43, rng.choice((*CONFIGS, *VALUES)))]
    parts.append(chunk(7, chunk(1, rng.choice(VALUES)) + chunk(2, rng.choice(EVENTS)) + integer(3, 1)))
    operands = [rng.choice((rng.randrange(9), _number(rng))) for _ in range(rng.randrange(4))]
    packed = rng.random() < 0.5
    parts += [chunk(36, b"".join(map(varint, operands)))] if packed else [integer(36, n) for n in operands]
    parts += rng.choice(((), (fixed64(50, b"12345678"), fixed32(51, b"1234")), (integer(50, 1),)))
    return b"".join(rng.sample(parts, len(parts) - rng.choice((0, 0, 1))))


def _placed(rng: random.Random) -> bytes:
    """A logical buffer, an allocation, or a trace of allocations and frees."""
    kind = rng.choice((1, 3, 4))
    body = _numbers(rng, 5)
    if kind == 1:
        body = integer(1, rng.randrange(6)) + integer(2, rng.randrange(1000)) + chunk(3, integer(4, rng.randrange(9)))
    elif kind == 3:
        flag = integer(rng.choice((3, 5, 7, 12, 99)), 1)
        body = integer(2, rng.randrange(1000)) + chunk(9, integer(1, rng.randrange(6))) * rng.randrange(3) + flag
    events = [integer(1, rng.randrange(4)) + integer(2, rng.randrange(6)) + integer(5, rng.randrange(6)) for _ in "ab"]
    return chunk(kind, b"".join(chunk(1, rng.choice(events)) for _ in range(rng.randrange(20))) if kind == 4 else body)


def _numbers(rng: random.Random, end: int) -> bytes:
    """A message of numbers, mostly small."""
    return b"".join(
        integer(n, rng.choice((rng.randrange(5), _number(rng)))) for n in range(1, end) if rng.random() < 0.8
    )


def _shape(rng: random.Random, depth: int) -> bytes:
    if depth and rng.random() < 0.3:
        return integer(2, 13) + b"".join(chunk(4, _shape(rng, depth - 1)) for _ in range(rng.randrange(4)))
    sizes = b"".join(varint(rng.choice((1, 2, 3, _number(rng)))) for _ in range(rng.randrange(5)))
    return integer(2, rng.choice((10, 11, 16, 4, _number(rng)))) + chunk(3, sizes)


def _plane(rng: random.Random) -> bytes:
    names, stats = rng.sample(EVENTS, rng.randrange(1, 9)), rng.sample(STATS, rng.randrange(9))
    body = [integer(1, _number(rng)) + chunk(2, rng.choice(PLANES))]
    body += [chunk(3, _line(rng, len(names), len(stats))) for _ in range(rng.choice((0, 1, 1, 2, 4)))]
    for i, name in enumerate(names, 1):
        own = b"".join(chunk(5, _stat(rng, len(stats))) for _ in range(rng.choice((0, 0, 0, 2))))
        shown = chunk(4, rng.choice(EVENTS)) if rng.random() < 0.2 else b""
        body.append(chunk(4, integer(1, i) + chunk(2, integer(1, i) + chunk(2, name) + shown + own)))
    body += [chunk(5, integer(1, i) + chunk(2, integer(1, i) + chunk(2, name))) for i, name in enumerate(stats, 1)]
    body += [chunk(6, _stat(rng, len(stats))) for _ in range(rng.choice((0, 0, 1, 4)))]
    if rng.random() < 0.2:
        rng.shuffle(body)
    return b"".join(body)


def _line(rng: random.Random, names: int, stats: int) -> bytes:
    stamp = rng.choice((0, 1_000, 1_700_000_000_000_000_000, _number(rng)))
    head = integer(1, rng.choice((rng.randrange(20), _number(rng)))) + chunk(2, rng.choice(LINES)) + integer(3, stamp)
    return head + b"".join(chunk(4, _event(rng, names, stats)) for _ in range(rng.choice((0, 1, 5, 12, 40))))


def _event(rng: random.Random, names: int, stats: int) -> bytes:
    """Mostly within a millisecond of its neighbours, so that events nest and overlap."""
    at, took = ((rng.randrange(1000) * 1_000_000 if rng.random() < 0.96 else _number(rng)) for _ in range(2))
    when = integer(2, at) if rng.random() < 0.95 else integer(5, rng.choice((3, _number(rng))))
    key = rng.randrange(1, names + 1) if rng.random() < 0.97 else _number(rng)
    return (
        integer(1, key)
        + when
        + integer(3, took)
        + b"".join(chunk(4, _stat(rng, stats)) for _ in range(rng.choice((0, 1, 2, 4)) if stats else 0))
    )


def _stat(rng: random.Random, names: int) -> bytes:
    key = rng.randrange(1, names + 1) if names and rng.random() < 0.97 else _number(rng)
    number = rng.choice((rng.randrange(4), rng.randrange(4), rng.randrange(1 << 20), _number(rng)))
    return integer(1, key) + rng.choice(
        (
            *(integer(3, number), integer(4, number), integer(4, number), chunk(5, rng.choice(VALUES))),
            *(integer(7, rng.randrange(1, names + 2)), chunk(6, rng.choice(VALUES)), fixed64(2, rng.randbytes(8)), b""),
        )
    )


def _number(rng: random.Random) -> int:
    return rng.choice(fuzz_inputs.NUMBERS)
