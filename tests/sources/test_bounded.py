"""Calls in child processes end by themselves or at a limit, and the next call works either way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tfcompare.errors import TfcompareError
from tfcompare.sources.bounded import BoundedProcesses, Exceeded

MEMORY_BYTES = 100_000_000


def length(count: int) -> int:
    return len(bytearray(count))


def spin() -> None:
    while True:
        pass


def refuse() -> None:
    raise TfcompareError("a.xplane.pb: is empty")


def misbehave() -> None:
    raise KeyError("x")


def print_and_return() -> int:
    os.write(1, b"not an answer")
    return 7


@pytest.fixture(scope="module")
def processes() -> Iterator[BoundedProcesses]:
    processes = BoundedProcesses(1)
    yield processes
    processes.close()


@pytest.mark.parametrize(
    ("function", "arguments", "error", "text"),
    [
        (length, (10**9,), Exceeded, "takes more memory than allowed"),
        (spin, (), Exceeded, "takes more than 1 s"),
        (os._exit, (3,), Exceeded, r"ended the process that examined it \(status 3\)"),
        (os.abort, (), Exceeded, r"ended the process that examined it \(SIGABRT\)"),
        (refuse, (), TfcompareError, "a.xplane.pb: is empty"),
        (misbehave, (), TfcompareError, "KeyError.*bug in tfcompare"),
    ],
)
def test_a_failed_call_says_why_and_the_next_one_works(
    processes: BoundedProcesses,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error, match=text):
        processes.call(function, *arguments, memory_bytes=MEMORY_BYTES, seconds=1)
    assert processes.call(length, 1000, memory_bytes=MEMORY_BYTES, seconds=10) == 1000


def test_a_process_is_reused_and_output_is_not_mistaken_for_an_answer(processes: BoundedProcesses) -> None:
    first = processes.call(os.getpid, memory_bytes=MEMORY_BYTES, seconds=10)
    assert processes.call(print_and_return, memory_bytes=MEMORY_BYTES, seconds=10) == 7
    assert processes.call(os.getpid, memory_bytes=MEMORY_BYTES, seconds=10) == first != os.getpid()


def test_meanwhile_is_called_until_the_result_is_there_and_ends_the_call_if_it_raises(
    processes: BoundedProcesses,
) -> None:
    times: list[float] = []
    processes.call(time.sleep, 0.6, memory_bytes=MEMORY_BYTES, seconds=10, meanwhile=lambda: times.append(time.time()))
    assert len(times) >= 2

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        processes.call(spin, memory_bytes=MEMORY_BYTES, seconds=10, meanwhile=stop)
    assert processes.call(length, 1000, memory_bytes=MEMORY_BYTES, seconds=10) == 1000


PARENT = """
import os, sys, time
from pathlib import Path
from tests.sources.test_bounded import BoundedProcesses, write_pid_and_spin
BoundedProcesses(1).call(write_pid_and_spin, Path(sys.argv[1]), memory_bytes=10**8, seconds=60)
"""


def write_pid_and_spin(path: Path) -> None:
    path.write_text(f"{os.getpid()}\n")
    spin()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="processes are looked up in Linux's /proc")
def test_a_process_ends_with_its_parent_even_during_a_call(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", PARENT, note], cwd=Path(__file__).parents[2]) as parent:
        wait_until(lambda: note.exists() and note.read_text().endswith("\n"))
        parent.kill()
    wait_until(lambda: not is_running(int(note.read_text())))


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_running(process: int) -> bool:
    status = Path(f"/proc/{process}/status")
    with suppress(FileNotFoundError, ProcessLookupError):
        return "State:\tZ" not in status.read_text()
    return False


def test_time_spent_waiting_for_a_process_does_not_count() -> None:
    processes = BoundedProcesses(1, prepare=prepare_slowly)
    try:
        assert processes.call(length, 10, memory_bytes=MEMORY_BYTES, seconds=0.4) == 10
    finally:
        processes.close()


def prepare_slowly() -> None:
    time.sleep(0.5)
