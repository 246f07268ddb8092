"""Limits the memory for files that browsers upload, and frees it as soon as a file has been handled.

Streamlit keeps every uploaded file in memory until its session ends, whether a page uses it or not. `LimitArriving` is
ASGI middleware in front of Streamlit: in place of a file that does not fit it hands on an empty one, and removes files
by the same request that a browser sends when its user removes one.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfcompare.units import format_bytes

UNCLAIMED_S = 600
"""Files that no page has handled this long after their session's last upload are removed when memory is needed."""

_BYTES_PER_FILE = 2_000
"""What Streamlit takes for a file beside its contents, about."""

_LOG = logging.getLogger(__name__)
_PATH = re.compile(r".*/_stcore/upload_file/([^/]+)/([^/]+)")


class _NoRoomLeft(Exception):
    """While an upload arrived."""


@dataclass
class _File:
    session: str
    size_bytes: int
    app: ASGIApp
    scope: Scope
    refusal: str = ""
    is_complete: bool = False
    at: float = field(default_factory=time.monotonic)


_files: dict[str, _File] = {}
"""The files in memory and those that are being sent, by their ids; changed in the server's event loop only."""

_loop: asyncio.AbstractEventLoop | None = None


def refusal(file_ids: Iterable[str]) -> str:
    """Why one of these files was refused, in one sentence; empty if none was."""
    return next((_files[file_id].refusal for file_id in file_ids if file_id in _files and _files[file_id].refusal), "")


def release(file_ids: Iterable[str]) -> None:
    """Remove uploaded files from memory; does nothing for a server without `LimitArriving`. For any thread."""
    if _loop is not None:
        asyncio.run_coroutine_threadsafe(_remove(list(file_ids)), _loop)


class LimitArriving:
    """Refuses uploads beyond `most_bytes` in memory, half of which one session may have."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self._app, self._most_bytes = app, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, unless it is an upload for which there is no room."""
        global _loop
        _loop = asyncio.get_running_loop()
        upload = _PATH.fullmatch(scope.get("path", "")) if scope["type"] == "http" else None
        if upload is None or scope["method"] not in ("PUT", "DELETE"):
            await self._app(scope, receive, send)
        elif scope["method"] == "DELETE":
            await self._app(scope, receive, send)
            _files.pop(upload[2], None)
        else:
            await self._receive(scope, receive, send, session=upload[1], file_id=upload[2])

    async def _receive(self, scope: Scope, receive: Receive, send: Send, *, session: str, file_id: str) -> None:
        length = dict(scope["headers"]).get(b"content-length", b"")
        if not length.isdigit():
            await _answer(send, 411, "An upload needs a Content-Length.")
            return
        if file_id in _files:
            await _answer(send, 409, "This file has been uploaded already.")
            return
        file = _File(session, _BYTES_PER_FILE, self._app, dict(scope))
        await _remove(_unclaimed_files())
        file.refusal = self._refusal(session, int(length) + _BYTES_PER_FILE)
        if file.refusal:
            scope, receive = await _emptied(scope, receive)
        _files[file_id] = file
        status = 0

        async def receive_counted() -> Message:
            message = await receive()
            size_bytes = len(message.get("body", b""))
            if self._refusal(session, size_bytes):  # what others sent meanwhile has taken its room
                raise _NoRoomLeft
            file.size_bytes += size_bytes
            return message

        async def note(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive_counted, note)
        except ClientDisconnect:
            _LOG.warning("an upload was broken off after %s", format_bytes(file.size_bytes))
        except _NoRoomLeft:
            await _answer(send, 413, "Others have taken the room for this upload. Try again later.")
        finally:
            file.is_complete, file.at = True, time.monotonic()
            if status != 204:
                _files.pop(file_id, None)

    def _refusal(self, session: str, size_bytes: int) -> str:
        """Why there is no room for so many bytes beside those that have arrived; empty if there is. What was announced
        and is not here takes none, or whoever sends nothing would keep out all others."""
        in_session = sum(file.size_bytes for file in _files.values() if file.session == session)
        in_all = sum(file.size_bytes for file in _files.values())
        for used, limit, whose in (
            (in_session, self._most_bytes // 2, "one browser"),
            (in_all, self._most_bytes, "all"),
        ):
            if used + size_bytes > limit:
                return (
                    f"{format_bytes(size_bytes)} do not fit into the {format_bytes(limit)} for uploads by {whose} at "
                    "the same time; upload less at a time, or try again later, or ask who runs the server to raise "
                    f"TFCOMPARE_ARRIVING_MB"
                )
        return ""


def _unclaimed_files() -> list[str]:
    last: dict[str, float] = {}
    for file in _files.values():
        last[file.session] = max(last.get(file.session, 0), file.at if file.is_complete else time.monotonic())
    oldest = time.monotonic() - UNCLAIMED_S
    return [file_id for file_id, file in _files.items() if last[file.session] < oldest]


async def _remove(file_ids: list[str]) -> None:
    """Remove files as a browser would, with the headers of the request that brought them."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Message) -> None:
        pass

    for file_id in file_ids:
        if (file := _files.pop(file_id, None)) is not None:
            of_body = (b"content-length", b"content-type")
            headers = [header for header in file.scope["headers"] if header[0] not in of_body]
            await file.app({**file.scope, "method": "DELETE", "headers": headers}, receive, send)


async def _emptied(scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
    """The request with an empty file in place of its own, whose bytes are read and dropped."""
    while (message := await receive())["type"] == "http.request" and message.get("more_body"):
        pass
    headers = dict(scope["headers"])
    boundary = re.search(rb"boundary=\"?([^\";]+)", headers.get(b"content-type", b""))
    mark = b"--" + (boundary[1] if boundary else b"")
    part = b'Content-Disposition: form-data; name="file"; filename="refused"'
    body = b"\r\n".join((mark, part, b"", b"", mark + b"--", b""))
    headers[b"content-length"] = str(len(body)).encode()

    async def receive_emptied() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return {**scope, "headers": list(headers.items())}, receive_emptied


async def _answer(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
