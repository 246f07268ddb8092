"""The user's names, tags and hidden marks of runs, as pages apply and change them.

They belong to the deployment: everybody sees them. Those who may change them are users of a browser on the server's
machine, and those who are logged in.
"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from tfcompare.run import Run
from tfcompare.settings import Settings
from tfcompare.sources.logdir import FoundRun
from tfcompare.store.annotations import Annotation, annotations_by_run, read_annotations, write_annotation
from tfcompare.ui.frame import access
from tfcompare.ui.frame.hooks import hooks

_content_ids: dict[str, str] = {}
"""The content ids of runs that this server has read, by `FoundRun.stat_key`."""


def note(run: Run) -> None:
    """Remember the content id of a run that was read, so that copies of annotated runs are recognized."""
    if run.choice.is_default:
        _content_ids[run.found.stat_key] = run.content_id


def content_id(run: FoundRun) -> str:
    """The content id of a run, if it is known; else empty."""
    return run.content_id or _content_ids.get(run.stat_key, "")


def by_run(settings: Settings, found: tuple[FoundRun, ...]) -> dict[str, Annotation]:
    """The annotations of found runs by run id; raises `TfcompareError` if the file with them is unusable."""
    return annotations_by_run(found, read_annotations(settings.data_folder), _content_ids)


def may_change() -> bool:
    """Whether this browser may change names, tags and hidden marks."""
    return access.is_same_machine(st.context.headers.to_dict()) or bool(hooks().account())


def change(settings: Settings, run: FoundRun, annotation: Annotation) -> None:
    """Save the annotation of a run whose content id is known. Raises `TfcompareError` if that is not possible."""
    before = read_annotations(settings.data_folder).get(content_id(run), Annotation())
    keys = tuple(key for key in before.stat_keys if key != run.stat_key)
    write_annotation(settings.data_folder, content_id(run), replace(annotation, stat_keys=(*keys, run.stat_key)))
