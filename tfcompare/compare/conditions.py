"""Parses and checks conditions on two runs, such as `step_time>+5%`.

A percentage is compared with the change, candidate ÷ baseline − 1; any other value with the candidate alone. A
condition describes a failure: if it is met, the check has `failed`. A metric with a confidence interval fails only if
the whole interval meets the condition.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfcompare.compare.between_steps import in_words, window_of
from tfcompare.compare.captures import Replicates, caveat
from tfcompare.compare.condition_metrics import BYTES, COUNT, METRICS, RATE, TIME, Measured, Pair
from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.stats.verdict import UNCLEAR, UNTESTED, USUAL_MARGIN
from tfcompare.errors import TfcompareError, Unknown

if TYPE_CHECKING:
    from tfcompare.run import Run

PASSED = "passed"
FAILED = "failed"
MISSING = "missing"

WITHOUT_CONDITIONS = ("step_time", "peak_memory")
"""The metrics that are reported if no condition is given."""

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
UNITS = {
    TIME: {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6},
    BYTES: {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    COUNT: {"": 1.0},
    RATE: {"": 1.0},
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

    Without a condition, `outcome` is the verdict on the change.
    """

    name: str
    condition: Condition | None
    measured: Measured
    outcome: str

    @property
    def candidate(self) -> float:
        """The candidate's value that was checked."""
        return self.measured.candidate if self.is_change else self.measured.level.value

    @property
    def is_change(self) -> bool:
        """Whether the change was checked instead of the candidate's value alone."""
        return self.condition is None or self.condition.is_change

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
        needed = f". {found.how_to_detect(self.margin).removesuffix('.')}" if self.outcome == UNCLEAR else ""
        return f"{self.reason}. {found.summary()}{needed}"


@dataclass(frozen=True)
class Findings:
    """All findings on two runs; `notes` are sentences that help to read them."""

    found: tuple[Finding, ...]
    notes: tuple[str, ...]

    def passed(self, *, strict: bool) -> bool:
        """Whether no condition is failed or missing; if `strict`, whether all conditions passed."""
        bad = {FAILED, MISSING, UNCLEAR, UNTESTED} if strict else {FAILED, MISSING}
        return not any(f.outcome in bad for f in self.found if f.condition is not None)

    @property
    def missing(self) -> tuple[Finding, ...]:
        """Conditions on metrics that neither run has, which are probably mistakes."""
        return tuple(f for f in self.found if f.outcome == MISSING)


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
    baseline: Run,
    candidate: Run,
    conditions: Sequence[Condition],
    *,
    host: str | None = None,
    spread: float | None = None,
    repeats: Mapping[str, Sequence[Run]] | None = None,
    is_series: bool = False,
) -> Findings:
    """Checks the conditions on two runs, in order; without conditions, returns verdicts on `WITHOUT_CONDITIONS`.

    `host` restricts the check to one of the baseline's hosts and its counterpart; `spread` is the standard deviation
    between captures of one program, as a share, which overrides the default of the device; `repeats` maps the id of
    either run to further captures of its program, which verdicts on times then use as well; `is_series`: those of the
    baseline are earlier runs of a series, and the candidate varies as they do. Raises `Unknown` for a host
    that a run does not have.
    """
    theirs = _counterpart(baseline, candidate, host)
    replicates = Replicates(dict(repeats or {}), spread, is_series)
    pair = Pair(replicates.captures(baseline, host), replicates.captures(candidate, theirs), replicates)
    if conditions:
        found = [_checked(condition, pair) for condition in conditions]
    else:
        found = [_verdict_on(name, pair) for name in WITHOUT_CONDITIONS]
    notes = [caveat(baseline, candidate)]
    windows = [window_of(run, on_host) for run, on_host in ((baseline, host), (candidate, theirs))]
    notes.append(in_words(*windows, has_changed=False))
    if theirs != host:
        notes.append(f"host {host} of the baseline is compared with host {theirs} of the candidate")
    return Findings(tuple(found), tuple(note for note in notes if note))


def _counterpart(baseline: Run, candidate: Run, host: str | None) -> str | None:
    if host is None:
        return None
    counterparts = host_counterparts(baseline.host_names, candidate.host_names)
    for run, known in ((baseline, baseline.host_names), (candidate, counterparts)):
        if host not in known:
            raise Unknown(f"host of {run.name}", host, sorted(run.host_names))
    return counterparts[host]


def _checked(condition: Condition, pair: Pair) -> Finding:
    measured = METRICS[condition.metric].measure(pair, condition.pattern)
    return Finding(condition.metric + condition.pattern, condition, measured, outcome(condition, measured))


def _verdict_on(name: str, pair: Pair) -> Finding:
    measured = METRICS[name].measure(pair, "")
    return Finding(name, None, measured, measured.verdict.word)


def outcome(condition: Condition, measured: Measured) -> str:
    """The outcome of a condition.

    `failed` if the whole interval meets the condition, `unclear` if only the estimate does, else `passed`; `untested`
    without an interval, `missing` if neither run has the metric.
    """
    if measured.is_missing:
        return MISSING
    change, level = measured.verdict, measured.level
    estimate, low, high = (
        (change.ratio, change.low, change.high) if condition.is_change else (level.value, level.low, level.high)
    )
    if math.isnan(low):
        return UNTESTED
    holds = OPERATORS[condition.operator]
    if all(holds(bound, condition.threshold) for bound in (low, high)):
        return FAILED
    return UNCLEAR if holds(estimate, condition.threshold) else PASSED
