"""Profiles that grow along one axis at a time: hosts, captures, steps, ops, kernels, instructions, programs, iterators.

A step runs all ops on a thread, which launch all kernels on a GPU; then all instructions of each compiled program run
there, and tf.data passes an element through a chain of iterators. Nothing is random.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.hlo.builder import F32, computation, instruction, parameter, program
from tests.xspace_builder import U64, Event, Ref, chunk, event, integer, line, meta, plane, space

AFTER = 1.2
"""How much longer than in the baseline everything takes in the candidate."""
_LAUNCH = "regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:64,1,1 occ_pct:50"


@dataclass(frozen=True)
class Size:
    """How much there is of everything. `model` is in all names, so that no cache of names knows them."""

    hosts: int = 1
    captures: int = 1
    steps: int = 12
    ops: int = 0
    kernels: int = 0
    programs: int = 0
    instructions: int = 0
    iterators: int = 0
    model: str = "model"


def op_name(size: Size, number: int, is_after: bool) -> str:
    """Of the candidate's ops, every fourth is in another scope than the baseline's."""
    scope = "block" if is_after and number % 4 == 3 else "layer"
    return f"{size.model}/{scope}_{number}/dense/MatMul"


def profile(size: Size, is_after: bool = False, seed: int = 0) -> bytes:
    """The profile of one host. Hosts and captures with another `seed` are a little slower."""
    factor = (AFTER if is_after else 1.0) * (1 + 0.01 * seed)
    host: list[Event] = []
    device: list[Event] = []
    at = 0.0
    for step in range(size.steps):
        begin, slowness = at, factor * (1 + 0.01 * (step * 7 % 5))
        at = _input(host, size, at + 10, slowness)
        for number in range(size.ops):
            host.append(event(f"{op_name(size, number, is_after)}:MatMul", at, (20 + number % 7) * slowness))
            at += 40 * slowness
        at = _work_of_device(host, device, size, at, step, slowness)
        memory = {"allocator_name": Ref("GPU_0_bfc"), "tf_op": Ref(f"{op_name(size, 0, is_after)}:MatMul")}
        memory |= {"shape": "[64]", "allocation_bytes": 512, "requested_bytes": 500, "addr": U64(64)}
        for name, held in (("MemoryAllocation", 1512), ("MemoryDeallocation", 1000)):
            host.append(event(name, at, 0, memory, bytes_allocated=held, bytes_available=9000, peak_bytes_in_use=1512))
            at += 5
        host.append(event("train", begin, at - begin, _r=1, step_num=step))
        at += 30 * slowness
    host.sort(key=lambda one: (one.offset_ps, -one.duration_ps))
    planes = [plane("/host:CPU", line("python", *host, id=1), id=1)]
    if device:
        planes.append(plane("/device:GPU:0", line("Stream #7(Compute)", *device, id=7), id=2))
    if size.programs:
        planes.append(plane("/host:metadata", line("programs", *(_program(size, i) for i in range(size.programs)))))
    return space(*planes)


def _input(host: list[Event], size: Size, at: float, slowness: float) -> float:
    """An element is put together from those of all iterators, one after the other."""
    if not size.iterators:
        return at
    length = 20 * slowness * size.iterators
    host.append(event("Iterator::Root", at, length + 20, id=U64(1)))
    host.append(event("Iterator::Root::Zip", at + 5, length + 10, id=U64(2), parent_id=U64(1)))
    for number in range(size.iterators):
        name, start = f"Iterator::Root::Zip[{number}]::Map", at + 10 + 20 * slowness * number
        host.append(event(name, start, 15 * slowness, id=U64(3 + number), parent_id=U64(2)))
    return at + length + 30


def _work_of_device(host: list[Event], device: list[Event], size: Size, at: float, step: int, slowness: float) -> float:
    """Kernels that ops launched, then the instructions of the programs."""
    for number in range(size.kernels):
        correlation, op = step * size.kernels + number + 1, f"{op_name(size, number, False)}:MatMul"
        host.append(event("cuLaunchKernel", at, 4, correlation_id=correlation))
        stats = {"correlation_id": correlation, "tf_op": op, "kernel_details": Ref(_LAUNCH)}
        device.append(event(f"void {size.model}::gemm_{number}<float>(int)", at + 5, 15 * slowness, stats))
        at += 30 * slowness
    for module in range(size.programs):
        for number in range(size.instructions):
            stats = {"hlo_op": f"add.{number}", "hlo_module": f"{size.model}_{module}", "program_id": module + 1}
            device.append(event(f"add_{number}", at, 15 * slowness, stats))
            at += 20 * slowness
    return at


def _program(size: Size, module: int) -> Event:
    """A chain of instructions."""
    names = ["p", *(f"add.{i}" for i in range(size.instructions))]
    source = chunk(7, chunk(2, f"jit({size.model})/add") + chunk(3, "model.py") + integer(4, 7))
    added = [instruction(name, "add", F32[64], before, "p", others=source) for before, name in pairwise(names)]
    name = f"{size.model}_{module}"
    made = program(
        computation(1, parameter("p", F32[64]), *added), name=name, others=integer(5, module + 1) + integer(6, 1)
    )
    return event(meta(f"{name}({module + 1})", "", {"Hlo Proto": made}), 0, 0)


def saved(folder: Path, size: Size) -> Path:
    """A folder with a folder for each capture of both sides, `before/run-1` and so on."""
    for is_after, side in enumerate(("before", "after")):
        for capture in range(size.captures):
            run = folder / side / f"run-{capture + 1}"
            run.mkdir(parents=True)
            for host in range(size.hosts):
                content = profile(size, bool(is_after), seed=capture * size.hosts + host)
                (run / f"host_{host:03}.xplane.pb").write_bytes(content)
    return folder
