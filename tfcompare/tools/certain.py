"""What is known of a pair of runs although it is unclear whether their step times differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.attribution_words import PART_WORDS
from tfcompare.compare.headline import loop_change
from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.memory_growth import growth_in
from tfcompare.compare.pooling import median_of
from tfcompare.compare.stats.verdict import SAME, verdict_on_size
from tfcompare.compare.step_time_verdict import step_time_us
from tfcompare.tools.advice.model import WORTH_IT
from tfcompare.tools.hosts.host_words import how_often, who
from tfcompare.tools.hosts.slowest_host import slowest_host_in
from tfcompare.tools.input.input_verdicts import part_means_us
from tfcompare.tools.runs.many_runs import peak_bytes
from tfcompare.tools.throughput import BETWEEN, THROUGHPUT, between_steps_changed, verdict_on_loop, window_figures
from tfcompare.units import format_bytes, format_ratio, format_time_us

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfcompare.compare.pair import Pair
    from tfcompare.tools.step_attribution import Attribution


def significant_findings(pair: Pair, attribution: Attribution, names: tuple[str, str]) -> Iterator[str]:
    """Markdown clauses, the most important first: time between steps, a host that stands out or else the part of step
    that changed most, the peak memory, growth of memory. `names` are those of baseline and candidate in Markdown."""
    ours, theirs = names
    if clause := loop_clause(pair, names):
        yield clause
    if clause := _slow_host(pair, names) or _part(pair, attribution, theirs):
        yield clause
    peaks = [median_of(side.each(peak_bytes)) for side in pair.sides]
    if all(peak > 0 for peak in peaks) and verdict_on_size(*peaks) != SAME:  # NaN where it is unknown
        before, after = map(format_bytes, peaks)
        ratio = format_ratio(peaks[1] / peaks[0])
        whole = "" if pair.candidate.choice.kind is None else ", with steps of all kinds,"
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
    return f"{who(one)} {are} of {name}{' ' if often.startswith('in') else ', '}{often}"


def _part(pair: Pair, attribution: Attribution, name: str) -> str:
    """By how much the part moved that moved most of those whose change is significant; over all captures."""
    if attribution.waterfall is None or not attribution.certain:
        return ""
    part, found = attribution.certain[0]
    before, after = part_means_us(pair, part, attribution.hosts)
    delta_us = after - before
    if abs(delta_us) < WORTH_IT * max(map(step_time_us, pair.sides)):
        return ""
    word = "more" if delta_us > 0 else "less"
    ends = f" ({format_ratio(found.low)}–{format_ratio(found.high)})" if 0 < found.low < found.high else ""
    return f"{name} has {format_time_us(abs(delta_us))} {word} {PART_WORDS[part]} per step{ends}"
