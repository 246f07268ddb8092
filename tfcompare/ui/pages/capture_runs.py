"""Who may record from a page, and where captures are stored."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath

import streamlit as st

from tfcompare.settings import Settings
from tfcompare.sources import leftovers
from tfcompare.ui.frame import access


def may_record(settings: Settings, headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers may record: from this machine, or as the settings allow."""
    return settings.allow_capture or access.is_same_machine(headers)


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


def is_captured(settings: Settings, path: PurePath) -> bool:
    """Whether that is the folder of a run that was recorded from a page."""
    own = folder(settings)
    return isinstance(path, Path) and path.parent.match("plugins/profile") and path.parents[3:4] == (own,)


def delete(settings: Settings, path: PurePath) -> bool:
    """Remove a captured run for good, and the folders that hold nothing then; False where the browser may not.

    Raises OSError where the disk does not let it go.
    """
    if not this_browser_may_record(settings) or not is_captured(settings, path):
        return False
    leftovers.delete(Path(path), folder(settings))
    with suppress(OSError):  # of one that holds another run
        for parent in Path(path).parents[:3]:
            parent.rmdir()
    return True
