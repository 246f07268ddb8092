"""Detects that the files of the shown runs have changed, and offers to read them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from tfcompare.sources.logdir import FoundRun
from tfcompare.text import as_code
from tfcompare.ui.frame import state
from tfcompare.ui.frame.search import rescan
from tfcompare.ui.frame.selection import Selection

_EVERY_S = 10

State = Literal["as read", "changed", "gone"]
_CHANGED = "has changed on disk; what is shown is as it was read.", "have changed on disk; they are shown as read."
_GONE = "is no longer on disk; what is shown was read before.", "are no longer on disk; they are shown as read."


def state_of(found: FoundRun) -> State:
    """How a run's files have changed since they were found; those of remote and stored runs count as unchanged."""
    known: State = "as read"
    for file in found.files if not found.is_stored else ():
        if file.source is not None:
            continue
        try:
            status = file.path.stat()
        except OSError:
            return "gone"
        if (status.st_size, status.st_mtime_ns) != (file.size_bytes, file.modified_ns):
            known = "changed"
    return known


@st.fragment(run_every=_EVERY_S)
def watch(runs: Sequence[FoundRun]) -> None:
    """Show a message when files of these runs change or disappear, with a button to reread them; polls the files."""
    states = {run: state_of(run) for run in runs}
    for what, (one, several) in (("changed", _CHANGED), ("gone", _GONE)):
        named = [as_code(run.name) for run in runs if states[run] == what]
        if not named:
            continue
        st.warning(f"{', '.join(named)} {one if len(named) == 1 else several}", icon=":material/sync_problem:")
        if reread_button(f"tfcompare.on_disk.{what}"):
            st.rerun()


def reread_button(key: str, wish: Selection | None = None) -> bool:
    """A button that searches all places again, and retries the selection `wish`."""
    return st.button("Read again", icon=":material/refresh:", key=key, on_click=_read_again, args=(wish,))


def _read_again(wish: Selection | None) -> None:
    rescan()
    if wish is not None:
        state.choose(wish)
