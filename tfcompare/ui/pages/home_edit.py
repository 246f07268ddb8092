"""The dialog on the home page that names, tags and hides a run."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from tfcompare.errors import TfcompareError
from tfcompare.markdown import as_code, as_markdown
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.store.annotations import LONGEST_NAME, LONGEST_TAG, MOST_TAGS, Annotation
from tfcompare.ui.frame import annotated, state
from tfcompare.ui.frame.shell import Page

_EDITED = "tfcompare.edited"
_NAME, _TAGS, _HIDDEN, _SAVE = (f"{_EDITED}.{field}" for field in ("name", "tags", "hidden", "save"))


def open_for(run_id: str) -> None:
    """Open the dialog for a run, from now on at each rerun until it is closed."""
    st.session_state[_EDITED] = run_id


def show(view: Page, outcomes: Mapping[str, Run | TfcompareError]) -> None:
    """Show the dialog if it is open."""
    run = next((run for run in view.found if run.id == st.session_state.get(_EDITED)), None)
    if run is None or not annotated.may_change():
        return
    if isinstance(read := outcomes.get(run.id), Run):
        annotated.note(read)
    st.dialog("Edit run", on_dismiss=_close)(_form)(view, run)


def _form(view: Page, run: FoundRun) -> None:
    st.caption(as_code(run.id))
    if not annotated.content_id(run):
        st.info("This run has not been read yet. Select it in the table, and edit it once its step time is shown.")
        return
    before = view.search.annotations.get(run.id, Annotation())
    known = {tag for each in view.search.annotations.values() for tag in each.tags}
    name = st.text_input(
        "Name", before.name, max_chars=LONGEST_NAME, key=f"{_NAME}.{run.id}", placeholder=run.name,
        help="Shown on all pages. Leave it empty for the name from the run's path.",
    )  # fmt: skip
    tags = st.multiselect(
        "Tags", sorted(known), list(before.tags), key=f"{_TAGS}.{run.id}", accept_new_options=True,
        max_selections=MOST_TAGS, placeholder="Choose tags or type new ones", select_all=False,
    )  # fmt: skip
    is_hidden = st.checkbox(
        "Hidden", before.is_hidden, key=f"{_HIDDEN}.{run.id}", help="Listed only with “Show hidden”. Links to it work."
    )
    st.caption("Saved on this server for everybody who uses it. The profile is not changed.")
    if st.button("Save", type="primary", key=_SAVE):
        tidy = tuple(dict.fromkeys(" ".join(tag.split())[:LONGEST_TAG].strip() for tag in tags if tag.split()))
        _save(view, run, Annotation(" ".join(name.split()), tidy, is_hidden), before)


def _save(view: Page, run: FoundRun, annotation: Annotation, before: Annotation) -> None:
    is_taken = any(annotation.name == other.name and other.id != run.id for other in view.found)
    if annotation.name and annotation.name != before.name and is_taken:
        st.error(f"Another run is named {as_code(annotation.name)}. Choose another name.")
        return
    try:
        annotated.change(view.settings, run, annotation)
    except TfcompareError as error:
        st.error(as_markdown(error))
        return
    if annotation.is_hidden:
        state.choose(state.chosen().without(run.id))
    _close()
    st.rerun()


def _close() -> None:
    st.session_state[_EDITED] = None
