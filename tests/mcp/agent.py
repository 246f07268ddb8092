"""An agent without a mind: it calls tools in memory, as clients do, and keeps what was said."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.types import CallToolResult

from tests.profiles import SAMPLES
from tfcompare.mcp.answers import MOST_BYTES, size_of
from tfcompare.mcp.places import Places
from tfcompare.mcp.server import server

Script = Callable[["Agent"], Coroutine[Any, Any, str]]
"""What an agent does; returns its answer."""


class Agent:
    """Calls the tools of a server; `transcript` is what it asked and read, `bytes` how much it was sent."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.transcript: list[str] = []
        self.calls = 0
        self.bytes = 0

    async def result(self, tool: str, **arguments: Any) -> CallToolResult:
        """What a call of a tool returns; checks what holds for each."""
        found = await self.client.call_tool(tool, arguments)
        size = size_of(found)
        assert size <= MOST_BYTES
        self.calls, self.bytes = self.calls + 1, self.bytes + size
        self.transcript += [f"→ {tool} {json.dumps(arguments, ensure_ascii=False)}", text_of(found), ""]
        return found

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that works."""
        found = await self.result(tool, **arguments)
        assert not found.is_error, text_of(found)
        return found.structured_content

    async def follow(self, call: dict[str, Any]) -> dict[str, Any]:
        """The structured content of a call that an answer holds."""
        return await self.call(call["tool"], **call["arguments"])


def text_of(result: CallToolResult) -> str:
    """The text of a result."""
    return "\n".join(content.text for content in result.content)


def ask(script: Script, *roots: Path, **options: Any) -> tuple[str, Agent]:
    """(the answer of an agent with this script, the agent). The roots are the samples by default."""
    return anyio.run(_asked, script, tuple(root.resolve() for root in roots or (SAMPLES,)), options)


async def _asked(script: Script, roots: tuple[Path, ...], options: dict[str, Any]) -> tuple[str, Agent]:
    async with Client(server(Places(roots), **options)) as client:
        agent = Agent(client)
        return await script(agent), agent


def call(tool: str, *roots: Path, **arguments: Any) -> dict[str, Any]:
    """The structured content of one call that works."""
    return json.loads(ask(lambda agent: _dumped(agent.call(tool, **arguments)), *roots)[0])


async def _dumped(answer: Coroutine[Any, Any, Any]) -> str:
    return json.dumps(await answer)


def failure(tool: str, *roots: Path, **arguments: Any) -> str:
    """The sentence of a call that fails."""

    async def script(agent: Agent) -> str:
        found = await agent.result(tool, **arguments)
        assert found.is_error
        assert found.structured_content is None
        return text_of(found)

    return ask(script, *roots)[0]


def blocks(value: Any) -> Iterator[dict[str, Any]]:
    """All blocks of an answer, sections opened."""
    for one in [*value.get("blocks", []), *value.get("candidates", [])]:
        if "kind" in one and one["kind"] != "section":
            yield one
        yield from blocks(one)


def findings(value: Any) -> dict[str, dict[str, Any]]:
    """The findings of an answer on one candidate, by their ids."""
    return {one["id"]: one for block in blocks(value) for one in block.get("findings", [])}
