"""Two programs that train and can be recorded, for the tests that record, in a browser or not."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def workers() -> Iterator[tuple[str, str]]:
    """The addresses of the profiler servers of two processes that train."""
    with ExitStack() as running:
        ports = free_ports(2)
        processes = [running.enter_context(_worker(port)) for port in ports]
        try:
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline() == b"ready\n"
            yield f"localhost:{ports[0]}", f"localhost:{ports[1]}"
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
