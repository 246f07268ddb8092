"""The timeline of a run: its lanes and spans on one axis, with time 0 at a chosen step or op."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.errors import TfcompareError, Unknown
from tfcompare.tables.step_kinds import kind_at, of_main_kind
from tfcompare.text import close_matches, did_you_mean
from tfcompare.views.hosts.clocks import clocks, first_collectives
from tfcompare.xspace.space import PS_PER_US

if TYPE_CHECKING:
    from tfcompare.run import Run

NONE = -1


@dataclass(frozen=True)
class Alignment:
    """What time 0 is: the start of a step, the first start of an op, or, with neither, that of the typical step.

    `op` is the name of an op or of any other event. With `is_collective` it is the end of the first collective of the
    step.
    """

    step: int | None = None
    op: str | None = None
    is_collective: bool = False

    @classmethod
    def from_text(cls, text: str) -> Alignment:
        """Parses `step:12`, `op:NAME`, `collective` or `collective:12`; raises `TfcompareError` for any other text."""
        kind, _, value = text.partition(":")
        if kind == "op" and value:
            return cls(op=value)
        if text == "collective":
            return cls(is_collective=True)
        if kind in ("step", "collective") and re.fullmatch(r"-?[0-9]{1,18}", value):
            return cls(step=int(value), is_collective=kind == "collective")
        raise TfcompareError(
            f"{text!r} is no alignment; expected step:NUMBER, op:NAME, collective or collective:NUMBER, such as "
            "step:12 or op:MatMul"
        )


@dataclass(frozen=True, eq=False)
class HostTimeline:
    """The timeline of one host.

    `lanes` has the columns `plane`, `line`, `line_id`, `is_recorded`. `spans` has `lane` (a row of `lanes`),
    `start_ps`, `duration_ps`, `name`, `op_type`, `op_name`, `step`, `launch`, sorted by lane and start, longer spans
    first. `zero_ps` is the time that is shown as 0.
    """

    host: str
    lanes: pd.DataFrame
    spans: pd.DataFrame
    zero_ps: int


def timelines(run: Run, alignment: Alignment = Alignment(), host: str | None = None) -> list[HostTimeline]:
    """The timeline of each host of a run, or of one.

    All hosts are aligned at the same step, each by its own clock; at a collective, by the offsets of their clocks as
    far as these are known (`host_clocks.clocks`), else by its end on each.

    Raises `Unknown` for an unknown host, `TfcompareError` if no chosen host has the step or op.
    """
    if host is not None and host not in run.host_names:
        raise Unknown("host", host, list(run.host_names))
    tables = {name: run.tables.timeline(name) for name in run.host_names if host in (None, name)}
    if alignment.step is None and alignment.op is None:
        of_run = run.steps.assign(kind=kind_at(run.steps["step"], run.tables.kinds.by_step()))
        alignment = replace(alignment, step=typical_step(of_run) if run.info.has_steps else None)
    zeros = {name: _zero_ps(run, name, spans, alignment) for name, (_, spans) in tables.items()}
    if alignment.is_collective:
        zeros = _on_one_clock(run, zeros)
    if all(zero is None for zero in zeros.values()):
        raise TfcompareError(_nothing_to_align(run, [spans for _, spans in tables.values()], alignment))
    return [
        HostTimeline(name, *of_host, zero_ps=zeros[name] or 0)
        for name, of_host in tables.items()
        if zeros[name] is not None
    ]


def typical_step(steps: pd.DataFrame) -> int | None:
    """The number of the included step whose length is nearest to their mean, the first of equals; None without steps.

    `steps` has the columns `step`, `duration_us`, `included` and `kind`: of several kinds of steps, it is one of
    that with most time.
    """
    included = steps[of_main_kind(steps, steps["kind"])] if steps["included"].any() else steps
    if included.empty:
        return None
    distance = (included["duration_us"] - included["duration_us"].mean()).abs().round(6)  # in whole ps, as recorded
    return int(included["step"].iloc[int(distance.argmin())])


def _on_one_clock(run: Run, ends_ps: dict[str, int | None]) -> dict[str, int | None]:
    """The end of a collective on the first host that has it, by the clock of each; its own end on others."""
    found = clocks(run)
    if found is None:
        return ends_ps
    offsets = (found.offsets["offset_us"] * PS_PER_US).round().astype("int64")
    offset_ps = dict(zip(found.offsets["host"], offsets, strict=True))
    for first, end_ps in ends_ps.items():
        if end_ps is not None and first in offset_ps:
            same = {host: end_ps + int(offset_ps[host] - offset_ps[first]) for host in ends_ps if host in offset_ps}
            return ends_ps | same
    return ends_ps


def _zero_ps(run: Run, host: str, spans: pd.DataFrame, alignment: Alignment) -> int | None:
    """The time that the alignment makes 0, None if the host lacks it."""
    if alignment.is_collective:
        collectives = first_collectives(spans)
        end_us = collectives.loc[collectives["step"] == alignment.step, "end_us"]
        return round(float(end_us.iloc[0]) * PS_PER_US) if len(end_us) else None
    if alignment.op is not None:
        named = (spans["op_name"] == alignment.op) | (spans["name"] == alignment.op)
        return int(spans.loc[named, "start_ps"].min()) if named.any() else None
    steps = run.table("steps", host=host)
    if alignment.step is None:
        return int(spans["start_ps"].min()) if len(spans) else 0
    start_us = steps.loc[steps["step"] == alignment.step, "start_us"]
    return round(float(start_us.iloc[0]) * PS_PER_US) if len(start_us) else None


def _nothing_to_align(run: Run, spans: list[pd.DataFrame], alignment: Alignment) -> str:
    if alignment.op is not None:
        names = [name for of_host in spans for name in of_host["op_name"].cat.categories]
        return f"{run.name}: no op or event is named {alignment.op!r}{did_you_mean(close_matches(alignment.op, names))}"
    if alignment.is_collective:
        if alignment.step is not None:
            return f"{run.name}: no step {alignment.step} with a collective"
        return f"{run.name}: it marks no steps, so there is no collective of a step to align at"
    numbers = run.table("steps")["step"]
    there = f"steps are {numbers.min()} to {numbers.max()}" if len(numbers) else "it marks no steps"
    return f"{run.name}: there is no step {alignment.step}; {there}"


def within(timeline: HostTimeline, from_us: float | None, to_us: float | None) -> HostTimeline:
    """The part of a timeline that overlaps a window, in µs since its time 0; None for an open end.

    Spans are whole. A span whose launch is outside the window loses the link to it.
    """
    spans = timeline.spans
    begin = spans["start_ps"] - timeline.zero_ps
    keep = np.ones(len(spans), np.bool_)
    if from_us is not None:
        keep &= (begin + spans["duration_ps"] >= from_us * PS_PER_US).to_numpy()
    if to_us is not None:
        keep &= (begin <= to_us * PS_PER_US).to_numpy()
    position = np.append(np.where(keep, np.cumsum(keep) - 1, NONE), NONE)
    inside = spans[keep].assign(launch=position[spans.loc[keep, "launch"]]).reset_index(drop=True)
    return HostTimeline(timeline.host, timeline.lanes, inside, timeline.zero_ps)
