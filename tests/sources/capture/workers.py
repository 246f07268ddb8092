"""Two programs that train and can be recorded, for the tests that record, in a browser or not."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

Started = dict[str, subprocess.Popen[bytes]]
"""By the addresses of their profiler servers."""


@pytest.fixture(scope="module")
def workers(started_workers: Started) -> Iterator[tuple[str, str]]:
    """The addresses of the profiler servers of two processes that train while a file's tests may record them."""
    for process in started_workers.values():
        process.send_signal(signal.SIGCONT)
    first, second = started_workers
    yield first, second
    for process in started_workers.values():
        process.send_signal(signal.SIGSTOP)


@pytest.fixture(scope="session")
def started_workers() -> Iterator[Started]:
    """The processes, started once: that takes seconds. While nobody records them they take no time of others."""
    with ExitStack() as running:
        ports = free_ports(2)
        processes = [running.enter_context(_worker(port)) for port in ports]
        try:
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline() == b"ready\n"
            yield {f"localhost:{port}": process for port, process in zip(ports, processes, strict=True)}
        finally:
            for process in processes:
                process.kill()


def _worker(port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(__file__).with_name("worker.py")), str(port)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at just now."""
    with ExitStack() as listeners:
        bound = [listeners.enter_context(socket.socket()) for _ in range(count)]
        for listener in bound:
            listener.bind(("localhost", 0))
        return [int(listener.getsockname()[1]) for listener in bound]


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port that takes no connection, and that nobody else gets meanwhile."""
    with socket.socket() as bound:
        bound.bind(("localhost", 0))
        yield int(bound.getsockname()[1])
