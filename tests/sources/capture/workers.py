"""Two programs that can be recorded, for the tests that record, in a browser or not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.profiles import ROOT


@pytest.fixture(scope="module")
def workers() -> Iterator[tuple[str, str]]:
    """The addresses of two profiler services that stand in for programs with TensorFlow, which takes long to start."""
    one, two = free_ports(2)
    with started("service", one, two):
        yield f"localhost:{one}", f"localhost:{two}"


@contextmanager
def started(module: str, *ports: int) -> Iterator[None]:
    """A program of this folder that listens at these ports, once it is ready."""
    command = [sys.executable, "-m", f"tests.sources.capture.{module}", *map(str, ports)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=ROOT, **pipes) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


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
