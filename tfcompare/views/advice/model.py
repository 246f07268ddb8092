"""The data classes of advice: a rule's findings, the figures behind them, and the advice as displayed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tfcompare.text import as_code
from tfcompare.units import format_percent, format_value

if TYPE_CHECKING:
    from tfcompare.views.advice.facts import Facts
    from tfcompare.views.advice.worth_trying import Suggestion

GUIDE = "https://www.tensorflow.org/guide/profiler"
GPU_GUIDE = "https://www.tensorflow.org/guide/gpu_performance_analysis"
DATA_GUIDE = "https://www.tensorflow.org/guide/data_performance"
MIXED_PRECISION_GUIDE = "https://www.tensorflow.org/guide/mixed_precision"
XLA_GUIDE = "https://www.tensorflow.org/xla"

SHARE = "share"
"""The unit of a fraction of 1, which is shown in percent."""

WORTH_IT = 0.05
"""Share of the step that is worth a change to a program: two recordings of one program differ by about as much."""

_NAME_WIDTH = 60


@dataclass(frozen=True)
class Evidence:
    """A number that advice rests on, of the candidate and, beside it, of the baseline (NaN where a side has none).

    `unit` is a unit of `schema`, or `share`. `subject` is what the number is of where that has a name in the profile
    (an op, an iterator, a memory): data as it stands there, not made fit for Markdown.
    """

    label: str
    unit: str
    candidate: float
    baseline: float
    subject: str = ""

    @property
    def candidate_text(self) -> str:
        """The candidate's number with its unit."""
        return say(self.candidate, self.unit)

    @property
    def baseline_text(self) -> str:
        """The baseline's number with its unit; an en dash where it has none."""
        return say(self.baseline, self.unit)


@dataclass(frozen=True)
class Advice:
    """What to try next in the candidate.

    `title` says what was found, `text` in Markdown what to do about it; `link` leads to the guide. `saves` is the share
    of the candidate's step time (where it has no steps, of its devices' time) that it could save at most; 0 where it
    saves no time, or nothing tells how much.
    """

    rule: str
    title: str
    text: str
    evidence: tuple[Evidence, ...]
    link: str
    saves: float


@dataclass(frozen=True)
class Findings:
    """All advice on a candidate, what could save the most first.

    `caveat`: why there is no advice on times; empty where there may be. `also_worth_trying`: suggestions for which the
    profile shows nothing, as no rule's advice does.
    """

    advice: tuple[Advice, ...] = ()
    caveat: str = ""
    also_worth_trying: tuple[Suggestion, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A number of one run: `of` takes it from the run's facts, NaN where they do not tell it.

    `summed`: it is a sum over the profile, put per step where the run has steps.
    """

    label: str
    unit: str
    of: Callable[[Facts], float]
    subject: str = ""
    summed: bool = False

    def text(self, facts: Facts) -> str:
        """The number with its unit."""
        return say(self.of(facts), self.unit)


@dataclass(frozen=True)
class Found:
    """A rule's finding in one run; the fields are those of `Advice`."""

    title: str
    text: str
    figures: tuple[Figure, ...]
    link: str
    saves: float = 0.0


Rule = Callable[["Facts"], Found | None]


def evidence(figures: tuple[Figure, ...], candidate: Facts, baseline: Facts) -> tuple[Evidence, ...]:
    """The figures of both sides; a sum per step has no counterpart in a run without steps, nor the other way round."""
    is_alike = candidate.per == baseline.per
    return tuple(
        Evidence(
            f"{f.label} per {candidate.per}" if f.summed else f.label,
            f.unit,
            f.of(candidate),
            f.of(baseline) if is_alike or not f.summed else math.nan,
            f.subject,
        )
        for f in figures
    )


def say(value: float, unit: str) -> str:
    """A number in readable form, with its unit."""
    return format_percent(value) if unit == SHARE else format_value(value, unit)


code = partial(as_code, letters=_NAME_WIDTH)
"""A name from a profile in a sentence."""
