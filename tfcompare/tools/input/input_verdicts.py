"""The verdict on the time that the steps of two runs wait for input, or spend in another part."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tfcompare.compare.side import StepsOf
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import UNTESTED, Verdict
from tfcompare.schema import SIDES
from tfcompare.tables.straggler import steps_of_straggler
from tfcompare.tools.input import input_bound

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run


def on_waiting(pair: Pair) -> Verdict:
    """The verdict on whether the candidate's steps wait longer or shorter for input: `input_us` of included steps.

    With several hosts, the straggler is used, as in `input_bound.input_wait`, so the ratio is that of the means there.
    """
    for role, run in zip(SIDES, pair.runs, strict=True):
        if why := input_bound.why_unknown(run.info):
            return Verdict(UNTESTED, f"the {role}'s input wait is unknown: {why}")
    return on_part(pair, "input_us", (pair.sides[0].host, pair.sides[1].host))


def on_part(pair: Pair, part: str, hosts: tuple[str | None, str | None]) -> Verdict:
    """The verdict on a part of the included steps, one of `schema.STEP_PARTS`, on a host of baseline and candidate;
    None: on the straggler. Device parts, too, are taken to vary between captures as host work does."""
    return pair.time_verdict(_times(pair, part, hosts), "steps")


def part_means_us(pair: Pair, part: str, hosts: tuple[str | None, str | None]) -> tuple[float, float]:
    """The mean times of a part on both sides, of all captures, as `on_part` compares them; NaN without steps."""
    test = ChangeTest(pair.spread_between())
    ours, theirs = _times(pair, part, hosts)
    return test.value(ours), test.value(theirs)


def _times(pair: Pair, part: str, hosts: tuple[str | None, str | None]) -> tuple[list[Times], list[Times]]:
    def of_capture(iterations: int, run: Run, host: str | None) -> Times:
        return StepsOf.of(steps_of_straggler(run.table("steps", host=host)), iterations).times(part)

    ours, theirs = (
        side.on(host).each(partial(of_capture, side.iterations)) for side, host in zip(pair.sides, hosts, strict=True)
    )
    return ours, theirs
