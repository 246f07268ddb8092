"""What the fuzzer starts from: small profiles of every dialect, and numbers and names that go where they hurt."""

from __future__ import annotations

from functools import cache

from tests.xspace_builder import U64, Event, Ref, aggregated, chunk, event, integer, line, meta, plane, space

NUMBERS = (
    *(0, 1, 2, 7, 127, 128, 255, 1 << 14, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 10**12, 1 << 53, 1 << 60),
    *((1 << 61) - 1, 1 << 61, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2, (1 << 64) - 10**6),
    *((1 << 64) - 559038737, (1 << 32) - 559038737, 1_700_000_000_000_000_000, (1 << 64) - 1_700_000_000_000_000_000),
)

_NAMES = (
    *("", ":", "::", ":::", "\0", "a\0b", "a\nb:C", "\n", "é:É", "#", "x#y=1#"),
    *("Iterator", "Iterator:", "Iterator::A"),
    *("/host:CPU", "/host:metadata", "/device:GPU:0", "/device:GPU:1", "/device:TPU:0", "/device:TPU:1"),
    *("Task Environment", "Steps", "XLA Modules", "XLA Ops", "Framework Ops", "python"),
    *("train", "train 1", "train 99999999999999999999", "test/a", "TraceContext", "EagerExecute", "EagerExecute 2"),
    *("FunctionRun", "SessionRun", "ExecutorState::Process", "WhileOp-EvalCond", "ThreadpoolListener::StartRegion"),
    *("ThreadpoolListener::StopRegion", "IteratorGetNextOp::DoCompute", "InstantiatedCapturedFunction::Run"),
    *("MatMul:MatMul", "a/b_1:", "jit_f(1)", "fusion.1", "MemcpyHToD", "1", "2", "999999999999999999"),
    *("group_id", "is_eager", "step_name", "step_num", "iter_num", "_r", "_a", "_pt", "_p", "_ct", "_c", "id"),
    *("correlation_id", "is_func", "tf_op", "hlo_op", "program_id", "symbol_id", "Hlo Proto", "level 0"),
    *("annotation", "_ipl_stage_id", "_ipl_stage_cat", "device_offset_ps", "device_duration_ps"),
    *("profile_start_time", "device_vendor", "core_count", "memory_size", "device_type_string"),
)
TEXTS = (*(name.encode() for name in _NAMES), b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f", b"Iterator::\xff")


def hlo_proto(*instructions: tuple[str, str, str]) -> bytes:
    """An `HloProto` of one computation: (name, op type, op name) of each instruction."""
    body = b"".join(
        chunk(2, chunk(1, name) + integer(3, 4) + chunk(7, chunk(1, op_type) + chunk(2, op_name)))
        for name, op_type, op_name in instructions
    )
    return chunk(1, chunk(1, "module") + chunk(3, chunk(1, "main") + body))


def _tensorflow() -> bytes:
    steps: list[Event] = []
    for i in range(7):
        at = 100 * i
        steps += [
            event("train", at, 90, _r=1, step_num=i),
            event("EagerExecute", at + 1, 20, is_func=0, id=U64(i)),
            event("mul:Mul", at + 2, 10, tf_op="mul:Mul"),
            event("FunctionRun", at + 25, 60, id=7 + i),
            event("ExecutorState::Process", at + 26, 50, id=7 + i, iter_num=0, _pt=3, _p=i),
            event("IteratorGetNextOp::DoCompute", at + 27, 5, id=7 + i, iter_num=0),
        ]
    pool = [
        event("ThreadpoolListener::StartRegion", 30, 0, _ct=3, _c=0),
        event("dense/MatMul:MatMul", 31, 20, long_name=Ref("dense/MatMul")),
        event("dense/BiasAdd:BiasAdd", 40, 20),
        event("ThreadpoolListener::StopRegion", 70, 0, _ct=3, _c=0),
        event("Iterator::Root::Map", 75, 10, id=U64((1 << 64) - 1), parent_id=U64(1 << 63)),
        event("InstantiatedCapturedFunction::Run", 76, 8, id=9),
        event("decode", 77, 3, _ipl_stage_id=5, _ipl_stage_cat="Preprocessing"),
        event("MemoryAllocation", 78, 0, tf_op="dense/MatMul:MatMul", allocation_bytes=512, addr=U64(1 << 40)),
    ]
    return space(
        plane("/host:CPU", line("python", *steps, id=1, at_us=1000), line("pool", *pool, id=2, at_us=1000)),
        plane("Task Environment", stats={"profile_start_time": U64(1_700_000_000_000_000_000)}, id=9),
        hostnames=["vm"],
        warnings=["dropped events"],
    )


def _keras_and_old() -> list[bytes]:
    keras = [event("Profiled batch", 50 * i, 40, step_num=U64(i)) for i in range(6)]
    ops = [event(f"layer_{i % 3}/Conv2D:Conv2D", 50 * i + 5, 20) for i in range(6)]
    old = [event(f"train {i}", 50 * i, 40) for i in range(3)]
    return [
        space(plane("/host:CPU", line("python", *keras, *ops))),
        space(plane("/host:CPU", line("python", *old, *ops), line("empty", id=3))),
        space(plane("/host:CPU", line("python", event("TraceContext", 0, 400, iter_num=4), *ops))),
    ]


def _gpu(is_grouped: bool) -> bytes:
    group = {"group_id": 3, "is_eager": 1} if is_grouped else {}
    named = {"step_name": "3"} if is_grouped else {}
    launches = [event("cudaLaunchKernel", 10 * i, 5, group, correlation_id=i) for i in range(5)]
    launches += [event("train", 100, 20, named, group_id=4, step_num=2), event("mul:Mul", 101, 2, group_id=4)]
    of_gemm = {"kernel_details": "regs:16 shm:0 grid:1,1,1 block:1024,1,1", "tf_op": Ref("dense/MatMul:MatMul")}
    kernels = [
        event("void gemm<float>()", 12, 8, group, correlation_id=0, **of_gemm),
        event("relu", 22, 8, {"level 0": "relu:Relu#id=1#", **group}, correlation_id=1),
        event("add", 30, 4, group, annotation="model/add:AddV2#::#x=y#", correlation_id=2),
        event("fusion_kernel", 40, 5, group, hlo_op="main::fusion.1", program_id=77, correlation_id=3),
        event("MemcpyH2D", 46, 2, group, memcpy_details="size:1024", correlation_id=4),
    ]
    steps = event("1", 0, 50, group_id=3) if is_grouped else event("1", 0, 50)
    proto = hlo_proto(("fusion.1", "MatMul", "model/dense/MatMul"), ("copy.2", "", ""))
    return space(
        plane("/host:CPU", line("python", event("train", 0, 60, group | named, _r=1, step_num=1), *launches)),
        plane(
            "/device:GPU:0",
            line("Stream #13(Compute)", *kernels, id=13),
            line("Steps", steps, id=-559038737),
            line("TensorFlow Ops", event("dense/MatMul:MatMul", 12, 8), id=-559038736),
            stats={"device_vendor": "Nvidia", "core_count": 80, "memory_size": U64(16 << 30), "compute_cap_major": 7},
        ),
        plane("/host:metadata", line("m", event(meta("jit_f", "", {"Hlo Proto": proto}), 0, 0)), ids={"jit_f": 77}),
    )


def _tpu() -> bytes:
    planes = []
    for core in range(2):
        fusion = meta("%fusion.1 = f32[]", "fusion.1", {"tf_op": "jit(f)/mul:", "program_id": U64(5), "symbol_id": 9})
        copy = meta("%copy.2", "copy.2", {"program_id": U64(5), "symbol_id": U64(10)})
        modules, ops = [], []
        for i in range(6):
            at = {"device_offset_ps": 1000 * i, "device_duration_ps": 900}
            modules.append(event("jit_f(123)", 2 * i, 1.5, at))
            ops.append(event(fusion, 2 * i, 1, at))
            ops.append(event(copy, 2 * i + 0.5, 0.2, {"device_offset_ps": 1000 * i + 100, "device_duration_ps": 50}))
        lines = [line("XLA Modules", *modules, id=2), line("XLA Ops", *ops, aggregated(copy, 12, 5), id=3)]
        if core:
            lines.append(line("Steps", event("1", 0, 5), event("2", 5, 5), id=1))
        planes.append(plane(f"/device:TPU:{core}", *lines, id=core, stats={"device_type_string": "TPU v6"}))
    return space(*planes, plane("/host:CPU", line("main", event("PjitFunction(f)", 0, 10))), errors=["lost"])


@cache
def built() -> tuple[bytes, ...]:
    """Every dialect once, a few hundred bytes to a few thousand each."""
    return (_tensorflow(), *_keras_and_old(), _gpu(False), _gpu(True), _tpu())
