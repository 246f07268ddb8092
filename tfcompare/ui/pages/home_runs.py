"""The table of runs on Home, and the dialog that edits a run's name and tags."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from math import ceil, nan
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from tfcompare.errors import TfcompareError
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.store.annotations import LONGEST_NAME, LONGEST_TAG, MOST_TAGS, Annotation
from tfcompare.text import as_code, as_markdown, middle_ellipsis
from tfcompare.ui.frame import annotated, state
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.frame.selection import Selection, with_replicates
from tfcompare.ui.frame.shell import Page, program
from tfcompare.ui.frame.sidebar import short_names
from tfcompare.views.csv_files import for_spreadsheet
from tfcompare.views.run_listing import UNREAD, UNREADABLE, listing
from tfcompare.views.steps.headline import short_change

if TYPE_CHECKING:
    import pandas as pd

_MOST_BARS = 30
_NAME_LENGTH, _NARROW_NAME_LENGTH = 26, 17

_BASELINE = "tfcompare.pick_baseline"
_CANDIDATE = "tfcompare.pick_candidate"
_EDIT = "tfcompare.pick_edit"
_CHANGE_HELP = (
    "Step time compared with the baseline's, where both are of one program. It is not tested for significance. The "
    "headline above is, with the steps that are chosen in the sidebar."
)

EDIT = ":material/edit:"
_SPACE = "\u2003\u2003"
"""Enlarges the target: a button with only an icon is hard to hit."""
BASELINE_ON, BASELINE_OFF = f":material/radio_button_checked:{_SPACE}", f":material/radio_button_unchecked:{_SPACE}"
CANDIDATE_ON, CANDIDATE_OFF = f":material/check_box:{_SPACE}", f":material/check_box_outline_blank:{_SPACE}"
COLUMNS = (
    *("baseline", "candidate", "name", "edit", "tags", "recorded", "device", "hosts", "steps", "step_time_ms_mean"),
    *("change", "step_times_ms", "size_bytes", "remarks"),
)
_FIRST_IF_NARROW = ("baseline", "candidate", "name", "step_time_ms_mean", "change")
NARROW_COLUMNS = (*_FIRST_IF_NARROW, *(name for name in COLUMNS if name not in _FIRST_IF_NARROW))
"""The columns in view on a narrow page: the step times come first."""
_EDITED = "tfcompare.edited"
_NAME, _TAGS, _HIDDEN, _SAVE = (f"{_EDITED}.{field}" for field in ("name", "tags", "hidden", "save"))


def show(runs: Sequence[FoundRun], outcomes: Mapping[str, Run | TfcompareError], view: Page) -> None:
    """Show the table. A click on a button changes the selection, or opens the dialog that edits a run."""
    zone = browser_zone()
    runs = newest_first(runs, outcomes)
    listed = listing(runs, outcomes)
    narrow = is_narrow()
    order, name_length = (NARROW_COLUMNS, _NARROW_NAME_LENGTH) if narrow else (COLUMNS, _NAME_LENGTH)
    baseline = next((run for run in view.found if run.id == view.selection.baseline), None)
    step_ms = listing([baseline], outcomes)["step_time_ms_mean"][0] if baseline is not None else nan
    tags = [", ".join(view.search.tags(run)) for run in runs]
    table = rows(listed, view.selection, zone, name_length).assign(
        tags=tags,
        change=changes(listed, view.selection.baseline, step_ms, _warn_unrelated(view.selection, outcomes)),
        edit=EDIT,
    )
    frame = for_spreadsheet(table)
    empty = {name for name in ("tags", "remarks") if not frame[name].ne("").any()}
    if not frame["hosts"].gt(1).any():
        empty.add("hosts")
    if not annotated.may_change():
        empty.add("edit")
    st.dataframe(
        frame,
        column_order=[name for name in order if name not in empty],
        hide_index=True,
        height="content",
        placeholder="",
        column_config=_columns(_clicked_cell(runs), zone, narrow=narrow),
        key="tfcompare.runs",
        alt="Runs",
    )
    unreadable = listed.loc[listed["state"] == UNREADABLE, ["name", "remarks"]]
    if len(unreadable):
        with st.expander(f"⚠ {len(unreadable)} of these cannot be read: why, and what to do"):
            for name, why in zip(unreadable["name"], unreadable["remarks"], strict=True):
                st.markdown(f"- {as_code(name)}: {as_markdown(why)}")


def newest_first(runs: Sequence[FoundRun], outcomes: Mapping[str, Run | TfcompareError]) -> list[FoundRun]:
    """The runs just added, then the others, by capture time: that in the profile if it was read, else the folder's."""

    def recorded(run: FoundRun) -> datetime:
        outcome = outcomes.get(run.id)
        return outcome.info.start_time if isinstance(outcome, Run) else run.recorded

    added = state.added_runs()
    latest_first = sorted(runs, key=recorded, reverse=True)
    return sorted(latest_first, key=lambda run: run.id not in added)


def rows(listed: pd.DataFrame, selection: Selection, zone: tzinfo, name_length: int = _NAME_LENGTH) -> pd.DataFrame:
    """The rows of the table, one per run of the listing, in the same order."""
    readable = listed["state"] != UNREADABLE
    baseline = [BASELINE_ON if run == selection.baseline else BASELINE_OFF for run in listed["run"]]
    candidate = [CANDIDATE_ON if run in selection.candidates else CANDIDATE_OFF for run in listed["run"]]
    names = short_names(dict(zip(listed["run"], listed["name"], strict=True)), name_length)
    times = zip(listed["recorded"], listed["recorded_source"], listed["state"], strict=True)
    return listed.assign(
        baseline=[button if r else "" for button, r in zip(baseline, readable, strict=True)],
        candidate=[button if r else "" for button, r in zip(candidate, readable, strict=True)],
        name=[
            names[run] if r else f"⚠ {middle_ellipsis(names[run], name_length - 3)}"
            for run, r in zip(listed["run"], readable, strict=True)
        ],
        recorded=[recorded_text(when, zone, is_sure=s == "profile" or state == UNREAD) for when, s, state in times],
        step_times_ms=listed["step_times_ms"].map(bars, na_action="ignore"),
        hosts=listed["hosts"].where(readable).astype("Int64"),
        size_bytes=listed["size_bytes"].where(readable).astype("Int64"),
    )


def changes(
    listed: pd.DataFrame, baseline: str | None, baseline_step_ms: float, unrelated: Collection[str] = ()
) -> list[str]:
    """The change of each run's step time to the baseline's, such as `20× faster`.

    Empty if one of the times is unknown, and for `unrelated` runs, which are of another program.
    """
    texts = []
    for run, step in zip(listed["run"], listed["step_time_ms_mean"], strict=True):
        is_comparable = baseline_step_ms * step > 0 and run not in unrelated
        change = short_change(baseline_step_ms, step) if is_comparable else ""
        texts.append("baseline" if run == baseline else change)
    return texts


def _warn_unrelated(selection: Selection, outcomes: Mapping[str, Run | TfcompareError]) -> set[str]:
    """The runs that were read and are of another program than the baseline, or ran on another kind of device; not those
    that are compared with it."""
    ours = outcomes.get(selection.baseline) if selection.baseline is not None else None
    if not isinstance(ours, Run):
        return set()
    read = {run_id: run for run_id, run in outcomes.items() if isinstance(run, Run)}
    unrelated = {run_id for run_id, run in read.items() if not program(run).is_related(program(ours))}
    return unrelated.difference(selection.candidates)


def recorded_text(when: datetime, zone: tzinfo, *, is_sure: bool) -> str:
    """When a run was captured, in the browser's time zone; with a star if the time comes from its folder or file."""
    return f"{when.astimezone(zone):%Y-%m-%d %H:%M:%S}{'' if is_sure else ' *'}"


def browser_zone() -> tzinfo:
    """The browser's time zone, UTC if it is unknown."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def bars(values: Sequence[float], most: int = _MOST_BARS) -> list[float]:
    """`values` as at most `most` bars: if there are more, each bar is the largest of several adjacent values.

    A single value has no bar, which would fill the cell.
    """
    if len(values) == 1:
        return []
    size = ceil(len(values) / most)
    return [max(values[i : i + size]) for i in range(0, len(values), size)] if size > 1 else list(values)


def _clicked_cell(runs: Sequence[FoundRun]) -> Callable[[str], None]:
    def clicked(column: str) -> None:
        run = runs[st.session_state[column]["row"]]
        if column == _EDIT:
            st.session_state[_EDITED] = run.id  # from now on, the dialog is open at each rerun until it is closed
            return
        before = state.current()
        chosen = before.with_baseline(run.id) if column == _BASELINE else before.with_toggled(run.id)
        state.choose(with_replicates(chosen, before, runs))

    return clicked


def _columns(clicked: Callable[[str], None], zone: tzinfo, *, narrow: bool) -> dict[str, Any]:
    kind = st.column_config

    def button(label: str, key: str, help: str, width: int, pinned: bool | None = None) -> Any:
        on_click: dict[str, Any] = {"key": key, "on_click": clicked, "args": (key,)}
        return kind.ButtonColumn(label, type="tertiary", width=width, pinned=pinned, help=help, **on_click)

    of_baseline = "The run that the others are compared with"
    of_candidates = "The candidates: runs that are compared with the baseline"
    of_time = f"When the profile was started ({zone}). * From the folder's name or the file's time"
    of_step = "Mean, without the first and last of more than five steps and a stray"
    return {
        "baseline": button("Baseline", _BASELINE, of_baseline, 66, pinned=True),
        "candidate": button("Compare", _CANDIDATE, of_candidates, 66, pinned=True),
        "name": kind.TextColumn("Run", width=130 if narrow else 185),
        "edit": button("Edit", _EDIT, "Rename, tag or hide", 44),
        "tags": kind.TextColumn("Tags", width=110),
        "recorded": kind.TextColumn("Recorded", width=138, help=of_time),
        "device": kind.TextColumn("Device", width=64),
        "steps": kind.NumberColumn("Steps", width=48, help="Empty if the profile marks no steps"),
        "step_time_ms_mean": kind.NumberColumn("Step time", format="%.3f ms", width=92, help=of_step),
        "change": kind.TextColumn("Change", width=96, alignment="right", help=_CHANGE_HELP),
        "step_times_ms": kind.BarChartColumn("Step times", y_min=0, width=72, help="One bar per step, from 0"),
        "hosts": kind.NumberColumn("Hosts", width=50),
        "size_bytes": kind.NumberColumn("Size", format="bytes", width=64),
        "remarks": kind.TextColumn("Remarks", width="large"),
    }


def show_editor(view: Page, outcomes: Mapping[str, Run | TfcompareError]) -> None:
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
    meaning = "Shown on all pages. Leave it empty for the name from the run's path."
    key, hint = f"{_NAME}.{run.id}", run.name
    name = st.text_input("Name", before.name, max_chars=LONGEST_NAME, key=key, placeholder=hint, help=meaning)
    free: dict[str, Any] = {"accept_new_options": True, "max_selections": MOST_TAGS, "key": f"{_TAGS}.{run.id}"}
    hint = "Choose tags or type new ones"
    tags = st.multiselect("Tags", sorted(known), list(before.tags), placeholder=hint, select_all=False, **free)
    meaning = "Listed only with “Show hidden”. Links to it work."
    is_hidden = st.checkbox("Hidden", before.is_hidden, key=f"{_HIDDEN}.{run.id}", help=meaning)
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
        state.choose(state.current().without(run.id))
    _close()
    st.rerun()


def _close() -> None:
    st.session_state[_EDITED] = None
