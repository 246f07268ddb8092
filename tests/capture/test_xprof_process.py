"""Calls into xprof in a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.capture.workers import free_ports
from tfcompare.xprof_process import Call, Ended

PATIENCE_S = 60


def trace_of(port: int, logdir: Path, duration_ms: int = 200) -> dict[str, object]:
    return {
        "address": f"localhost:{port}", "logdir": str(logdir), "duration_ms": duration_ms, "start_ns": 0,
        "host_level": 2, "device_level": 1, "python_level": 0,
    }  # fmt: skip


def ended(call: Call) -> Ended:
    until = time.monotonic() + PATIENCE_S
    while call.is_running and time.monotonic() < until:
        time.sleep(0.02)
    return call.end()


def test_what_xprof_raises_and_logs_is_handed_back_and_stays_off_our_own_output(tmp_path: Path, capfd) -> None:
    end = ended(Call("trace", trace_of(free_ports(1)[0], tmp_path)))
    assert end.status == 0
    assert "No trace event was collected" in end.error
    assert "returned UNAVAILABLE" in end.log
    assert capfd.readouterr() == ("", "")


def test_one_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with subprocess.Popen([sys.executable, "-c", LISTENS, str(port)], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        call = Call("trace", trace_of(port, tmp_path))
        time.sleep(1)
        assert call.is_running
        assert call.end().status is None
        server.kill()


LISTENS = """
import socket, sys, time
server = socket.create_server(("localhost", int(sys.argv[1])))
print("ready", flush=True)
time.sleep(600)
"""


def test_one_that_is_killed_says_by_what(tmp_path: Path) -> None:
    call = Call("trace", trace_of(free_ports(1)[0], tmp_path))
    os.kill(call._process.pid, signal.SIGABRT)
    assert ended(call).status == -signal.SIGABRT


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    script = (
        "import os, sys, socket\nfrom tfcompare.xprof_process import Call\n"
        f"server = socket.create_server(('localhost', {port}))\n"
        f"call = Call('trace', {trace_of(port, tmp_path)!r})\n"
        "server.accept()\nprint(call._process.pid, flush=True)\nos.kill(os.getpid(), 9)"
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
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_way_to_the_web_is_not_taken(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("http_proxy", "http://localhost:9")
    end = ended(Call("trace", trace_of(free_ports(1)[0], tmp_path)))
    assert "Connection refused" in end.log
    assert ":9: " not in end.log
