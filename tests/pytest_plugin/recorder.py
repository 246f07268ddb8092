"""Stands in for the profilers of TensorFlow and JAX, which take seconds to import: records steps that are marked."""

from __future__ import annotations

import os
import random
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from tests.xspace_builder import Event, event, line, plane, space


class Recorder:
    """Each step takes 10 ms, give or take a percent, and what SLOW_S of the environment adds."""

    def __init__(self) -> None:
        self.logdir: Path | None = None
        self.events: list[Event] = []
        self.now_us = 0.0

    def start(self, logdir: str) -> None:
        assert self.logdir is None, "a profile is being recorded already"
        self.logdir, self.events = Path(logdir), [event("multiply:MatMul", 0, random.uniform(1, 2))]

    def step(self, name: str, **stats: int) -> nullcontext[None]:
        took_us = 10_000 * random.uniform(0.99, 1.01) + 1e6 * float(os.environ.get("SLOW_S", "0"))
        self.events += [event(name, self.now_us, took_us, **stats), event("multiply:MatMul", self.now_us, took_us / 2)]
        self.now_us += took_us
        return nullcontext()

    def stop(self) -> None:
        assert self.logdir is not None, "no profile is being recorded"
        folder = self.logdir / "plugins" / "profile" / "2026_01_01_00_00_00"
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(space(plane("/host:CPU", line("python", *self.events))))
        self.logdir = None


def stand_in_for(framework: str) -> None:
    """Let the framework count as imported."""
    own = Recorder()
    of_tensorflow = SimpleNamespace(start=own.start, stop=own.stop, Trace=own.step)
    of_jax = {"start_trace": own.start, "stop_trace": own.stop, "StepTraceAnnotation": partial(own.step, _r=1)}
    profiler = SimpleNamespace(**{"tensorflow": {"experimental": of_tensorflow}, "jax": of_jax}[framework])
    sys.modules[framework] = SimpleNamespace(profiler=profiler)  # type: ignore[assignment]
