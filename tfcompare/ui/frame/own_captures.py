"""Who may capture a profile from a page, and where captures are stored."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path, PurePath

import streamlit as st

from tfcompare.settings import Settings
from tfcompare.sources import abandoned_folders
from tfcompare.ui.frame import access


def this_browser_may_record(settings: Settings) -> bool:
    """Whether the current browser may capture: on this machine, or as the settings allow."""
    return settings.allow_capture or access.is_same_machine(st.context.headers.to_dict())


def folder(settings: Settings) -> Path:
    """The log directory for captures, which are stored in its `<name>/plugins/profile/<stamp>`."""
    return settings.data_folder.absolute() / "captures"


def places(settings: Settings) -> tuple[Path, ...]:
    """The folder with captured runs, if it exists and this browser may see it."""
    captures = folder(settings)
    if not this_browser_may_record(settings) or next(captures.glob("[!.]*/plugins/profile/*"), None) is None:
        return ()
    return (captures,)


def is_captured(settings: Settings, path: PurePath) -> bool:
    """Whether the path is the folder of a run that was captured from a page."""
    own = folder(settings)
    return isinstance(path, Path) and path.parent.match("plugins/profile") and path.parents[3:4] == (own,)


def delete(settings: Settings, path: PurePath) -> bool:
    """Permanently delete a captured run, and parent folders that become empty; False if the browser may not.

    Raises OSError if deleting fails.
    """
    if not this_browser_may_record(settings) or not is_captured(settings, path):
        return False
    abandoned_folders.delete(Path(path), folder(settings))
    with suppress(OSError):  # it contains another run
        for parent in Path(path).parents[:3]:
            parent.rmdir()
    return True
