"""Captures a run from live profiler services: one call to xprof per worker, whose files form one run.

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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp

from tfcompare.errors import TfcompareError
from tfcompare.sources.abandoned_folders import ARRIVING, remove_left, this_process
from tfcompare.sources.capture.addresses import Address, Target, silent
from tfcompare.sources.capture.request import LeftOut, NothingRecorded, Recorded, Request, Stopped
from tfcompare.sources.capture.resolving import resolve
from tfcompare.sources.logdir import check_file
from tfcompare.sources.machine_load import load_average, write_load
from tfcompare.sources.xprof_process import Call, Ended, Trace, is_installed
from tfcompare.text import some_of

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
    load_before = load_average()
    if names := [target for target in request.addresses if not isinstance(target, Address)]:
        tell(Progress(f"Resolving {_listed(names)}"))
    addresses, unresolved = resolve(request.addresses)
    _unless_stopped(stop)
    if len(addresses) > MOST_WORKERS:
        raise TfcompareError(
            f"{len(addresses):,} workers: at most {MOST_WORKERS} can be recorded at once, as each takes a process on "
            "this machine; name fewer addresses"
        )
    tell(Progress("Looking who answers"))
    reasons = silent(addresses)
    _unless_stopped(stop)
    deaf = (*unresolved, *(LeftOut(address, reasons[address]) for address in addresses if address in reasons))
    there = tuple(address for address in addresses if address not in reasons)
    if not there:
        raise NothingRecorded(deaf)
    is_new = not logdir.exists()
    logdir.mkdir(parents=True, exist_ok=True)
    remove_left(logdir)
    folder = Path(mkdtemp(prefix=f"{ARRIVING}{this_process()}-", dir=logdir))
    try:
        files, failed = _attempts(request, there, folder, tell, stop or threading.Event())
        if not files:
            raise NothingRecorded((*deaf, *failed))
        run = _run_folder(files, folder)
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


def _unless_stopped(stop: threading.Event | None) -> None:
    if stop is not None and stop.is_set():
        raise Stopped


def _attempts(
    request: Request, addresses: Sequence[Address], folder: Path, tell: Tell, stop: threading.Event
) -> tuple[dict[Address, Path], tuple[LeftOut, ...]]:
    """(the host files of the first successful attempt, the workers that are missing in the last attempt)."""
    files, failed = dict[Address, Path](), tuple[LeftOut, ...]()
    for attempt in range(1 + request.retries):
        here, which = folder / str(attempt), f" (attempt {attempt + 1})" if attempt else ""
        here.mkdir()
        files, failed = _attempt(request, addresses, here, which, tell, stop)
        if files:
            break
    return files, failed


def _attempt(
    request: Request, addresses: Sequence[Address], folder: Path, which: str, tell: Tell, stop: threading.Event
) -> tuple[dict[Address, Path], tuple[LeftOut, ...]]:
    delay_s = max(request.delay_ms / 1000, TOGETHER_S if len(addresses) > 1 else 0)
    start_ns = time.time_ns() + round(delay_s * 1e9)
    window_s = delay_s + request.duration_ms / 1000
    calls: dict[Address, Call] = {}
    try:
        for number, address in enumerate(addresses):
            calls[address] = _call(request, address, folder / str(number), start_ns if delay_s else 0)
        tell(Progress(f"Recording {_listed(addresses)}{which}", window_s))
        _wait(calls, time.monotonic() + window_s + _SETTLE_S, stop)
        if late := [address for address, call in calls.items() if call.is_running]:
            tell(Progress(f"Waiting for the profile of {_listed(late)}{which}"))
            _wait(calls, time.monotonic() + request.grace_s, stop)
    finally:
        ended = {address: call.end() for address, call in calls.items()}
    files, failed = dict[Address, Path](), []
    for number, address in enumerate(addresses):
        file, why = _outcome(ended[address], folder / str(number), request)
        if file is None:
            failed.append(LeftOut(address, why))
        else:
            files[address] = file
    return files, tuple(failed)


def _call(request: Request, address: Address, folder: Path, start_ns: int) -> Call:
    levels = request.host_level, request.device_level, request.python_level
    return Call(Trace(str(address), str(folder.absolute()), request.duration_ms, start_ns, *levels))


def _wait(calls: dict[Address, Call], until: float, stop: threading.Event) -> None:
    while any(call.is_running for call in calls.values()) and time.monotonic() < until:
        if stop.wait(_POLL_S):
            raise Stopped


def _outcome(ended: Ended, folder: Path, request: Request) -> tuple[Path | None, str]:
    """(the host file or None, why there is none). If nothing ran, xprof writes a file without events."""
    files = sorted(folder.rglob("*.xplane.pb"))
    if ended.status == 0 and not ended.error and len(files) == 1 and check_file(files[0]) is None:
        return files[0], ""
    return None, _reason(ended, request)


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


def _run_folder(files: dict[Address, Path], folder: Path) -> Path:
    """A folder with the host files under their final names."""
    run = folder / "run"
    run.mkdir()
    for address, file in files.items():
        file.rename(run / address.file_name)
    return run


def _move_to_logdir(run: Path, logdir: Path) -> Path:
    """Move the run's folder to its place in `logdir`; returns that place."""
    runs = logdir / "plugins" / "profile"
    runs.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now().astimezone().strftime("%Y_%m_%d_%H_%M_%S")
    for number in range(1, 1000):
        path = runs / (stamp if number == 1 else f"{stamp}_{number}")
        try:
            run.rename(path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        else:
            return path
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(runs / stamp))


def _listed(addresses: Sequence[Target]) -> str:
    return some_of(map(str, addresses), _MOST_NAMED)
