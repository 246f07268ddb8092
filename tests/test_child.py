"""Calls in child processes end by themselves or at a limit, and the next call works either way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tfcompare import child
from tfcompare.child import Child, Children, Exceeded
from tfcompare.errors import TfcompareError

ROOT = Path(__file__).parents[1]
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
def processes() -> Iterator[Children]:
    processes = Children(1)
    yield processes
    processes.close()


@pytest.mark.parametrize(
    ("function", "arguments", "error", "text"),
    [
        (length, (10**9,), Exceeded, "takes more memory than allowed"),
        (spin, (), Exceeded, "takes more than 1 s of processor time"),
        (os._exit, (3,), Exceeded, r"ended its process \(status 3\)"),
        (os.abort, (), Exceeded, r"ended its process \(SIGABRT\)"),
        (refuse, (), TfcompareError, "a.xplane.pb: is empty"),
        (misbehave, (), TfcompareError, "KeyError.*bug in tfcompare"),
    ],
)
def test_a_failed_call_says_why_and_the_next_one_works(
    processes: Children,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error, match=text):
        processes.call(function, *arguments, memory_bytes=MEMORY_BYTES, seconds=1)
    assert processes.call(length, 1000, memory_bytes=MEMORY_BYTES, seconds=10) == 1000


def test_a_process_is_reused_and_output_is_not_mistaken_for_an_answer(processes: Children) -> None:
    first = processes.call(os.getpid, memory_bytes=MEMORY_BYTES, seconds=10)
    assert processes.call(print_and_return, memory_bytes=MEMORY_BYTES, seconds=10) == 7
    assert processes.call(os.getpid, memory_bytes=MEMORY_BYTES, seconds=10) == first != os.getpid()


def test_meanwhile_is_called_until_the_result_is_there_and_ends_the_call_if_it_raises(
    processes: Children, tmp_path: Path
) -> None:
    gate, calls = tmp_path / "gate", 0

    def open_at_the_second() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            gate.touch()

    call = partial(processes.call, memory_bytes=MEMORY_BYTES, seconds=10)
    assert call(wait_for, gate, meanwhile=open_at_the_second)
    assert calls >= 2

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        processes.call(spin, memory_bytes=MEMORY_BYTES, seconds=10, meanwhile=stop)
    assert processes.call(length, 1000, memory_bytes=MEMORY_BYTES, seconds=10) == 1000


PARENT = """
import os, sys, time
from pathlib import Path
from tests.test_child import Children, write_pid_and_spin
Children(1).call(write_pid_and_spin, Path(sys.argv[1]), memory_bytes=10**8, seconds=60)
"""


def write_pid_and_spin(path: Path) -> None:
    path.write_text(f"{os.getpid()}\n")
    spin()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="processes are looked up in Linux's /proc")
def test_a_process_ends_with_its_parent_even_during_a_call(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", PARENT, note], cwd=ROOT) as parent:
        wait_until(lambda: note.exists() and note.read_text().endswith("\n"))
        parent.kill()
    wait_until(lambda: not is_running(int(note.read_text())))


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_running(process: int) -> bool:
    status = Path(f"/proc/{process}/status")
    with suppress(FileNotFoundError, ProcessLookupError):
        return "State:\tZ" not in status.read_text()
    return False


def test_only_processor_time_counts(processes: Children) -> None:
    processes.call(time.sleep, 0.5, memory_bytes=MEMORY_BYTES, seconds=0.1)


def test_the_time_of_earlier_calls_and_of_starting_does_not_count() -> None:
    processes = Children(1, prepare=work)
    try:
        for _ in range(3):
            processes.call(length, 10, memory_bytes=MEMORY_BYTES, seconds=WORK_S)
            processes.call(work, memory_bytes=MEMORY_BYTES, seconds=3 * WORK_S)
    finally:
        processes.close()


def test_processes_are_prepared_one_after_the_other_while_they_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREPARING", str(tmp_path / "preparing"))
    processes = Children(3, prepare=prepare_alone, compiles=lambda: True)
    try:
        with ThreadPoolExecutor(3) as pool:
            calls = [pool.submit(processes.call, wait_for, tmp_path / "preparing.done") for _ in range(3)]
            assert [call.result() for call in calls] == [True] * 3
            assert len(processes._idle) == 3
    finally:
        processes.close()


def test_processes_that_need_not_compile_are_prepared_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREPARING", str(tmp_path))
    processes = Children(2, prepare=prepare_together)
    try:
        with ThreadPoolExecutor(2) as pool:
            assert len({call.result() for call in [pool.submit(processes.call, os.getpid) for _ in range(2)]}) <= 2
        assert len(list(tmp_path.iterdir())) == 2
    finally:
        processes.close()


def prepare_together() -> None:
    """Waits until another process is preparing, too."""
    folder = Path(os.environ["PREPARING"])
    (folder / str(os.getpid())).touch()
    wait_until(lambda: len(list(folder.iterdir())) == 2)


def prepare_alone() -> None:
    """Fails if another process is preparing."""
    preparing = Path(os.environ["PREPARING"])
    preparing.touch(exist_ok=False)
    time.sleep(0.1)
    preparing.unlink()
    with (done := preparing.with_suffix(".count")).open("a") as file:
        file.write("x")
    if done.stat().st_size == 3:
        preparing.with_suffix(".done").touch()


WORK_S = 0.3


def work() -> None:
    """Takes processor time."""
    until = time.process_time() + WORK_S
    while time.process_time() < until:
        pass


def test_a_call_that_is_stuck_ends(processes: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_WALL_MORE_S", 0)
    with pytest.raises(Exceeded, match=r"is not done after 0\.5 s"):
        processes.call(time.sleep, 60, seconds=0.1)
    assert processes.call(length, 1000) == 1000


def test_a_function_can_be_named_and_its_processor_time_is_known() -> None:
    process = Child()
    try:
        process.begin("os.path:basename", "a/b")
        assert process.result() == "b"
        process.begin(work)
        assert process.result() is None
        assert process.processor_seconds >= WORK_S
    finally:
        process.end()


def test_a_main_script_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from os.path import basename\nfrom tfcompare.child import Children\n"
        "children = Children(1)\nprint(children.call(basename, 'a/b'))\nchildren.close()\n"
    )
    done = subprocess.run(
        [sys.executable, script], env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("b\n", "")


def test_files_of_one_client_leave_a_process_to_others(tmp_path: Path) -> None:
    processes, gate = Children(3, per_client=2), tmp_path / "gate"
    try:
        with ThreadPoolExecutor(3) as pool:
            greedy = [pool.submit(processes.call, wait_for, gate, client="greedy") for _ in range(3)]
            assert [processes.call(length, n, client="other") for n in range(3)] == [0, 1, 2]
            assert not any(call.done() for call in greedy)
            gate.touch()
            assert [call.result() for call in greedy] == [True] * 3
    finally:
        processes.close()


def wait_for(gate: Path) -> bool:
    wait_until(gate.exists)
    return True


def test_closing_ends_calls() -> None:
    processes = Children(1)
    with ThreadPoolExecutor(1) as pool:
        processes.start()
        call = pool.submit(processes.call, time.sleep, 600)
        wait_until(lambda: bool(processes._busy))
        processes.close()
        with pytest.raises(Exceeded, match=r"ended its process \(SIGKILL\)"):
            call.result()
    with pytest.raises(Exceeded, match="closed"):
        processes.call(length, 1)
