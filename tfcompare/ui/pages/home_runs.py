"""The table of runs on Home, and the dialog that edits a run's name and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import pairwise
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
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.frame.shell import Page, program
from tfcompare.ui.pages.home_programs import Program, Row, by_row, rows_of
from tfcompare.views.csv_files import for_spreadsheet
from tfcompare.views.run_listing import UNREAD, UNREADABLE, listing
from tfcompare.views.steps.headline import short_change

if TYPE_CHECKING:
    import pandas as pd

_MOST_BARS = 30
_NAME_LENGTH, _NARROW_NAME_LENGTH = 48, 23
_NAME_PIXELS, _LETTER_PIXELS, _FEWEST_LETTERS = 20, 7, 18
"""The width of the names' column without and per letter, and for how many letters there is room at least."""

_BASELINE = "tfcompare.pick_baseline"
_CANDIDATE = "tfcompare.pick_candidate"
_EDIT = "tfcompare.pick_edit"
_UNFOLD = "tfcompare.pick_unfold"
_UNFOLDED = "tfcompare.unfolded"
_CHANGE_HELP = (
    "Step time compared with the baseline's, where both are of one program. It is not tested for significance. The "
    "headline above is, with the steps that are chosen in the sidebar."
)

EDIT = ":material/edit:"
_SPACE = "\u2003\u2003"
"""Enlarges the target: a button with only an icon is hard to hit."""
BASELINE_ON, BASELINE_OFF = f":material/radio_button_checked:{_SPACE}", f":material/radio_button_unchecked:{_SPACE}"
CANDIDATE_ON, CANDIDATE_OFF = f":material/check_box:{_SPACE}", f":material/check_box_outline_blank:{_SPACE}"
UNFOLD, FOLD = ":material/chevron_right:", ":material/expand_more:"
COLUMNS = (
    *("baseline", "candidate", "name", "captures", "step_time_ms_mean", "range", "change", "device", "hosts", "steps"),
    *("recorded", "edit", "tags", "step_times_ms", "size_bytes", "remarks"),
)
_FIRST_IF_NARROW = ("baseline", "candidate", "name", "step_time_ms_mean", "change")
NARROW_COLUMNS = (*_FIRST_IF_NARROW, *(name for name in COLUMNS if name not in _FIRST_IF_NARROW))
"""The columns in view on a narrow page: the step times come first."""
_EDITED = "tfcompare.edited"
_NAME, _TAGS, _HIDDEN, _SAVE = (f"{_EDITED}.{field}" for field in ("name", "tags", "hidden", "save"))


def show(found: Sequence[Program], outcomes: Mapping[str, Run | TfcompareError], view: Page) -> None:
    """Show the table. A click on a button changes the selection, unfolds a program, or opens the dialog that edits a
    run."""
    zone = browser_zone()
    selection, narrow = view.selection, is_narrow()
    shown = rows_of(found, selection, st.session_state.get(_UNFOLDED, frozenset()))
    listed = listing([run for program in found for run in program], outcomes)
    by_id = dict(zip(listed["run"], listed["step_time_ms_mean"], strict=True))
    of_baseline = () if selection.baseline is None else selection.side_of(selection.baseline)
    step_ms = sum(by_id[run] for run in of_baseline) / len(of_baseline) if of_baseline else nan
    unrelated = _warn_unrelated(selection, outcomes)
    lines = by_row(listed, shown)
    order = NARROW_COLUMNS if narrow else COLUMNS
    table = rows(lines, shown, selection, zone, _NARROW_NAME_LENGTH if narrow else _NAME_LENGTH).assign(
        tags=[", ".join(dict.fromkeys(tag for run in row.captures for tag in view.search.tags(run))) for row in shown],
        change=changes(lines, shown, of_baseline, step_ms, unrelated),
    )
    frame = for_spreadsheet(table)
    empty = {name for name in ("tags", "remarks", "captures", "range") if not frame[name].ne("").any()}
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
        column_config=_columns(_clicked_cell(shown), zone, max(map(len, frame["name"])), narrow=narrow),
        key="tfcompare.runs",
        alt="Runs",
    )
    unreadable = listed.loc[listed["state"] == UNREADABLE, ["name", "remarks"]]
    if len(unreadable):
        with st.expander(f"⚠ {len(unreadable)} of these cannot be read: why, and what to do"):
            for name, why in zip(unreadable["name"], unreadable["remarks"], strict=True):
                st.markdown(f"- {as_code(name)}: {as_markdown(why)}")


def newest_first(found: Sequence[Program], outcomes: Mapping[str, Run | TfcompareError]) -> list[Program]:
    """The programs with a run just added, then the others, by the time of their newest capture: that in the profile if
    it was read, else the folder's."""

    def recorded(run: FoundRun) -> datetime:
        outcome = outcomes.get(run.id)
        return outcome.info.start_time if isinstance(outcome, Run) else run.recorded

    added = state.added_runs()
    latest_first = sorted(found, key=lambda program: max(map(recorded, program)), reverse=True)
    return sorted(latest_first, key=lambda program: not any(run.id in added for run in program))


def rows(
    lines: pd.DataFrame, shown: Sequence[Row], selection: Selection, zone: tzinfo, name_length: int = _NAME_LENGTH
) -> pd.DataFrame:
    """The table's rows in the same order, from the line of each."""
    readable = lines["state"] != UNREADABLE
    baseline = () if selection.baseline is None else selection.side_of(selection.baseline)
    candidates = [run for run in selection.recordings if run not in baseline]
    names = _short_names(lines["name"].tolist(), name_length)
    times = zip(lines["recorded"], lines["recorded_source"], lines["state"], strict=True)
    spans = zip(lines["least_ms"], lines["most_ms"], strict=True)
    unfolded = {row.ids for row, after in pairwise(shown) if row.has_captures and after.program == row.program}
    return lines.assign(
        baseline=[
            (BASELINE_ON if {*row.ids} <= {*baseline} else BASELINE_OFF) if r else ""
            for row, r in zip(shown, readable, strict=True)
        ],
        candidate=[
            (CANDIDATE_ON if {*row.ids} <= {*candidates} else CANDIDATE_OFF) if r else ""
            for row, r in zip(shown, readable, strict=True)
        ],
        name=[name if r else f"⚠ {name}" for name, r in zip(names, readable, strict=True)],
        captures=[
            f"{FOLD if row.ids in unfolded else UNFOLD} {len(row.ids)}" if row.has_captures else "" for row in shown
        ],
        edit=["" if row.has_captures else EDIT for row in shown],
        recorded=[recorded_text(when, zone, is_sure=s == "profile" or state == UNREAD) for when, s, state in times],
        step_times_ms=lines["step_times_ms"].map(bars, na_action="ignore"),
        range=[f"{_three_digits(least)}–{_three_digits(most)}" if least < most else "" for least, most in spans],
        hosts=lines["hosts"].where(readable).astype("Int64"),
        size_bytes=lines["size_bytes"].where(readable).astype("Int64"),
    )


def _three_digits(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def _short_names(names: Sequence[str], letters: int) -> list[str]:
    """Names cut in their middle, except those that would read alike."""
    short = [middle_ellipsis(name, letters) for name in names]
    count = Counter(short)
    return [one if count[one] == 1 else name for one, name in zip(short, names, strict=True)]


def changes(
    lines: pd.DataFrame,
    shown: Sequence[Row],
    baseline: Collection[str],
    baseline_step_ms: float,
    unrelated: Collection[str] = (),
) -> list[str]:
    """The change of each row's step time to the baseline's, such as `20× faster`.

    Empty if one of the times is unknown, and for rows with `unrelated` runs, which are of another program.
    """
    texts = []
    for row, step in zip(shown, lines["step_time_ms_mean"], strict=True):
        is_comparable = baseline_step_ms * step > 0 and not {*row.ids}.intersection(unrelated)
        change = short_change(baseline_step_ms, step) if is_comparable else ""
        texts.append("baseline" if {*row.ids} <= {*baseline} else change)
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


def _clicked_cell(shown: Sequence[Row]) -> Callable[[str], None]:
    def clicked(column: str) -> None:
        row = shown[st.session_state[column]["row"]]
        before = state.current()
        if column == _UNFOLD:
            unfolded = frozenset(st.session_state.get(_UNFOLDED, ()))
            is_open = not unfolded.isdisjoint(row.ids)
            st.session_state[_UNFOLDED] = unfolded.difference(row.ids) if is_open else unfolded.union(row.ids)
        elif column == _EDIT:
            st.session_state[_EDITED] = row.ids[0]  # from now on, the dialog is open at each rerun until it is closed
        elif column == _BASELINE:
            state.choose(before.with_ticked_baseline(row.ids, state.default()))
        else:
            state.choose(before.with_toggled(row.ids, [run.id for run in row.program]))

    return clicked


def _columns(clicked: Callable[[str], None], zone: tzinfo, letters: int, *, narrow: bool) -> dict[str, Any]:
    kind = st.column_config

    def button(label: str, key: str, help: str, width: int, pinned: bool | None = None) -> Any:
        on_click: dict[str, Any] = {"key": key, "on_click": clicked, "args": (key,)}
        return kind.ButtonColumn(label, type="tertiary", width=width, pinned=pinned, help=help, **on_click)

    of_baseline = "The run that the others are compared with"
    of_candidates = "The candidates: runs that are compared with the baseline"
    of_captures = "Captures of one program: ticking its row selects all of them. Unfold it to select some"
    of_range = "The least and the most of the captures' step times"
    of_time = f"When the profile was started ({zone}). * From the folder's name or the file's time"
    of_step = "Mean, without the first and last of more than five steps and a stray"
    return {
        "baseline": button("A" if narrow else "Baseline", _BASELINE, of_baseline, 40 if narrow else 66, pinned=True),
        "candidate": button("B" if narrow else "Compare", _CANDIDATE, of_candidates, 40 if narrow else 66, pinned=True),
        "name": kind.TextColumn("Run", width=_NAME_PIXELS + max(letters, _FEWEST_LETTERS) * _LETTER_PIXELS),
        "captures": button("Captures", _UNFOLD, of_captures, 70),
        "edit": button("Edit", _EDIT, "Rename, tag or hide", 44),
        "tags": kind.TextColumn("Tags", width=110),
        "recorded": kind.TextColumn("Recorded", width=138, help=of_time),
        "device": kind.TextColumn("Device", width=58),
        "steps": kind.NumberColumn("Steps", width=48, help="Empty if the profile marks no steps"),
        "step_time_ms_mean": kind.NumberColumn("Step time", format="%.3f ms", width=88, help=of_step),
        "range": kind.TextColumn("Range, ms", width=80, alignment="right", help=of_range),
        "change": kind.TextColumn("Change", width=108, alignment="right", help=_CHANGE_HELP),
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
