"""The verdict on the time that the steps of two runs wait for input, or spend in another part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.captures import Captures, StepsOf
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import UNTESTED, Verdict
from tfcompare.compare.straggler import steps_of_straggler
from tfcompare.tools.input import input_bound

if TYPE_CHECKING:
    from tfcompare.compare import Comparison
    from tfcompare.run import Run


def on_waiting(comparison: Comparison, candidate: Run) -> Verdict:
    """The verdict on whether the candidate's steps wait longer or shorter for input: `input_us` of included steps.

    With several hosts, the straggler is used, as in `input_bound.input_wait`, so the ratio is that of the means there.
    """
    for role, run in (("baseline", comparison.baseline), ("candidate", candidate)):
        if why := input_bound.why_unknown(run.info):
            return Verdict(UNTESTED, f"the {role}'s input wait is unknown: {why}")
    return on_part(comparison, candidate, "input_us", (comparison.host, comparison.host_of(candidate)))


def on_part(comparison: Comparison, candidate: Run, part: str, hosts: tuple[str | None, str | None]) -> Verdict:
    """The verdict on a part of the included steps, one of `schema.STEP_PARTS`, on a host of baseline and candidate;
    None: on the straggler. Device parts, too, are taken to vary between captures as host work does."""
    return comparison.time_verdict(candidate, _times(comparison, candidate, part, hosts), "steps")


def part_means_us(
    comparison: Comparison, candidate: Run, part: str, hosts: tuple[str | None, str | None]
) -> tuple[float, float]:
    """The mean times of a part on both sides, of all captures, as `on_part` compares them; NaN without steps."""
    test = ChangeTest(comparison.replicates.spread_between(comparison.baseline, candidate))
    ours, theirs = _times(comparison, candidate, part, hosts)
    return test.value(ours), test.value(theirs)


def _times(
    comparison: Comparison, candidate: Run, part: str, hosts: tuple[str | None, str | None]
) -> tuple[list[Times], list[Times]]:
    ours, theirs = (
        _of_captures(comparison.replicates.captures(run, host), part)
        for run, host in zip((comparison.baseline, candidate), hosts, strict=True)
    )
    return ours, theirs


def _of_captures(captures: Captures, part: str) -> list[Times]:
    return [
        StepsOf.of(steps_of_straggler(capture.table("steps", host=host))).times(part)
        for capture, host in zip(captures.runs, captures.hosts, strict=True)
    ]
