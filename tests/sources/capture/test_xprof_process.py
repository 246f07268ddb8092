"""Calls into xprof in a process of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.sources.capture.workers import refusing_port
from tfcompare.sources.xprof_process import Call, Ended, Trace

PATIENCE_S = 300
"""Far more than it takes: a machine may be loaded."""


def trace_of(port: int, logdir: Path) -> Trace:
    return Trace(f"localhost:{port}", str(logdir), 200, start_ns=0, host_level=2, device_level=1, python_level=0)


def ended(call: Call) -> Ended:
    until = time.monotonic() + PATIENCE_S
    while call.is_running and time.monotonic() < until:
        time.sleep(0.02)
    return call.end()


def test_what_xprof_raises_and_logs_is_handed_back_and_stays_off_our_own_output(tmp_path, capfd, monkeypatch) -> None:
    monkeypatch.setenv("http_proxy", "http://localhost:9")  # the way to the web is not taken
    with refusing_port() as port:
        end = ended(Call(trace_of(port, tmp_path)))
    assert (end.status, "returned UNAVAILABLE" in end.log) == (0, True), end
    assert "No trace event was collected" in end.error
    assert "Connection refused" in end.log and ":9: " not in end.log, end
    assert capfd.readouterr() == ("", "")


def test_one_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    with socket.create_server(("localhost", 0)) as server:
        server.settimeout(PATIENCE_S)
        call = Call(trace_of(server.getsockname()[1], tmp_path))
        connection, _ = server.accept()  # and says nothing
        with connection:
            assert call.is_running
            assert call.end().status is None


def test_one_that_is_killed_says_by_what(tmp_path: Path) -> None:
    with refusing_port() as port:
        call = Call(trace_of(port, tmp_path))
        os.kill(call._child._process.pid, signal.SIGABRT)
        assert ended(call).status == -signal.SIGABRT


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    script = (
        "import os, socket\nfrom tfcompare.sources.xprof_process import Call, Trace\n"
        "server = socket.create_server(('localhost', 0))\n"
        f"address = f'localhost:{{server.getsockname()[1]}}'\n"
        f"call = Call(Trace(address, {str(tmp_path)!r}, 200, 0, 2, 1, 0))\n"
        "connection = server.accept()\nprint(call._child._process.pid, flush=True)\nos.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    child = int(done.stdout)
    until = time.monotonic() + PATIENCE_S
    while is_alive(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_alive(child)


def is_alive(process: int) -> bool:
    """Whether it still runs; one that nobody has asked for its status is a zombie and does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
