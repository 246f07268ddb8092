"""Figures of a run's steps: the time of their parts, a series of them, throughput, and the recurring idle gap.

The wall times of a part's ops add up to the part, except for the time in which no op was running
(`frames.steps.step_tables`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.attribution import OP, mean_step
from tfcompare.compare.comparability import examples_per_step
from tfcompare.compare.repeats import with_keys_of
from tfcompare.compare.side import window_of
from tfcompare.compare.stats.estimates import FEWEST_STEPS, Times, estimates, levels
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.frames.host_annotations import gets_input
from tfcompare.frames.ops.op_names import DATASET
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.schema import DEVICE, HOST, STEP_PARTS, STEP_PRECISIONS
from tfcompare.schema.arrays import Floats
from tfcompare.tables.hosts import steps_of_straggler
from tfcompare.tables.step_times import StepCells, Window
from tfcompare.text import as_code
from tfcompare.views.key_figures import KeyFigure, Unit, better_by

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side
    from tfcompare.run import Run, RunInfo

LEAST_KNOWN = 0.5
"""The minimum share of device computing with known precision for which a 16-bit share is given."""
LEAST_CHANGE = 0.01
"""The share of the window below which a change of the time between steps is not mentioned, even if significant."""

BETWEEN = "Between steps, per step"
THROUGHPUT = "Throughput"
EXAMPLES = "Examples"
DISPATCH = "Host dispatch per step"
_FIGURES: dict[tuple[str, Unit], str] = {
    (BETWEEN, "µs"): "Mean time after each step that is in no step, up to the start of the next; no part of the step "
    "time.",
    (THROUGHPUT, "steps/s"): "Steps by the time from the start of the first to that of the last, which includes the "
    "time between steps.",
    (EXAMPLES, "examples/s"): "Throughput times the batch size of the input pipeline that is asked once a step.",
    (DISPATCH, "µs"): "Mean length of the step's marker on the host, where steps are timed on the device because the "
    "host does not wait for it.",
}
MOST_STEPS = 0.5
"""The share of the steps whose longest gap is between the same two ops, for it to be named."""
_NAME_LETTERS = 80


@dataclass(frozen=True)
class HostSteps:
    """The mean step of one host of a run.

    `steps`: the included steps with their parts, one row per step; `shares`: their `RunTables.op_shares`; `launches`:
    kernels per included step, and copies per step, over all recorded steps; `around`: the sums of
    `RunTables.annotation_shares` of these steps; `between` the same per step, between the steps. Of several captures,
    the column `capture` of the steps counts them from 0, and shares are weighed so that each capture counts the same.
    """

    steps: pd.DataFrame
    shares: StepCells
    launches: float
    around: pd.DataFrame
    between: pd.DataFrame

    def mean_us(self, part: str) -> float:
        """The average time of one of `schema.STEP_PARTS`."""
        return float(mean_step(self.steps)[part])

    def times_us(self, op_names: Collection[str], *, of_input: bool = False) -> pd.Series:
        """The time of host ops with these names in each step, within or outside the waiting for input."""
        keys, cells = self.shares.keys, self.shares.cells
        is_one = (keys["host_or_device"] == HOST) & ((keys["step_part"] == "input_us") == of_input)
        is_one &= keys["op_name"].isin(op_names)
        times = cells[is_one.to_numpy()[cells["row"]]].groupby("step")["wall_time_us"].sum()
        return times.reindex(self.steps["step"]).fillna(0.0)

    def median_share(self, op_names: Collection[str], *, of_input: bool = False) -> float:
        """The median over the steps of that time as a share of the step; steps without duration do not count."""
        times = self.times_us(op_names, of_input=of_input).to_numpy()
        duration = self.steps["duration_us"].to_numpy()
        lasting = duration > 0
        return float(pd.Series(times[lasting] / duration[lasting]).median())

    def ops(self, part: str) -> pd.DataFrame:
        """The ops of a part: the columns `compare.attribution.OP` and `time_us`, the mean per step.

        Ops in a tf.data function are attributed to its iterator.
        """
        sums = self.shares.sums("wall_time_us")
        inside = sums[sums["step_part"] == part]
        of_stage = inside["stage"] != ""
        named = inside.assign(
            host_or_device=inside["host_or_device"].mask(of_stage, HOST),
            op_type=inside["op_type"].mask(of_stage, DATASET),
            op_name=inside["op_name"].mask(of_stage, inside["stage"]),
        )
        return self._per_step(named, list(OP))

    def annotations(self, part: str) -> pd.DataFrame:
        """The annotations and Python functions of a part, in time in which no op runs: the columns of `ops`, with the
        kind as type."""
        inside = self.around[self.around["step_part"] == part]
        named = inside.rename(columns={"kind": "op_type", "name": "op_name"}).assign(host_or_device=HOST)
        return self._per_step(named, list(OP))

    @property
    def getting_input(self) -> pd.Series:
        """The mean time per step in annotations and Python functions that get input, by name, the longest first."""
        return _getting_input(self.around) / max(len(self.steps), 1)

    @property
    def getting_input_between(self) -> pd.Series:
        """As `getting_input`, of the time between the steps."""
        return _getting_input(self.between)

    def function_ops(self, stage: str) -> pd.Series:
        """The mean time per step of the ops in the functions of a tf.data iterator, by op name."""
        sums = self.shares.sums("wall_time_us")
        inside = sums[sums["stage"] == stage]
        return self._per_step(inside, ["op_name"]).set_index("op_name")["time_us"]

    def _per_step(self, shares: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
        times = shares.groupby(keys)["wall_time_us"].sum().reset_index()
        return times.assign(time_us=times["wall_time_us"] / max(len(self.steps), 1))[[*keys, "time_us"]]


def _getting_input(shares: pd.DataFrame) -> pd.Series:
    names = shares[["kind", "name"]].drop_duplicates()
    chosen = {name for kind, name in names.itertuples(index=False) if gets_input(kind, name)}
    times = shares[shares["name"].isin(chosen)].groupby("name")["wall_time_us"].sum()
    found: pd.Series = times.sort_values(ascending=False, kind="stable")
    return found


def eager_share(ops: pd.DataFrame, steps: HostSteps | None, info: RunInfo) -> float:
    """The median over the steps of the share in which the host is busy with eager ops; NaN without host ops.

    `ops` are `op_stats` without IDLE, `steps` those of the straggler of several hosts. Time in which a device is busy
    and time waiting for input are excluded. Without steps, it is the ops' self time as a share of the profile.
    """
    ops = ops[ops["host_or_device"] == HOST]
    if ops.empty:
        return math.nan
    eager = ops[ops["is_eager"].astype(bool)]
    if steps is None:
        duration_us = info.duration_ms * 1e3
        return min(float(eager["self_time_us"].sum()) / duration_us, 1.0) if duration_us > 0 else math.nan
    return steps.median_share(eager["op_name"].tolist())


def host_steps(run: Run, host: str) -> HostSteps:
    """The average step of one host of a run."""
    included = _included_steps(run, host)
    shares, annotated = run.tables.op_shares(host).of_steps(included["step"]), run.tables.annotation_shares(host)
    around, between = (annotated.of_steps(steps).sums("wall_time_us") for steps in (included["step"], [NO_STEP]))
    count = max(len(run.table("steps", host=host)) - 1, 1)  # from the first step to the start of the last
    between["wall_time_us"] /= count
    kernels = run.tables.in_steps("kernel_stats", host=host)["occurrences"].sum() / max(len(included), 1)
    copies = run.table("copies", host=host)["occurrences"].sum() / run.tables.recorded_steps(host)
    return HostSteps(included, shares, float(kernels + copies), around, between)


def host_steps_of(side: Side) -> HostSteps:
    """The average step of the hosts of all captures of a run, with the names of ops in the first."""
    each = [host_steps(run, host) for run, host in zip(side.runs, side.hosts, strict=True) if host is not None]
    if len(each) == 1 and side.iterations == 1:
        return each[0]
    steps, cells, around, between = steps_of_captures(side), [], [], []
    keys = list[pd.DataFrame]()
    for position, one in enumerate(each):
        weight = len(steps) / len(each) / max(len(one.steps), 1) / side.iterations
        of_one = one.shares.cells.assign(row=one.shares.cells["row"] + sum(map(len, keys)))
        cells.append(of_one.assign(wall_time_us=of_one["wall_time_us"] * weight))
        keys.append(with_keys_of(side.keys(position, "op_stats"), one.shares.keys, OP))
        around.append(one.around.assign(wall_time_us=one.around["wall_time_us"] * weight))
        between.append(one.between.assign(wall_time_us=one.between["wall_time_us"] / len(each) / side.iterations))
    *of_ops, of_steps, between_steps = (
        pd.concat(several, ignore_index=True) for several in (keys, cells, around, between)
    )
    launches = fmean(one.launches for one in each) / side.iterations
    return HostSteps(steps, StepCells(*of_ops), launches, of_steps, between_steps)


def steps_of_captures(side: Side) -> pd.DataFrame:
    """The included steps of all captures of a run, as in `HostSteps`, with times per iteration."""
    each = side.each(_included_steps)
    if side.iterations > 1:
        times = ["duration_us", *STEP_PARTS]
        each = [steps.assign(**(steps[times] / side.iterations)) for steps in each]
    if len(each) == 1:
        return each[0]
    return pd.concat([steps.assign(capture=number) for number, steps in enumerate(each)], ignore_index=True)


def _included_steps(run: Run, host: str | None) -> pd.DataFrame:
    steps = run.table("steps", host=host)
    return steps[steps["included"].astype(bool)]


def steps_of(run: Run, host: str | None) -> pd.DataFrame:
    """Each step of `run` on its slowest host, or on the host that is shown."""
    if host is not None:
        return run.table("steps", host=host)
    return with_host(run.steps, run.table("steps"))


def has_step_times(run: Run) -> bool:
    """Whether there is any step time to draw."""
    return run.info.has_step_times and len(run.steps) > 0


def may_draw(steps: Iterable[pd.DataFrame]) -> bool:
    """Whether any of these runs has several steps: a single one is a figure and no chart."""
    return any(len(frame) > 1 for frame in steps)


def with_host(run_steps: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """`run_steps` (a run's steps, each as long as on its slowest host) with that `host`.

    `steps` is the table of all hosts. The first in order of their names, where several took equally long.
    """
    hosts = steps.sort_values("host").drop_duplicates("duration_us").set_index("duration_us")["host"]
    return run_steps.assign(host=run_steps["duration_us"].map(hosts))


def sixteen_bit_share(steps: pd.DataFrame) -> float:
    """The share of 16-bit computing in the device computing with known precision, over all these steps.

    `steps` has the columns of `schema.STEPS`. NaN if the precision of less than `LEAST_KNOWN` of it is known.
    """
    sixteen, thirty_two = (float(steps[column].sum()) for column in STEP_PRECISIONS)
    known = sixteen + thirty_two
    return sixteen / known if known > 0 and known >= LEAST_KNOWN * steps["device_compute_us"].sum() else math.nan


def op_by_step(ops: StepCells, steps: pd.DataFrame, wanted: pd.DataFrame) -> pd.DataFrame:
    """The self time of some ops in each step of `steps` (one row a step): its columns, `self_time_us` and
    `occurrences`.

    `wanted` gives the keys of the ops (`host_or_device`, `op_type`, `op_name`, or some of these), which are summed; a
    step in which none of them ran has 0 of both.
    """
    keys = list(wanted.columns)
    chosen = pd.MultiIndex.from_frame(ops.keys[keys]).isin(pd.MultiIndex.from_frame(wanted))
    cells = ops.cells[chosen[ops.cells["row"]]].rename(columns={"time_us": "self_time_us"})
    totals = cells.groupby("step")[["self_time_us", "occurrences"]].sum().reindex(steps["step"], fill_value=0)
    return steps.assign(**{name: totals[name].to_numpy() for name in totals.columns})


def steps_per_s(run: Run) -> tuple[float, float, float]:
    """(the throughput of a run in steps per second, its 95 % confidence interval).

    The interval is that of the mean time from one step's start to the next, from the run's own steps alone. NaN for
    what too few steps do not give.
    """
    window = window_of(run)
    if window is None:
        return math.nan, math.nan, math.nan
    periods = levels([estimates(Times.of(window.periods_us))], 0.0)
    shortest, mean, longest = (float(times[0]) for times in (periods.low, periods.location, periods.high))
    if len(window.periods_us) < FEWEST_STEPS or not 0 < shortest <= longest < math.inf:
        return window.steps_per_s, math.nan, math.nan
    return window.steps_per_s, window.steps_per_s * (mean / longest), window.steps_per_s * (mean / shortest)


def verdict_on_gaps(pair: Pair) -> Verdict:
    """The verdict on the time between steps, from the individual gaps."""
    return _verdict(pair, "gaps between steps", lambda window: window.gaps_us)


def verdict_on_loop(pair: Pair) -> Verdict:
    """The verdict on the time from step to step, from the individual times."""
    return _verdict(pair, "step periods", lambda window: window.periods_us)


def _verdict(pair: Pair, of: str, series: Callable[[Window], Floats]) -> Verdict:
    def test() -> Verdict:
        ours, theirs = ([Times.of(series(found)) for found in side.windows] for side in pair.sides)
        if not ours or not theirs:
            return Verdict("untested", "a run has fewer than two steps")
        return pair.time_verdict((ours, theirs), of)

    return pair.among.cached((pair.candidate.id, of), test)


def between_steps_changed(pair: Pair) -> bool:
    """Whether the time between steps changed significantly, by a good part of the whole."""
    ours, theirs = (side.window for side in pair.sides)
    if ours is None or theirs is None or abs(theirs.share - ours.share) < LEAST_CHANGE:
        return False
    return verdict_on_gaps(pair).is_claim


def dispatch_us(run: Run, host: str | None = None) -> float:
    """The mean host time of a step marker if most steps of the run are timed on the device; else NaN."""
    steps = steps_of_straggler(run.table("steps", host=host))
    counted = steps[steps["included"].astype(bool)]
    on_device = counted["host_span_us"].notna() & (counted["duration_us"] == counted["device_span_us"])
    return float(counted["host_span_us"].mean()) if len(counted) and on_device.mean() > 0.5 else math.nan


def window_figures(pair: Pair) -> list[KeyFigure]:
    """Key figures of both runs over their windows: time between steps, throughput and, if known, dispatch time.

    With replicates, means over all captures; throughput is that of the mean time from step to step.
    """
    ours, theirs = map(_figures_of, pair.sides)
    figures = []
    for (label, unit), meaning in _FIGURES.items():
        better = better_by(verdict_on_gaps(pair)) if label == BETWEEN else "neither"
        figures.append(KeyFigure(label, unit, ours[label], theirs[label], better, meaning))
    return [figure for figure in figures if not (math.isnan(figure.baseline) and math.isnan(figure.candidate))]


def _figures_of(side: Side) -> dict[str, float]:
    found = side.window
    per_s = math.nan if found is None else found.steps_per_s
    return {
        BETWEEN: math.nan if found is None else found.between_us,
        THROUGHPUT: per_s,
        EXAMPLES: per_s * examples_per_step(side.run, side.host) / side.iterations,
        DISPATCH: side.mean_per_step(dispatch_us),
    }


@dataclass(frozen=True)
class Gap:
    """The longest idle gap of most steps: `length_us` is the mean of these; an op is empty at the step's edge."""

    on_device: bool
    op_before: str
    op_after: str
    length_us: float

    @property
    def before(self) -> str:
        """What it comes before, in Markdown."""
        return f"before {as_code(self.op_after, _NAME_LETTERS)}" if self.op_after else "until the end of the step"

    @property
    def place(self) -> str:
        """What it comes after and before, in Markdown."""
        after = f"after {as_code(self.op_before, _NAME_LETTERS)}" if self.op_before else "from the start of the step"
        return f"{after}, {self.before}"


def gaps_of_steps(run: Run, steps: pd.DataFrame) -> pd.DataFrame:
    """The rows of `idle_gaps` on these steps of a run, which are those of one host."""
    host = str(steps["host"].iloc[0]) if len(steps) else None
    gaps = run.table("idle_gaps", host=host)
    return gaps[gaps["step"].isin(steps["step"])]


def usual_gap(run: Run, steps: pd.DataFrame) -> Gap | None:
    """The gap between the two ops that enclose the longest gap of most steps; None where they change from step to step.

    `steps` are the steps that count on one host.
    """
    gaps = gaps_of_steps(run, steps)
    if gaps.empty:
        return None
    same = gaps.groupby(["op_before", "op_after"])["duration_us"].agg(["size", "mean"])
    same = same.sort_values("size", ascending=False, kind="stable")
    first = same.iloc[0]
    if first["size"] < MOST_STEPS * len(gaps):
        return None
    before, after = (str(name) for name in same.index[0])
    return Gap(bool((gaps["host_or_device"] == DEVICE).any()), before, after, float(first["mean"]))
