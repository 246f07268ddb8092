"""Who may record from a page, and where that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from tfcompare.settings import Settings
from tfcompare.ui import same_machine


def may_record(settings: Settings, headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers may record: from this machine, or from anywhere where that was asked for."""
    return settings.allow_capture or same_machine.is_same_machine(headers)


def this_browser_may_record(settings: Settings) -> bool:
    """Whether the browser that is asking now may."""
    return may_record(settings, st.context.headers.to_dict())


def folder(settings: Settings) -> Path:
    """Where runs are recorded into: `<name>/plugins/profile/<stamp>` below it."""
    return settings.data_folder.absolute() / "captures"


def places(settings: Settings) -> tuple[Path, ...]:
    """The folder that captured runs lie in, where there are any that this browser may see."""
    captures = folder(settings)
    if not this_browser_may_record(settings) or next(captures.glob("[!.]*/plugins/profile/*"), None) is None:
        return ()
    return (captures,)
