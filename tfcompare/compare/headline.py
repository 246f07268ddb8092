"""One sentence on what a change did to the step time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tfcompare.compare.verdict import IDENTICAL, SAME, UNCLEAR, UNTESTED
from tfcompare.units import format_ratio, format_time_us

if TYPE_CHECKING:
    from tfcompare.compare.verdict import Verdict
    from tfcompare.run import RunInfo

BETWEEN_RECORDINGS = 0.15
"""Two recordings of one program may well differ by as much: the medians of ten spread by 5 %, and 2·√2·5 % is 15 %."""

_IN_MULTIPLES_FROM = 1.5
_FEW_STEPS = 3
_TENSORFLOW_STEP = "tf.profiler.experimental.Trace('train', step_num=step, _r=1)"
_JAX_STEP = "jax.profiler.StepTraceAnnotation('train', step_num=step)"


def step_time_headline(
    infos: tuple[RunInfo, RunInfo], times_us: tuple[float, float], names: tuple[str, str], verdict: Verdict
) -> str:
    """A sentence in Markdown: the candidate's typical step beside the baseline's, and how far to trust it.

    Of both, baseline first: `times_us`, their typical steps; `names`, what to call them. `verdict` is that on their
    step times.
    """
    ours, theirs = (f"`{' '.join(name.replace('`', chr(39)).split())}`" for name in names)
    if verdict == IDENTICAL:
        return f"{theirs} is the same recording as {ours}, byte for byte."
    told = zip((ours, theirs), infos, times_us, strict=True)
    without = {name: info for name, info, time in told if not (has_steps(info) and time > 0)}
    if without:
        return _no_step_times(without)
    before, after = times_us
    sentence = (
        f"{theirs} takes {format_time_us(after)} a step against {format_time_us(before)} of {ours}: "
        f"{compared(before, after)}"
    )
    return " ".join([f"{sentence}.", *_trust(before, after, verdict), *_reservations(*infos, (ours, theirs))])


def _trust(before: float, after: float, verdict: Verdict) -> list[str]:
    """How far the change can be trusted, where that has to be said."""
    reach = f"between {format_ratio(verdict.low)} and {format_ratio(verdict.high)}"
    if verdict.word == UNCLEAR:
        return [f"The steps do not tell whether that is a change of the program: they allow for anything {reach}."]
    if verdict.word == SAME:
        return [f"That is too little to count: the steps allow for {reach}."]
    if verdict.word != UNTESTED or abs(math.log(after / before)) > math.log1p(BETWEEN_RECORDINGS):
        return []
    often = f"{BETWEEN_RECORDINGS:.0%}".replace("%", " %")
    return [f"Two recordings of the same program often differ by up to {often}, so this does not prove a change."]


def doubt(verdict: Verdict, *, has_steps: bool) -> str:
    """Why what the headline tells is no verdict; empty where it is one, or where it tells so itself."""
    if not has_steps:
        return ""
    told = [f"Not tested: {verdict.reason}."] if verdict.word == UNTESTED else []
    if verdict.caveat:
        told.append(f"{verdict.caveat[0].upper()}{verdict.caveat[1:]}.")
    return " ".join(told)


def _reservations(baseline: RunInfo, candidate: RunInfo, names: tuple[str, str]) -> list[str]:
    """What keeps the sentence from telling of a change to the program."""
    out = []
    for what, ours, theirs in (
        ("devices", baseline.device_type, candidate.device_type),
        ("frameworks", baseline.framework, candidate.framework),
    ):
        if ours and theirs and ours != theirs:
            out.append(f"They ran on different {what} ({ours} and {theirs}), which alone can make that difference.")
    few = [name for name, info in zip(names, (baseline, candidate), strict=True) if info.steps_included < _FEW_STEPS]
    if few:
        out.append(f"{' and '.join(few)} {'have' if len(few) > 1 else 'has'} fewer than {_FEW_STEPS} steps to go by.")
    return out


def has_steps(info: RunInfo) -> bool:
    """Whether the run's steps were marked, so that a time per step can be told."""
    return info.has_steps and info.step_count > 0 and info.step_time_ms_median > 0


def compared(before: float, after: float) -> str:
    """`14 times as fast`, `2.3 times as long`, `12 % less time a step` for two positive step times."""
    if before == after:
        return "the same step time"
    if before / after >= _IN_MULTIPLES_FROM:
        return f"{_two_digits(before / after)} times as fast"
    if after / before >= _IN_MULTIPLES_FROM:
        return f"{_two_digits(after / before)} times as long"
    percent = abs(after / before - 1) * 100
    return f"{_two_digits(percent)} % {'less' if after < before else 'more'} time a step"


def step_marker_call(runs: Iterable[RunInfo]) -> str:
    """The call that marks a step when it is recorded again: JAX's where any of the runs is JAX's, else TensorFlow's."""
    return _JAX_STEP if any(info.framework == "JAX" for info in runs) else _TENSORFLOW_STEP


def _no_step_times(runs: dict[str, RunInfo]) -> str:
    return (
        f"{' and '.join(runs)} {'have' if len(runs) > 1 else 'has'} no step markers, so step times cannot be compared; "
        f"record again with each step inside `{step_marker_call(runs.values())}`, or name the host event "
        "that begins each step (“Steps begin with” in the sidebar, `--step-marker` on the command line)."
    )


def _two_digits(number: float) -> str:
    rounded = float(f"{number:.1e}")
    decimals = max(0, 1 - math.floor(math.log10(rounded)))
    return f"{rounded:,.{decimals}f}" if decimals <= 4 else "less than 0.0001"
