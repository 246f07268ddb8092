"""Records a program: finds its address, asks its profiler, and moves the files to their place.

xprof can capture several workers in one call, but a worker that hangs then delays the profiles of all others by a
minute, and the failure of a single worker is only printed on stderr. Here each worker has its own process, and all
captures start at the same time.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from tempfile import mkdtemp
from textwrap import shorten

from tfcompare.errors import TfcompareError
from tfcompare.sources.abandoned_folders import ARRIVING, remove_left, this_process
from tfcompare.sources.capture.addresses import PATIENCE_S, Address, DnsName, Target, TpuName, answers, silent
from tfcompare.sources.capture.request import LeftOut, NothingRecorded, Recorded, Request, Stopped
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
GCLOUD_PATIENCE_S = 30.0
"""The timeout for gcloud, which takes seconds to start and asks a server on the Internet."""

_MOST_REASON = 240
"""Of what gcloud printed: its error, and the beginning of what it recommends."""

_Resolved = tuple[Address, ...] | str
"""The addresses, or why there are none, which completes a sentence that begins with the name."""


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


def resolve(
    targets: Iterable[Target], dns_s: float = PATIENCE_S, gcloud_s: float = GCLOUD_PATIENCE_S
) -> tuple[tuple[Address, ...], tuple[LeftOut, ...]]:
    """(the addresses of all targets without duplicates, the names without any address); names are asked in parallel.

    gcloud uses the login of the user of this process.
    """
    targets = tuple(targets)
    names = [target for target in targets if not isinstance(target, Address)]
    longest_s = gcloud_s + PATIENCE_S if any(isinstance(name, TpuName) for name in names) else dns_s
    found = answers(
        lambda name: _of_dns(name) if isinstance(name, DnsName) else _of_tpu(name, gcloud_s), names, longest_s
    )
    late = f"could not be resolved within {longest_s:g} s; check the name and the network"
    addresses, left_out = dict[Address, None](), []
    for target in targets:
        result = (target,) if isinstance(target, Address) else found.get(target, late)
        if isinstance(result, str):
            left_out.append(LeftOut(target, result))
        else:
            addresses |= dict.fromkeys(result)
    return tuple(addresses), tuple(left_out)


def _of_dns(name: DnsName) -> _Resolved:
    """The IPv4 addresses of the name, or those of IPv6 if it has no others: a worker often has one of each."""
    try:
        entries = socket.getaddrinfo(name.host.strip("[]"), name.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for an empty or overlong part of a name
        return f"has no address in DNS ({getattr(error, 'strerror', None) or error}); check its spelling"
    numbers = sorted({ip_address(entry[4][0]) for entry in entries}, key=int)
    of_v4 = [number for number in numbers if number.version == 4]
    return tuple(_address(str(number), name.port) for number in of_v4 or numbers)


def _of_tpu(tpu: TpuName, patience_s: float) -> _Resolved:
    """The internal addresses of the TPU's workers, which TensorFlow's TPUClusterResolver returns as well."""
    command = ["gcloud", "compute", "tpus", "tpu-vm", "describe", tpu.name, "--format", "json"]
    command += ["--zone", tpu.zone] if tpu.zone else []
    command += ["--project", tpu.project] if tpu.project else []
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return f"needs the Google Cloud CLI, and gcloud cannot be run ({error.strerror}); install it and log in"
    with process:
        try:
            out, err = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # gcloud is a script that starts Python
            return f"could not be looked up: gcloud did not answer within {patience_s:g} s; check the network"
    if process.returncode:
        reason = err.rpartition("ERROR: ")[2].removeprefix("(gcloud.compute.tpus.tpu-vm.describe) ")
        reason = reason.partition("The attribute can be set in the following ways")[0]  # a list of options follows
        return f"could not be looked up by gcloud: {shorten(reason, _MOST_REASON, placeholder=' …')}"
    try:
        node = json.loads(out)
        state, endpoints = node["state"], node.get("networkEndpoints", [])
        numbers = [endpoint["ipAddress"] for endpoint in endpoints if endpoint.get("ipAddress")]
        addresses = tuple(_address(number, tpu.port) for number in numbers)
    except (ValueError, KeyError, TypeError, AttributeError):  # no JSON, or JSON of something else
        return f"could not be looked up: gcloud printed something else than a TPU: {shorten(out, 80)!r}"
    if state != "READY":
        return f"is in state {state}; wait until it is READY"
    return addresses or "has no network endpoint, so none of its workers can be reached"


def _address(number: str, port: int) -> Address:
    return Address(f"[{number}]" if ip_address(number).version == 6 else number, port)


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
