"""What the server does with every request: the names it answers under, a header for the response, limits on what is
uploaded, and silence towards browsers that have left."""

from __future__ import annotations

from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.server.uploads.arriving import LimitArriving

CONTENT_SECURITY_POLICY = "frame-ancestors 'self'"
"""No page of another origin can show the app in a frame, and so lead somebody's clicks."""
_HEALTH = "/_stcore/health"


class OnlyAllowedHosts:
    """Answers requests under the names in `server.allowedHosts` alone, which Streamlit checks for websockets.

    Else somebody could point a name of their own at this server, and read its answers from a page of theirs. The health
    check answers under any name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http" or scope["path"] == _HEALTH or _is_allowed(Headers(scope=scope).get("host", "")):
            await self._app(scope, receive, send)
        else:
            await PlainTextResponse("This host is not in server.allowedHosts.", 403)(scope, receive, send)


def _is_allowed(host: str) -> bool:
    allowed: list[str] = st.get_option("server.allowedHosts")
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    return not allowed or any(
        one == "*" or name == one.lower() or (one.startswith("*.") and name.endswith(one[1:].lower()))
        for one in allowed
    )


class SecurityHeaders:
    """Adds `Content-Security-Policy` to each response of `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class DropUnheard:
    """Drops what `app` sends through a websocket whose browser has left; that it has, `app` hears when it receives.

    Without it, a tab that sends something and is closed at once leaves a traceback in the server's log: sending fails
    first, after which starlette refuses to receive what is still there, and Streamlit takes that for a message that is
    no binary one, and closes what is closed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def send_or_drop(message: Message) -> None:
            try:
                await send(message)
            except OSError:
                if message["type"] != "websocket.send":
                    raise

        await self._app(scope, receive, send_or_drop)


try:
    _arriving_bytes = settings.from_environment().arriving_bytes
except TfcompareError:  # every page reports it
    _arriving_bytes = settings.Settings().arriving_bytes

MIDDLEWARE = [
    Middleware(OnlyAllowedHosts),
    Middleware(DropUnheard),
    Middleware(SecurityHeaders),
    Middleware(LimitArriving, _arriving_bytes),
]
