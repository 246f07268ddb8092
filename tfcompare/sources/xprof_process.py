"""Calls xprof in separate processes, so that it may abort, hang or fill stderr without affecting the caller.

`python -m tfcompare.sources.xprof_process` is such a process. It reads one call as a line of JSON from stdin,
writes the result as a line of JSON to stdout, and exits when its caller does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from tfcompare.settings import python_path

_MOST_LOG_BYTES = 1 << 16
_PROXIES = frozenset({"grpc_proxy", "http_proxy", "https_proxy", "all_proxy"})
"""Profiled machines are reached directly, whatever proxies are configured for the web."""


@dataclass(frozen=True)
class Ended:
    """The result of a call. `error`: what xprof raised, or empty; `log`: the last part of its output.

    `status`: the exit status, or minus the signal that ended it; None if it was stopped.
    """

    status: int | None
    error: str
    log: str


def is_installed() -> bool:
    """Whether xprof is installed."""
    return find_spec("xprof") is not None


class Call:
    """A running call, started by `Call("trace", {...})`. `arguments` are those of the function `name` below."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed by `end`
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=_environment(),
        )  # fmt: skip
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has exited already: `end` returns how
            self._process.stdin.write(json.dumps({"name": name, "arguments": dict(arguments)}).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def is_running(self) -> bool:
        """Whether it has not finished yet."""
        return self._process.poll() is None

    def end(self) -> Ended:
        """The result of the call; stops it if it is still running."""
        status = self._process.poll()
        if status is None:
            self._process.kill()
            self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdout, self._log:
            answer = self._process.stdout.read()
            self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _MOST_LOG_BYTES))
            log = self._log.read().decode(errors="replace")
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        return Ended(status, json.loads(answer)["error"] if status == 0 else "", log)


def _environment() -> dict[str, str]:
    """This process's environment, with this package on the path, without proxies, and with the log that has reasons."""
    kept = {name: value for name, value in os.environ.items() if name.lower() not in _PROXIES}
    return kept | {"PYTHONPATH": python_path(), "TF_CPP_MIN_LOG_LEVEL": "0"}


# --- runs in that process


def trace(
    address: str, logdir: str, duration_ms: int, start_ns: int, host_level: int, device_level: int, python_level: int
) -> None:
    """Capture from one profiler service into `logdir`, starting at `start_ns` (Unix time; 0: now), in one attempt."""
    from xprof.convert import _pywrap_profiler_plugin

    delay_ms = max(0, start_ns - time.time_ns()) // 1_000_000
    options = {
        "host_tracer_level": host_level,
        "device_tracer_level": device_level,
        "python_tracer_level": python_level,
        "delay_ms": delay_ms,
    }
    _pywrap_profiler_plugin.trace(address, logdir, "", True, duration_ms, 1, options)


_CALLS = {"trace": trace}


def main() -> None:
    """Run the call that is read from stdin."""
    answer_to = os.dup(1)
    os.dup2(2, 1)  # xprof writes to both
    call = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_caller, daemon=True).start()
    answer = json.dumps({"error": _error_of(call["name"], call["arguments"])}).encode() + b"\n"
    os.write(answer_to, answer)
    sys.stderr.flush()
    os._exit(0)  # do not wait for its threads


def _error_of(name: str, arguments: Mapping[str, Any]) -> str:
    try:
        _CALLS[name](**arguments)
    except Exception as error:  # the caller gets whatever xprof raises
        return str(error) or type(error).__name__
    return ""


def _end_with_caller() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
