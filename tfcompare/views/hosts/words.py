"""Sentences on the slowest hosts of runs, in Markdown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.compare.attribution import attributed_hosts
from tfcompare.compare.stats.estimates import FEWEST_STEPS, LEVEL
from tfcompare.compare.stats.host_significance import CONSISTENT, Outstanding
from tfcompare.text import as_code, capitalized
from tfcompare.units import format_ratio, format_time_us
from tfcompare.views.hosts.causes import DEVICE_PARTS, INPUT, Cause
from tfcompare.views.hosts.figures import SlowHost, slowest_host_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfcompare.compare.pair import Pair


def verdict_sentence(candidate: SlowHost | None, baseline: SlowHost | None, *, alone: bool = False) -> str:
    """Who is slowest in the candidate, why, and who was in the baseline; empty if the candidate has no several hosts.

    `alone`: there is no baseline.
    """
    if candidate is None:
        return ""
    if not candidate.found.stands_out:
        return f"{_nobody(candidate)}{'' if alone else _before(candidate, baseline)}."
    found = candidate.found
    plural, often = "s" if candidate.group_name else "", how_often(found)
    clauses = [
        f"Slowest {candidate.by}{plural}: {who(candidate)}{' ' if often.startswith('in') else ', '}{often}",
        f"{format_time_us(found.excess)} more than the others per step ({_interval(found.low, found.high)})",
    ]
    if candidate.cause is not None:
        clauses.append(f"spent {_where(candidate.cause)}{_device(candidate)}")
    waits = "" if candidate.collective is None else f"; the others wait for {'them' if plural else 'it'}"
    if candidate.collective:
        waits += f" in {as_code(candidate.collective)}"
    return f"{', '.join(clauses)}{waits}{'' if alone else _before(candidate, baseline)}."


def after_headline(candidate: SlowHost | None, baseline: SlowHost | None, *, alone: bool = False) -> str:
    """As `verdict_sentence`, after a headline that says who is slowest, how often, by how much, and where."""
    if candidate is None or not candidate.found.stands_out:
        return verdict_sentence(candidate, baseline, alone=alone)
    found, name = candidate.found, who(candidate)
    it, takes = ("they", "take") if candidate.group_name else ("it", "takes")
    more = f"{takes} {format_time_us(found.low)} to {format_time_us(found.high)} more per step"
    if candidate.collective is not None:
        where = f" in {as_code(candidate.collective)}" if candidate.collective else ""
        more = f"The others wait for {name}{where}; {it} {more}"
    else:
        more = capitalized(f"{name} {more}")
    before = "" if alone else _before(candidate, baseline)
    return f"{more} ({LEVEL * 100:.0f} % confidence interval){_device(candidate)}{before}."


def host_sentence(pair: Pair, say: Callable[..., str] = verdict_sentence) -> str:
    """The verdict on the hosts of a candidate, by `verdict_sentence` or `after_headline`; empty for a single host, and
    if one host was chosen."""
    if pair.host is not None or len(pair.candidate.host_names) < 2:
        return ""
    found = slowest_host_in(pair, pair.candidate)
    before = None if pair.is_identical else slowest_host_in(pair, pair.baseline)
    sentence = say(found, before, alone=pair.is_identical)
    _, broken_down = attributed_hosts(pair)
    if found is None or (found.found.stands_out and broken_down == found.name):
        return sentence
    return f"{sentence} The breakdown of the step is that of {as_code(broken_down)}."


def who(slow: SlowHost) -> str:
    """The slowest host, `worker1`, or those that are slow together: ``the 8 hosts `rack3-…` ``, in Markdown."""
    return f"the {len(slow.group):,} hosts {as_code(slow.group_name)}" if slow.group_name else as_code(slow.name)


def how_often(found: Outstanding) -> str:
    """In how many steps a host is the slowest of all; of many hosts, in how many it takes longer than most."""
    if found.slowest_steps >= CONSISTENT * found.steps:
        return f"in {found.slowest_steps} of {found.steps} steps"
    return f"longer than the others' median in {found.longer_steps} of {found.steps} steps"


def price(slow: SlowHost) -> str:
    """`7.27 ms per step in `Map` of its input pipeline`: what the slowest host takes more, and where."""
    where = "" if slow.cause is None else f" {_where(slow.cause)}"
    return f"{format_time_us(slow.found.excess)} per step{where}"


def _nobody(slow: SlowHost) -> str:
    found = slow.found
    if found.excess <= 0:
        return f"No {slow.by} usually takes longer than the others without collectives and waits"
    how_often = f"is the slowest in {found.slowest_steps} of {found.steps} steps"
    excess = f"takes {format_time_us(found.excess)} more than the others per step"
    if math.isnan(found.p):
        few = f"a verdict on {slow.by}s needs {FEWEST_STEPS} steps with times above zero"
        return f"No {slow.by} is named as the slowest, as {few}; {as_code(slow.name)} {how_often} and {excess}"
    interval = _interval(found.low, found.high)
    return f"No {slow.by} stands out: the slowest, {as_code(slow.name)}, {how_often} and {excess} ({interval})"


def _device(slow: SlowHost) -> str:
    """That its device is another than the others', where that is so."""
    own, theirs = slow.cause.device if slow.cause is not None else ("", "")
    return f"; its device is {as_code(own)}, the others' {as_code(theirs)}" if own or theirs else ""


def _before(candidate: SlowHost, baseline: SlowHost | None) -> str:
    if baseline is None:
        return ""
    if not baseline.found.stands_out:
        return f"; in the baseline no {baseline.by} stood out"
    more = f"{format_time_us(baseline.found.excess)} more than the others"
    was = "were" if baseline.group_name else "was"
    if not (set(baseline.group) == set(candidate.group) or baseline.group_name == candidate.group_name != ""):
        return f"; in the baseline {who(baseline)} {was} the slowest, {more}"
    too = f"{was} the slowest, too" if candidate.found.stands_out else "stood out"
    return f"; in the baseline {'they' if candidate.group_name else 'it'} {too}, {more}"


def _where(cause: Cause) -> str:
    """`in `Map` of its input pipeline (`read`)`."""
    part = schema.STEPS.column(cause.part).label.lower()
    if cause.op and cause.part == INPUT:
        iterator = cause.op.rpartition("::")[2]
        return f"in {as_code(iterator)} of its input pipeline{f' ({as_code(cause.inner)})' if cause.inner else ''}"
    if cause.op:
        return f"in {as_code(cause.op)} ({part}){_often(cause.often)}"
    if cause.alike is not None:
        ratios = "–".join(dict.fromkeys(map(format_ratio, cause.alike)))
        if cause.often > 1:
            return f"in {part}, where it runs its ops {format_ratio(cause.often)} as often as the others"
        why = "with a lower clock, a power limit or other work on its device"
        if cause.part not in DEVICE_PARTS:
            why = "on a slower or busier machine"
        return f"in {part}, where all its ops take {ratios} as long as the others', as {why}"
    if cause.gap is None:
        return f"in {part}"
    before, after = cause.gap
    begin = f"after {as_code(before)}" if before else "at the begin of the step"
    end = f"before {as_code(after)}" if after else "up to the end of the step"
    between = f"between {as_code(before)} and {as_code(after)}" if before and after else begin if not after else end
    return f"{between}, where no op runs ({part})"


def _often(often: float) -> str:
    if math.isinf(often):
        return ", which the others do not run"
    return f", which it runs {format_ratio(often)} as often as the others" if often > 1 else ""


def _interval(low: float, high: float) -> str:
    return f"{LEVEL * 100:.0f} % confidence interval {format_time_us(low)} to {format_time_us(high)}"
