"""Tiny runs with memory events, written as XSpaces."""

from __future__ import annotations

from pathlib import Path

from tests.xspace_builder import Event, event, line, plane, space
from tfcompare.run import Run, load

CAPACITY = 1000
STAMP = "2026_11_20_10_17_24"


def allocate(at_us: float, heap: int, size: int, address: int = 0x100, memory: str = "gpu", **stats: object) -> Event:
    """An allocation of `size` bytes after which the heap of 1,000 holds `heap`; a stat of None is not told."""
    return _event("MemoryAllocation", at_us, heap, size, address, memory, stats)


def free(at_us: float, heap: int, size: int, address: int = 0x100, memory: str = "gpu", **stats: object) -> Event:
    """A deallocation that leaves `heap` bytes."""
    return _event("MemoryDeallocation", at_us, heap, size, address, memory, stats)


def _event(name: str, at_us: float, heap: int, size: int, address: int, memory: str, stats: dict[str, object]) -> Event:
    every = {"allocator_name": memory, "bytes_allocated": heap, "bytes_available": CAPACITY - heap, "addr": address} | {
        "allocation_bytes": size,
        "requested_bytes": size,
        "peak_bytes_in_use": heap,
        "fragmentation": 0.25,
    }
    told = {key: value for key, value in (every | stats).items() if value is not None}
    return event(name, at_us, 0, **told)  # type: ignore[arg-type]


def step(number: int, at_us: float, length_us: float) -> Event:
    """A marked step."""
    return event("train", at_us, length_us, _r=1, step_num=number)


def work(at_us: float) -> Event:
    """An op: a step in which nothing is computed is none."""
    return event("op:MatMul", at_us, 1)


def saved(logdir: Path, *events: Event, hosts: tuple[str, ...] = ("vm",)) -> Path:
    """The logdir of a run with those events on each host."""
    folder = logdir / "plugins" / "profile" / STAMP
    folder.mkdir(parents=True)
    for host in hosts:
        (folder / f"{host}.xplane.pb").write_bytes(space(plane("/host:CPU", line(host, *events))))
    return logdir


def loaded(logdir: Path, *events: Event, hosts: tuple[str, ...] = ("vm",)) -> Run:
    return load(saved(logdir, *events, hosts=hosts))
