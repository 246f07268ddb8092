"""Tiny profiles with steps, by hand."""

from __future__ import annotations

from tests.xspace_builder import Event, Value, event, line, plane, space
from tfcompare.run import Run


def host(*events: Event) -> bytes:
    return space(plane("/host:CPU", line("python", *events)))


def marked(name: str, times: list[tuple[float, float]], number_as: str = "step_num", **more: Value) -> list[Event]:
    """A marker and an op of 5 µs in it for each (start, duration); steps are numbered from 7."""
    out = []
    for i, (start, duration) in enumerate(times):
        out += [event(name, start, duration, {number_as: 7 + i}, **more), event("op:A", start + 1, 5)]
    return out


def source(run: Run) -> str:
    return run.info.step_source
