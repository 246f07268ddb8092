"""The first lines on a pair of runs: the verdict, key figures, why, what changed most, what to try next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from tfcompare.charts.by_name import figure_of
from tfcompare.charts.pair import Pair, has_steps
from tfcompare.charts.verdicts import outcome_text, text_of, tone_of
from tfcompare.compare.aggregate import largest_changes, metric_in
from tfcompare.markdown import as_markdown, first_sentence
from tfcompare.report.blocks import Block, Cards, Chart, Facts, Items, Text, Verdict
from tfcompare.tools.advice import Advice, advise_on, facts_of, with_repeats
from tfcompare.tools.overview import dashboard
from tfcompare.tools.throughput import between_steps_sentence, dispatch_sentence
from tfcompare.tools.verdict_words import evidence, without_step_times
from tfcompare.units import MISSING, format_delta, format_percent, format_ratio, format_time_us

TOP = 5


def verdict(pair: Pair) -> Verdict:
    """Faster or slower, by how much, and how sure; of a run alone, its step time."""
    if not all(has_steps(run) for _, run in pair.shown):
        return _without_steps(pair)
    if pair.is_single:
        run = pair.baseline
        counted = f"{run.info.steps_included:,} of {run.info.step_count:,} steps are included."
        return Verdict("", "neutral", f"{format_time_us(pair.comparison.step_time_us(run))} per step", counted)
    found = pair.comparison.verdict[pair.candidate.id]
    names = pair.letters[0], pair.letters[1]
    ratio = f" {format_ratio(found.ratio)}" if found.has_interval else ""
    outside = [of(pair.comparison, pair.candidate) for of in (between_steps_sentence, dispatch_sentence)]
    return Verdict(
        f"{text_of(found.word, found.evidence)}{ratio}",
        tone_of(found.word, found.evidence),
        first_sentence(pair.comparison.headline(pair.candidate.id, names)),
        " ".join(filter(None, [evidence(pair.comparison, pair.candidate), *outside])),
    )


def _without_steps(pair: Pair) -> Verdict:
    shown = {letter: run for letter, (_, run) in zip(pair.letters, pair.shown, strict=True)}
    return Verdict("", "neutral", *without_step_times(pair.comparison, pair.candidate, shown))


def first_lines(pair: Pair) -> Iterator[Block]:
    """What answers first."""
    yield verdict(pair)
    attribution = pair.attribution
    if not pair.is_single and attribution.host_sentence:
        yield Text(attribution.host_sentence)
    figures = dashboard(pair.comparison, pair.candidate, attribution.parts)
    if figures:
        yield Cards([one.alone() for one in figures] if pair.is_single else figures)
    if attribution.waterfall is not None and not pair.is_single:
        yield Text(f"**Why:** {attribution.sentence}")
    for name in ("waterfall", "average_step"):
        if (figure := figure_of(pair, name)) is not None:
            yield Chart(name, figure)
    yield from changes(pair)


def changes(pair: Pair) -> Iterator[Block]:
    """The ops that changed most; of a run alone, its longest ops."""
    several = pair.comparison.host is None and any(len(run.host_names) > 1 for run in pair.runs)
    per = f"self time per {pair.comparison.per}{', all hosts together' if several else ''}"
    if pair.is_single:
        rows = pair.ops(idle=False)
        metric = metric_in(rows, "self_time_us")
        longest = rows.sort_values(f"{metric}_baseline", ascending=False, kind="stable").head(TOP)
        times = [[str(row["op_name"]), format_time_us(row[f"{metric}_baseline"])] for _, row in longest.iterrows()]
        yield Facts([f"Longest ops, {per}", "Time"], times, numbers=(1,))
        return
    found = largest_changes(pair.diff(), n=TOP)
    if found.empty:
        yield Text("No op changed its self time.")
        return
    header = [f"Largest changes, {per}", "Change", *pair.letters, "Ratio", "95 % CI", "Verdict"]
    cells = [_change(pair, row) for _, row in found.iterrows()]
    tones = list(map(tone_of, found["verdict"], found["evidence"]))
    yield Facts(header, cells, numbers=(1, 2, 3, 4, 5), tones=tones)


def _change(pair: Pair, row: pd.Series) -> list[str]:
    """The cells on an op that changed."""
    metric = metric_in(row.to_frame().T, "self_time_us")
    low, high = pair.interval(row)
    return [
        str(row["op_name"]),
        format_delta(float(row[f"{metric}_change"]), "µs"),
        *(format_time_us(row[f"{metric}_{role}"]) for role in ("baseline", "candidate")),
        format_ratio(row[f"{metric}_ratio"]),
        MISSING if math.isnan(low) else f"{format_ratio(low)}–{format_ratio(high)}",
        outcome_text(row.to_dict()),
    ]


def advice(pair: Pair) -> list[Block]:
    """What to try next, the piece that could save most first."""
    facts = (with_repeats(facts_of(run, pair.host_of(run)), pair.comparison.captures(run)) for run in pair.runs)
    found = advise_on(*facts)
    if found.caveat:
        return [Text(found.caveat)]
    if not found.advice:
        return [Text("No known problem found.")]
    return [Items([(_title(one), _advice_text(one, pair)) for one in found.advice])]


def _title(one: Advice) -> str:
    return f"{one.title} · saves up to {format_percent(one.saves)}" if one.saves > 0 else one.title


def _advice_text(one: Advice, pair: Pair) -> str:
    return f"{one.text} {' '.join(_evidence(one, pair.letters))} [More in the guide]({one.link})"


def _evidence(one: Advice, letters: Sequence[str]) -> Iterator[str]:
    for number in one.evidence:
        label = as_markdown(f"{number.label}: {number.subject}" if number.subject else number.label)
        texts = {"baseline": number.baseline_text, "candidate": number.candidate_text}
        sides = [f"{letter} {text}" for letter, text in zip(letters, texts.values(), strict=False)]
        if not all(math.isnan(value) for value in (number.baseline, number.candidate)):
            yield f"{label}: {', '.join(sides) if len(sides) > 1 else number.baseline_text}."
