"""A program with asynchronous dispatch on a GPU, as TensorFlow and JAX run: the host hands out steps faster than the
device works them off."""

from __future__ import annotations

from dataclasses import dataclass

from tests.xspace_builder import Event, Stats, event, line, plane, space

KERNELS = 5
DISPATCH_US = 1_000.0
"""What the host needs for a step, its marker."""
_GAP_US = 20.0
_LAUNCH_US = 20.0
_DETAILS = "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:64,1,1 occ_pct:0"


@dataclass(frozen=True)
class AsyncProgram:
    """`kernel_us`: each of the `KERNELS` of a step; `copy_us`: a copy of the step's input on a stream of its own, made
    as soon as the host asks for it; `waits_from`: from this step on, the host waits for the device within each step;
    `input_us`: the host waits for input so long before it dispatches a step."""

    kernel_us: float
    steps: int = 40
    copy_us: float = 0.0
    waits_from: int | None = None
    input_us: float = 0.0

    @property
    def device_us(self) -> float:
        """From the first to the last kernel of a step."""
        return KERNELS * self.kernel_us + (KERNELS - 1) * _GAP_US

    def profile(self) -> bytes:
        """The bytes of an `.xplane.pb` file."""
        host: list[Event] = []
        kernels: list[Event] = []
        copies: list[Event] = []
        now, device_free, correlation = 0.0, 0.0, 0
        for number in range(self.steps):
            begin = now
            if self.input_us:
                host.append(event("IteratorGetNext:IteratorGetNext", now + 5, self.input_us))
                now += self.input_us
            if self.copy_us:
                correlation += 1
                host.append(event("cuMemcpyHtoDAsync", now + 10, 5, correlation_id=correlation))
                of_copy: Stats = {"correlation_id": correlation, "memcpy_details": "num_bytes:9"}
                copies.append(event("MemcpyH2D", now + 20, self.copy_us, of_copy))
            for kernel in range(KERNELS):
                correlation += 1
                called, op = now + 100 + kernel * 100, f"model/layer_{kernel}/MatMul:MatMul"
                host.append(event(op, called - 10, 60))
                host.append(event("cuLaunchKernel", called, _LAUNCH_US, correlation_id=correlation))
                start = max(called + _LAUNCH_US, device_free)
                of_kernel: Stats = {"correlation_id": correlation, "tf_op": op, "kernel_details": _DETAILS}
                kernels.append(event(f"gemm_{kernel}", start, self.kernel_us, of_kernel))
                device_free = start + self.kernel_us + _GAP_US
            end = now + DISPATCH_US
            if self.waits_from is not None and number >= self.waits_from:
                end = max(end, device_free)
            host.append(event("train", begin, end - begin, step_num=100 + number, _r=1))
            now = end + 5
        streams = [line("Stream #13(Kernel)", *kernels, id=13)]
        if copies:
            streams.append(line("Stream #14(MemcpyH2D)", *copies, id=14))
        return space(
            plane("/host:CPU", line("python", *sorted(host, key=lambda e: (e.offset_ps, -e.duration_ps)), id=1)),
            plane("/device:GPU:0", *streams, id=2, stats={"device_vendor": "Nvidia"}),
        )
