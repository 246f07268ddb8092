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
    """Each step takes 10 ms, give or take a percent, and what SLOW_S of the environment adds; `ops` take half of it."""

    def __init__(self, *ops: str) -> None:
        self.ops = ops or ("multiply:MatMul",)
        self.logdir: Path | None = None
        self.events: list[Event] = []
        self.now_us = 0.0

    def start(self, logdir: str) -> None:
        assert self.logdir is None, "a profile is being recorded already"
        self.logdir, self.events = Path(logdir), [event(self.ops[0], 0, random.uniform(1, 2))]

    def step(self, name: str, **stats: int) -> nullcontext[None]:
        took_us = 10_000 * random.uniform(0.99, 1.01) + 1e6 * float(os.environ.get("SLOW_S", "0"))
        each_us = took_us / 2 / len(self.ops)
        ran = (event(op, self.now_us + each_us * i, each_us) for i, op in enumerate(self.ops))
        self.events += [event(name, self.now_us, took_us, **stats), *ran]
        self.now_us += took_us
        return nullcontext()

    def stop(self) -> None:
        assert self.logdir is not None, "no profile is being recorded"
        folder = self.logdir / "plugins" / "profile" / "2026_01_01_00_00_00"
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(space(plane("/host:CPU", line("python", *self.events))))
        self.logdir = None


def stand_in_for(framework: str, *ops: str) -> None:
    """Let the framework count as imported, and record these ops."""
    own = Recorder(*ops)
    of_tensorflow = SimpleNamespace(start=own.start, stop=own.stop, Trace=own.step)
    of_jax = {"start_trace": own.start, "stop_trace": own.stop, "StepTraceAnnotation": partial(own.step, _r=1)}
    profiler = SimpleNamespace(**{"tensorflow": {"experimental": of_tensorflow}, "jax": of_jax}[framework])
    sys.modules[framework] = SimpleNamespace(profiler=profiler)  # type: ignore[assignment]
