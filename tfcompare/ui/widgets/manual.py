"""Manual matching: buttons that match or separate two names, and the list of these choices, each with an undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
import streamlit as st

from tfcompare.compare.matching.manual import ManualChoice, Name
from tfcompare.compare.matching.manual_text import (
    MOST_CHOICES,
    ChoicesOfPair,
    choices_for,
    fits_an_address,
    from_file,
    to_file,
    with_choices,
)
from tfcompare.compare.matching.partners import free_names, most_alike_first
from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.text import as_code, as_markdown, middle_ellipsis
from tfcompare.ui.frame import state
from tfcompare.units import format_value
from tfcompare.views.columns import MATCH_MEANINGS, MATCH_WORDS
from tfcompare.views.csv_files import file_stem

MOST_OFFERED = 200
_NAME_LENGTH = 100
_LARGEST_FILE = 4_000_000

Readable = Callable[[str], str]


@dataclass(frozen=True)
class Subject:
    """The row of a table to match: its name on each side, None if that side has no such row.

    `kind` is the op's type if the table has one, `time_us` the time of the side that has the row.
    """

    baseline: Name | None
    candidate: Name | None
    kind: str = ""
    time_us: float = 0.0
    match: str = ""


@dataclass(frozen=True)
class Rows:
    """Where to look for candidates for a match: a diff's rows, its name columns, and the metric of their time.

    `address` maps a name in the baseline, its kind and its status to the key of the table's row.
    """

    diff: pd.DataFrame
    columns: tuple[str, ...]
    metric: str
    address: Callable[[Name, str, str], str]
    readable: Readable = str


def of_row(pair: Pair, subject: Subject, rows: Rows) -> None:
    """Widgets that separate a matched row, or match an unmatched one."""
    if subject.baseline is not None and subject.candidate is not None:
        _separate_button(pair, subject, subject.baseline, subject.candidate, rows)
        return
    name = subject.baseline or subject.candidate
    side = "candidate" if subject.baseline is not None else "baseline"
    if name is None or not all(name):
        return
    free = free_names(rows.diff, side, rows.columns, rows.metric)
    alike = most_alike_first(free, name, subject.kind, subject.time_us)
    if not alike.empty:
        _partner_choice(pair, subject, side, alike, rows)


def _separate_button(pair: Pair, subject: Subject, ours: Name, theirs: Name, rows: Rows) -> None:
    match, kind = subject.match, subject.kind
    if not all(ours + theirs):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        other = "" if ours == theirs else f" with {as_code(_label(theirs, rows.readable))}"
        how = f": **{MATCH_WORDS[match]}**, {MATCH_MEANINGS[match]}" if match in MATCH_WORDS else ""
        st.caption(f"Paired{other}{how}.", width="content")
        meaning = "Show them as removed and added, on every page. “Manual pairs” below the table undoes it."
        apply = partial(_apply, pair, ManualChoice(False, ours, theirs), rows.address(ours, kind, "removed"))
        if st.button("Separate", icon=":material/link_off:", key="by_hand_part", help=meaning, on_click=apply):
            st.rerun()


def _partner_choice(pair: Pair, subject: Subject, side: str, alike: pd.DataFrame, rows: Rows) -> None:
    name = subject.baseline or subject.candidate or ()
    per = "in total" if pair.per == "run" else f"per {pair.per_what}"
    shown = alike.head(MOST_OFFERED)
    kinds = dict(zip(shown["name"], shown["kind"], strict=True))
    labels = {}
    for other, kind, time_us in zip(shown["name"], shown["kind"], shown["time_us"], strict=True):
        parts = [_label(other, rows.readable), kind, f"{format_value(time_us, 'µs')} {per}"]
        labels[other] = " · ".join(filter(None, parts))
    left_out = f" Shown: the {len(shown)} most similar of {len(alike):,}." if len(alike) > len(shown) else ""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label, key = f"Pair with an unmatched row of the {side}", f"by_hand_with {side} {name}"
        meaning, text_of = f"Rows without a counterpart, the most similar first.{left_out}", lambda o: labels.get(o, "")
        other = st.selectbox(label, list(labels), width=640, format_func=text_of, key=key, help=meaning)
        if other is not None:
            ours, theirs = (name, other) if side == "candidate" else (other, name)
            kind = subject.kind if side == "candidate" else kinds[other]
            apply = partial(_apply, pair, ManualChoice(True, ours, theirs), rows.address(ours, kind, "matched"))
            meaning = "Compare these two on every page. “Manual pairs” below the table undoes it."
            if st.button("Pair", icon=":material/link:", key="by_hand_pair", help=meaning, on_click=apply):
                st.rerun()


def _label(name: Name, readable: Readable) -> str:
    """The label of a name: kernels come before their op."""
    return " · ".join(middle_ellipsis(readable(part), _NAME_LENGTH // len(name)) for part in reversed(name))


def choices(pair: Pair, readable: Readable = str) -> None:
    """The list of manual choices, if there are any, each with an undo, and a button that saves them as a file."""
    selection = state.current()
    if selection.are_manual_pairs_lost:
        st.warning(
            "The link refers to manual pairs that it does not contain, so rows are paired automatically. Ask "
            "its sender for the file of manual pairs, and load it with ⋮ above the table.",
            icon=":material/link_off:",
        )
    choices = choices_for(selection.manual_pairs, pair.baseline.id, pair.candidate.id)
    if not choices:
        return
    with st.expander(f"Manual pairs ({len(choices)})", icon=":material/edit:", expanded=len(choices) < 6):
        for number, choice in enumerate(choices):
            _line(pair, number, choice, choices, readable)
        if not fits_an_address(selection.manual_pairs):
            st.warning(
                f"Too many for the link, which holds {MOST_CHOICES}, or fewer with long names: these are lost when you "
                "close the page. Save them as a file.",
                icon=":material/link_off:",
            )
        with st.container(horizontal=True):
            undo_all = partial(_set_choices, pair, ())
            st.button("Undo all", icon=":material/undo:", key="by_hand_undo_all", on_click=undo_all)
            st.download_button(
                "Save as a file",
                to_file(ChoicesOfPair(pair.baseline.id, pair.candidate.id, tuple(choices))),
                file_name=f"{file_stem(f'pairs {pair.baseline.name} {pair.candidate.name}')}.json",
                mime="application/json",
                icon=":material/download:",
                on_click="ignore",
                key="by_hand_save",
                help="Load it with ⋮ above the table, or pass it to `tfcompare diff --pairs`",
            )


def _line(pair: Pair, number: int, choice: ManualChoice, choices: Sequence[ManualChoice], readable: Readable) -> None:
    ours, theirs = (as_code(_label(name, readable)) for name in (choice.baseline, choice.candidate))
    verb = "with" if choice.is_pair else "separate from"
    holds = "" if choice in pair.manual_pairs else " (no effect: a run has no such name)"
    left = [c for c in choices if c != choice]
    with st.container(horizontal=True, wrap=False, vertical_alignment="center"):
        undo = partial(_set_choices, pair, left)
        st.button("Undo", icon=":material/undo:", key=f"by_hand_undo {number}", on_click=undo)
        st.markdown(f"{ours} (baseline) **{verb}** {theirs} (candidate){holds}", width="stretch")


def upload(pair: Pair) -> None:
    """The button that loads manual choices from a file."""
    uploaded = st.file_uploader(
        "Load manual pairs from a file saved on this page (JSON)", type="json", key="by_hand_upload"
    )
    if uploaded is None:
        return
    try:
        if uploaded.size > _LARGEST_FILE:
            raise TfcompareError(
                f"{uploaded.name}: expected a file of manual pairs of at most {format_value(_LARGEST_FILE, 'bytes')}, "
                f"found {format_value(uploaded.size, 'bytes')}; choose a file saved on this page"
            )
        found = from_file(uploaded.getvalue().decode("utf-8", "replace"), uploaded.name)
    except TfcompareError as error:
        st.error(as_markdown(error))
        return
    is_mirrored = (found.candidate, found.baseline) == (pair.baseline.id, pair.candidate.id)
    choices = [choice.mirrored for choice in found.choices] if is_mirrored else list(found.choices)
    label = f"Use these {len(choices)} pairs" if len(choices) != 1 else "Use this pair"
    st.button(label, icon=":material/check:", key="by_hand_use", on_click=partial(_add, pair, choices))


def _apply(pair: Pair, choice: ManualChoice, row: str) -> None:
    """Add a choice, and select the table row that will contain the baseline's name."""
    if st.query_params.get("row") != row:
        st.query_params["row"] = row
    _add(pair, [choice])


def _add(pair: Pair, choices: Sequence[ManualChoice]) -> None:
    before = choices_for(state.current().manual_pairs, pair.baseline.id, pair.candidate.id)
    _set_choices(pair, [*before, *choices])


def _set_choices(pair: Pair, choices: Sequence[ManualChoice]) -> None:
    """Set the choices for the pair."""
    selection = state.current()
    manual_pairs = with_choices(selection.manual_pairs, pair.baseline.id, pair.candidate.id, choices)
    state.choose(replace(selection, manual_pairs=manual_pairs))
