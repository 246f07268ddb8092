"""A profile whose names are Markdown, HTML and formulas."""

from __future__ import annotations

from tests.xspace_builder import U64, Event, Ref, event, line, plane, space

EVIL = (
    "=cmd()<img src=x>\n\n![i](//evil.test/i.png) `c` [l](//evil.test) <script>alert(1)</script> $x$ "
    "https://evil.test www.evil.test\0"
)
LAUNCH = "regs:16 shm:0 grid:1,1,1 block:64,1,1"


def host_events(scale: float, name: str = EVIL) -> list[Event]:
    """Ten steps with ops, a pipeline of tf.data and allocations, all of them of that name."""
    out: list[Event] = []
    for i in range(12):
        at = 2000 * i
        memory = {"allocator_name": Ref(name), "tf_op": Ref(f"{name}:op"), "region_type": name, "data_type": name}
        memory |= {"shape": name, "allocation_bytes": 512, "requested_bytes": 500, "addr": U64(64 * i)}
        out += [
            event("train", at, 900 * scale, _r=1, step_num=i),
            event(f"{name}/a/{name}:mul", at + 10, 100 * scale),
            event(f"Iterator::{name}::Map", at + 300, 200 * scale, id=U64(7), long_name=name),
            event(f"Iterator::{name}", at + 290, 250 * scale, id=U64(8)),
            event("MemoryAllocation", at + 600, 0, memory, bytes_allocated=512 * (i + 1), bytes_available=1 << 20),
            event("cudaLaunchKernel", at + 700, 5, correlation_id=i),
        ]
    return out


def hostile(scale: float, name: str = EVIL) -> bytes:
    """A profile in which everything that can have a name has this one."""
    kernels = [
        event(name, 2000 * i + 710, 50 * scale, tf_op=f"{name}:op", kernel_details=LAUNCH, correlation_id=i)
        for i in range(12)
    ]
    copies = [event(f"MemcpyH2D {name}", 2000 * i + 800, 9, memcpy_details=f"{name} size:64") for i in range(12)]
    return space(
        plane("/host:CPU", line(name, *host_events(scale, name), id=1)),
        plane(
            "/device:GPU:0",
            line("Stream #1(Compute)", *kernels, id=1),
            line("Stream #2(MemcpyH2D)", *copies, id=2),
            stats={"device_type_string": name, "device_vendor": name},
        ),
        hostnames=[name],
        warnings=[name],
    )
