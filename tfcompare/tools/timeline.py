"""The timeline of a run: its lanes and spans on one axis, with time 0 at a chosen step or op."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.errors import TfcompareError, Unknown
from tfcompare.text import close_matches, did_you_mean
from tfcompare.xspace.space import PS_PER_US

if TYPE_CHECKING:
    from tfcompare.frames import HostFrames
    from tfcompare.run import Run

NONE = -1


@dataclass(frozen=True)
class Alignment:
    """What time 0 is: the start of a step, the first start of an op, or, with neither, that of the typical step.

    `op` is the name of an op or of any other event.
    """

    step: int | None = None
    op: str | None = None

    @classmethod
    def from_text(cls, text: str) -> Alignment:
        """Parses `step:12` or `op:NAME`; raises `TfcompareError` for any other text."""
        kind, _, value = text.partition(":")
        if kind == "op" and value:
            return cls(op=value)
        if kind == "step" and re.fullmatch(r"-?[0-9]{1,18}", value):
            return cls(step=int(value))
        raise TfcompareError(f"{text!r} is no alignment; expected step:NUMBER or op:NAME, such as step:12 or op:MatMul")


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
    """The timeline of each host of a run, or of one; all hosts are aligned at the same step, each by its own clock.

    Raises `Unknown` for an unknown host, `TfcompareError` if no chosen host has the step or op.
    """
    if host is not None and host not in run.host_names:
        raise Unknown("host", host, list(run.host_names))
    chosen = [frames for frames in run.hosts if host in (None, frames.host)]
    tables = {frames.host: (frames.tables["timeline_lanes"], frames.tables["timeline_spans"]) for frames in chosen}
    if alignment == Alignment():
        alignment = Alignment(step=typical_step(run.steps) if run.info.has_steps else None)
    zeros = {frames.host: _zero_ps(frames, tables[frames.host][1], alignment) for frames in chosen}
    if all(zero is None for zero in zeros.values()):
        raise TfcompareError(_nothing_to_align(run, chosen, alignment))
    return [
        HostTimeline(frames.host, *tables[frames.host], zero_ps=zeros[frames.host] or 0)
        for frames in chosen
        if zeros[frames.host] is not None
    ]


def typical_step(steps: pd.DataFrame) -> int | None:
    """The number of the included step whose length is nearest to their median, the first of equals; None without steps.

    `steps` has the columns `step`, `duration_us` and `included`.
    """
    included = steps[steps["included"].astype(bool)] if steps["included"].any() else steps
    if included.empty:
        return None
    distance = (included["duration_us"] - included["duration_us"].median()).abs()
    return int(included["step"].iloc[int(distance.argmin())])


def _zero_ps(frames: HostFrames, spans: pd.DataFrame, alignment: Alignment) -> int | None:
    """The time that the alignment makes 0, None if the host lacks it."""
    if alignment.op is not None:
        named = (spans["op_name"] == alignment.op) | (spans["name"] == alignment.op)
        return int(spans.loc[named, "start_ps"].min()) if named.any() else None
    steps = frames.tables["steps"]
    if alignment.step is None:
        return int(spans["start_ps"].min()) if len(spans) else 0
    start_us = steps.loc[steps["step"] == alignment.step, "start_us"]
    return round(float(start_us.iloc[0]) * PS_PER_US) if len(start_us) else None


def _nothing_to_align(run: Run, hosts: list[HostFrames], alignment: Alignment) -> str:
    if alignment.op is not None:
        names = [name for frames in hosts for name in frames.tables["timeline_spans"]["op_name"].cat.categories]
        return f"{run.name}: no op or event is named {alignment.op!r}{did_you_mean(close_matches(alignment.op, names))}"
    numbers = pd.concat([frames.tables["steps"]["step"] for frames in hosts])
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
    kept = spans[keep].assign(launch=position[spans.loc[keep, "launch"]]).reset_index(drop=True)
    return HostTimeline(timeline.host, timeline.lanes, kept, timeline.zero_ps)
