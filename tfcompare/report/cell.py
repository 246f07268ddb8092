"""What a notebook shows of a run and of a comparison: HTML without scripts, requests or colours of its own."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfcompare.charts.verdicts import outcome_text
from tfcompare.compare.aggregate import largest_changes, metric_in
from tfcompare.compare.headline import has_steps
from tfcompare.markdown import as_markdown
from tfcompare.report.inline import inline
from tfcompare.text import text_of
from tfcompare.tools.card_texts import value_text
from tfcompare.tools.caveats import caveats
from tfcompare.tools.op_stats import main_side, top_ops
from tfcompare.tools.overview import dashboard
from tfcompare.tools.short_names import shorten_distinct
from tfcompare.tools.step_attribution import attribution
from tfcompare.tools.verdict_words import basis
from tfcompare.units import format_delta, format_ms, format_percent, format_ratio, format_time_us

if TYPE_CHECKING:
    from tfcompare.compare import Comparison
    from tfcompare.run import Run, RunInfo
    from tfcompare.tools.key_figures import KeyFigure

TOP = 5
"""The number of ops shown."""
MOST_CANDIDATES = 10
_UNFOLDED = 3
_NAME_LENGTH = 50

_STYLE = """<style>
.tfcompare {overflow-x: auto}
.tfcompare table {border-collapse: collapse; margin: 0.6em 0}
.tfcompare caption {caption-side: top; text-align: left; font-weight: bold; padding: 0; color: inherit}
.tfcompare th, .tfcompare td {text-align: right; padding: 0.15em 0.8em; white-space: nowrap}
.tfcompare td {font-variant-numeric: tabular-nums}
.tfcompare tr > .text {text-align: left}
.tfcompare tr > :first-child {padding-left: 0}
.tfcompare thead th {border-bottom: 1px solid}
.tfcompare p, .tfcompare ul {margin: 0.3em 0; max-width: 60em}
.tfcompare summary {cursor: pointer}
.tfcompare code {unicode-bidi: isolate; overflow-wrap: anywhere}
</style>"""


def run_html(run: Run) -> str:
    """The run's step time, devices, longest ops and remarks."""
    facts = " · ".join(filter(None, [_step_time(run.info), *_environment(run.info)]))
    heading = f"<p><strong>{_name(run.name)}</strong><br>{_text(facts)}</p>"
    return _cell([heading, _top_ops(run), _folded("Remarks", map(as_markdown, run.remarks))])


def comparison_html(comparison: Comparison) -> str:
    """The verdict, key figures, explanation and largest changes of each candidate, and caveats; of a run alone, that
    run."""
    if comparison.is_single:
        return run_html(comparison.baseline)
    shown = comparison.candidates[:MOST_CANDIDATES]
    is_only = len(comparison.candidates) == 1
    sections = [(_only if is_only else _one_of_several)(comparison, candidate) for candidate in shown]
    if more := len(comparison.candidates) - len(shown):
        sections.append(f"<p>{more} more candidates are not shown.</p>")
    return _cell([*sections, _folded("Caveats", caveats(comparison))])


def _only(comparison: Comparison, candidate: Run) -> str:
    return f"<p>{inline(comparison.headline(candidate.id))}</p>{_details(comparison, candidate)}"


def _one_of_several(comparison: Comparison, candidate: Run) -> str:
    headline = inline(comparison.headline(candidate.id))
    return f"<details><summary>{headline}</summary>{_details(comparison, candidate)}</details>"


def _details(comparison: Comparison, candidate: Run) -> str:
    found = attribution(comparison, candidate)
    is_explained = has_steps(comparison.baseline.info) and has_steps(candidate.info)  # else the headline says so
    sentences = [*basis(comparison, candidate), *([found.sentence] if is_explained else [])]
    figures = dashboard(comparison, candidate, found.parts)
    head = ["", "Baseline", "Candidate", "Change", "Ratio"]
    table = _table("Key figures", head, map(_figure_row, figures)) if figures else ""
    return "".join([*(f"<p>{inline(one)}</p>" for one in sentences), table, _changes(comparison, candidate)])


def _figure_row(figure: KeyFigure) -> list[str]:
    before, after = figure.baseline, figure.candidate
    ratio = after / before if before else 1.0 if after == 0 else math.inf
    values = [value_text(figure, before), value_text(figure, after), format_delta(after - before, figure.unit)]
    return [figure.label, *values, format_ratio(math.nan if math.isnan(after) else ratio)]


def _changes(comparison: Comparison, candidate: Run) -> str:
    """The ops whose self time changed the most."""
    diff = comparison.table("op_stats")
    rows = largest_changes(diff[diff["candidate"] == candidate.id], n=TOP)
    if rows.empty:
        return "<p>No op changed its self time.</p>"
    metric = metric_in(rows, "self_time_us")
    cells = [[row["op_name"], outcome_text(row), *_change(row, metric)] for row in rows.to_dict("records")]
    head = ["Op", "Verdict", "Baseline", "Candidate", "Change", "Ratio"]
    return _table(f"Largest changes of self time per {comparison.per}", head, cells, texts=2)


def _change(row: Mapping[Any, Any], metric: str) -> list[str]:
    sides = [format_time_us(row[f"{metric}_{side}"]) for side in ("baseline", "candidate")]
    return [*sides, format_delta(row[f"{metric}_change"], "µs"), format_ratio(row[f"{metric}_ratio"])]


def _step_time(info: RunInfo) -> str:
    if not has_steps(info):
        return f"no step markers, {format_ms(info.duration_ms)} recorded"
    steps = f"{info.steps_included:,} of {info.step_count:,} steps"
    return f"{format_ms(info.step_time_ms_mean)} per step (mean of {steps})"


def _environment(info: RunInfo) -> list[str]:
    devices = f"{info.device_count} × {info.device_type}" if info.device_count > 1 else info.device_type
    return [devices, info.device_name, info.framework, f"{info.hosts} hosts" if info.hosts > 1 else ""]


def _top_ops(run: Run) -> str:
    stats = run.in_steps("op_stats")
    ops = top_ops(stats, TOP)
    if ops.empty:
        return "<p>The profile has no ops.</p>"
    steps, per = (run.info.steps_included, "step") if run.info.has_steps else (1, "run")
    columns = (
        ops["op_name"],
        ops["op_type"],
        map(format_time_us, ops["self_time_us"] / steps),
        map(format_percent, ops["self_share"]),
    )
    title = f"Top ops on the {main_side(stats).lower()} by self time per {per}"
    return _table(title, ["Op", "Type", "Self time", "Share"], zip(*columns, strict=True), texts=2)


def _cell(parts: Iterable[str]) -> str:
    return f'<div class="tfcompare">{_STYLE}{"".join(parts)}</div>'


def _folded(title: str, sentences: Iterable[str]) -> str:
    """A list of Markdown sentences that folds, and is folded if it is long; empty without sentences."""
    items = [f"<li>{inline(sentence)}</li>" for sentence in sentences]
    if not items:
        return ""
    state = " open" if len(items) <= _UNFOLDED else ""
    return f"<details{state}><summary>{title} ({len(items)})</summary><ul>{''.join(items)}</ul></details>"


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table of plain texts; the first column holds names, and the first `texts` columns no numbers.

    Names are shortened, and shown in full where the mouse points at them.
    """
    cells = [[text_of(cell) for cell in row] for row in rows]
    names = shorten_distinct([name for name, *_ in cells], _NAME_LENGTH)
    body = [_row("td", [name, *others], texts, full) for name, (full, *others) in zip(names, cells, strict=True)]
    header = _row("th", head, texts)
    return f"<table><caption>{caption}</caption><thead>{header}</thead><tbody>{''.join(body)}</tbody></table>"


def _row(tag: str, cells: Sequence[str], texts: int, title: str = "") -> str:
    names = (f'<{tag} class="text">{_name(cell)}</{tag}>' for cell in cells[:texts])
    numbers = (f"<{tag}>{_text(cell)}</{tag}>" for cell in cells[texts:])
    return f'<tr title="{_text(title)}">{"".join([*names, *numbers])}</tr>'


def _name(name: str) -> str:
    """A name from a profile or disk; one that is written from right to left leaves the text around it in order."""
    return f"<bdi>{_text(name)}</bdi>"


def _text(text: str) -> str:
    return html.escape(text_of(text))
