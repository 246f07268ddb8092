"""The header of a page that compares: a chip for each run, the caveats, and a button for the report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

import pandas as pd
import streamlit as st

from tfcompare.compare.pairs import Pairs
from tfcompare.compare.side import letter
from tfcompare.run import Run
from tfcompare.schema import SIDES
from tfcompare.sources.step_choice import StepChoice
from tfcompare.text import as_code, as_markdown, middle_ellipsis, text_of
from tfcompare.views import caveats
from tfcompare.views.caveats import environment
from tfcompare.views.csv_files import file_stem, zipped_diffs

_CAVEATS_WIDTH = 900
_Colour = Literal["gray", "violet", "yellow", "blue", "green"]
_CHIP_COLOURS: tuple[_Colour, ...] = get_args(_Colour)
"""The theme's colours that are nearest to those of charts."""
_MARKER_LENGTH = 100

_copy_button = st.components.v2.component(
    "tfcompare.copy", js=Path(__file__).with_name("copy.js").read_text(encoding="utf-8")
)

Format = Literal["html", "json", "csv"]
_FORMATS: dict[Format, tuple[str, str, str]] = {
    "html": ("HTML", "html", "text/html"),
    "json": ("JSON", "json", "application/json"),
    "csv": ("CSV", "zip", "application/zip"),
}
"""The label, file suffix and media type of each format."""


def show(comparison: Pairs) -> None:
    """A chip for each run, the unit of all sums, the caveats, and the report."""
    for side in comparison.sides:
        several = f" ({len(side.runs)} captures)" if len(side.runs) > 1 else ""
        name = as_markdown(side.name + several)
        role = "" if side.sides == 1 else "Baseline: " if side.position == 0 else "Candidate: "
        st.badge(
            name if comparison.is_single else f"**{side.letter}** {name}",
            color=_CHIP_COLOURS[min(side.position, len(_CHIP_COLOURS) - 1)],
            help=f"{role}{as_code(text_of(str(side.run.path)))}",
        )
    where = f", host {as_code(comparison.host)}" if comparison.host else ""
    st.caption(f"per {comparison.per_what}{where}{chosen_steps(comparison.runs)}", width="content")
    _show_caveats(comparison)
    _show_report(comparison)


def chosen_steps(runs: Iterable[Run]) -> str:
    """`; steps 5:25`, to end a sentence about these runs; empty if all of them use all their own steps."""
    steps = next((run.choice for run in runs if not run.choice.is_default), None)
    return f"; {steps_text(steps)}" if steps is not None else ""


def steps_text(steps: StepChoice) -> str:
    """`steps 5:25 of … that begin with …`."""
    numbers = f" {steps.range}" if steps.range else ""
    if steps.kind is not None:
        numbers += f" of {as_code(steps.kind)}"
    if steps.marker is not None:
        numbers += f" that begin with {as_code(middle_ellipsis(steps.marker, _MARKER_LENGTH))}"
    return ", ".join([f"steps{numbers}"] * bool(numbers) + ["strays counted"] * steps.counts_stray)


def _show_caveats(comparison: Pairs) -> None:
    """A button that unfolds the caveats, and below them how each run was captured."""
    found, runs = caveats.caveats(comparison), comparison.runs
    label, icon = (f"Caveats ({len(found)})", "warning") if found else ("Details", "info")
    button = st.popover(label, icon=f":material/{icon}:", type="tertiary", key="tfcompare.caveats")
    with button, st.container(width=_CAVEATS_WIDTH):
        st.markdown("\n".join(f"- {sentence}" for sentence in found) or "No caveats.")
        st.markdown("**How the runs were captured**")
        facts = environment([run.info for run in runs], st.context.timezone)
        rows = {as_markdown(one.label): [*map(as_markdown, one.values), "≠" if one.differs else ""] for one in facts}
        names = [f"{letter(i)} {as_markdown(run.name)}" for i, run in enumerate(runs)]
        st.table(pd.DataFrame.from_dict(rows, orient="index", columns=[*names, "Differs"]))


@st.fragment
def _show_report(comparison: Pairs) -> None:
    """A button that unfolds the short text to copy, which is made then, and the download, which is made on request."""
    menu = st.popover(
        "Report", icon=":material/description:", type="tertiary", key="tfcompare.report", on_change="rerun"
    )
    if not menu.open:
        return
    with menu:
        copying = st.container()
        st.markdown(
            "One file with the answer, charts, tables and the timeline, which opens without a network. "
            "CSV is an archive with a file for each table."
        )
        labels, key = {form: label for form, (label, _, _) in _FORMATS.items()}, "tfcompare.report.format"
        form = st.segmented_control(
            "Format", list(labels), default="html", required=True, format_func=labels.__getitem__, key=key
        )
        redact = st.toggle(
            "Without paths, names and addresses",
            key="tfcompare.report.redact",
            help="To share it: without names of runs, hosts and users",
        )
        label, suffix, media_type = _FORMATS[form]
        names = [letter(i) if redact else run.name for i, run in enumerate(comparison.runs)]
        st.download_button(
            f"Download the report as {label}",
            lambda: _report(comparison, form, redact=redact),
            file_name=f"{file_stem('_vs_'.join(reversed(names[:2])))}.{suffix}",
            mime=media_type,
            icon=":material/download:",
            on_click="ignore",
            key="tfcompare.report.download",
        )
        with copying:
            _copy_button(key="tfcompare.report.copy", data={"text": _report(comparison, "markdown", redact=redact)})


def _report(comparison: Pairs, form: Format | Literal["markdown"], *, redact: bool) -> str | bytes:
    from tfcompare.render.redaction import redacted
    from tfcompare.render.report import report

    if redact:
        comparison = redacted(comparison)
    return zipped_diffs(comparison) if form == "csv" else report(comparison, form, command=report_command(comparison))


def report_command(comparison: Pairs) -> list[str]:
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
    choice = comparison.baseline.choice
    options = {
        "--per": comparison.per if comparison.per != "step" else None,
        "--host": comparison.host,
        "--steps": choice.range,
        "--step-marker": choice.marker,
        "--step-kind": choice.kind,
        "--stray": "include" if choice.counts_stray else None,
    }
    words += [word for option, value in options.items() if value for word in (option, value)]
    return [*words, "-o", "report.html"]
