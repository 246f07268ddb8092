"""A button for the report on what a page compares."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from tfcompare.compare.pairs import Pairs
from tfcompare.compare.side import letter
from tfcompare.schema import SIDES
from tfcompare.views.csv_files import file_stem, zipped_diffs

Format = Literal["html", "markdown", "json", "csv"]
_FORMATS: dict[Format, tuple[str, str, str]] = {
    "html": ("HTML", "html", "text/html"),
    "markdown": ("Markdown", "md", "text/markdown"),
    "json": ("JSON", "json", "application/json"),
    "csv": ("CSV", "zip", "application/zip"),
}
"""The label, file suffix and media type of each format."""


def show(comparison: Pairs) -> None:
    """A button that unfolds the choice of a format and the download; the report is made on request."""
    with st.popover("Report", icon=":material/description:", type="tertiary", key="tfcompare.report"):
        st.markdown(
            "One file with the answer, charts, tables and the timeline, which opens without a network. "
            "CSV is an archive with a file for each table."
        )
        form = st.segmented_control(
            "Format", list(_FORMATS), default="html", required=True, format_func=lambda one: _FORMATS[one][0],
            key="tfcompare.report.format",
        )  # fmt: skip
        redact = st.toggle(
            "Without paths, names and addresses",
            key="tfcompare.report.redact",
            help="To share it: without names of runs, hosts and users",
        )
        label, suffix, media_type = _FORMATS[form]
        runs = comparison.runs
        names = [letter(i) if redact else run.name for i, run in enumerate(runs)]
        st.download_button(
            f"Download the report as {label}",
            lambda: _made(comparison, form, redact=redact),
            file_name=f"{file_stem('_vs_'.join(reversed(names[:2])))}.{suffix}",
            mime=media_type,
            icon=":material/download:",
            on_click="ignore",
            key="tfcompare.report.download",
        )
        if st.button("Copy for a pull request", icon=":material/content_copy:", key="tfcompare.report.copy"):
            _copy(comparison, redact=redact)


@st.dialog("For a pull request", width="large")
def _copy(comparison: Pairs, *, redact: bool) -> None:
    """The answer as Markdown, with a button that copies it."""
    from tfcompare.render.redaction import redacted
    from tfcompare.render.report import for_pull_request

    st.code(for_pull_request(redacted(comparison) if redact else comparison), language="markdown", wrap_lines=True)


def _made(comparison: Pairs, form: Format, *, redact: bool) -> str | bytes:
    from tfcompare.render.redaction import redacted
    from tfcompare.render.report import report

    if redact:
        comparison = redacted(comparison)
    return zipped_diffs(comparison) if form == "csv" else report(comparison, form, command=command(comparison))


def command(comparison: Pairs) -> list[str]:
    """The command that makes the report again, if one can."""
    has_repeats = any(len(side.runs) > 1 for side in comparison.sides)
    if comparison.manual_pairs or (has_repeats and len(comparison.candidates) > 1):
        return []
    words = ["tfcompare", "report", *(str(run.path) for run in comparison.runs)]
    for role, side in zip(SIDES, comparison.sides, strict=False):
        if repeats := side.runs[1:]:
            words += [f"--{role}-repeat", *(str(one.path) for one in repeats)]
    if chosen := [side.run.found.name for side in comparison.sides if side.most_typical]:
        words += ["--capture", *chosen]
    words += ["--per", comparison.per] if comparison.per != "step" else []
    words += ["--host", comparison.host] if comparison.host else []
    choice = comparison.baseline.choice
    words += ["--steps", choice.range] if choice.range else []
    words += ["--step-marker", choice.marker] if choice.marker else []
    words += ["--step-kind", choice.kind] if choice.kind else []
    words += ["--stray", "include"] if choice.counts_stray else []
    return [*words, "-o", "report.html"]
