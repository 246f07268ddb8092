"""Formats the output of `check`: aligned text, JSON, or Markdown for a comment on a pull request."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfcompare.render.inline import plain
from tfcompare.render.text_table import TextColumn, Tone, render, terminal_width, tone_of
from tfcompare.schema import SIDES
from tfcompare.text import as_code, text_of
from tfcompare.text import as_markdown as markdown
from tfcompare.units import MISSING, format_percent_change, format_value

if TYPE_CHECKING:
    from tfcompare.compare.check.conditions import Finding, Findings, Judgement
    from tfcompare.render.report import Checked

Names = tuple[str, str]
"""The names of baseline and candidate."""

_OUTCOMES = ("failed", "missing", "passed", "unclear", "untested")
_EMPHASISED = ("failed", "missing")
_RESULTS = {"passed": "passed", "unclear": "nothing failed", "failed": "FAILED", "not judged": "NOT JUDGED"}
"""The overall result in the first line. An unclear condition neither fails nor passes."""
_TONES: dict[str, Tone] = {"failed": "worse", "passed": "better"}


def as_text(findings: Findings, names: Names, judgement: Judgement) -> str:
    """`text_of_width`, for the terminal."""
    return text_of_width(findings, names, judgement, terminal_width())


def text_of_width(findings: Findings, names: Names, judgement: Judgement, width: int | None) -> str:
    """The result in one line, a table of the findings, the basis of each, and what is unclear or not judged.

    `width`: characters per line of the table, in which long conditions are then shortened; None for any number.
    """
    found = findings.found
    columns = [
        TextColumn(
            "outcome",
            [f.outcome.upper() if f.outcome in _EMPHASISED else f.outcome_text for f in found],
            tones=[_TONES.get(f.outcome) or tone_of(f.measured.verdict.text) for f in found],
        ),
        TextColumn(_first_header(findings), [f.text for f in found]),
        TextColumn("baseline", [format_value(f.measured.baseline, f.measured.unit) for f in found], is_number=True),
        TextColumn("candidate", [format_value(f.candidate, f.measured.unit) for f in found], is_number=True),
        TextColumn("change", [change(f) for f in found], is_number=True),
        TextColumn("95 % confidence interval", [interval(f) for f in found], is_number=True),
    ]
    lines = [f"{text_of(names[1])} vs {text_of(names[0])}: {result(findings, judgement)}", ""]
    lines += [render(columns, width), ""]
    explained = findings_by_basis(_explanations(findings, judgement))
    lines += [f"{text_of(', '.join(of))}: {text_of(reason)}" for reason, of in explained.items()]
    lines += [f"note: {text_of(note)}" for note in _notes(findings)]
    lines += map(text_of, _last_lines(judgement))
    return "\n".join(lines) + "\n"


def as_markdown(findings: Findings, names: Names, judgement: Judgement) -> str:
    """A heading, a table of the findings, their basis, and what is unclear or not judged."""
    lines = [
        f"### tfcompare: {result(findings, judgement)}",
        "",
        f"{as_code(names[1])} vs {as_code(names[0])}",
        "",
        f"| {_first_header(findings)} | baseline | candidate | change | 95 % confidence interval | outcome |",
        "| :--- | ---: | ---: | ---: | ---: | :--- |",
    ]
    for f in findings.found:
        values = [format_value(value, f.measured.unit) for value in (f.measured.baseline, f.candidate)]
        outcome = f"**{f.outcome}**" if f.outcome in _EMPHASISED else f.outcome_text
        text = as_code(f.text).replace("|", "\\|")  # a bar would end the cell even in code
        lines.append("| " + " | ".join([text, *values, change(f), interval(f), outcome]) + " |")
    lines += ["", *(f"**Note:** {markdown(note)}\n" for note in _notes(findings))]
    explained = _explanations(findings, judgement)
    lines += [f"**Missing:** {as_code(f.text)}: {markdown(f.reason)}\n" for f in explained if f.outcome == "missing"]
    if judged := [f for f in explained if f.outcome != "missing"]:
        lines += ["<details><summary>Basis of these results</summary>", ""]
        basis = findings_by_basis(judged)
        lines += [f"- {', '.join(map(as_code, of))}: {markdown(reason)}" for reason, of in basis.items()]
        lines += ["", "</details>", ""]
    lines += [f"**{judgement.outcome.upper()}:** {markdown(reason)}\n" for reason in judgement.reasons]
    return "\n".join(lines).rstrip("\n") + "\n"


def _explanations(findings: Findings, judgement: Judgement) -> list[Finding]:
    """The findings whose basis is listed; if the result is `not judged`, the last lines are on the others."""
    return [f for f in findings.found if judgement.outcome != "not judged" or not f.why_not_judged]


def _notes(findings: Findings) -> list[str]:
    from tfcompare.views.steps.verdict_words import check_notes  # imports numpy

    remarks = [f"{f.text}: {f.remark}" for f in findings.found if f.remark]
    return [*map(plain, check_notes(findings.pair)), *remarks]


def _last_lines(judgement: Judgement) -> list[str]:
    """`NOT JUDGED: step_time>+5%: 1 step, 9 needed on each side; record 11 steps or more`: what was not decided."""
    return [f"{judgement.outcome.upper()}: {reason}" for reason in judgement.reasons]


def as_checked(findings: Findings, names: Names, judgement: Judgement) -> Checked:
    """What stands at the top of a report."""
    from tfcompare.render.report import Checked

    header = (_first_header(findings), "baseline", "candidate", "change", "95 % confidence interval", "outcome")
    rows = []
    for f in findings.found:
        values = [format_value(value, f.measured.unit) for value in (f.measured.baseline, f.candidate)]
        rows.append((f.text, *values, change(f), interval(f), f.outcome_text))
    basis = [
        f"{', '.join(of)}: {reason}" for reason, of in findings_by_basis(_explanations(findings, judgement)).items()
    ]
    lines = [*basis, *_notes(findings)]
    of_programs = content(findings, names, judgement)
    return Checked(f"Check {result(findings, judgement)}", header, rows, lines, of_programs, _last_lines(judgement))


def as_json(findings: Findings, names: Names, judgement: Judgement) -> str:
    """A JSON object with full precision; unknown or infinite values are null."""
    return json.dumps(content(findings, names, judgement), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def content(findings: Findings, names: Names, judgement: Judgement) -> dict[str, Any]:
    """What `as_json` writes."""
    return {
        "baseline": names[0],
        "candidate": names[1],
        "passed": judgement.is_passed,
        "outcome": judgement.outcome,
        "not_judged": list(findings.not_judged),
        "notes": _notes(findings),
        "findings": [_record(f) for f in findings.found],
    }


def result(findings: Findings, judgement: Judgement) -> str:
    """`passed (3 passed)`, `nothing failed (1 unclear)` or `FAILED (1 failed, 2 passed)`: the overall result with the
    number of conditions by outcome."""
    if judgement.outcome == "no conditions":
        return "no conditions, verdicts only"
    counts = {word: sum(f.outcome == word for f in findings.found) for word in _OUTCOMES}
    counts_text = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    return f"{_RESULTS[judgement.outcome]} ({counts_text})"


def findings_by_basis(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """The findings (as text) for each basis of findings."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        found.setdefault(finding.basis, []).append(finding.text)
    return found


def change(finding: Finding) -> str:
    """A text like `+5.12 %` or `89.0×`; `added` or `removed` if only one run has it."""
    ratio = finding.measured.verdict.ratio
    if ratio in (0, math.inf):
        return "added" if ratio else "removed"
    return format_percent_change(ratio)


def interval(finding: Finding) -> str:
    """`+1.20 % to +9.80 %` of a change, `4.10 ms to 4.90 ms` of a value; `exact` if it has no width."""
    measured = finding.measured
    if finding.is_change:
        low, high, ratio = measured.verdict.low, measured.verdict.high, measured.verdict.ratio
        ends = [format_percent_change(low, ratio), format_percent_change(high, ratio)]
    else:
        low, high = measured.level.low, measured.level.high
        ends = [format_value(low, measured.unit), format_value(high, measured.unit)]
    if math.isnan(low):
        return MISSING
    return "exact" if low == high else f"{ends[0]} to {ends[1]}"


def _first_header(findings: Findings) -> str:
    return "metric" if all(f.condition is None for f in findings.found) else "condition"


def _record(finding: Finding) -> dict[str, Any]:
    measured, verdict, level = finding.measured, finding.measured.verdict, finding.measured.level
    return {
        "condition": None if finding.condition is None else finding.condition.text,
        "metric": finding.name,
        "outcome": finding.outcome,
        "unit": measured.unit,
        "baseline": _number(measured.baseline),
        "candidate": _number(finding.candidate),
        "change": _number(verdict.ratio - 1),
        "change_low": _number(verdict.low - 1),
        "change_high": _number(verdict.high - 1),
        "candidate_low": _number(level.low),
        "candidate_high": _number(level.high),
        "verdict": verdict.word,
        "evidence": verdict.evidence or None,
        **_sensitivity(finding),
        "reason": finding.reason,
        "remark": finding.remark or None,
    }


def _sensitivity(finding: Finding) -> dict[str, Any]:
    """The captures, the smallest change they could detect, and how many per side would detect the margin in
    question."""
    found = finding.measured.verdict.sensitivity
    if found is None:
        return dict.fromkeys(("captures", "smallest_detectable_change", "captures_needed"))
    return {
        "captures": dict(zip(SIDES, found.captures, strict=True)),
        "smallest_detectable_change": _number(found.smallest_change),
        "captures_needed": {
            "change": finding.margin,
            "captures_per_side": found.captures_for(finding.margin),
            "steps_per_capture": found.steps,
        },
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
