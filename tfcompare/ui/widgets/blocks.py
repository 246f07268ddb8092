"""Single blocks as Streamlit elements."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from html import escape

import pandas as pd
import streamlit as st

from tfcompare.compare.stats.verdict import FASTER, SLOWER
from tfcompare.text import as_markdown
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.widgets.table_layout import (
    LETTER_PIXELS,
    MARKER_PIXELS,
    NAME_LETTER_PIXELS,
    NARROW_PAGE_PIXELS,
    PADDING_PIXELS,
    PAGE_PIXELS,
    letters_of,
)
from tfcompare.units import format_ratio
from tfcompare.views.blocks import Facts, Items, Text, Verdict
from tfcompare.views.columns import innermost_first
from tfcompare.views.csv_files import for_spreadsheet, spreadsheet_csv
from tfcompare.views.verdict_marks import TONE_COLOURS, Judged, word_of

MOST_ITEMS = 3
"""Items of a list on the first screen; the others are behind one more click."""
FEWEST_NAME_PIXELS = 130
"""Beside it, a narrow page has room for two more columns."""
NO_BREAK = "\u00a0"
_DIFF_BACKGROUNDS = {"-": "rgb(221 107 0 / 18%)", "+": "rgb(43 123 214 / 18%)"}
"""The theme's orange and blue, so thin that text on them keeps its contrast, in light and dark."""


def show_verdict(found: Verdict) -> None:
    """The badge and the answer, in one line if there is room, and what to keep in mind; what it is based on as help."""
    colour = "blue" if "better" in found.tone else "orange" if "worse" in found.tone else "gray"
    badge = f":{colour}-badge[{found.badge}] " if found.badge else ""
    behind = "\n\n".join(filter(None, [*found.behind, found.details, found.help]))
    st.markdown(f"### {badge}{found.headline}", help=behind or None)
    if found.note:
        st.caption(found.note)


def show_text(block: Text) -> None:
    """A paragraph by its look."""
    if block.look == "quiet":
        st.caption(block.text, help=block.help or None)
    elif block.look == "notice":
        st.info(block.text)
    elif block.clears:
        st.button(
            block.text,
            key=f"clear {block.clears}",
            help="Show all",
            on_click=partial(clear, block.clears),
            icon=":material/close:",
            icon_position="right",
        )
    else:
        mark = "### " if block.look == "headline" else ""
        st.markdown(f"{mark}{block.text}", help=block.help or None)


def show_diff(text: str) -> None:
    """Lines that begin with `-` or `+` on orange or blue: on Streamlit's own diffs, green text is too pale to read."""
    lines = (
        f'<div style="background: {_DIFF_BACKGROUNDS.get(line[:1], "none")}">{escape(line) or NO_BREAK}</div>'
        for line in text.split("\n")
    )
    st.html(f'<pre style="font-size: 0.85rem; white-space: pre-wrap; overflow-wrap: anywhere">{"".join(lines)}</pre>')


def clear(address: str) -> None:
    """Remove a parameter of the page's URL."""
    st.query_params.pop(address, None)


def show_verdicts(rows: Sequence[Judged]) -> None:
    """A badge with the verdict and ratio of each row, its 95 % confidence interval, and what it is based on as help."""
    with st.container(horizontal=True, gap="medium"):
        for row in rows:
            verdict, name = row.verdict, as_markdown(row.name)
            colour = {FASTER: "blue", SLOWER: "orange"}.get(verdict.word, "gray")
            word, reason = as_markdown(word_of(verdict)), as_markdown(verdict.reason)
            if verdict.has_interval:
                interval = f"95 % CI {format_ratio(verdict.low)}–{format_ratio(verdict.high)}"
                line = f"{name} :{colour}-badge[{word} {format_ratio(verdict.ratio)}] {interval}"
                st.markdown(line, help=f"{reason}.", width="content")
            else:
                st.markdown(f"{name} :{colour}-badge[{word}] {reason}", width="content")
    for caveat in dict.fromkeys(row.verdict.caveat for row in rows if row.verdict.caveat):
        st.markdown(f"**But {as_markdown(caveat)}.**")


def csv_of_rows(
    cells: pd.DataFrame, name: str, key: str, what: str = "The rows, columns, words and order of the table above"
) -> None:
    """A button for the rows and columns that a table shows. Columns keep their machine names, which have the unit."""
    label = "CSV of this row" if len(cells) == 1 else f"CSV of these {len(cells):,} rows"
    file_button(label, lambda: spreadsheet_csv(cells), name, key, f"{what}, all pages of it, in full precision")


def file_button(label: str, make: Callable[[], bytes], name: str, key: str, help: str | None = None) -> None:
    """A button that downloads the file that `make` returns, which is called on request: CSV, or compressed (`.gz`)."""
    mime, icon = "application/gzip" if name.endswith(".gz") else "text/csv", ":material/download:"
    st.download_button(label, make, name, mime, key, help, on_click="ignore", icon=icon)


def show_small_table(facts: Facts) -> None:
    """A small table whose rows do not open; its title is the heading of the first column. A narrow page leaves out
    optional columns."""
    if facts.header[0]:
        st.markdown(f"**{facts.header[0]}**", help=facts.help or None)
    # A cell is Markdown, and may be a name from a profile unless it is a number.
    columns = _fitting_columns(facts)
    rows = [[row[i] if i in facts.numbers else as_markdown(row[i]) for i in columns] for row in facts.rows]
    header = ["", *(as_markdown(facts.header[i]) for i in columns[1:])]
    st.table(pd.DataFrame(rows, columns=header, dtype="str").set_index(""), width="content")
    if facts.note:
        st.caption(facts.note)


def show_items(items: Items) -> None:
    """One-liners that unfold; those beyond the first behind one more."""
    with st.container(gap="xsmall"):
        for line, more in items.items[:MOST_ITEMS]:
            with st.expander(line.replace(" %", f"{NO_BREAK}%")):
                st.markdown(more)
        if others := items.items[MOST_ITEMS:]:
            with st.popover(f"{len(others)} more", type="tertiary"):
                for line, more in others:
                    st.markdown(f"**{line}**\n\n{more}")


def show_facts(facts: Facts, *, key: str, help: str | None = None) -> str | None:
    """A small table below its title; returns the id of the finding whose row is selected.

    The selection is in the page's URL as `row`, prefixed with `key` and `_`. A narrow page leaves out optional columns.
    """
    st.subheader(facts.header[0], anchor=False, help=help)
    ids = [one.id for one in facts.findings]
    columns = _fitting_columns(facts)
    labels = ["" if i == 0 else facts.header[i] for i in columns]
    frame = pd.DataFrame([[row[i] for i in columns] for row in facts.rows], columns=labels, dtype="str")
    texts = [label for i, label in zip(columns, labels, strict=True) if i not in facts.numbers]
    written = frame[texts]
    frame[texts] = for_spreadsheet(written)
    colours = [TONE_COLOURS.get(tone, "") for tone in facts.tones] or [""] * len(frame)
    others: list[Hashable] = [*labels[1:]]
    coloured = frame.style.apply(lambda _: [f"color: {c}" if c else "" for c in colours], subset=others)
    whole = written[labels[0]]
    names = [innermost_first(name) for name in whole]
    letters = [max(map(letters_of, cells)) for cells in (names, *([label, *frame[label]] for label in labels[1:]))]
    pixels = [round(one * LETTER_PIXELS) + PADDING_PIXELS for one in letters]
    page = NARROW_PAGE_PIXELS if is_narrow() else PAGE_PIXELS
    left = max(page - MARKER_PIXELS - sum(pixels[1:]), FEWEST_NAME_PIXELS)
    if pixels[0] > left:
        pixels[0] = left
        names = [innermost_first(name, int((left - PADDING_PIXELS) / NAME_LETTER_PIXELS)) for name in whole]
    displayed = [dict(zip(frame[label], written[label], strict=True)) for label in texts]
    displayed[0] = dict(zip(frame[labels[0]], names, strict=True))
    chosen = st.query_params.get(f"{key}_row")
    st.session_state[key] = {"selection": {"rows": [ids.index(chosen)] if chosen in ids else [], "columns": []}}
    st.dataframe(
        coloured.format({label: shown.__getitem__ for label, shown in zip(texts, displayed, strict=True)}),
        key=key,
        hide_index=True,
        height="content",
        column_config={
            label: st.column_config.TextColumn(width=width, alignment="right" if i in facts.numbers else None)
            for i, label, width in zip(columns, labels, pixels, strict=True)
        },
        on_select=partial(_on_select, key, ids) if ids else "ignore",
        selection_mode="single-row",
    )
    if facts.note:
        st.caption(facts.note)
    return chosen if chosen in ids else None


def _fitting_columns(facts: Facts) -> list[int]:
    """The columns that the page has room for."""
    return [i for i in range(len(facts.header)) if not (is_narrow() and i in facts.optional)]


def _on_select(key: str, ids: list[str]) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows:
        st.query_params[f"{key}_row"] = ids[rows[0]]
    else:
        clear(f"{key}_row")
