"""Captures through xprof in child processes, so that it may abort, hang or fill stderr without affecting the caller."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec

from tfcompare.child import Child, Exceeded

_MOST_LOG_BYTES = 1 << 16
_PROXIES = frozenset({"grpc_proxy", "http_proxy", "https_proxy", "all_proxy"})
"""Profiled machines are reached directly, whatever proxies are configured for the web."""


@dataclass(frozen=True)
class Ended:
    """The result of a call. `error`: what xprof raised, or empty; `log`: the last part of its output.

    `status`: 0 if it came to an end, the exit status or minus the signal if it ended the process, None if it was
    stopped.
    """

    status: int | None
    error: str
    log: str


@dataclass(frozen=True)
class Trace:
    """Capture from one profiler service into `logdir`, starting at `start_ns` (Unix time; 0: now), in one attempt."""

    address: str
    logdir: str
    duration_ms: int
    start_ns: int
    host_level: int
    device_level: int
    python_level: int


def is_installed() -> bool:
    """Whether xprof is installed."""
    return find_spec("xprof") is not None


class Call:
    """A running capture."""

    def __init__(self, trace: Trace) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed by `end`
        kept = {name: value for name, value in os.environ.items() if name.lower() not in _PROXIES}
        self._child = Child(kept | {"TF_CPP_MIN_LOG_LEVEL": "0"}, self._log)  # 0: the log says why it failed
        self._child.begin(_trace, trace)

    @property
    def is_running(self) -> bool:
        """Whether it has not finished yet."""
        return not self._child.is_done()

    def end(self) -> Ended:
        """The result of the call; stops it if it is still running."""
        try:
            status, error = (None, "") if self.is_running else (0, self._child.result())
        except Exceeded:
            status, error = self._child.status, ""
        self._child.end()
        with self._log:
            self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _MOST_LOG_BYTES))
            return Ended(status, error, self._log.read().decode(errors="replace"))


def _trace(trace: Trace) -> str:
    """What xprof raises, or empty. Runs in the child process."""
    from xprof.convert import _pywrap_profiler_plugin

    options = {
        "host_tracer_level": trace.host_level,
        "device_tracer_level": trace.device_level,
        "python_tracer_level": trace.python_level,
        "delay_ms": max(0, trace.start_ns - time.time_ns()) // 1_000_000,
    }
    try:
        _pywrap_profiler_plugin.trace(trace.address, trace.logdir, "", True, trace.duration_ms, 1, options)
    except Exception as error:  # the caller gets whatever xprof raises
        return str(error) or type(error).__name__
    return ""
