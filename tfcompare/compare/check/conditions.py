"""Parses and checks conditions on two runs, such as `step_time>+5%`.

A percentage is compared with the change, candidate ÷ baseline − 1; any other value with the candidate alone. A
condition describes a failure: if it is met, the check has `failed`. A metric with a confidence interval fails only if
the whole interval meets the condition.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from tfcompare.compare.check.condition_metrics import METRICS
from tfcompare.compare.check.measured import BYTES, COUNT, FLOP_RATE, FLOPS, RATE, SHARE, TIME, Measured, Samples
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import Pairs, pair_with
from tfcompare.compare.stats.estimates import FEWEST_REPEATS
from tfcompare.compare.stats.verdict import UNCLEAR, UNTESTED, USUAL_MARGIN, percent
from tfcompare.compare.steps.step_time_verdict import UNRELATED, step_marker_call
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.schema import SIDES

if TYPE_CHECKING:
    from tfcompare.compare.side import Side

PASSED = "passed"
FAILED = "failed"
MISSING = "missing"
NOT_JUDGED = "not judged"
NO_CONDITIONS = "no conditions"

NEED_NO_STEPS = ("input_latency", "peak_memory", "peak_memory:")
"""The metrics that are compared in runs without step markers."""
OF_STEP_TIMES = ("step_time", "step_time_median", "step_time_p95")
NEED_STEP_TIMES = (*OF_STEP_TIMES, "device_time", "mfu", "hbm_share", "time_between_steps")
"""The metrics for which it must be known how long the steps took."""
_EXCLUDED_STEPS = 2
"""The first and the last of more than five steps do not count."""
_LARGEST_SHOWN = 10.0
"""Larger changes are reported as this one."""
_EXACT = ("occurrences:", "kernel_launches", "flops", "peak_memory")
"""The exact metrics of what a program does."""
_ANY = "*"
_PER_STEP = ("steps", "step periods", "gaps between steps")
"""Samples of which each step has one."""
_SINGULAR = {"steps": "step", "step periods": "step period", "gaps between steps": "gap between steps", "calls": "call"}

WITHOUT_CONDITIONS = ("step_time", "peak_memory")
"""The metrics that are reported if no condition is given."""

_Operator = Callable[[float, float], bool]
OPERATORS: dict[str, _Operator] = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
UNITS = {
    TIME: {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6},
    BYTES: {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    COUNT: {"": 1.0},
    FLOPS: {"": 1.0},
    RATE: {"": 1.0},
    FLOP_RATE: {"": 1.0},
    SHARE: {"": 1.0},
}
"""The units accepted in conditions, by the metric's unit, with their factors."""

_CONDITION = re.compile(
    r"(?P<metric>.+?)\s*(?P<operator>>=|<=|>|<)\s*"
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>%|[A-Za-zµ]*)"
)
_CHARACTERS = str.maketrans({"\N{GREEK SMALL LETTER MU}": "µ", "\N{MINUS SIGN}": "-"})


@dataclass(frozen=True)
class Condition:
    """A parsed condition: `text` is its original form, `metric` a key of `METRICS`, `pattern` the metric's pattern.

    `threshold`: candidate ÷ baseline if `is_change`, else a value in the metric's unit.
    """

    text: str
    metric: str
    pattern: str
    operator: str
    threshold: float
    is_change: bool


@dataclass(frozen=True)
class Finding:
    """The result of a condition: `outcome` is `failed`, `passed`, `unclear`, `untested` or `missing`.

    Without a condition, `outcome` is the verdict on the change. `why_not_judged`: what the captures of an `untested`
    or `missing` condition lack, and what to record; `instead`: what these captures show better than an `unclear` one.
    Both are empty for other outcomes. `remark`: what else it was compared with than the baseline, and why.
    """

    name: str
    condition: Condition | None
    measured: Measured
    outcome: str
    why_not_judged: str = ""
    instead: str = ""
    remark: str = ""

    @property
    def text(self) -> str:
        """The condition as given, or the name of the metric; with the kind of the steps, if it is on one of several."""
        return self.name if self.condition is None else f"{self.condition.text}{_of_kind(self.measured)}"

    @property
    def candidate(self) -> float:
        """The candidate's value that was checked."""
        return self.measured.candidate if self.is_change else self.measured.level.value

    @property
    def is_change(self) -> bool:
        """Whether the change was checked instead of the candidate's value alone."""
        return self.condition is None or self.condition.is_change

    @property
    def outcome_text(self) -> str:
        """The outcome; without a condition, the verdict in the words of pages: `likely slower`."""
        return self.outcome if self.condition else self.measured.verdict.text

    @property
    def reason(self) -> str:
        """The basis of the outcome, in one line."""
        return self.measured.verdict.reason if self.is_change else self.measured.level.reason

    @property
    def margin(self) -> float:
        """The change to detect, as a share: the condition's threshold, else `USUAL_MARGIN`."""
        size = abs(self.condition.threshold - 1) if self.condition is not None and self.condition.is_change else 0.0
        return round(size, 12) or USUAL_MARGIN

    @property
    def basis(self) -> str:
        """The reason, the captures and their sensitivity and, if unclear, how many captures would be needed."""
        found = self.measured.verdict.sensitivity
        if found is None or not self.is_change:
            return self.reason
        needed = f". {found.how_to_detect(self.margin)}" if self.outcome == UNCLEAR else ""
        return f"{self.reason}. {found.summary()}{needed}"

    @property
    def why_unclear(self) -> str:
        """Why an unclear condition is, the smallest detectable change, what shows more, and what to record."""
        found = self.measured.verdict.sensitivity
        if not self.is_change or found is None:
            return "the 95 % confidence interval contains the limit; record more captures"
        shown = percent(min(found.smallest_change, _LARGEST_SHOWN))
        if min(found.captures) < FEWEST_REPEATS:
            more = f"record {FEWEST_REPEATS} captures or more per side, whose variation is then measured"
        else:
            more = "record more captures"
        if self.instead:
            more = f"{self.instead}; or {more}"
        if found.smallest_change > self.margin:
            return f"these captures can show only changes above {shown}; {more}"
        return f"the 95 % confidence interval contains the limit; smallest detectable change: {shown}; {more}"


class Asked(NamedTuple):
    """What is judged: a condition, what was measured for it, and a remark as of `Finding`."""

    condition: Condition
    measured: Measured
    remark: str = ""


@dataclass(frozen=True)
class Judgement:
    """The overall result: `passed`, `failed`, `unclear`, `not judged` or `no conditions`.

    `reasons`: why it is unclear or not judged, as `CONDITION: what the captures lack, and what to record`.
    """

    outcome: str
    reasons: tuple[str, ...] = ()

    @property
    def is_passed(self) -> bool:
        """Whether nothing failed, and everything could be judged."""
        return self.outcome not in (FAILED, NOT_JUDGED)


@dataclass(frozen=True)
class Findings:
    """All findings on the runs of a pair."""

    found: tuple[Finding, ...]
    pair: Pair

    def judge(self, *, strict: bool) -> Judgement:
        """The overall result; if `strict`, an unclear condition fails.

        A failed condition outweighs one that could not be judged, and that outweighs an unclear one.
        """
        outcomes = {f.outcome for f in self.found if f.condition is not None}
        if not outcomes:
            is_comparable = not self.pair.are_unrelated
            return Judgement(NO_CONDITIONS) if is_comparable else Judgement(NOT_JUDGED, (UNRELATED.reason,))
        if FAILED in outcomes:
            return Judgement(FAILED)
        unclear = [f for f in self.found if f.outcome == UNCLEAR]
        if unclear and strict:
            return Judgement(FAILED, _by_reason((f.text, f"unclear, since {f.why_unclear}") for f in unclear))
        if self.not_judged:
            return Judgement(NOT_JUDGED, self.not_judged)
        return Judgement(UNCLEAR if unclear else PASSED, _by_reason((f.text, f.why_unclear) for f in unclear))

    @property
    def not_judged(self) -> tuple[str, ...]:
        """A sentence on each reason why conditions could not be judged, whatever became of the others."""
        return _by_reason((f.text, f.why_not_judged) for f in self.found if f.why_not_judged)


def _by_reason(reasons: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """`CONDITION, CONDITION: reason` for each reason, from pairs of condition and reason."""
    conditions: dict[str, list[str]] = {}
    for condition, reason in reasons:
        conditions.setdefault(reason, []).append(condition)
    return tuple(f"{', '.join(of)}: {reason}" for reason, of in conditions.items())


def parse_condition(text: str) -> Condition:
    """Parses a condition: `METRIC OP PERCENT%` or `METRIC OP VALUE`.

    Raises `Unknown` for an unknown metric, `TfcompareError` for an invalid condition.
    """
    match = _CONDITION.fullmatch(text.translate(_CHARACTERS).strip())
    if match is None:
        raise TfcompareError(
            f"{text!r} is no condition; expected METRIC OP PERCENT% or METRIC OP VALUE, as in 'step_time>+5%' or "
            f"'input_latency>2ms', where METRIC is one of: {', '.join(forms())}; and OP one of: {', '.join(OPERATORS)}"
        )
    name, colon, pattern = (part.strip() for part in match["metric"].partition(":"))
    if name + colon not in METRICS or (colon and not pattern):
        raise Unknown("metric", match["metric"], forms())
    is_change = match["unit"] == "%"
    threshold = (100 + float(match["number"])) / 100 if is_change else _value(match, METRICS[name + colon].unit, text)
    return Condition(text.strip(), name + colon, pattern, match["operator"], threshold, is_change)


def forms() -> list[str]:
    """The syntax of all metrics."""
    return [metric.form for metric in METRICS.values()]


def _value(match: re.Match[str], unit: str, text: str) -> float:
    known = UNITS[unit]
    if match["unit"] not in known:
        choices = ", ".join(f"'{u}'" if u else "a plain number" for u in known)
        raise TfcompareError(f"{text!r}: {match['metric']} takes '%' (of change) or a value in: {choices}")
    return float(match["number"]) * known[match["unit"]]


def check(
    pairs: Pairs, conditions: Sequence[Condition], asked: Callable[[Condition, Measured], Asked] = Asked
) -> Findings:
    """Checks the conditions on the baseline and the only candidate of a comparison, in order.

    `asked` may give others in place of a condition and what was measured for it. Without conditions, returns verdicts
    on `WITHOUT_CONDITIONS`. Raises `TfcompareError` for several candidates.
    """
    if len(pairs.candidates) > 1:
        raise TfcompareError(f"a check needs one candidate, found {len(pairs.candidates)}; check them one by one")
    pair = pair_with(pairs)
    found = []
    for condition in conditions:
        every = _measured(pair, condition.metric, condition.pattern)
        found += [_finding(asked(condition, measured), pair) for measured in every]
    for name in () if conditions else WITHOUT_CONDITIONS:
        every = _measured(pair, name)
        found += [Finding(name + _of_kind(measured), None, measured, measured.verdict.word) for measured in every]
    return Findings(tuple(map(_of_other_program, found) if pair.are_unrelated else found), pair)


def _of_other_program(finding: Finding) -> Finding:
    """The finding on runs of different programs: not judged."""
    if finding.outcome == MISSING:
        return finding
    measured = replace(finding.measured, verdict=UNRELATED)
    return replace(finding, measured=measured, outcome=UNTESTED, why_not_judged=UNRELATED.reason, instead="")


def _measured(pair: Pair, metric: str, pattern: str = "") -> list[Measured]:
    """A metric in each kind of step, where it is judged so, else of all steps."""
    return METRICS[metric].in_each_kind(pair) or [METRICS[metric].measure(pair, pattern)]


def _of_kind(measured: Measured) -> str:
    return f" ({measured.kind})" if measured.kind else ""


def name_of(condition: Condition, measured: Measured) -> str:
    """What a finding is called: the metric with its pattern and kind of steps."""
    return condition.metric + condition.pattern + _of_kind(measured)


def _finding(asked: Asked, pair: Pair) -> Finding:
    condition, measured, remark = asked
    finding = Finding(name_of(condition, measured), condition, measured, outcome(condition, measured), remark=remark)
    if finding.outcome in (UNTESTED, MISSING):
        return replace(finding, why_not_judged=_what_is_lacking(condition, measured, pair) or finding.reason)
    if finding.outcome == UNCLEAR and condition.is_change and condition.metric in OF_STEP_TIMES:
        return replace(finding, instead=_what_shows_more(measured, pair))
    return finding


def _what_shows_more(of_steps: Measured, pair: Pair) -> str:
    """`device_time shows changes above 9 %; exact: flops, peak_memory`: of what both runs have a record of; empty
    where that is none."""
    found, told = of_steps.verdict.sensitivity, []
    on_devices = [one.verdict.sensitivity for one in _measured(pair, "device_time") if one.kind == of_steps.kind]
    for one in filter(None, on_devices):
        if found is not None and one.smallest_change < found.smallest_change:
            told.append(f"device_time shows changes above {percent(one.smallest_change)}")
    exact = [METRICS[name] for name in _EXACT]
    known = [metric.form for metric in exact if metric.measure(pair, _ANY).verdict.has_interval]
    return "; ".join([*told, *([f"exact: {', '.join(known)}"] if known else [])])


def _what_is_lacking(condition: Condition, measured: Measured, pair: Pair) -> str:
    """What the captures lack, and what to record; empty if recording more steps would not help."""
    if measured.is_missing:
        return ""
    first = 0 if condition.is_change else 1
    sides = dict(zip(SIDES, pair.sides, strict=True))
    unmarked = [name for name, side in list(sides.items())[first:] if not side.all_have_steps]
    runs = [(name, run) for name in SIDES[first:] for run in sides[name].runs if not run.info.has_step_times]
    untimed = next((f"the {name}: {run.why_untimed}" for name, run in runs if run.why_untimed), "")
    if untimed and (condition.metric in NEED_STEP_TIMES or (unmarked and condition.metric not in NEED_NO_STEPS)):
        return untimed
    if unmarked and condition.metric not in NEED_NO_STEPS:
        infos = [run.info for _, run in runs]
        return (
            f"no step markers in the {' and the '.join(unmarked)}; record each step inside {step_marker_call(infos)}, "
            "or name the host event that begins each step (--step-marker)"
        )
    samples = measured.samples
    if samples is None or (few := min(samples.fewest[first:])) >= samples.needed:
        return ""
    count = f"{few} {_one(samples.of) if few == 1 else samples.of}"
    where = "in the candidate" if first else "on each side"
    or_one_kind = ", or judge another kind of steps alone (--step-kind)" if measured.kind else ""
    return f"{count}, {samples.needed} needed {where}; {_what_to_record(samples, pair.sides[first:])}{or_one_kind}"


def _one(samples: str) -> str:
    """`step of train` for `steps of train`."""
    return next(
        (one + samples.removeprefix(many) for many, one in _SINGULAR.items() if samples.startswith(many)), samples
    )


def _what_to_record(samples: Samples, sides: Sequence[Side]) -> str:
    if samples.of not in _PER_STEP:
        return "record more steps"
    if any(run.lost_steps for side in sides for run in side.runs):
        return "record again so that no step is lost"
    if any(run.choice.has_range for side in sides for run in side.runs):
        return "choose more steps (--steps)"
    return f"record {samples.needed + _EXCLUDED_STEPS} steps or more"


def outcome(condition: Condition, measured: Measured) -> str:
    """The outcome of a condition.

    `failed` if the whole interval meets the condition, and so does the estimate with strays counted; `unclear` if only
    the estimate does, else `passed`; `untested` without an interval, `missing` if neither run has the metric.
    """
    if measured.is_missing:
        return MISSING
    change, level = measured.verdict, measured.level
    if condition.is_change:
        estimate, low, high, with_strays = change.ratio, change.low, change.high, change.ratio_with_strays
    else:
        estimate, low, high, with_strays = level.value, level.low, level.high, level.with_strays
    if math.isnan(low):
        return UNTESTED
    holds = OPERATORS[condition.operator]
    if not holds(estimate, condition.threshold):
        return PASSED
    is_sure = all(holds(bound, condition.threshold) for bound in (low, high))
    return FAILED if is_sure and (with_strays is None or holds(with_strays, condition.threshold)) else UNCLEAR
