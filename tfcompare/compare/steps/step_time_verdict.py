"""The verdict on the step times of two runs, and on other times of theirs: their captures, tested for a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.compare.comparability import MIX, Mismatch
from tfcompare.compare.spreads import spread_of_steps, spread_on
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times, are_above_zero
from tfcompare.compare.stats.verdict import IDENTICAL, OF_HOSTS, UNTESTED, Verdict

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side
    from tfcompare.run import RunInfo

NO_STEPS = Verdict(UNTESTED, "a run has no step markers")
UNRELATED = Verdict(UNTESTED, "the programs are different: there is nothing to compare")
_STEP_TIME = ChangeTest(OF_HOSTS)
_TENSORFLOW_STEP = "tf.profiler.experimental.Trace('train', step_num=step, _r=1)"
JAX_STEP = "jax.profiler.StepTraceAnnotation('train', step_num=step)"
SAME_CAPTURE = replace(IDENTICAL, ratio=1.0, low=1.0, high=1.0)


def step_time_verdict(pair: Pair) -> Verdict:
    """The verdict on the step times of both sides."""
    if pair.is_identical:
        return IDENTICAL
    if pair.are_unrelated:
        return UNRELATED
    if not all(side.all_have_step_times for side in pair.sides):
        return no_steps(*pair.sides)
    ours, theirs = (side.step_times_us for side in pair.sides)
    if (kinds := pair.common_kinds) is not None:
        ours, theirs = (
            [kinds.leveled(run, host, side.steps(at).numbers, times[at]) for at, run, host in side.each_at]
            for side, times in zip(pair.sides, (ours, theirs), strict=True)
        )
    return replace(ChangeTest(spread_of_steps(pair))(ours, theirs), caveat=caveat(pair.mismatches))


def device_time_verdict(pair: Pair) -> Verdict | None:
    """The verdict on how long devices are busy in each step, of the kind that the headline is on; None where no device
    is on either side, and where step times have no verdict."""
    times = [side.device_times_us for side in pair.sides]
    if not all(map(are_above_zero, times)) or not pair.verdict.has_interval:
        return None
    of = "steps" if pair.main_kind is None else f"steps of {pair.main_kind.name}"
    found = ChangeTest(spread_on(pair, schema.DEVICE), of=of)(*in_headline(pair, times))
    return replace(found, caveat=caveat(pair.mismatches, but=MIX))


def in_headline(pair: Pair, times: Sequence[list[Times]]) -> Sequence[list[Times]]:
    """The times of the captures of both sides in the steps of the kind that the headline is on."""
    if (kind := pair.main_kind) is None or (kinds := pair.common_kinds) is None:
        return times
    at = [*kinds.shares].index(kind.name)
    return [kinds.split(side, of_side)[at] for side, of_side in zip(pair.sides, times, strict=True)]


def time_verdict(pair: Pair, times: tuple[Sequence[Times], Sequence[Times]], test: ChangeTest) -> Verdict:
    """The test's verdict on individual times of two runs, for each capture of baseline and candidate."""
    if pair.is_identical:
        return SAME_CAPTURE
    if pair.are_unrelated:
        return UNRELATED
    have_steps = all(side.all_have_steps for side in pair.sides)
    is_known = have_steps and all(one.steps for of_side in times for one in of_side)
    if test.of == "steps" and not is_known and not all(side.all_have_step_times for side in pair.sides):
        return no_steps(*pair.sides)
    return test(*times)


def step_time_us(side: Side) -> float:
    """The step time of a side in microseconds: the mean of its included steps; with replicates, the mean of the means
    of all captures.

    The ratio of two sides equals the ratio in their verdict. NaN without step markers or included steps.
    """
    times = side.step_times_us
    return _STEP_TIME.value(times) if all((one.included > 0).any() for one in times) else float("nan")


def caveat(found: Sequence[Mismatch], *, but: str = "") -> str:
    """Why verdicts on the times of two runs with these mismatches do not apply to the program itself; empty if they do.
    The mismatch labelled `but` does not count."""
    hard = [m.label.lower() for m in found if m.is_hard and m.label != but]
    if not hard:
        return ""
    named = " and ".join(filter(None, [", ".join(hard[:-1]), hard[-1]]))
    return f"the runs differ in {named}, which alone can change times"


def no_steps(*sides: Side) -> Verdict:
    """The verdict if one of these sides has no step times, with the reason of the first run that gives one."""
    reasons = (run.why_untimed for side in sides for run in side.runs if not run.info.has_step_times)
    return replace(NO_STEPS, reason=next(filter(None, reasons), NO_STEPS.reason))


def knows_step_time(info: RunInfo) -> bool:
    """Whether the run has step markers, so that a time per step is known."""
    return info.has_steps and info.step_count > 0 and info.step_time_ms_mean > 0


def step_marker_call(runs: Iterable[RunInfo]) -> str:
    """The API call that marks steps in a new capture: JAX's if any of the runs uses JAX, else TensorFlow's."""
    return JAX_STEP if any(info.framework == "JAX" for info in runs) else _TENSORFLOW_STEP
