"""What a change saves and what it costs: where time and memory, or device time and host time, move in opposite
directions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from tfcompare.compare.matching.plain_names import bare_path
from tfcompare.compare.per_device import computing_devices
from tfcompare.compare.spreads import spread_on
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.steps.peak_memory import instructions_in_steps, peak_memory_of_steps, steps_of_kind
from tfcompare.compare.steps.step_time_verdict import in_headline, step_time_us
from tfcompare.schema import HOST, OP_STATS

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side
    from tfcompare.compare.stats.estimates import Times

STEP_TIME, DEVICE_TIME, HOST_TIME = "step time", "device time", "host op time"
LEAST_CHANGE = 0.05
"""Of the larger peak, or of the longer step: a smaller change is not worth one to a program."""
LEAST_BYTES = 16e6
"""Less memory than this is not what limits a program: it is a thousandth of that of a small device."""
_LEAST_CAUSE = 0.5
"""The share of the change of the time from which what is computed again is its cause."""


@dataclass(frozen=True)
class Change:
    """A mean time per step in µs, or the size of a memory in bytes, of baseline and candidate; `measured` is a time
    above, or as in `PeakMemory`."""

    measured: str
    baseline: float
    candidate: float

    @property
    def delta(self) -> float:
        """Candidate − baseline."""
        return self.candidate - self.baseline

    @property
    def is_time(self) -> bool:
        """Whether it is a time, else a memory."""
        return self.measured in (STEP_TIME, DEVICE_TIME, HOST_TIME)

    @property
    def unit(self) -> str:
        """`µs` or `bytes`."""
        return "µs" if self.is_time else "bytes"


@dataclass(frozen=True)
class Recomputed:
    """The instructions that compute values again in the steps of a run: how many, their name scopes, that with most of
    them first, and their self time per step and device in µs."""

    count: int
    scopes: tuple[str, ...] = ()
    time_us: float = 0.0


@dataclass(frozen=True)
class TradeOff:
    """What the candidate saves in the steps of a `kind`, and what that costs; the kind is empty where steps are all of
    one.

    `recomputed`: what baseline and candidate compute again, where that changed as the time did; `is_by_recomputing`:
    it is at least half of the change of the time.
    """

    kind: str
    saved: Change
    cost: Change
    recomputed: tuple[Recomputed, Recomputed] | None = None
    is_by_recomputing: bool = False


def trade_off(pair: Pair) -> TradeOff | None:
    """The trade-off in the kind of step with most time that has one; None without any, and where the runs differ in
    what alone can change times."""
    if pair.is_identical or pair.is_single or pair.headline_verdict.caveat:
        return None
    return pair.cached("trade-off", lambda: next(_trade_offs(pair), None))


def _trade_offs(pair: Pair) -> Iterator[TradeOff]:
    """Of memory for time, kind by kind; then of device time for host time."""
    for kind, time in _claimed_times(pair):
        found = peak_memory_of_steps(pair, kind)
        if found is None:
            continue
        memory = Change(found.measured, *found.peaks)
        if time.delta * memory.delta < 0 and abs(memory.delta) >= max(LEAST_CHANGE * max(found.peaks), LEAST_BYTES):
            yield _with_recomputed(pair, _opposed(kind, time, memory), time)
    if (on_device := _device_time(pair)) is not None and (on_host := _host_time(pair, on_device)) is not None:
        yield _opposed(_main_kind(pair), on_device, on_host)


def _opposed(kind: str, *changes: Change) -> TradeOff:
    """Two changes in opposite directions."""
    saved, cost = sorted(changes, key=lambda one: one.delta)
    return TradeOff(kind, saved, cost)


def _main_kind(pair: Pair) -> str:
    """The kind that the headline is on, or that is chosen; empty where it is on all steps."""
    return pair.baseline.choice.kind or "" if pair.main_kind is None else pair.main_kind.name


def _claimed_times(pair: Pair) -> Iterator[tuple[str, Change]]:
    """The kinds of steps, that with most time first, with the change of the step time where it is claimed; else, in the
    kind of the headline, with that of the device time where it is."""
    if pair.main_kind is not None:
        times = [(one.name, one.times_us, one.verdict) for one in pair.step_kinds if all(one.counts)]
    elif not pair.step_kinds and pair.baseline.choice.kind == pair.candidate.choice.kind:
        ours, theirs = map(step_time_us, pair.sides)
        times = [(_main_kind(pair), (ours, theirs), pair.verdict)]
    else:
        return  # no kind of step is on both sides
    for kind, times_us, verdict in times:
        if verdict.is_claim:
            yield kind, Change(STEP_TIME, *times_us)
        elif kind == times[0][0] and (found := _device_time(pair)) is not None:
            yield kind, found


def _device_time(pair: Pair) -> Change | None:
    """The change of how long devices are busy in the steps that the headline is on; None where it is not claimed."""
    if pair.device_verdict is None or not pair.device_verdict.is_claim:
        return None
    ours, theirs = in_headline(pair, [side.device_times_us for side in pair.sides])
    return _change(DEVICE_TIME, ours, theirs)


def _host_time(pair: Pair, on_device: Change) -> Change | None:
    """The change of the time of host ops in these steps, where it is claimed and opposed to that of `on_device`, and
    both are worth a change beside the step.

    Not of what a step does while no device is busy: that shrinks wherever devices do more at the same time.
    """
    ours, theirs = in_headline(pair, [_host_op_times(side) for side in pair.sides])
    on_host = _change(HOST_TIME, ours, theirs)
    least = LEAST_CHANGE * max(map(step_time_us, pair.sides))
    if on_host.delta * on_device.delta >= 0 or min(abs(on_host.delta), abs(on_device.delta)) < least:
        return None
    return on_host if ChangeTest(spread_on(pair, HOST))(ours, theirs).is_claim else None


def _host_op_times(side: Side) -> list[Times]:
    """The self time of all ops on the host in each step of each capture."""

    def of_capture(position: int) -> Times:
        ops, steps = side.cells(position, OP_STATS.name), side.steps(position)
        on_host = (ops.keys["host_or_device"] == HOST).to_numpy()[ops.cells["row"].to_numpy()]
        time_us = ops.cells[on_host].groupby("step")["time_us"].sum()
        return steps.split(time_us.reindex(steps.numbers, fill_value=0.0).to_numpy(np.float64))

    return [of_capture(position) for position in side.positions]


def _change(measured: str, baseline: Sequence[Times], candidate: Sequence[Times]) -> Change:
    ours, theirs = (fmean(float(times.included.mean()) for times in side) for side in (baseline, candidate))
    return Change(measured, ours, theirs)


def _with_recomputed(pair: Pair, found: TradeOff, time: Change) -> TradeOff:
    """The trade-off with what both sides compute again, if the side that takes more time computes more again."""
    ours, theirs = (_recomputed(pair, side, found.kind) for side in pair.sides)
    if (theirs.count - ours.count) * time.delta <= 0:
        return found
    is_cause = (theirs.time_us - ours.time_us) / time.delta >= _LEAST_CAUSE
    return replace(found, recomputed=(ours, theirs), is_by_recomputing=is_cause)


def _recomputed(pair: Pair, side: Side, kind: str) -> Recomputed:
    """What a side computes again in its steps of a kind, by the capture that stands for all."""
    run, host = side.run, side.host
    if run.table("hlo_ops", host=host).empty:
        return Recomputed(0)
    steps = steps_of_kind(pair, run, host, kind)
    ran = instructions_in_steps(run, host, steps)
    again = ran[ran["is_rematerialized"].astype(bool)]
    distinct = again.drop_duplicates(["program", "hlo_op"])  # hosts run the same
    time_us = float(again["self_time_us"].sum()) / max(len(steps), 1) / computing_devices(run, host) / side.iterations
    return Recomputed(len(distinct), tuple(outer_scopes(distinct["op_name"])), time_us)


def outer_scopes(op_names: Iterable[str]) -> Iterator[str]:
    """The outermost name scopes in which ops differ, that of most ops first; none for ops without any."""
    paths = [path for name in op_names if (path := bare_path(name)[:-1])]
    common = sum(1 for _ in takewhile(lambda level: len({*level}) == 1, zip(*paths, strict=False)))
    counts = Counter(path[common] if len(path) > common else path[-1] for path in paths)
    yield from sorted(counts, key=lambda scope: (-counts[scope], scope))
