"""The home page's table of runs: their main figures, and two columns of buttons that select runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from math import ceil
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from tfcompare.errors import TfcompareError
from tfcompare.export.csv import for_spreadsheet
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.text import text_of
from tfcompare.tools.listing import UNREAD, UNREADABLE, listing
from tfcompare.ui.frame import state
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.frame.selection import Selection, with_replicates
from tfcompare.ui.widgets.text import as_code, as_markdown
from tfcompare.units import middle_ellipsis

if TYPE_CHECKING:
    import pandas as pd

ROWS_ON_PAGE = 25
_MOST_BARS = 30
_NAME_LENGTH, _NARROW_NAME_LENGTH = 30, 22

_FILTER = "tfcompare.filter"
_PAGE = "tfcompare.page"
_BASELINE = "tfcompare.pick_baseline"
_CANDIDATE = "tfcompare.pick_candidate"

# The spaces enlarge the target: a button with only an icon is hard to hit.
BASELINE_ON, BASELINE_OFF, CANDIDATE_ON, CANDIDATE_OFF = (
    f":material/{icon}:\u2003\u2003"
    for icon in ("radio_button_checked", "radio_button_unchecked", "check_box", "check_box_outline_blank")
)


COLUMNS = (
    "baseline",
    "candidate",
    "name",
    "recorded",
    "device",
    "steps",
    "step_time_ms_median",
    "step_times_ms",
    "hosts",
    "size_bytes",
    "remarks",
)
_FIRST_IF_NARROW = ("baseline", "candidate", "name", "step_time_ms_median")
NARROW_COLUMNS = (*_FIRST_IF_NARROW, *(name for name in COLUMNS if name not in _FIRST_IF_NARROW))
"""The columns in view on a narrow page: the step times come first."""


@dataclass(frozen=True)
class Page:
    """The runs in view, and the number of runs they are part of."""

    runs: tuple[FoundRun, ...]
    matching: int


def controls(found: Sequence[FoundRun]) -> Page:
    """The filter and, if there are many runs, the page selector; returns the runs in view, newest first."""
    typed = st.text_input(
        "Filter", key=_FILTER, type="search", live=True, placeholder="Filter by name, path or host",
        label_visibility="collapsed", persist_state="session", width=320,
    )  # fmt: skip
    runs = matching(found, typed or "")[::-1]
    pages = max(1, ceil(len(runs) / ROWS_ON_PAGE))
    if st.session_state.get(_PAGE, 1) > pages:
        st.session_state[_PAGE] = pages
    page = st.pagination(pages, key=_PAGE, persist_state="session") if pages > 1 else 1
    return Page(tuple(runs[(page - 1) * ROWS_ON_PAGE : page * ROWS_ON_PAGE]), len(runs))


def matching(found: Sequence[FoundRun], text: str) -> list[FoundRun]:
    """The runs whose name, path or hosts contain every word of `text`, ignoring case."""
    words = text.casefold().split()
    return [run for run in found if all(word in _searchable(run) for word in words)]


def _searchable(run: FoundRun) -> str:
    return "\n".join((run.id, run.name, text_of(str(run.path)), *run.host_names)).casefold()


def show(runs: Sequence[FoundRun], outcomes: Mapping[str, Run | TfcompareError], selection: Selection) -> None:
    """Show the table. A click on a button changes the selection."""
    zone = browser_zone()
    runs = newest_first(runs, outcomes)
    listed = listing(runs, outcomes)
    narrow = is_narrow()
    order, name_length = (NARROW_COLUMNS, _NARROW_NAME_LENGTH) if narrow else (COLUMNS, _NAME_LENGTH)
    frame = for_spreadsheet(rows(listed, selection, zone, name_length))
    st.dataframe(
        frame,
        column_order=[name for name in order if name != "remarks" or frame["remarks"].ne("").any()],
        hide_index=True,
        height="content",
        placeholder="",
        column_config=_columns(_clicked(runs), zone, narrow=narrow),
        key="tfcompare.runs",
        alt="Runs",
    )
    unreadable = listed.loc[listed["state"] == UNREADABLE, ["name", "remarks"]]
    if len(unreadable):
        with st.expander(f"⚠ {len(unreadable)} of these cannot be read: why, and what to do"):
            for name, why in zip(unreadable["name"], unreadable["remarks"], strict=True):
                st.markdown(f"- {as_code(name)}: {as_markdown(why)}")


def newest_first(runs: Sequence[FoundRun], outcomes: Mapping[str, Run | TfcompareError]) -> list[FoundRun]:
    """The runs by capture time: that in the profile if it was read, since it is more exact than that of the folder."""

    def recorded(run: FoundRun) -> datetime:
        outcome = outcomes.get(run.id)
        return outcome.info.start_time if isinstance(outcome, Run) else run.recorded

    return sorted(runs, key=recorded, reverse=True)


def rows(listed: pd.DataFrame, selection: Selection, zone: tzinfo, name_length: int = _NAME_LENGTH) -> pd.DataFrame:
    """The rows of the table, one per run of the listing, in the same order."""
    readable = listed["state"] != UNREADABLE
    baseline = [BASELINE_ON if run == selection.baseline else BASELINE_OFF for run in listed["run"]]
    candidate = [CANDIDATE_ON if run in selection.candidates else CANDIDATE_OFF for run in listed["run"]]
    times = zip(listed["recorded"], listed["recorded_source"], listed["state"], strict=True)
    return listed.assign(
        baseline=[button if r else "" for button, r in zip(baseline, readable, strict=True)],
        candidate=[button if r else "" for button, r in zip(candidate, readable, strict=True)],
        name=[
            name_text(name, is_readable=r, length=name_length) for name, r in zip(listed["name"], readable, strict=True)
        ],
        recorded=[recorded_text(when, zone, is_sure=s == "profile" or state == UNREAD) for when, s, state in times],
        step_times_ms=listed["step_times_ms"].map(bars, na_action="ignore"),
        hosts=listed["hosts"].where(readable).astype("Int64"),
        size_bytes=listed["size_bytes"].where(readable).astype("Int64"),
    )[list(COLUMNS)]


def name_text(name: str, *, is_readable: bool, length: int = _NAME_LENGTH) -> str:
    """A run's name shortened to fit into its column, with a mark if the run cannot be read."""
    return middle_ellipsis(name, length) if is_readable else f"⚠ {middle_ellipsis(name, length - 3)}"


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


def _clicked(runs: Sequence[FoundRun]) -> Callable[[str], None]:
    def clicked(column: str) -> None:
        run = runs[st.session_state[column]["row"]]
        before = state.chosen()
        chosen = before.with_baseline(run.id) if column == _BASELINE else before.with_toggled(run.id)
        state.choose(with_replicates(chosen, before, runs))

    return clicked


def _columns(clicked: Callable[[str], None], zone: tzinfo, *, narrow: bool) -> dict[str, Any]:
    kind = st.column_config
    return {
        "baseline": kind.ButtonColumn(
            "Baseline", type="tertiary", width=72, key=_BASELINE, on_click=clicked, args=(_BASELINE,), pinned=True,
            help="The run that the others are held against",
        ),
        "candidate": kind.ButtonColumn(
            "Compare", type="tertiary", width=72, key=_CANDIDATE, on_click=clicked, args=(_CANDIDATE,), pinned=True,
            help="The candidates: runs that are held against the baseline",
        ),
        "name": kind.TextColumn("Run", width=165 if narrow else 208),
        "recorded": kind.TextColumn(
            "Recorded", width=150,
            help=f"When the profile was started ({zone}). * No time in the profile: its folder's or file's",
        ),
        "device": kind.TextColumn("Device", width=75),
        "steps": kind.NumberColumn("Steps", width=55, help="Empty where the profile marks no steps"),
        "step_time_ms_median": kind.NumberColumn(
            "Median step", format="%.3f ms", width=95, help="Without the first and last of more than five steps"
        ),
        "step_times_ms": kind.BarChartColumn("Step times", y_min=0, width=110, help="A bar for each step, from 0 on"),
        "hosts": kind.NumberColumn("Hosts", width=55),
        "size_bytes": kind.NumberColumn("Size", format="bytes", width=70),
        "remarks": kind.TextColumn("Remarks", width="large"),
    }  # fmt: skip
