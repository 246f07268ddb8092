"""What the server does with every request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from multiprocessing.pool import ThreadPool

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from tfcompare.server.middleware import DropUnheard, OnlyAllowedHosts

LEFT: list[Message] = [
    {"type": "websocket.connect"},
    {"type": "websocket.receive", "bytes": b"one more thing"},
    {"type": "websocket.disconnect", "code": 1001},
]


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends something, and then hears what the browser has to say."""
    websocket = WebSocket(scope, receive, send)
    await websocket.accept()
    await websocket.send_bytes(b"an answer")
    scope["heard"].append(await websocket.receive_bytes())
    await websocket.receive_bytes()


def heard_of(wrap: Callable[[ASGIApp], ASGIApp], fails_with: type[Exception]) -> list[bytes]:
    """What the app hears of a browser that said one more thing and has left when the app answers."""
    heard: list[bytes] = []
    arriving = iter(LEFT)

    async def receive() -> Message:
        return next(arriving)

    async def send(message: Message) -> None:
        if message["type"] == "websocket.send":
            raise fails_with

    async def run() -> None:
        scope = {"type": "websocket", "heard": heard}
        with pytest.raises((WebSocketDisconnect, ValueError)) as stop:
            await wrap(answering)(scope, receive, send)
        heard.append(type(stop.value).__name__.encode())

    with ThreadPool(1) as pool:  # the main thread may have the event loop of the browser tests
        pool.apply(lambda: asyncio.run(run()))
    return heard


def test_what_a_browser_said_before_it_left_is_heard_though_nobody_hears_the_answer() -> None:
    assert heard_of(lambda app: app, OSError) == [b"WebSocketDisconnect"]
    assert heard_of(DropUnheard, OSError) == [b"one more thing", b"WebSocketDisconnect"]


def test_other_failures_to_send_are_raised() -> None:
    assert heard_of(DropUnheard, ValueError) == [b"ValueError"]


@pytest.mark.parametrize(
    ("host", "path", "allowed", "status"),
    [
        ("localhost:8501", "/", ["localhost"], 200),
        ("[::1]:8501", "/", ["::1"], 200),
        ("APP.example.org", "/", ["*.example.org"], 200),
        ("evil.example", "/_stcore/metrics", ["localhost"], 403),
        ("example.org.evil.example", "/", ["*.example.org"], 403),
        ("", "/", ["localhost"], 403),
        ("[", "/", ["localhost"], 403),
        ("10.0.0.7", "/_stcore/health", ["localhost"], 200),
        ("evil.example", "/", [], 200),
    ],
)
def test_only_allowed_hosts_are_answered(
    host: str, path: str, allowed: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamlit.get_option", {"server.allowedHosts": allowed}.__getitem__)
    statuses: list[int] = []

    async def send(message: Message) -> None:
        statuses.append(message.get("status", 0))

    async def receive() -> Message:
        return {"type": "http.request"}

    async def run() -> None:
        scope = {"type": "http", "path": path, "headers": [(b"host", host.encode())]}
        await OnlyAllowedHosts(PlainTextResponse("an answer"))(scope, receive, send)

    with ThreadPool(1) as pool:
        pool.apply(lambda: asyncio.run(run()))
    assert statuses[0] == status
