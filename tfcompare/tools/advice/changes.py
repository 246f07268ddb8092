"""Significant improvements and regressions from the baseline to the candidate.

Times are tested on their series of steps, and reported if the change is a relevant share of the step. Bytes and counts
are exact, and reported from a change of 10 %. Nothing is reported if both runs are the same capture, or ran on
different devices or frameworks, because the program would not be the cause.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfcompare.compare.attribution_words import PART_WORDS
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import FEWEST_STEPS, Times
from tfcompare.compare.stats.spread import declared_spread
from tfcompare.compare.stats.verdict import FASTER, SLOWER
from tfcompare.schema import STEP_PARTS
from tfcompare.tools.advice.device_rules import KERNELS
from tfcompare.tools.advice.host_rules import EAGER_OF_STEP, EAGER_OPS
from tfcompare.tools.advice.kernel_rules import ON_CORES
from tfcompare.tools.advice.model import SHARE, WORTH_IT, Change, Evidence, Figure, code, evidence
from tfcompare.units import format_percent_change

if TYPE_CHECKING:
    from tfcompare.tools.advice.facts import Facts

WORTH_SAYING = 0.1
"""Smaller changes are not reported, relative to an exact figure, or to the whole of which a share is taken."""

LARGE_PART = 0.1
"""The minimum share of the step of either run for an unchanged part to be reported."""
ABOUT_THE_SAME = 0.05
"""The share of a part by which two captures of one program typically differ."""
_MANY_TIMES = 20

_MUST_AGREE = ("framework", "device_type", "device_name")

STEP = "duration_us"
"""The `figure` of a change in the step time itself."""
_STEP_TIME = Figure("Average step", "µs", lambda f: f.step_us)


def changes(baseline: Facts, candidate: Facts) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """(improvements, regressions), the step first, then its parts, the largest first."""
    sides = baseline, candidate
    if baseline.content_id == candidate.content_id or not _are_alike(*sides):
        return (), ()
    better: list[Change] = []
    worse: list[Change] = []
    for change, is_better in (*_times(*sides), *_peaks(*sides), *_others(*sides)):
        (better if is_better else worse).append(change)
    return tuple(better), tuple(worse)


def _are_alike(baseline: Facts, candidate: Facts) -> bool:
    facts = [(getattr(baseline.info, name), getattr(candidate.info, name)) for name in _MUST_AGREE]
    return all(ours == theirs for ours, theirs in facts if ours and theirs)


def _times(baseline: Facts, candidate: Facts) -> list[tuple[Change, bool]]:
    """The step itself and its parts."""
    sides = baseline, candidate
    if not all(f.has_parts for f in sides) or min(len(f.steps) for f in sides) < FEWEST_STEPS:
        return []
    whole = max(baseline.step_us, candidate.step_us)
    found = []
    for column in (STEP, *STEP_PARTS):
        times = [[steps.times(column) for steps in f.captures] for f in sides]
        moved = float(times[1][0].included.mean() - times[0][0].included.mean())
        if abs(moved) < WORTH_IT * whole or not _is_real(times, moved, baseline, candidate):
            continue
        found.append((abs(moved), _time_change(column, baseline, candidate), moved < 0))
    found.sort(key=lambda entry: (entry[1].figure != STEP, -entry[0]))
    return [(change, is_better) for _, change, is_better in found]


def unchanged(baseline: Facts, candidate: Facts) -> tuple[Change, ...]:
    """The large parts of the step that took about as long in both runs, the largest first."""
    if not all(f.has_parts for f in (baseline, candidate)):
        return ()
    found = []
    for column in STEP_PARTS:
        ours, theirs = baseline.part_us(column), candidate.part_us(column)
        share = max(baseline.part_share(column), candidate.part_share(column))
        if share >= LARGE_PART and abs(theirs - ours) <= ABOUT_THE_SAME * max(ours, theirs):
            found.append((share, _unchanged(column, baseline, candidate)))
    return tuple(change for _, change in sorted(found, key=lambda entry: -entry[0]))


def _unchanged(column: str, baseline: Facts, candidate: Facts) -> Change:
    """`Device compute stayed about the same: 8.10 ms a step, baseline 8.12 ms.`"""
    name, figures = _part_figures(column)
    seen = evidence(figures, candidate, baseline)
    title = f"{name} stayed about the same"
    return Change(column, title, f"{title}: {seen[0].candidate_text} a step, baseline {seen[0].baseline_text}.", seen)


def _is_real(times: list[list[Times]], moved: float, baseline: Facts, candidate: Facts) -> bool:
    """Whether the verdict confirms the change of the means. A part that one side lacks needs no test."""
    ours, theirs = times
    if any(all((one.every == 0).all() for one in side) for side in times):
        return True
    spread = declared_spread(baseline.info.device_type, candidate.info.device_type)
    return ChangeTest(spread)(ours, theirs).word == (FASTER if moved < 0 else SLOWER)


def _time_change(column: str, baseline: Facts, candidate: Facts) -> Change:
    if column == STEP:
        return _change(column, "The average step", (_STEP_TIME,), baseline, candidate, per="")
    name, figures = _part_figures(column)
    return _change(column, name, figures, baseline, candidate)


def _part_figures(column: str) -> tuple[str, tuple[Figure, ...]]:
    """(a part's name at the start of a sentence; its time and its share)."""
    words = PART_WORDS[column]
    name = "Waiting for input" if column == "input_us" else f"{words[:1].upper()}{words[1:]}"
    time = Figure(f"{name} per step", "µs", lambda f: f.part_us(column))
    share = Figure("Share of the step time", SHARE, lambda f: f.part_share(column))
    return name, (time, share)


def _change(
    figure: str, name: str, figures: tuple[Figure, ...], baseline: Facts, candidate: Facts, *, per: str = "a step"
) -> Change:
    """`Waiting for input fell from 6.79 ms to 344 µs a step (−94.9 %), from 62.2 % to 4.82 % of the step time.`"""
    seen = evidence(figures, candidate, baseline)
    first = seen[0]
    verb = "fell" if first.candidate < first.baseline else "rose"
    title = f"{name} {verb} from {first.baseline_text} to {first.candidate_text}"
    relative = f" ({format_percent_change(first.candidate / first.baseline)})" if _has_ratio(first) else ""
    text = f"{title}{f' {per}' if per else ''}{relative}"
    for share in seen[1:]:
        text += f", from {share.baseline_text} to {share.candidate_text} of the step time"
    return Change(figure, title, f"{text}.", seen)


def _has_ratio(seen: Evidence) -> bool:
    """Whether a percentage adds information to the two numbers."""
    return seen.unit != SHARE and seen.baseline > 0 and seen.candidate < _MANY_TIMES * seen.baseline


def _peaks(baseline: Facts, candidate: Facts) -> list[tuple[Change, bool]]:
    """The memory that held the most in both runs."""
    ids = set(baseline.memory["memory_id"]) & set(candidate.memory["memory_id"])
    if not ids:
        return []
    most = max(sorted(ids), key=lambda name: max(_peak(f, name) for f in (baseline, candidate)))
    ours, theirs = (_peak(f, most) for f in (baseline, candidate))
    if not _differ(ours, theirs):
        return []
    figure = Figure("Peak memory", "bytes", lambda f: _peak(f, most), most)
    change = _change("peak_bytes", f"The peak of {code(most)}", (figure,), baseline, candidate, per="")
    return [(change, theirs < ours)]


def _peak(facts: Facts, memory_id: str) -> float:
    rows = facts.memory[facts.memory["memory_id"] == memory_id]
    return float(rows["peak_bytes"].max()) if len(rows) else math.nan


def _differ(ours: float, theirs: float) -> bool:
    return abs(theirs - ours) >= WORTH_SAYING * max(ours, theirs) > 0


def _others(baseline: Facts, candidate: Facts) -> list[tuple[Change, bool]]:
    """Launches (fewer are better, per step), kernels on tensor cores (more are), eager ops (fewer are)."""
    found = []
    if baseline.info.has_steps and candidate.info.has_steps and len(baseline.kernels) and len(candidate.kernels):
        ours, theirs = KERNELS.of(baseline), KERNELS.of(candidate)
        if _differ(ours, theirs):
            found.append((_change("kernels", "The number of kernels", (KERNELS,), baseline, candidate), theirs < ours))
    on_cores = _share_change("tensor_cores", "Kernel time on tensor cores", ON_CORES, baseline, candidate)
    found += [(change, moved > 0) for change, moved in on_cores]
    return [*found, *_eager_change(baseline, candidate)]


def _eager_change(baseline: Facts, candidate: Facts) -> list[tuple[Change, bool]]:
    """By their number per step, which is exact, where eager ops take a part of a side's steps."""
    shares = EAGER_OF_STEP.of(baseline), EAGER_OF_STEP.of(candidate)
    have_steps = baseline.info.has_steps and candidate.info.has_steps
    if candidate.is_jax or not have_steps or not max(shares) >= WORTH_IT:
        return []
    ours, theirs = EAGER_OPS.of(baseline), EAGER_OPS.of(candidate)
    if not _differ(ours, theirs):
        return []
    return [(_change("eager", "The number of eager ops", (EAGER_OPS,), baseline, candidate), theirs < ours)]


def _share_change(
    name: str, title: str, figure: Figure, baseline: Facts, candidate: Facts
) -> list[tuple[Change, float]]:
    moved = figure.of(candidate) - figure.of(baseline)
    if not abs(moved) >= WORTH_SAYING:
        return []
    return [(_change(name, title, (figure,), baseline, candidate, per=""), moved)]
