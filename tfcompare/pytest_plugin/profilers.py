"""Starts and stops the profiler of TensorFlow or JAX in this process, and marks steps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from tfcompare.errors import TfcompareError
from tfcompare.sources.machine_load import recorded_load

Framework = Literal["tensorflow", "jax"]
FRAMEWORKS: tuple[Framework, ...] = ("tensorflow", "jax")
STEP_NAME = "profile_check"


@dataclass(frozen=True)
class Profile:
    """The profile that is being recorded."""

    framework: Framework

    def step(self, number: int) -> AbstractContextManager[Any]:
        """Marks its block as a step. Times are judged from 11 steps on: the first and last do not count, 9 must."""
        if self.framework == "jax":
            return _jax().StepTraceAnnotation(STEP_NAME, step_num=number)  # type: ignore[no-any-return]
        return _tensorflow().Trace(STEP_NAME, step_num=number, _r=1)  # type: ignore[no-any-return]


@contextmanager
def recorded(framework: Framework, logdir: Path) -> Iterator[Profile]:
    """Records what runs in its block into `logdir`, and the load of the machine beside it.

    Raises what the profiler raises, such as when another profile is being recorded in this process.
    """
    is_jax = framework == "jax"
    start, stop = (_jax().start_trace, _jax().stop_trace) if is_jax else (_tensorflow().start, _tensorflow().stop)
    with recorded_load(logdir):
        start(str(logdir))
        try:
            yield Profile(framework)
        finally:
            stop()


def framework_of_process() -> Framework:
    """The framework that this process has imported.

    Raises `TfcompareError` if it has imported both, as TensorFlow does where JAX is installed, or neither.
    """
    imported = [name for name in FRAMEWORKS if sys.modules.get(name) is not None]
    if len(imported) == 1:
        return imported[0]
    found = "both are imported" if imported else "neither is imported"
    raise TfcompareError(
        f"profile_check: which profiler, that of tensorflow or of jax? {found}; say which, as in framework='jax'"
    )


def _tensorflow() -> Any:
    return import_module("tensorflow").profiler.experimental


def _jax() -> Any:
    return import_module("jax").profiler
