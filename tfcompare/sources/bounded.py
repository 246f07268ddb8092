"""Runs functions on untrusted input in child processes with a limit on memory and time.

A file may be made to use far more memory or time than its size suggests, and a thread cannot be stopped. A child
process can: if a call exceeds a limit or crashes, its process is killed, and the next call gets a new one.

`python -m tfcompare.sources.bounded` is such a process. It reads pickled calls from stdin, writes pickled results to
stdout, and exits when its parent does, even during a call. `multiprocessing` would run the parent's main script in it,
which is a page of the app in a Streamlit server.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, cast

from tfcompare.errors import TfcompareError, unexpected
from tfcompare.settings import python_path

MEANWHILE_EVERY_S = 0.25
_LOOK_FOR_PARENT_EVERY_S = 0.2


class Exceeded(Exception):
    """A call used more memory or time than it may, or ended its process. The text says which."""


class BoundedProcesses:
    """At most `count` child processes, which are started on demand and reused; further calls wait for one of them.

    `prepare` is called once in each process, before its memory is measured, for imports that calls need.
    """

    def __init__(self, count: int, prepare: Callable[[], object] | None = None) -> None:
        self._prepare = prepare
        self._children: LifoQueue[_Child | None] = LifoQueue()
        for _ in range(count):
            self._children.put(None)

    def start(self) -> None:
        """Start a process for the next call, so that it need not wait for one."""
        child = self._children.get()
        try:
            child = self._running(child)
        finally:
            self._children.put(child)

    def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        memory_bytes: int,
        seconds: float,
        meanwhile: Callable[[], object] | None = None,
    ) -> Any:
        """The result of `function(*arguments)`, all of which must be picklable.

        `memory_bytes` is the memory that the call may use in addition to what its process has; it is enforced on Linux
        only. `meanwhile` is called several times a second until the result is there; if it raises, the call is ended.
        Raises the `TfcompareError` or `OSError` that the function raises, what `meanwhile` raises, and `Exceeded`.
        """
        child = self._free_child(meanwhile)
        try:
            child = self._running(child)
            is_ok, outcome = child.call((function, arguments, memory_bytes), seconds, meanwhile)
        except BaseException:
            if child is not None:
                child.end()
            child = None
            raise
        finally:
            self._children.put(child)
        if isinstance(outcome, MemoryError):
            raise Exceeded("takes more memory than allowed")
        if not is_ok:
            raise outcome
        return outcome

    def _free_child(self, meanwhile: Callable[[], object] | None) -> _Child | None:
        """A child that is not in use, or None if one may be started."""
        if meanwhile is None:
            return self._children.get()
        while True:
            try:
                return self._children.get(timeout=MEANWHILE_EVERY_S)
            except Empty:
                meanwhile()

    def _running(self, child: _Child | None) -> _Child:
        return child if child is not None and child.is_running else _Child(self._prepare)

    def close(self) -> None:
        """End the processes that are not in use."""
        with suppress(Empty):
            while True:
                child = self._children.get_nowait()
                if child is not None:
                    child.end()


class _Child:
    """A process that answers calls."""

    def __init__(self, prepare: Callable[[], object] | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": python_path()},
        )  # fmt: skip
        self._send(prepare)
        self._receive()  # it is ready: the time for starting does not count towards that of a call

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        self._process.kill()
        with suppress(BrokenPipeError), self._process:
            pass  # wait until it has exited, and close the pipes

    def call(
        self,
        request: tuple[Callable[..., Any], tuple[Any, ...], int],
        seconds: float,
        meanwhile: Callable[[], object] | None,
    ) -> tuple[bool, Any]:
        """(whether the call succeeded, its result or error). Raises `Exceeded`, and what `meanwhile` raises."""
        is_late, is_answered = threading.Event(), threading.Event()

        def kill() -> None:
            is_late.set()
            self._process.kill()

        timer = threading.Timer(seconds, kill)
        timer.daemon = True
        timer.start()
        try:
            self._send(request)
            if meanwhile is not None:
                threading.Thread(target=self._wait_for_answer, args=(is_answered,), daemon=True).start()
                while not is_answered.wait(MEANWHILE_EVERY_S):
                    meanwhile()
            is_ok, outcome = self._receive()
        except Exceeded:
            if is_late.is_set():
                raise Exceeded(f"takes more than {seconds:g} s") from None
            raise
        finally:
            timer.cancel()
        return is_ok, outcome

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # `_receive` says how it ended
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def _wait_for_answer(self, is_answered: threading.Event) -> None:
        """Set the event once an answer begins, or the process has ended."""
        stdout = cast(BufferedReader, self._process.stdout)
        with suppress(ValueError, OSError):  # closed meanwhile
            stdout.peek(1)
        is_answered.set()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            status = self._process.wait()
            how = signal.Signals(-status).name if status < 0 else f"status {status}"
            raise Exceeded(f"ended the process that examined it ({how})") from None


def main() -> None:
    """Answer calls until the parent closes stdin, or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    with suppress(OSError):  # if memory runs out, Linux ends this process rather than the parent
        Path("/proc/self/oom_score_adj").write_text("1000")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    with suppress(EOFError, OSError):
        prepare = pickle.load(sys.stdin.buffer)
        if prepare is not None:
            prepare()
        _write(out, None)
        while True:
            _write(out, _attempt(*pickle.load(sys.stdin.buffer)))
    os._exit(0)


def _exit_with_parent(parent: int) -> None:
    """End this process soon after its parent, which may be killed during a call."""
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT_EVERY_S)
    os._exit(1)


def _write(out: Any, answer: object) -> None:
    pickle.dump(answer, out, protocol=pickle.HIGHEST_PROTOCOL)
    out.flush()


def _attempt(function: Callable[..., Any], arguments: tuple[Any, ...], memory_bytes: int) -> tuple[bool, Any]:
    try:
        _limit_memory(memory_bytes)
        return True, function(*arguments)
    except (TfcompareError, OSError, MemoryError) as error:
        return False, error.with_traceback(None)
    except Exception as error:
        return False, unexpected(error)
    finally:
        _limit_memory(None)


def _limit_memory(more: int | None) -> None:
    """Limit the memory of this process to what it has and `more` bytes; None: remove the limit."""
    with suppress(ImportError, OSError, ValueError):  # only Linux counts and limits it
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if more is None:
            resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        else:
            has = int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]) * 1024
            resource.setrlimit(resource.RLIMIT_DATA, (has + more, hard))


if __name__ == "__main__":
    main()
