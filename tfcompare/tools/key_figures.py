"""The most important figures of two runs, for the top of the overview."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.aggregate import metric_in, without_idle
from tfcompare.compare.stats.estimates import STEP_TIME as MEANING
from tfcompare.compare.stats.verdict import SAME, Verdict, verdict_on_size
from tfcompare.schema import DEVICE, HOST, IDLE, SIDES

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["ms", "µs", "share", "bytes", "bytes/s", "FLOP/s", "steps/s", "examples/s", ""]
Better = Literal["lower", "neither"]
NEITHER_TOLD = (math.nan, math.nan)
STEP_TIME = "Step time"


@dataclass(frozen=True)
class KeyFigure:
    """One figure of both sides. A `share` is a fraction of 1.

    A side without the figure is NaN; so is the `baseline` of a figure that describes both runs together. Shares are not
    judged, because the share of an unchanged part grows when the rest gets faster.
    """

    label: str
    unit: Unit
    baseline: float
    candidate: float
    better: Better
    meaning: str

    @property
    def has_baseline(self) -> bool:
        """Whether both sides have the figure."""
        return not math.isnan(self.baseline)

    def alone(self) -> KeyFigure:
        """The figure of a run that is shown alone, without a baseline."""
        return replace(self, baseline=math.nan)

    @property
    def judgement(self) -> Literal["better", "worse", "same", "neither"]:
        """How the candidate compares with the baseline; `neither` if neither direction is better."""
        if self.better == "neither" or math.isnan(self.baseline) or math.isnan(self.candidate):
            return "neither"
        is_size = self.unit == "bytes" and verdict_on_size(self.baseline, self.candidate) == SAME
        if is_size or self.candidate == self.baseline:
            return "same"
        return "better" if self.candidate < self.baseline else "worse"


def better_by(verdict: Verdict) -> Better:
    """The direction that counts as better, if the verdict claims a change; else `neither`."""
    return "lower" if verdict.is_claim else "neither"


def key_figures(
    diff: pd.DataFrame,
    step_us: tuple[float, float],
    sixteen_bit: tuple[float, float] = NEITHER_TOLD,
    eager: tuple[float, float] = NEITHER_TOLD,
    step_time: Better = "neither",
) -> list[KeyFigure]:
    """Step time, op time on host and device, and shares of IDLE, 16-bit computing, eager ops and matched time.

    `diff` is a diff of `op_stats` of one candidate; the figures are per step or per run, as in the diff. For baseline
    and candidate, NaN if unknown: `step_us`, the step times; `sixteen_bit`, the shares of 16-bit computing on the
    device; `eager`, the shares of eager ops. `step_time` is how the verdict judges the step time; sums of times are not
    judged. Figures that neither run has (step time without steps, device time without a device) are left out.
    """
    metric = metric_in(diff, "self_time_us")
    per = metric.partition("_per_")[2] or "run"
    figures = [] if any(map(math.isnan, step_us)) else [_step_time(*step_us, step_time)]
    sides = _sides(diff)
    figures += [_op_time(diff, metric, side, per) for side in sides]
    figures += [_idle_share(diff, metric, side) for side in sides[:1]]
    figures += [] if all(map(math.isnan, sixteen_bit)) else [_sixteen_bit(*sixteen_bit)]
    figures += [] if all(map(math.isnan, eager)) else [_eager(*eager)]
    return [*figures, _matched(diff, metric)] if sides else figures


def _step_time(baseline_us: float, candidate_us: float, better: Better) -> KeyFigure:
    return KeyFigure(STEP_TIME, "µs", baseline_us, candidate_us, better, MEANING)


def _sixteen_bit(baseline: float, candidate: float) -> KeyFigure:
    return KeyFigure(
        "16-bit compute",
        "share",
        baseline,
        candidate,
        "neither",
        "Time of steps in which a device computes with numbers of 16 bits (or fewer), as a share of that in which it "
        "computes with numbers of a known width. It is known by the types of an op's inputs or the kernel's name; no "
        "figure where the profile tells it of less than half of the computing.",
    )


def op_times(diff: pd.DataFrame) -> list[KeyFigure]:
    """The self time of all ops of one candidate's diff, on each of device and host that ran any."""
    metric = metric_in(diff, "self_time_us")
    per = metric.partition("_per_")[2] or "run"
    return [_op_time(diff, metric, side, per) for side in _sides(diff)]


def _sides(diff: pd.DataFrame) -> list[str]:
    return [side for side in (DEVICE, HOST) if bool((without_idle(diff)["host_or_device"] == side).any())]


def _op_time(diff: pd.DataFrame, metric: str, side: str, per: str) -> KeyFigure:
    ops = without_idle(diff)
    here = ops[ops["host_or_device"] == side]
    ours, theirs = (float(here[f"{metric}_{role}"].astype("float64").sum(min_count=1)) for role in SIDES)
    meaning = (
        f"Self time of all {side.lower()} ops added up over all hosts, threads and streams, per {per}; without IDLE."
    )
    return KeyFigure(f"{side} op time per {per}", "µs", ours, theirs, "neither", meaning)


def _idle_share(diff: pd.DataFrame, metric: str, side: str) -> KeyFigure:
    here = diff[diff["host_or_device"] == side]
    idle, whole = _sums(here[here["op_type"] == IDLE], metric), _sums(here, metric)
    meaning = f"Time in which no op ran on {side.lower()}, as a share of it and all self times there."
    return KeyFigure(f"{side} IDLE", "share", _ratio(idle[0], whole[0]), _ratio(idle[1], whole[1]), "neither", meaning)


def _eager(baseline: float, candidate: float) -> KeyFigure:
    return KeyFigure(
        "Eager ops on host",
        "share",
        baseline,
        candidate,
        "neither",
        "Ops that Python calls one by one, outside of any tf.function: their share of the step (median), without time "
        "in which a device is busy. Without steps, their self time as a share of the profile.",
    )


def _matched(diff: pd.DataFrame, metric: str) -> KeyFigure:
    ops = without_idle(diff)
    part, whole = sum(_sums(ops[ops["status"] == MATCHED], metric)), sum(_sums(ops, metric))
    meaning = "Share of both runs' self time in ops that have a counterpart in the other run."
    return KeyFigure("Time with a counterpart", "share", math.nan, _ratio(part, whole), "neither", meaning)


def _sums(rows: pd.DataFrame, metric: str) -> tuple[float, float]:
    ours, theirs = (float(rows[f"{metric}_{role}"].astype("float64").sum()) for role in SIDES)
    return ours, theirs


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan
