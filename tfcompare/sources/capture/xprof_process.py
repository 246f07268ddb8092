"""Calls into xprof, each in a process of its own: it may abort, hang or fill stderr, and the caller lives on.

`python -m tfcompare.sources.capture.xprof_process` is that process. It takes one call as a line of JSON on stdin,
answers with a line of JSON on stdout, and ends at once when whoever started it goes away.
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
from pathlib import Path
from typing import Any

_MOST_LOG_BYTES = 1 << 16
_PROXIES = frozenset({"grpc_proxy", "http_proxy", "https_proxy", "all_proxy"})
"""Machines that are profiled are reached directly, whatever stands in the way to the web."""


@dataclass(frozen=True)
class Ended:
    """How a call ended. `error`: what xprof raised, empty where it did not; `log`: the last that it wrote.

    `status`: the exit status, below 0 the signal that ended it; None where it was stopped before its end.
    """

    status: int | None
    error: str
    log: str


def is_installed() -> bool:
    """Whether there is an xprof to call."""
    return find_spec("xprof") is not None


class Call:
    """A call under way: `Call("trace", {...})` starts it. `arguments` are those of the function of that name below."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed by `end`
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=_environment(),
        )  # fmt: skip
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it ended already: `end` tells how
            self._process.stdin.write(json.dumps({"name": name, "arguments": dict(arguments)}).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def end(self) -> Ended:
        """How it ended; stops it where it has not."""
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
    """Ours, with this package in reach and without proxies."""
    kept = {name: value for name, value in os.environ.items() if name.lower() not in _PROXIES}
    paths = [str(Path(__file__).parents[3]), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


# --- within that process


def trace(
    address: str, logdir: str, duration_ms: int, start_ns: int, host_level: int, device_level: int, python_level: int
) -> None:
    """Record at one profiler service from `start_ns` on (Unix time; 0: at once) into `logdir`, in one attempt."""
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
    """Answer the call that stands on stdin."""
    answer_to = os.dup(1)
    os.dup2(2, 1)  # xprof writes to both
    call = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_caller, daemon=True).start()
    answer = json.dumps({"error": _error_of(call["name"], call["arguments"])}).encode() + b"\n"
    os.write(answer_to, answer)
    sys.stderr.flush()
    os._exit(0)  # what its threads still do is of no interest


def _error_of(name: str, arguments: Mapping[str, Any]) -> str:
    try:
        _CALLS[name](**arguments)
    except Exception as error:  # whatever xprof raises is told to the caller
        return str(error) or type(error).__name__
    return ""


def _end_with_caller() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
