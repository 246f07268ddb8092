"""Records a program: finds its address, asks its profiler, and moves the files to their place.

xprof can capture several workers in one call, but a worker that hangs then delays the profiles of all others by a
minute, and the failure of a single worker is only printed on stderr. Here each worker has its own process, and all
captures start at the same time.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp

from tfcompare.errors import TfcompareError
from tfcompare.sources.abandoned_folders import ARRIVING, remove_left, this_process
from tfcompare.sources.capture.addresses import Address, LeftOut, Target, resolve, silent
from tfcompare.sources.logdir import check_file
from tfcompare.sources.logdir.files import host_of, text_of
from tfcompare.sources.machine_load import load_average, write_load
from tfcompare.sources.xprof_process import Call, Ended, Trace, is_installed
from tfcompare.text import some_of
from tfcompare.units import format_bytes

LONGEST_MS = 600_000
MOST_RETRIES = 100
HOST_LEVELS, DEVICE_LEVELS, PYTHON_LEVELS = range(4), range(2), range(2)
_LONGEST_NAME = 80
MOST_WORKERS = 64
"""Each is asked by a process of its own on this machine, and a name in DNS may have thousands of addresses."""
TOGETHER_S = 1.0
"""With several workers, the capture starts this long after the requests, so that all start at the same time."""

HOW_TO_INSTALL = "recording needs xprof, which is not installed: pip install 'xprof>=2.24,<3'"

_MOST_NAMED = 4
_POLL_S = 0.05
_SETTLE_S = 0.5
"""The time a process needs to start and a small profile to arrive; shorter waits show no message."""
_REASON = re.compile(r" returned ([A-Z_]+): (.*)")
_UNIMPLEMENTED = "UNIMPLEMENTED"
_EMPTY = "No trace event was collected"


@dataclass(frozen=True)
class Request:
    """What to capture. `retries`: further attempts if nothing was captured; `delay_ms`: pause before each attempt.

    `grace_s`: how long a worker may take to return its profile after the capture ends. Raises `TfcompareError` for a
    value that is out of range.
    """

    addresses: tuple[Target, ...]
    duration_ms: int = 2_000
    host_level: int = 2
    device_level: int = 1
    python_level: int = 0
    retries: int = 3
    delay_ms: int = 0
    grace_s: float = 60.0

    def __post_init__(self) -> None:
        for what, value, allowed in (
            ("the duration in ms", self.duration_ms, range(1, LONGEST_MS + 1)),
            ("the host tracer level", self.host_level, HOST_LEVELS),
            ("the device tracer level", self.device_level, DEVICE_LEVELS),
            ("the Python tracer level", self.python_level, PYTHON_LEVELS),
            ("the number of retries", self.retries, range(MOST_RETRIES + 1)),
            ("the delay in ms", self.delay_ms, range(LONGEST_MS + 1)),
        ):
            if value not in allowed:
                raise TfcompareError(f"{what} must be from {allowed[0]:,} to {allowed[-1]:,}; not {value:,}")


@dataclass(frozen=True)
class Recorded:
    """A captured run: its folder, the bytes of the profile from each address in it, and what is missing."""

    path: Path
    size_bytes: Mapping[Address, int]
    left_out: tuple[LeftOut, ...] = ()

    def captured(self, step_counts: Mapping[str, int]) -> dict[Address, str]:
        """What each address returned, such as "captured: 38 steps, 1.58 MB". `step_counts`: steps by host."""
        steps = {address: step_counts.get(host_of(address.file_name)) for address in self.size_bytes}
        return {
            address: f"captured: {f'{steps[address]:,}' if steps[address] else 'no'} steps, {format_bytes(size)}"
            for address, size in self.size_bytes.items()
        }


class NothingRecorded(TfcompareError):
    """No address returned a profile; nothing was stored."""

    def __init__(self, left_out: tuple[LeftOut, ...]) -> None:
        self.left_out = left_out
        super().__init__("nothing was recorded: " + "; ".join(map(str, left_out)))


class Stopped(TfcompareError):
    """The user stopped the capture; nothing was stored."""

    def __init__(self) -> None:
        super().__init__("the capture was stopped, and nothing was saved")


def check_name(name: str) -> str:
    """`name` if it is a valid folder name on every system; raises `TfcompareError` otherwise."""
    name = name.strip()
    if not re.fullmatch(r"\w[\w .+-]*", name) or name.endswith(".") or len(name) > _LONGEST_NAME:
        raise TfcompareError(
            f"{text_of(name[: 2 * _LONGEST_NAME])!r} cannot be the name of a run: letters, digits, blanks and . _ + - "
            f"are possible, with a letter or digit first, {_LONGEST_NAME} of them at most"
        )
    return name


@dataclass(frozen=True)
class Progress:
    """What is being done, as a sentence without its full stop, and how long it takes; 0 if unknown."""

    sentence: str
    seconds: float = 0.0


Tell = Callable[[Progress], None]


def record(
    request: Request, logdir: Path, name: str = "", *, tell: Tell = lambda _: None, stop: threading.Event | None = None
) -> Recorded:
    """Capture into `logdir/plugins/profile/<stamp>`, or with a name into `logdir/name/plugins/profile/<stamp>`.

    For programs on this machine, the machine's load is written next to the profiles. The run is stored completely or
    not at all. Raises `NothingRecorded` if no address returned a profile, `Stopped` soon after `stop` was set,
    `TfcompareError` if xprof is missing, `OSError` if `logdir` cannot be written.
    """
    if not is_installed():
        raise TfcompareError(HOW_TO_INSTALL)
    load_before, stop = load_average(), stop or threading.Event()
    if names := [target for target in request.addresses if not isinstance(target, Address)]:
        tell(Progress(f"Resolving {_list_(names)}"))
    addresses, unresolved = resolve(request.addresses)
    if stop.is_set():
        raise Stopped
    if len(addresses) > MOST_WORKERS:
        raise TfcompareError(
            f"{len(addresses):,} workers: at most {MOST_WORKERS} can be recorded at once, as each takes a process on "
            "this machine; name fewer addresses"
        )
    tell(Progress("Looking who answers"))
    reasons = silent(addresses)
    if stop.is_set():
        raise Stopped
    deaf = (*unresolved, *(LeftOut(address, reasons[address]) for address in addresses if address in reasons))
    there = tuple(address for address in addresses if address not in reasons)
    if not there:
        raise NothingRecorded(deaf)
    is_new = not logdir.exists()
    logdir.mkdir(parents=True, exist_ok=True)
    remove_left(logdir)
    folder = Path(mkdtemp(prefix=f"{ARRIVING}{this_process()}-", dir=logdir))
    try:
        for attempt in range(1 + request.retries):
            files, failed = _attempt(request, there, folder, attempt, tell, stop)
            if files:
                break
        else:
            raise NothingRecorded((*deaf, *failed))
        run = folder / "run"
        run.mkdir()
        for address, file in files.items():
            file.rename(run / address.file_name)
        if all(address.is_local for address in files):
            write_load(run, load_before)
        path = _move_to_logdir(run, logdir / name if name else logdir)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if is_new:
            with suppress(OSError):  # it contains another run
                logdir.rmdir()
    sizes = {address: (path / address.file_name).stat().st_size for address in files}
    return Recorded(path, sizes, (*deaf, *failed))


def _attempt(
    request: Request, addresses: Sequence[Address], folder: Path, attempt: int, tell: Tell, stop: threading.Event
) -> tuple[dict[Address, Path], tuple[LeftOut, ...]]:
    """(the host files of the workers that returned one, the other workers); `attempt` counts from 0."""
    folder, which = folder / str(attempt), f" (attempt {attempt + 1})" if attempt else ""
    folder.mkdir()
    delay_s = max(request.delay_ms / 1000, TOGETHER_S if len(addresses) > 1 else 0)
    start_ns = time.time_ns() + round(delay_s * 1e9)
    window_s = delay_s + request.duration_ms / 1000
    levels = request.host_level, request.device_level, request.python_level
    calls: dict[Address, Call] = {}
    try:
        for number, address in enumerate(addresses):
            logdir = str((folder / str(number)).absolute())
            calls[address] = Call(Trace(str(address), logdir, request.duration_ms, start_ns if delay_s else 0, *levels))
        tell(Progress(f"Recording {_list_(addresses)}{which}", window_s))
        _wait(calls, time.monotonic() + window_s + _SETTLE_S, stop)
        if late := [address for address, call in calls.items() if call.is_running]:
            tell(Progress(f"Waiting for the profile of {_list_(late)}{which}"))
            _wait(calls, time.monotonic() + request.grace_s, stop)
    finally:
        ended = {address: call.end() for address, call in calls.items()}
    files, failed = dict[Address, Path](), []
    for number, address in enumerate(addresses):
        outcome, found = ended[address], sorted((folder / str(number)).rglob("*.xplane.pb"))
        is_ok = outcome.status == 0 and not outcome.error and len(found) == 1
        if is_ok and check_file(found[0]) is None:  # if nothing ran, xprof writes a file without events
            files[address] = found[0]
        else:
            failed.append(LeftOut(address, _reason(outcome, request)))
    return files, tuple(failed)


def _wait(calls: dict[Address, Call], until: float, stop: threading.Event) -> None:
    while any(call.is_running for call in calls.values()) and time.monotonic() < until:
        if stop.wait(_POLL_S):
            raise Stopped


def _reason(ended: Ended, request: Request) -> str:
    """Why a worker returned no profile; completes a sentence that begins with its address."""
    if ended.status is None:
        return f"did not hand its profile over within {request.grace_s:g} s; record for a shorter time"
    if ended.status < 0:
        return f"could not be recorded: xprof was ended by {signal.Signals(-ended.status).name}; try again"
    if "profiling session" in ended.log:
        return "is being profiled already; wait until that has ended"
    if answers := _REASON.findall(ended.log):
        code, message = answers[-1]
        if code == _UNIMPLEMENTED:
            return "is no profiler service: another service of gRPC answers there; check the port"
        return f"broke off: {message or code}"
    if _EMPTY in ended.error:
        lowest = " and a higher host tracer level" if request.host_level < 1 else ""
        return (
            f"did nothing that could be recorded within {request.duration_ms / 1000:g} s; record while it works, with "
            f"a longer duration or more retries{lowest}"
        )
    return f"gave no profile: {ended.error or f'xprof ended with status {ended.status} and wrote no file'}"


def _move_to_logdir(run: Path, logdir: Path) -> Path:
    """Move the run's folder to its place in `logdir`; returns that place."""
    runs = logdir / "plugins" / "profile"
    runs.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now().astimezone().strftime("%Y_%m_%d_%H_%M_%S")
    for number in range(1, 1000):
        path = runs / (stamp if number == 1 else f"{stamp}_{number}")
        try:
            return run.rename(path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(runs / stamp))


def _list_(addresses: Sequence[Target]) -> str:
    return some_of(map(str, addresses), _MOST_NAMED)


@dataclass(frozen=True)
class State:
    """The state of a capture: `sentence` describes it; `share` is the elapsed part of its time, None if unknown."""

    sentence: str
    share: float | None
    seconds_left: float


class BackgroundRecording:
    """Starts immediately. `future` holds what `record` returns or raises, once it is done."""

    def __init__(self, request: Request, logdir: Path, name: str) -> None:
        self.request, self.name = request, name
        self.future: Future[Recorded] = Future()
        self._progress, self._since = Progress("Starting"), time.monotonic()
        self._stop = threading.Event()
        # A daemon thread: the server does not wait for it to end.
        threading.Thread(target=self._work, args=(logdir,), daemon=True).start()

    @property
    def state(self) -> State:
        """The current state."""
        progress, seconds = self._progress, time.monotonic() - self._since
        if not progress.seconds:
            return State(progress.sentence, None, 0.0)
        return State(progress.sentence, min(seconds / progress.seconds, 1.0), max(progress.seconds - seconds, 0.0))

    def stop(self) -> None:
        """Stop it soon, without a run."""
        self._stop.set()

    def _work(self, logdir: Path) -> None:
        try:
            self.future.set_result(record(self.request, logdir, self.name, tell=self._tell, stop=self._stop))
        except BaseException as error:  # whoever asks for the result gets it
            self.future.set_exception(error)

    def _tell(self, progress: Progress) -> None:
        self._since, self._progress = time.monotonic(), progress
