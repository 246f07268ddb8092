"""Sentences on the slowest hosts of runs, in Markdown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.compare.stats.estimates import FEWEST_STEPS, LEVEL
from tfcompare.compare.straggler import attributed_hosts
from tfcompare.tools.host_causes import INPUT, Cause
from tfcompare.tools.hosts import SlowHost, slowest_host_in
from tfcompare.units import format_time_us

if TYPE_CHECKING:
    from tfcompare.compare import Comparison
    from tfcompare.run import Run


def verdict_sentence(candidate: SlowHost | None, baseline: SlowHost | None, *, alone: bool = False) -> str:
    """Who is slowest in the candidate, why, and who was in the baseline; empty if the candidate has no several hosts.

    `alone`: there is no baseline.
    """
    if candidate is None:
        return ""
    if not candidate.found.stands_out:
        return f"{_nobody(candidate)}{'' if alone else _before(candidate, baseline)}."
    found = candidate.found
    clauses = [
        f"Slowest {candidate.by}: {_code(candidate.name)} in {found.slowest_steps} of {found.steps} steps",
        f"{format_time_us(found.excess)} more than the others per step ({_interval(found.low, found.high)})",
    ]
    if candidate.cause is not None:
        clauses.append(f"spent {_where(candidate.cause)}")
    waits = f"; the others wait for it in {_code(candidate.collective)}" if candidate.collective else ""
    return f"{', '.join(clauses)}{waits}{'' if alone else _before(candidate, baseline)}."


def host_sentence(comparison: Comparison, candidate: Run) -> str:
    """The verdict on the hosts of a candidate; empty for a single host, and if one host was chosen."""
    if comparison.host is not None or len(candidate.host_names) < 2:
        return ""
    alone = comparison.baseline.content_id == candidate.content_id
    found = slowest_host_in(comparison, candidate)
    before = None if alone else slowest_host_in(comparison, comparison.baseline)
    sentence = verdict_sentence(found, before, alone=alone)
    _, broken_down = attributed_hosts(comparison, candidate)
    if found is None or (found.found.stands_out and broken_down == found.name):
        return sentence
    return f"{sentence} The breakdown of the step is that of {_code(broken_down)}."


def _nobody(slow: SlowHost) -> str:
    found = slow.found
    if found.excess <= 0:
        return f"No {slow.by} has a longer busy time than the others"
    how_often = f"is the slowest in {found.slowest_steps} of {found.steps} steps"
    excess = f"takes {format_time_us(found.excess)} more than the others per step"
    if math.isnan(found.p):
        few = f"a verdict on {slow.by}s needs {FEWEST_STEPS} steps with times above zero"
        return f"No {slow.by} is named as the slowest, as {few}; {_code(slow.name)} {how_often} and {excess}"
    interval = _interval(found.low, found.high)
    return f"No {slow.by} stands out: the slowest, {_code(slow.name)}, {how_often} and {excess} ({interval})"


def _before(candidate: SlowHost, baseline: SlowHost | None) -> str:
    if baseline is None:
        return ""
    if not baseline.found.stands_out:
        return f"; in the baseline no {baseline.by} stood out"
    more = f"{format_time_us(baseline.found.excess)} more than the others"
    if baseline.name == candidate.name:
        return f"; in the baseline it {'was the slowest, too' if candidate.found.stands_out else 'stood out'}, {more}"
    return f"; in the baseline {_code(baseline.name)} was the slowest, {more}"


def _where(cause: Cause) -> str:
    """`in `Map` of its input pipeline (`read`)`."""
    part = schema.STEPS.column(cause.part).label.lower()
    if cause.op and cause.part == INPUT:
        iterator = cause.op.rpartition("::")[2]
        return f"in {_code(iterator)} of its input pipeline{f' ({_code(cause.inner)})' if cause.inner else ''}"
    if cause.op:
        return f"in {_code(cause.op)} ({part})"
    if cause.gap is None:
        return f"in {part}"
    before, after = cause.gap
    begin = f"after {_code(before)}" if before else "at the begin of the step"
    end = f"before {_code(after)}" if after else "up to the end of the step"
    between = f"between {_code(before)} and {_code(after)}" if before and after else begin if not after else end
    return f"{between}, where no op runs ({part})"


def _interval(low: float, high: float) -> str:
    return f"{LEVEL * 100:.0f} % confidence interval {format_time_us(low)} to {format_time_us(high)}"


def _code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"
