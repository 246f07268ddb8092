"""The text above a diff: for each candidate the verdict, the breakdown of the step, and what to try next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.commands.colour import Tone, paint, tone_of
from tfcompare.commands.text_table import (
    TextColumn,
    number_column,
    paragraph,
    render,
    scale,
    terminal_width,
    text_column,
)
from tfcompare.text import text_of
from tfcompare.units import format_percent, format_ratio

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare import Comparison
    from tfcompare.run import Run
    from tfcompare.tools.advice import Advice

MOST_ADVICE = 3
SIDES = ("baseline", "candidate")


def diff_summary(comparison: Comparison, candidate: Run) -> str:
    """The verdict on a candidate's step time, the parts of the average step on both sides, and the top advice."""
    sections = [verdict_text(comparison, candidate), _step_text(comparison, candidate)]
    if comparison.baseline.content_id != candidate.content_id:
        sections.append(_advice(comparison, candidate))
    return "\n\n".join(filter(None, sections))


def verdict_text(comparison: Comparison, candidate: Run) -> str:
    """The headline, the ratio with its confidence interval, and sentences on what the step time leaves out."""
    from tfcompare.tools.verdict_words import basis

    headline = sentence(comparison.headline(candidate.id), tone_of(comparison.verdict[candidate.id].text) or "bold")
    return "\n".join([headline, *map(sentence, basis(comparison, candidate))])


def sentence(markdown: str, tone: Tone = "") -> str:
    """A sentence in Markdown as lines that fit the terminal, without the marks of inline code."""
    text = paragraph(text_of(markdown.replace("`", "")), terminal_width())
    return "\n".join(paint(line, tone) for line in text.splitlines())


def parts_table(parts: pd.DataFrame, sides: Sequence[str] = SIDES, tone: Tone = "") -> str:
    """The parts of the average step, from `compare.attribution.part_means`, without those that are 0 on all sides.

    The last row is their sum. `tone` is the colour of the total change.
    """
    times = parts[[f"mean_us_{side}" for side in sides]].set_axis(list(sides), axis=1)
    is_there = (times > 0).any(axis=1)
    labels = [*parts.loc[is_there, "label"], "Total"]
    times = times[is_there]
    times.loc[len(parts)] = times.sum()
    shown = scale("µs", [us for side in sides for us in times[side]])
    columns = [text_column(f"average step ({shown.unit})", labels)]
    columns += [number_column(_header(side, sides), times[side] * shown.factor, shown.decimals) for side in sides]
    if len(sides) == 1:
        share = times[sides[0]] / times[sides[0]].iloc[-1]
        columns.append(TextColumn("share", list(map(format_percent, share)), is_number=True))
    else:
        ours, theirs = (times[side] for side in sides)
        plain: list[Tone] = [""] * (len(times) - 1)
        tones = [*plain, tone]
        change, ratio = (theirs - ours) * shown.factor, (theirs / ours).fillna(1.0)
        columns.append(number_column("change", change, shown.decimals, sign="+", tones=tones))
        columns.append(TextColumn("ratio", list(map(format_ratio, ratio)), is_number=True, tones=tones))
    return render(columns, terminal_width())


def _header(side: str, sides: Sequence[str]) -> str:
    return side if len(sides) > 1 else "time"


def advice_text(advice: Sequence[Advice], of: str) -> str:
    """The advice that could save the most, one line each."""
    if not advice:
        return "No known problem found that the profile gives evidence for."
    lines = [paint(text_of(f"What to try next in {of}"), "bold")]
    for number, one in enumerate(advice[:MOST_ADVICE], start=1):
        saves = f" (could save up to {format_percent(one.saves)})" if one.saves > 0 else ""
        lines.append(sentence(f"{number}. {one.title}{saves}"))
    return "\n".join(lines)


def _step_text(comparison: Comparison, candidate: Run) -> str:
    from tfcompare.tools.step_attribution import attribution

    if not (comparison.baseline.info.has_steps and candidate.info.has_steps):
        return ""  # the headline says so
    found = attribution(comparison, candidate)
    if found.waterfall is None:
        return "No breakdown of the step: a run has no included steps."
    tone = tone_of(comparison.verdict[candidate.id].text)
    return f"{parts_table(found.parts, tone=tone)}\n{sentence(found.sentence)}"


def _advice(comparison: Comparison, candidate: Run) -> str:
    from tfcompare.tools.advice import advise_on, facts_of, with_repeats

    runs = (comparison.baseline, candidate)
    facts = (with_repeats(facts_of(run, comparison.host_of(run)), comparison.captures(run)) for run in runs)
    found = advise_on(*facts)
    return sentence(found.caveat) if found.caveat else advice_text(found.advice, candidate.name)


def coverage_text(comparison: Comparison, candidate: Run, name: str, per: str) -> str:
    """The matched share of a table's headline metric, what figures are per, and what ran outside of steps; empty for
    metrics such as means."""
    table = schema.table(name)
    if table.headline is None or table.column(table.headline).kind not in ("sum", "level"):
        return ""
    headline = table.column(table.headline)
    coverage = comparison.coverage(name)
    of_candidate = coverage[coverage["candidate"] == candidate.id].iloc[0]
    matched, exact = (float(of_candidate[share]) for share in ("matched_share", "exact_share"))
    if math.isnan(matched):
        return f"Neither run's profile has anything for {name}."
    figures = f" Figures are per {per or comparison.per}." if headline.kind == "sum" else ""
    what = "memory" if headline.unit == "bytes" else headline.label.lower()
    shares = f"Matched {what}: {format_percent(matched)} ({format_percent(exact)} exactly)."
    if name not in schema.STEP_TABLES or per:
        return shares + figures
    from tfcompare.tools.op_figures import outside_of_steps

    return "\n".join(filter(None, [shares + figures, outside_of_steps(comparison, candidate, name)]))
