"""Two runs of a convolutional autoencoder as TensorFlow records it on a GPU, written by hand.

What no sample has: ops whose kernels bear the op's name, tensor cores, an allocator's events on the device, copies from
pageable memory and `tf.data`, all in one profile. With many filters the device computes most of the step; with few it
waits for kernel launches.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.frames.tf_data_calls import call, consume, produce
from tests.xspace_builder import U64, Event, Value, event, line, meta, plane, space

FILTERS = {"gpu_filters_512_128": (512, 128), "gpu_filters_16_8": (16, 8)}
STEPS = 21
BATCH, PIXELS = 32, 32
LAUNCH_US, SHORTEST_KERNEL_US = 24.0, 1.9
FLOPS_PER_US, BYTES_PER_US = 5e6, 8e5
BETWEEN_STEPS_US = 30.0
GPU: dict[str, Value] = {
    "device_vendor": "AMD",
    "clock_rate": U64(1_700_000),
    "core_count": U64(104),
    "memory_bandwidth": U64(1_638_400_000_000),
    "memory_size": U64(68_702_699_520),
    "compute_cap_major": U64(9),
    "compute_cap_minor": U64(0),
}
FUNCTION = 2
"""How the call of a function is linked to the thread that runs its ops: TensorFlow's `ContextType`."""
LIMIT_BYTES = 61 << 30
IMAGES = (BATCH, PIXELS, PIXELS, 3)
MATRIX_CORES = {
    "Conv2D": "igemm_fwd_gtcx_nhwc_fp32_bx0_ex0_bt128x64x16",
    "Conv2DBackpropInput": "igemm_bwd_gtcx_nhwc_fp32_bx0_ex0_bt128x64x16",
    "Conv2DBackpropFilter": "igemm_wrw_gtcx_nhwc_fp32_bx0_ex0_bt64x64x16",
}
WINOGRAD = {
    "Conv2D": "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_stride2",
    "Conv2DBackpropInput": "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_dilate2",
    "Conv2DBackpropFilter": "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride2_wrw",
}
TRANSPOSE = "void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 256, 32, 32, false>()"
COMPARE = "void Eigen::internal::EigenMetaKernel<Eigen::internal::scalar_cmp_op<float const, float const, 6>>(long)"

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """A kernel, or a copy of `copied` bytes; `us` on the device."""

    name: str
    us: float
    blocks: int = 1
    copied: int = 0
    kind: str = "pinned"

    @property
    def stats(self) -> dict[str, Value]:
        if self.copied:
            return {"memcpy_details": f"kind:{self.kind} size:{self.copied} dest:0 async:1"}
        details = f" grid:{self.blocks},1,1 block:256,1,1 private_mem:0 group_mem:16384 occ_pct:0"
        return {"kernel_details": details}


@dataclass(frozen=True)
class Op:
    """An op, what it has the device do, what it allocates (`temporary` while it runs), and whose memory it frees."""

    name: str
    type: str
    work: tuple[Work, ...]
    output: Shape | None = None
    temporary: Shape | None = None
    frees: tuple[str, ...] = ()


def layers(outer: int, inner: int) -> list[tuple[str, int, int, int, int]]:
    """(name, channels in and out, pixels in and out) of each convolution."""
    return [
        ("encoder_outer", 3, outer, 32, 16),
        ("encoder_inner", outer, inner, 16, 8),
        ("decoder_inner", inner, inner, 8, 16),
        ("decoder_outer", inner, outer, 16, 32),
        ("image", outer, 3, 32, 32),
    ]


def elementwise(kind: str, shape: Shape) -> tuple[Work, ...]:
    name = COMPARE if kind == "ReluGrad" else f"{kind}_GPU_DT_FLOAT_DT_FLOAT_kernel"
    return (Work(name, SHORTEST_KERNEL_US + 12 * math.prod(shape) / BYTES_PER_US, math.ceil(math.prod(shape) / 1024)),)


def training_step(outer: int, inner: int) -> Iterator[Op]:
    """The ops of a step in the order of their launch."""
    copied = 4 * math.prod(IMAGES)
    for half in ("noisy/_1", "clean/_3"):
        yield Op(half, "_Recv", (Work("MemcpyH2D", 16, copied=copied),), IMAGES)
    model, backward = layers(outer, inner), list[list[Op]]()
    arriving = "gradient_tape/mean_squared_error/Mul"
    for name, channels, filters, before, after in model:
        path, up, is_last = f"autoencoder_1/{name}_1", after > before, name == "image"
        conv, kind = f"{path}/{'conv_transpose' if up else 'convolution'}", "Conv2DBackpropInput" if up else "Conv2D"
        output, given = (BATCH, after, after, filters), (BATCH, before, before, channels)
        weights, patches = (3, 3, channels, filters), (4, min(before, after) ** 2, 9 * max(channels, filters))
        us = SHORTEST_KERNEL_US + 18 * channels * filters * BATCH * min(before, after) ** 2 / FLOPS_PER_US
        kernels = MATRIX_CORES if channels * filters >= 3 * 128 else WINOGRAD

        forward = Work(TRANSPOSE, SHORTEST_KERNEL_US, 8), Work(kernels[kind], us, 64)

        activation = "Sigmoid" if is_last else "Relu"
        yield Op(conv, kind, forward, output, patches)
        yield Op(f"{path}/BiasAdd", "BiasAdd", elementwise("BiasAdd", output))
        yield Op(f"{path}/{activation}", activation, elementwise(activation, output))
        tape, gradient = f"gradient_tape/{path}", f"gradient_tape/{conv}"
        frees = () if is_last else (conv,)
        transpose, *_ = forward
        of_weights = transpose, Work(kernels["Conv2DBackpropFilter"], us / 2, 64)
        later = [
            Op(f"{tape}/{activation}Grad", f"{activation}Grad", elementwise(f"{activation}Grad", output), frees=frees),
            Op(f"{tape}/BiasAdd/BiasAddGrad", "BiasAddGrad", elementwise("BiasAddGrad", output), (filters,)),
            Op(f"{gradient}/Conv2DBackpropFilter", "Conv2DBackpropFilter", of_weights, weights),
        ]
        if name != "encoder_outer":  # the first one's input is data and needs no gradient
            kind = "Conv2D" if up else "Conv2DBackpropInput"
            later.append(Op(f"{gradient}/{kind}", kind, (transpose, Work(kernels[kind], us / 2, 64)), given))
        backward.append(later)
    for name, kind in (("sub", "Sub"), ("Square", "Square"), ("Mean", "Mean")):
        yield Op(f"mean_squared_error/{name}", kind, elementwise(kind, IMAGES), IMAGES if name == "sub" else None)
    yield Op(arriving, "Mul", elementwise("Mul", IMAGES), IMAGES, frees=("mean_squared_error/sub", "clean/_3"))
    gradients = []
    for later in reversed(backward):
        *others, of_input = later if later is not backward[0] else (*later, None)
        yield from others
        if of_input is not None:
            yield replace(of_input, frees=(arriving,))
            arriving = of_input.name
        gradients += later[1:3]
    for number, op in enumerate(gradients):
        shape = op.output or ()
        for name, kind in (("Mul", "Mul"), ("AssignSubVariableOp", "AssignSubVariableOp")):
            freed = (op.name,) if kind != "Mul" else ()
            yield Op(f"adam/{name}_{number}", kind, elementwise(kind, shape), frees=freed)
    decoded = "autoencoder_1/image_1/convolution"
    copy = Work("MemcpyD2H", 220, copied=copied, kind="pageable")
    yield Op("Identity_1/_5", "_HostRecv", (copy,), frees=(arriving, "noisy/_1", decoded))


@dataclass
class Recorder:
    """The events of each thread and stream so far."""

    in_use: int
    python: list[Event] = field(default_factory=list)
    executor: list[Event] = field(default_factory=list)
    reader: list[Event] = field(default_factory=list)
    streams: dict[str, list[Event]] = field(default_factory=dict)
    held: dict[str, tuple[int, int]] = field(default_factory=dict)
    calls: int = 0
    peak: int = 0

    def launch(self, thread: list[Event], at: float, until: float, work: Work, begin: float, **stats: Value) -> None:
        """The call on the host's thread, and what it leads to on the device."""
        self.calls += 1
        number = U64(self.calls)
        name = {"MemcpyH2D": "hipMemcpyHtoDAsync", "MemcpyD2H": "hipMemcpyDtoHAsync"}.get(work.name)
        of_call = work.stats if name else {}
        thread.append(event(name or "hipModuleLaunchKernel", at, until - at, of_call, correlation_id=number))
        stream = work.name if work.copied else "Compute"
        on_device = event(work.name, begin, work.us, work.stats | stats, correlation_id=number)
        self.streams.setdefault(stream, []).append(on_device)

    def allocate(self, at: float, name: str, op: Op, shape: Shape, region: str) -> None:
        size = 256 * math.ceil(4 * math.prod(shape) / 256)
        self.held[name] = 0x7F12_4000_0000 + self.in_use, size
        self.in_use += size
        self.peak = max(self.peak, self.in_use)
        text = f"[{','.join(map(str, shape))}]"
        self._memory("MemoryAllocation", at, name, tf_op=op.name, region_type=region, data_type=1, shape=text)

    def free(self, at: float, name: str) -> None:
        self.in_use -= self.held[name][1]
        self._memory("MemoryDeallocation", at, name, data_type=0)
        del self.held[name]

    def _memory(self, what: str, at: float, name: str, **stats: Value) -> None:
        address, size = self.held[name]
        state: dict[str, Value] = {
            "allocator_name": "GPU_0_bfc",
            "bytes_reserved": 0,
            "bytes_allocated": self.in_use,
            "bytes_available": LIMIT_BYTES - self.in_use,
            "fragmentation": 0.01,
            "peak_bytes_in_use": self.peak,
            "requested_bytes": size,
            "allocation_bytes": size,
            "addr": address,
        }
        self.executor.append(event(what, at, 0, state | stats))

    def input(self, at: float, step: int, wait_us: float) -> None:
        """A batch from the buffer of a `Prefetch`, and the making of another one."""
        root, prefetch, batch, piece = (U64(2**63 + number) for number in range(1, 5))
        self.python.append(event("IteratorGetNextOp::DoCompute", at, wait_us, iter_num=0))
        self.python.append(call("Root", at + 0.6, wait_us - 1.2, root))
        self.python.append(call("Root::Prefetch", at + 1.1, wait_us - 2, prefetch, root, buffer_limit=2))
        self.python.append(consume("Prefetch", at + 1.5, step))
        self.reader.append(produce("Prefetch", at + 50, 110, step + 2))
        self.reader.append(call("Root::Prefetch::BatchV2", at + 51, 108, batch, prefetch))
        self.reader.append(call("Root::Prefetch::BatchV2::TensorSlice", at + 52, 90, piece, batch))

    def function(self, at: float, number: int, ops: list[Op], factor: float) -> float:
        """The ops on the executor's thread, each launch `LAUNCH_US` after the one before; returns when all is done."""
        self.python.append(event("FunctionRun", at - 8, 5, id=number, _r=1, _pt=FUNCTION, _p=number))
        now, free = at, dict.fromkeys(("Compute", "MemcpyH2D", "MemcpyD2H"), at)
        for op in ops:
            begin = now
            if op.output is not None:
                self.allocate(now + 0.2, op.name, op, op.output, "output")
            if op.temporary is not None:
                self.allocate(now + 0.3, f"{op.name}#temp", op, op.temporary, "temp")
            for work in op.work:
                done = now + round(LAUNCH_US * factor, 3)
                started = max(done, *free.values())
                varied = replace(work, us=round(work.us * factor, 3))
                self.launch(self.executor, now + 0.4, done, varied, started, tf_op=f"{op.name}:{op.type}")
                free["Compute"], now = started + varied.us, done
            self.executor.append(event(meta(f"{op.name}:{op.type}", op.type), begin, now + 0.6 - begin))
            now += 1
            for name in (*[f"{op.name}#temp"] * (op.temporary is not None), *op.frees):
                self.free(now - 0.3, name)
        run = event("ExecutorState::Process", at - 1, now + 1 - at, id=number, iter_num=0, _ct=FUNCTION, _c=number)
        self.executor.append(run)
        return max(now, free["Compute"])


def profile(outer: int, inner: int) -> bytes:
    """The profile of a run with so many filters in the outer and the inner layers."""
    rng = random.Random(outer)
    ops = list(training_step(outer, inner))
    weights = sum(36 * channels * filters for _, channels, filters, *_ in layers(outer, inner))
    record, now = Recorder(in_use=3 * weights), 40.0
    for step in range(STEPS):
        factor, begin = 1 + 0.02 * (rng.random() - 0.5) + 0.1 * (step == 0), now
        record.launch(record.python, now + 3, now + 7, Work("MemcpyH2D", 1.6, copied=4), now + 7)
        record.input(now + 20, step, 40 * factor)
        ended = record.function(now + 80, step + 1, ops, factor)
        function: dict[str, Value] = {"tf_function_call": "notTraced-nonXla", "tracing_count": 1}
        record.python.append(event("train_step", now + 70, ended - now - 65, function))
        record.launch(record.python, ended + 20, ended + 24, Work("MemcpyD2H", 2.4, copied=4), ended + 24)
        now = ended + 35
        record.python.append(event("train", begin, now - begin, _r=1, step_num=100 + step))
        now += BETWEEN_STEPS_US
    threads = {"python": record.python, "tf_Compute/1": record.executor, "tf_data_iterator_resource/2": record.reader}
    host = [line(name, *in_order(events), id=number) for number, (name, events) in enumerate(threads.items(), 1)]
    device = [
        line(f"Stream #{number}({name})", *in_order(events), id=number)
        for number, (name, events) in enumerate(record.streams.items(), 13)
    ]
    started = 1_795_174_200_000_000_000 + outer
    environment = {"profile_start_time": U64(started), "profile_stop_time": U64(started + round(now * 1000))}
    return space(
        plane("/host:CPU", *host),
        plane("/device:GPU:0", *device, stats=GPU),
        plane("Task Environment", stats=environment),
        hostnames=["localhost"],
    )


def in_order(events: list[Event]) -> list[Event]:
    """As the profiler writes them: what encloses others comes before them."""
    return sorted(events, key=lambda one: (one.offset_ps, -one.duration_ps))


def write(folder: Path) -> dict[str, Path]:
    """Write both runs into the folder; gives the logdir of each by its name."""
    for minute, (name, filters) in enumerate(FILTERS.items(), 30):
        file = folder / name / "plugins" / "profile" / f"2026_11_20_11_{minute}_00" / "localhost.xplane.pb"
        file.parent.mkdir(parents=True)
        file.write_bytes(profile(*filters))
    return {name: folder / name for name in FILTERS}
