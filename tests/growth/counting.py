"""What an operation takes, in figures that are the same on every machine: Python calls, and the peak of bytes."""

from __future__ import annotations

import cProfile
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

SLACK, SLACK_OF_BYTES = 1.05, 4.5 / 4
"""Calls are the same each time; a peak also depends on what was freed by then."""
_LEAST_CALLS, _LEAST_KILOBYTES = 0.2, 1.0
"""What a unit may take where it takes next to nothing."""
_POOLS: list[pa.MemoryPool] = []
"""What Arrow allocated goes back to the pool that it came from, whenever that is: pools are kept."""


class Calls(NamedTuple):
    """`python`: of functions, comprehensions and generators; `c`: of functions in C such as `list.append`: a loop may
    call nothing else."""

    python: float
    c: float


class Bound(NamedTuple):
    """The Python calls and calls in C that an operation may make for one more `of` what grows."""

    operation: str
    of: str
    python: float
    c: float


def not_yet(*values: Any, why: str) -> pytest.ParameterSet:
    """A bound that today's code breaks, with the issue that is to repair it."""
    return pytest.param(*values, marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=why))


def count_calls(work: Callable[[], object]) -> Calls:
    """The calls that are made for `work`."""
    profile = cProfile.Profile()
    with _alone():
        profile.runcall(work)
    entries = profile.getstats()
    in_c = sum(entry.callcount for entry in entries if isinstance(entry.code, str))
    return Calls(sum(entry.callcount for entry in entries) - in_c, in_c)


def peak_bytes(work: Callable[[], object]) -> int:
    """The most memory that Python, NumPy and Arrow hold at a time for `work`: the sum of the peaks of both."""
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    _POOLS.append(pool)
    with _alone():
        pa.set_memory_pool(pool)
        tracemalloc.start()
        try:
            work()
            return tracemalloc.get_traced_memory()[1] + pool.max_memory()
        finally:
            tracemalloc.stop()
            pa.set_memory_pool(before)


@contextmanager
def _alone() -> Iterator[None]:
    """Threads do their work where it is handed to them, and garbage is collected before and after."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThreadPoolExecutor, "submit", _done_at_once)
        gc.collect()
        gc.disable()
        try:
            yield
        finally:
            gc.enable()


def _done_at_once(_pool: ThreadPoolExecutor, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future:
    done: Future = Future()
    try:
        done.set_result(work(*arguments, **options))
    except BaseException as error:  # as a thread would hand it over
        done.set_exception(error)
    return done


def assert_calls(bound: Bound, few: Calls, many: Calls, units: int) -> None:
    """With so many more units there were no more calls than that for each of them."""
    for name, allowed in (("python", bound.python), ("c", bound.c)):
        each = (getattr(many, name) - getattr(few, name)) / units
        assert each <= allowed * SLACK + _LEAST_CALLS, f"{each:,.1f} {name} calls per unit, up from {allowed:,.1f}"


def assert_kilobytes(bound: float, few: int, many: int, units: int) -> None:
    """As `assert_calls`, of bytes."""
    each = (many - few) / 1000 / units
    assert each <= bound * SLACK_OF_BYTES + _LEAST_KILOBYTES, f"{each:,.1f} kB per unit, up from {bound:,.1f}"
