"""Judging by a file of baselines: what it leaves out is not judged, and accepted values stand for those of the
baseline until their date."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from tfcompare.compare.check.baseline_file import Acceptance, Baseline
from tfcompare.compare.check.conditions import FAILED, Asked, Condition, Findings, name_of
from tfcompare.compare.check.measured import BYTES, COUNT, FLOPS, ROUNDING, TIME, Measured, count_result, per, word_at
from tfcompare.compare.stats.verdict import UNCLEAR, UNTESTED, Verdict
from tfcompare.units import format_value


@dataclass(frozen=True)
class Judging:
    """What is asked of a baseline of a file, for `check`; `today` says which acceptances hold."""

    baseline: Baseline
    today: date

    def __call__(self, condition: Condition, measured: Measured) -> Asked:
        """The condition and what was measured, compared with the accepted value where there is one; untested where
        the file does not tell."""
        if condition.is_change and (why := self.baseline.why_unknown(condition.metric, condition.pattern)):
            untested = replace(
                measured, baseline=math.nan, verdict=Verdict(UNTESTED, why), is_missing=False, samples=None
            )
            return Asked(condition, untested)
        name = name_of(condition, measured)
        accepted = next((one for one in self.baseline.accepted if one.metric == name), None)
        if accepted is None or accepted.unit != measured.unit:
            return Asked(condition, measured)
        value = format_value(accepted.value, accepted.unit)
        if accepted.captures != self.baseline.content_ids:
            why = "this was for other captures of the baseline, and does not count; accept it again if it still holds"
            return Asked(condition, measured, f"{value} was {_words(accepted)}; {why}")
        if accepted.until < self.today:
            return Asked(condition, measured, f"{value} was {_words(accepted)}; this has expired")
        if not condition.is_change:
            limit = format_value(condition.threshold, measured.unit)
            loosened = _loosened(condition, accepted.value)
            return Asked(loosened, measured, f"{_words(accepted)}: compared with {value} instead of {limit}")
        if measured.is_missing or not measured.verdict.has_interval:
            return Asked(condition, measured)
        before = "none" if math.isnan(measured.baseline) else format_value(measured.baseline, measured.unit)
        remark = f"{_words(accepted)}: compared with {value} instead of {before}"
        return Asked(condition, _compared_with(measured, accepted.value), remark)


def _words(accepted: Acceptance) -> str:
    return f"accepted until {accepted.until} by {accepted.by} because “{accepted.because}”"


def _loosened(condition: Condition, value: float) -> Condition:
    """The condition with the accepted value as its limit, which may be reached, if that allows more."""
    is_above = condition.operator in (">", ">=")
    allows_more = value > condition.threshold if is_above else value < condition.threshold
    if not allows_more and value != condition.threshold:
        return condition
    return replace(condition, operator=">" if is_above else "<", threshold=value)


def _compared_with(measured: Measured, value: float) -> Measured:
    """The change from a value instead of the baseline's, which is assumed to vary as the baseline does; from 0 or
    nothing, the candidate's own interval is taken."""
    before, found, level = measured.baseline, measured.verdict, measured.level
    is_exact, reason = measured.unit in (BYTES, COUNT, FLOPS), f"compared with an accepted value: {found.reason}"
    if not is_exact:  # the interval in `found.reason` is that of the ratio to the baseline
        assumed = ", which is assumed to vary as the baseline does" if value else ""
        reason = f"compared with an accepted value{assumed}. Compared with the baseline itself: {found.reason}"
    if is_exact or not value:
        return replace(
            count_result(measured.unit, value, _of_candidate(measured), reason), level=level, kind=measured.kind
        )
    if math.isfinite(before) and 0 < found.ratio < math.inf:
        of_pair = (found.ratio, found.low, found.high, found.ratio_with_strays)
        ratio, low, high, strays = (None if one is None else one * before / value for one in of_pair)
    else:
        of_level = (level.value, level.low, level.high, level.with_strays)
        ratio, low, high, strays = (None if one is None else one / value for one in of_level)
    if ratio is not None and math.isclose(ratio, 1.0, rel_tol=ROUNDING):
        ratio = 1.0
    assert ratio is not None and low is not None and high is not None
    verdict = replace(found, reason=reason, ratio=ratio, low=low, high=high, ratio_with_strays=strays)
    of_time = verdict
    if measured.unit != TIME:
        inverse = None if strays is None else per(1.0, strays)
        of_time = replace(verdict, ratio=per(1.0, ratio), low=per(1.0, high), high=per(1.0, low))
        of_time = replace(of_time, ratio_with_strays=inverse)
    return replace(measured, baseline=value, verdict=replace(verdict, word=word_at(1.0, of_time)))


def acceptances(findings: Findings, accepting: Acceptance, *, strict: bool) -> list[Acceptance]:
    """`accepting` for each condition that failed, or is unclear if that fails, with the metric's name and value."""
    failing = {FAILED, UNCLEAR} if strict else {FAILED}
    failed = {one.name: one for one in findings.found if one.condition is not None and one.outcome in failing}
    return [
        replace(accepting, metric=name, value=_of_candidate(one.measured), unit=one.measured.unit)
        for name, one in failed.items()
        if math.isfinite(_of_candidate(one.measured))
    ]


def renewed(baseline: Baseline, acceptances: Sequence[Acceptance]) -> list[Acceptance]:
    """These with the values that the baseline's have: the candidate's are within the limits of those by now."""
    values = {one.metric: one.value for one in baseline.accepted}
    return [replace(one, value=values[one.metric]) for one in acceptances if one.metric in values]


def _of_candidate(measured: Measured) -> float:
    """The candidate's value; 0 of what it has not any more."""
    return measured.level.value if math.isnan(measured.candidate) else measured.candidate


def with_accepted(baseline: Baseline, accepted: Sequence[Acceptance]) -> Baseline:
    """The baseline with these acceptances, for its captures, in place of those of the same metrics."""
    of_captures = [replace(one, captures=baseline.content_ids) for one in accepted]
    by_metric = {one.metric: one for one in (*baseline.accepted, *of_captures)}
    return replace(baseline, accepted=tuple(by_metric[name] for name in sorted(by_metric)))
