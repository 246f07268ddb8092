"""Runs functions in child processes with limits on time and memory, and lets callers take turns by client.

A file may need far more memory or time than its size suggests, a library may crash, and a thread cannot be stopped. A
child process can: if a call exceeds a limit or crashes, its process ends, and the next call gets a new one.

`python -m tfcompare.child` is such a process. It reads pickled calls from stdin, writes pickled results to stdout, and
exits when its parent does, even during a call. `multiprocessing` would run the parent's main script in it, which may
have no `__main__` guard, or be a page of a Streamlit server.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from math import inf
from pathlib import Path
from pkgutil import resolve_name
from selectors import EVENT_READ, DefaultSelector
from typing import IO, Any

from tfcompare.errors import TfcompareError, unexpected

_LOOK_FOR_PARENT_EVERY_S = 0.2
_WALL_FACTOR, _WALL_MORE_S = 5, 60
"""A call that is not done after so many times its processor time, and this time for starting, is stuck: it is ended. A
call on a busy machine or a slow disk is done by then."""
MEANWHILE_EVERY_S = 0.25

Meanwhile = Callable[[], object]
"""Called several times a second while something is waited for; if it raises, the wait ends."""


class Exceeded(Exception):
    """A call used more memory or time than it may, or ended its process; the text, such as "takes more than 60 s of
    processor time", says which."""


class OutOfTime(Exceeded):
    """A call used more processor time than it may, or is stuck."""


class Child:
    """A process that runs one call at a time. `environment` replaces that of this process; `stderr`: as of `Popen`."""

    def __init__(self, environment: Mapping[str, str] | None = None, stderr: IO[bytes] | int | None = None) -> None:
        path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
        env = {**(os.environ if environment is None else environment), "PYTHONPATH": path}  # also from a checkout
        command, pipe = [sys.executable, "-P", "-m", __name__], subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, env=env)
        self._seconds = self._wall_seconds = inf
        self._begun = 0.0
        self._is_calling = False
        self.processor_seconds = 0.0
        """The processor time that its calls took."""

    @property
    def status(self) -> int | None:
        """The exit status of the process, or minus the signal that ended it; None while it runs."""
        return self._process.poll()

    @property
    def is_free(self) -> bool:
        """Whether the process runs, and no call."""
        return not self._is_calling and self.status is None

    def begin(
        self,
        function: Callable[..., Any] | str,
        *arguments: Any,
        memory_bytes: float | None = None,
        seconds: float | None = None,
    ) -> None:
        """Start `function(*arguments)`, all of which must be picklable. A text `module:function` names a function of a
        module that only the process is to import.

        `memory_bytes`: the memory that the call may use in addition to what its process has; it is enforced on Linux
        only. `seconds`: the processor time that it may take. None: no limit.
        """
        self._is_calling = True
        self._begun, self._seconds = time.monotonic(), inf if seconds is None else seconds
        self._wall_seconds = _WALL_FACTOR * self._seconds + _WALL_MORE_S
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # `result` says how it ended
            pickle.dump((function, arguments, memory_bytes, seconds), self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()

    def is_done(self, timeout_s: float = 0) -> bool:
        """Whether the call is done, or the process has ended; waits for that until the timeout."""
        with DefaultSelector() as selector:
            assert self._process.stdout is not None
            selector.register(self._process.stdout, EVENT_READ)
            return bool(selector.select(timeout_s))

    def result(self, meanwhile: Meanwhile | None = None) -> Any:
        """Wait for the result of the call. `meanwhile` is called several times a second.

        Raises the `TfcompareError` or `OSError` that the function raises, what `meanwhile` raises, and `Exceeded`.
        """
        while not self.is_done(MEANWHILE_EVERY_S):
            if meanwhile is not None:
                meanwhile()
            if time.monotonic() - self._begun > self._wall_seconds:
                self.kill()
                raise OutOfTime(f"is not done after {self._wall_seconds:g} s")
        try:
            assert self._process.stdout is not None
            is_ok, outcome, processor_seconds = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            status = self._process.wait()
            if status == -signal.SIGPROF:
                raise OutOfTime(f"takes more than {self._seconds:g} s of processor time") from None
            how = signal.Signals(-status).name if status < 0 else f"status {status}"
            raise Exceeded(f"ended its process ({how})") from None
        self._is_calling = False
        self.processor_seconds += processor_seconds
        if isinstance(outcome, MemoryError):
            raise Exceeded("takes more memory than allowed")
        if not is_ok:
            raise outcome
        return outcome

    def kill(self) -> None:
        """End the process; also while another thread waits for a result."""
        self._process.kill()

    def end(self) -> None:
        """End the process, wait until it has, and close the pipes."""
        self.kill()
        with suppress(BrokenPipeError), self._process:
            pass


class Children:
    """At most `count` processes, started on demand and reused; further calls wait, as `FairSemaphore` describes.

    `prepare` is called once in each process, before its memory is measured, for imports that calls need. While
    `compiles`, processes are prepared one after the other: what the first one compiles, the others load.
    """

    def __init__(
        self,
        count: int,
        prepare: Callable[[], object] | None = None,
        per_client: int | None = None,
        compiles: Callable[[], bool] = bool,
    ) -> None:
        self._prepare, self._compiles = prepare, compiles
        self._turns = FairSemaphore(count, per_client)
        self._lock, self._preparing = threading.Lock(), threading.Lock()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._is_closed = False

    def start(self) -> None:
        """Start a process for the next call, so that it need not wait for one."""
        self.call(os.getpid)

    def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        memory_bytes: float | None = None,
        seconds: float | None = None,
        meanwhile: Meanwhile | None = None,
        client: Hashable = None,
    ) -> Any:
        """The result of `function(*arguments)`, as of `Child.begin` and `result`; `client` as in `FairSemaphore`."""
        with self._turns.turn(client, meanwhile):
            child, is_new = self._free_child()
            try:
                if is_new and self._prepare is not None:
                    with self._preparing if self._compiles() else nullcontext():
                        child.begin(self._prepare)
                        child.result()
                child.begin(function, *arguments, memory_bytes=memory_bytes, seconds=seconds)
                return child.result(meanwhile)
            finally:
                with self._lock:
                    self._busy.remove(child)
                    is_reusable = child.is_free and not self._is_closed
                    if is_reusable:
                        self._idle.append(child)
                if not is_reusable:
                    child.end()

    def close(self) -> None:
        """End the processes, and with them the calls that they are working on; no further calls are possible."""
        with self._lock:
            self._is_closed = True
            for child in self._busy:
                child.kill()
            for child in self._idle:
                child.end()

    def _free_child(self) -> tuple[Child, bool]:
        """(a process, whether it is new)"""
        with self._lock:
            if self._is_closed:
                raise Exceeded("was not started: its processes are closed")
            while self._idle and not self._idle[-1].is_free:
                self._idle.pop().end()
            is_new = not self._idle
            child = Child() if is_new else self._idle.pop()
            self._busy.add(child)
            return child, is_new


class FairSemaphore:
    """Lets `count` callers proceed at a time, and of each client at most `per_client`; further ones wait.

    Clients take turns: of those that wait, the one whose last turn is longest ago is next, however many callers each of
    them has. If `per_client` is less than `count`, one client alone, whatever it does, never keeps another one waiting.
    """

    def __init__(self, count: int, per_client: int | None = None) -> None:
        self._free = count
        self._per_client = per_client or count
        self._lock = threading.Lock()
        self._running: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[threading.Event]] = {}  # the next client first

    @contextmanager
    def turn(self, client: Hashable = None, meanwhile: Meanwhile | None = None) -> Iterator[None]:
        """Wait for a turn, and have it inside the `with` block. `meanwhile` is called several times a second."""
        admitted = threading.Event()
        with self._lock:
            self._waiting.setdefault(client, deque()).append(admitted)
            self._admit()
        try:
            while not admitted.wait(MEANWHILE_EVERY_S if meanwhile is not None else None):
                assert meanwhile is not None
                meanwhile()
            yield
        finally:
            with self._lock:
                if admitted.is_set():
                    self._running -= Counter([client])
                    self._free += 1
                else:
                    self._waiting[client].remove(admitted)
                    if not self._waiting[client]:
                        del self._waiting[client]
                self._admit()

    def _admit(self) -> None:
        for client, waiting in self._waiting.items():
            if self._free and self._running[client] < self._per_client:
                waiting.popleft().set()
                del self._waiting[client]
                if waiting:
                    self._waiting[client] = waiting  # behind the other clients
                self._running[client] += 1
                self._free -= 1
                return


# --- runs in the process


def main() -> None:
    """Answer calls until the parent closes stdin, or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # it ends this process
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    with suppress(OSError):  # if memory runs out, Linux ends this process rather than the parent
        Path("/proc/self/oom_score_adj").write_text("1000")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    with suppress(EOFError, OSError):
        while True:
            pickle.dump(_attempt(*pickle.load(sys.stdin.buffer)), out, pickle.HIGHEST_PROTOCOL)
            out.flush()
    os._exit(0)


def _exit_with_parent(parent: int) -> None:
    """End this process soon after its parent, which may be killed during a call."""
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT_EVERY_S)
    os._exit(1)


def _attempt(
    function: Callable[..., Any] | str, arguments: tuple[Any, ...], memory_bytes: float | None, seconds: float | None
) -> tuple[bool, Any, float]:
    """(whether the call succeeded, its result or error, its processor time in seconds)"""
    is_ok, outcome, before = False, None, time.process_time()
    try:
        called = resolve_name(function) if isinstance(function, str) else function
        _limit(memory_bytes, seconds)
        is_ok, outcome = True, called(*arguments)
    except (TfcompareError, OSError, MemoryError) as error:
        outcome = error.with_traceback(None)
    except Exception as error:
        outcome = unexpected(error)
    finally:
        _limit(None, None)
    return is_ok, outcome, time.process_time() - before


def _limit(memory_bytes: float | None, seconds: float | None) -> None:
    """Limit the memory of this process to what it has and so much more, and the processor time from now; None: remove
    the limit."""
    signal.setitimer(signal.ITIMER_PROF, 0 if seconds is None else max(seconds, 0.001))
    with suppress(ImportError, OSError, ValueError):  # only Linux counts and limits it
        import resource

        limit = hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if memory_bytes is not None:
            limit = int(memory_bytes) + 1024 * int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0])
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


if __name__ == "__main__":
    main()
