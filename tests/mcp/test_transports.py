"""The command serves over stdin and stdout, and over HTTP on this machine; and says what it lacks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from tests.mcp.agent import text_of
from tests.profiles import ROOT, SAMPLES
from tfcompare.mcp.server import INSTRUCTIONS

COMMAND = [sys.executable, "-m", "tfcompare", "mcp", str(SAMPLES)]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


async def asked(client: Client) -> str:
    found = await client.call_tool("find_runs", {"path": "workers"})
    assert not found.is_error, text_of(found)
    return text_of(found)


def test_a_client_that_starts_the_command_talks_to_it() -> None:
    async def main() -> tuple[str, str | None]:
        parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=ENVIRONMENT)
        async with Client(stdio_client(parameters)) as client:
            return await asked(client), client.instructions

    found, instructions = anyio.run(main)
    assert "`workers/slow_input`: CPU, 3 hosts, 22 steps of 36.0 ms" in found
    assert instructions == INSTRUCTIONS


@pytest.fixture
def address() -> Iterator[str]:
    """The address of the command on a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([*COMMAND, "--port", str(port)], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


def test_programs_on_this_machine_reach_it_over_http(address: str) -> None:
    async def main() -> str:
        async with Client(address) as client:
            return await asked(client)

    assert "`workers/balanced`" in anyio.run(main)


def test_a_missing_package_or_a_wrong_option_is_one_sentence(tfcompare, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is not a folder" in tfcompare("mcp", str(tmp_path / "file"))[2]
    assert "expected an address" in tfcompare("mcp", str(tmp_path), "--link", "localhost:8501")[2]
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    status, _, said = tfcompare("mcp", str(tmp_path))
    assert (status, said) == (2, "tfcompare: the MCP server needs the package mcp; run: pip install 'tfcompare[mcp]'\n")
