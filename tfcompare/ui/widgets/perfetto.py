"""A trace in Perfetto, in the page; needs the extra `perfetto`."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import streamlit as st

_SCRIPT = Path(__file__).with_name("perfetto.js").read_text(encoding="utf-8")
_component = st.components.v2.component("tfcompare.perfetto", js=_SCRIPT)


def show_perfetto(trace: bytes, title: str) -> None:
    """Show a trace (JSON, may be compressed) with this title."""
    text = b64encode(trace).decode()
    _component(key="perfetto", data={"trace": text, "title": title, "key": f"{title} {hash(text)}"})
