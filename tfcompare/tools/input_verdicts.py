"""The verdict on the time that the steps of two runs wait for input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.captures import StepsOf
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import UNTESTED, Verdict
from tfcompare.compare.straggler import steps_of_straggler
from tfcompare.tools import input_bound

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
    ours, theirs = (_waiting(comparison, run) for run in (comparison.baseline, candidate))
    return comparison.time_verdict(candidate, (ours, theirs), "steps")


def _waiting(comparison: Comparison, run: Run) -> list[Times]:
    captures = comparison.captures(run)
    return [
        StepsOf.of(steps_of_straggler(capture.table("steps", host=host))).times("input_us")
        for capture, host in zip(captures.runs, captures.hosts, strict=True)
    ]
