"""What to read after the headline of a comparison: what the verdict is based on, and what the step time leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.memory_growth import growth_in
from tfcompare.compare.pooling import median_of
from tfcompare.compare.stats.estimates import FEWEST_REPEATS, FEWEST_STEPS
from tfcompare.compare.stats.verdict import IDENTICAL, UNCLEAR, UNDER_LOAD, UNTESTED
from tfcompare.compare.steps.peak_memory import peak_bytes
from tfcompare.compare.steps.step_time_verdict import caveat, knows_step_time, step_time_us
from tfcompare.schema import SIDES
from tfcompare.text import as_code, as_markdown, capitalized
from tfcompare.units import format_bytes, format_ratio, format_time_us
from tfcompare.views.advice.model import WORTH_IT
from tfcompare.views.hosts.figures import slowest_host_in
from tfcompare.views.hosts.words import how_often, price, who
from tfcompare.views.input.figures import part_means_us
from tfcompare.views.pair_words import time_in_common
from tfcompare.views.steps.attribution import Attribution
from tfcompare.views.steps.attribution_words import PART_WORDS
from tfcompare.views.steps.causes import cause
from tfcompare.views.steps.certain import MOST_NAMED, certain_ops, likely
from tfcompare.views.steps.figures import BETWEEN, THROUGHPUT, between_steps_changed, verdict_on_loop, window_figures
from tfcompare.views.steps.headline import (
    how_to_mark_steps,
    how_to_record_more,
    leading_clause,
    loop_change,
    work_of_steps,
)
from tfcompare.views.steps.words import rates, sentences, time_between_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run


def evidence(pair: Pair) -> str:
    """What the verdict on the step time rests on, in Markdown: the interval and the steps, and whether the machine may
    have been busy."""
    found = pair.headline_verdict
    if found == IDENTICAL:
        return ""  # the headline says so
    sentences, test = [f"{as_markdown(capitalized(found.reason))}."], found.sensitivity
    is_assumed = test is not None and min(test.captures) < FEWEST_REPEATS and pair.among.spread is None
    if is_assumed and any(run.machine_load is None for run in pair.runs):
        sentences.append(f"The machine's load is unknown; on a busy one, runs vary by {100 * UNDER_LOAD:.0f} %.")
    return " ".join(sentences)


def doubt(pair: Pair) -> str:
    """What speaks against a claim on the step time, in Markdown; empty where nothing does."""
    found = pair.headline_verdict
    return f"**But {as_markdown(found.caveat)}.**" if found.caveat else ""


def device_time(pair: Pair) -> str:
    """The verdict on how long devices are busy per step, in Markdown; empty where they are not on both sides."""
    found = pair.device_verdict
    if found is None or not found.has_interval or pair.is_identical:
        return ""
    interval = f"{format_ratio(found.low)}–{format_ratio(found.high)}"
    return f"Devices are busy {format_ratio(found.ratio)} as long ({interval}): {found.text}."


def next_step(pair: Pair) -> str:
    """What to do to settle an inconclusive verdict on the step time, or to get one at all; else empty."""
    found = pair.headline_verdict
    if found.word == UNCLEAR and found.sensitivity:
        return found.sensitivity.what_would_show()
    infos = pair.baseline.info, pair.candidate.info
    if any(run.lost_steps for run in pair.runs):
        return "To lose no step: record fewer steps, or with fewer tracers, and wait for the device before it stops."
    few = found.word == UNTESTED and min(info.steps_included for info in infos) < FEWEST_STEPS
    return how_to_record_more(infos) if few else ""


def without_step_times(pair: Pair, shown: Mapping[str, Run]) -> tuple[str, str]:
    """A headline on runs that lack step times, and how to get them, in Markdown.

    `shown` are the runs by the letters that they go by.
    """
    missing = {letter: run for letter, run in shown.items() if not knows_step_time(run.info)}
    consequence = "there is no step time" if pair.is_single else "step times cannot be compared"
    named = (f"{as_code(name)}: " if not pair.is_single else "" for name in missing)
    untimed = [f"{name}{run.why_untimed}" for name, run in zip(named, missing.values(), strict=True) if run.why_untimed]
    if untimed:
        throughput = "" if pair.is_single else rates(*(side.window for side in pair.sides))
        beside = f"; throughput is {throughput}" if throughput else ""
        return capitalized(consequence) + beside, " ".join(f"{capitalized(sentence)}." for sentence in untimed)
    where = "" if pair.is_single else f" in {' and '.join(missing)}"
    how = how_to_mark_steps(run.info for run in missing.values())
    first, *others = shown
    if others and (lead := leading_clause(pair, (first, others[0]))):
        lead = "; ".join(filter(None, [lead, cause(pair, (first, others[0]), is_subject=False)]))
        return capitalized(lead), f"No verdict, since there are no step markers{where}: {how}."
    return f"No step markers{where}, so {consequence}", f"{capitalized(how)}."


def check_notes(pair: Pair) -> list[str]:
    """Sentences in Markdown that help to read the findings of `compare.check`."""
    notes = [time_in_common(pair, ("the baseline", "the candidate"))] if pair.are_unrelated else []
    notes.append(caveat(pair.mismatches))
    if work := work_of_steps(pair.iterations, ("the baseline", "the candidate")):
        notes.append(f"{capitalized(work)}; what a step does is judged per iteration")
    notes.append(time_between_steps(*(side.window for side in pair.sides), has_changed=False))
    for role, side in zip(SIDES, pair.sides, strict=True):
        notes += sentences(side.run, side.host, f"the {role}")
    ours, theirs = (side.host for side in pair.sides)
    if ours != theirs:
        notes.append(f"host {ours} of the baseline is compared with host {theirs} of the candidate")
    return list(filter(None, notes))


def significant_findings(pair: Pair, attribution: Attribution, names: tuple[str, str]) -> Iterator[str]:
    """Markdown clauses, the most important first: time between steps, ops whose change is certain, or else a host
    that stands out, or the part of step that changed most; the peak memory, growth of memory.

    `names` are those of baseline and candidate in Markdown.
    """
    ours, theirs = names
    if clause := loop_clause(pair, names):
        yield clause
    if ops := certain_ops(pair):
        yield " and ".join(one.clause for one in ops[:MOST_NAMED])
    elif clause := _slow_host(pair, names) or _part(pair, attribution, theirs):
        yield clause
    peaks = [median_of(side.each(peak_bytes)) for side in pair.sides]
    if all(peak > 0 for peak in peaks) and abs(peaks[1] - peaks[0]) >= WORTH_IT * max(peaks):  # NaN where unknown
        before, after = map(format_bytes, peaks)
        ratio = format_ratio(peaks[1] / peaks[0])
        is_of_kind = pair.candidate.choice.kind is not None or pair.main_kind is not None
        whole = ", with steps of all kinds," if is_of_kind else ""
        yield f"the peak memory of {theirs}{whole} is {ratio} that of {ours} ({after} vs {before})"
    for side, name in zip(pair.sides, names, strict=True):
        found = growth_in(pair, side)
        if found is not None and found.is_growth:
            yield f"the memory of {name} grows by {format_bytes(found.bytes_per_step)} per step"


def loop_clause(pair: Pair, names: tuple[str, str]) -> str:
    """How the loops of both differ where the time between their steps has changed; else empty. `names` as above."""
    if not between_steps_changed(pair):
        return ""
    figures = {one.label: one for one in window_figures(pair)}
    between, rate = figures[BETWEEN], figures[THROUGHPUT]
    found = verdict_on_loop(pair)
    if found.is_claim:
        periods_us = 1e6 / rate.baseline, 1e6 / rate.candidate
        return loop_change(periods_us, (between.baseline, between.candidate), names, found)
    before, after = map(format_time_us, (between.baseline, between.candidate))
    return f"{names[1]} has {after} between its steps, {names[0]} {before}"


def _slow_host(pair: Pair, names: tuple[str, str]) -> str:
    """That a host of one run is slower than its others, where that is not so in the other run."""
    if pair.host is not None:
        return ""
    found = [slowest_host_in(pair, run) for run in pair.runs]
    before, after = (one if one is not None and one.found.stands_out else None for one in found)
    counterparts = host_counterparts(*(run.host_names for run in pair.runs))
    if before is not None and after is not None and {counterparts.get(host) for host in before.group} == {*after.group}:
        return ""
    one, name = (after, names[1]) if after is not None else (before, names[0])
    if one is None:
        return ""
    are = "are the slowest" if one.group_name else "is the slowest host"
    often = how_often(one.found)
    return f"{who(one)} {are} of {name}{' ' if often.startswith('in') else ', '}{often}, by {price(one)}"


def headline_names_host(pair: Pair) -> bool:
    """Whether the first of `significant_findings` lead the headline, and name a host of the candidate."""
    slow = slowest_host_in(pair, pair.candidate) if pair.headline_verdict.word == UNCLEAR else None
    return slow is not None and slow.found.stands_out and not certain_ops(pair) and bool(_slow_host(pair, pair.marked))


def _part(pair: Pair, attribution: Attribution, name: str) -> str:
    """By how much the part moved that moved most of those whose change is significant; over all captures."""
    if attribution.waterfall is None or not attribution.certain:
        return ""
    part, found = attribution.certain[0]
    before, after = part_means_us(pair, part, attribution.hosts)
    delta_us = after - before
    if abs(delta_us) < WORTH_IT * max(map(step_time_us, pair.sides)):
        return ""
    much = f"{format_time_us(abs(delta_us))} {'more' if delta_us > 0 else 'less'}"
    ends = f" ({format_ratio(found.low)}–{format_ratio(found.high)})" if 0 < found.low < found.high else ""
    return f"{name} {likely(found.evidence)}has {much} {PART_WORDS[part]} per step{ends}"
