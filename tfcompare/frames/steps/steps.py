"""The steps of one host: where they begin and end, and which step each event belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tfcompare.frames.planes import HOST_PLANE
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.step_spans import StepSpans, no_spans
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace

WHOLE_PROFILE = "whole profile"
DEVICE_LINE = "device Steps line"
XLA_MODULE = "XLA module"
_EXCLUDE_ENDS_ABOVE = 5
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps in program order, in picoseconds since the XSpace's origin.

    `of_event` is the position of each event's step, −1 for none; `is_linked` says whether it follows from the event's
    links rather than its start time (never for markers). `host` is the span of the step's marker, `device` reaches from
    its first to its last device event, or event of an XLA program on the host; where both exist, the step is one of the
    two (`step_spans`). `chosen` marks the steps that count if they were chosen by range, `lost` those that were not
    recorded as a whole (`frames.recorded`), whose time is unknown. `why_untimed`: why the profile's markers do not
    count as steps, empty if they do. `marker`: the names of the steps' markers without their numbers, empty if unknown.
    """

    source: str
    number: Int64
    start_ps: Int64
    end_ps: Int64
    of_event: Int32
    is_linked: Bools
    host: StepSpans = field(default_factory=lambda: no_spans(0))
    device: StepSpans = field(default_factory=lambda: no_spans(0))
    chosen: Bools | None = None
    lost: Bools | None = None
    why_untimed: str = ""
    marker: tuple[str, ...] = ()

    @property
    def included(self) -> Bools:
        """Whether each step counts.

        The first and last of more than five are excluded, as in xprof, unless steps were chosen by range. The last of
        several steps that start at a chosen marker is excluded too, because no marker ends it. So are those that were
        not recorded as a whole, unless none was: then they count for what is known of them.
        """
        out = np.ones(len(self.number), np.bool_) if self.chosen is None else self.chosen.copy()
        if self.chosen is None and self.source == grouping.NAMED and len(out) > 1:
            out[-1] = False
        if self.chosen is None and len(out) > _EXCLUDE_ENDS_ABOVE:
            out[[0, -1]] = False
        if not self.is_lost.all():
            out &= ~self.is_lost
        return out

    @property
    def is_lost(self) -> Bools:
        """Whether each step was not recorded as a whole, so that its time is unknown."""
        return np.zeros(len(self.number), np.bool_) if self.lost is None else self.lost

    @property
    def origin_ps(self) -> Int64:
        """Start of each step on a timeline where the steps follow each other with gaps of 1 ps."""
        width = self.end_ps - self.start_ps + 1
        origin: Int64 = np.cumsum(width) - width
        return origin

    @property
    def has_markers(self) -> bool:
        """Whether the profile marks its steps; otherwise the whole profile is one step."""
        return self.source != WHOLE_PROFILE


def some_at_a_time(first: Int32 | Int64) -> Iterator[tuple[int, int]]:
    """Ranges of steps, as begin and end, that have some 65,000 rows together, or are one step.

    `first`: where the rows of each step begin, and the end.
    """
    begin, steps = 0, len(first) - 1
    while begin < steps:
        end = max(begin + 1, int(np.searchsorted(first, first[begin] + _ROWS_AT_ONCE, side="right")) - 1)
        yield begin, end
        begin = end


def in_range(space: XSpace, steps: Steps, first: int | None, last: int | None) -> tuple[Steps, Bools]:
    """(the steps from position `first` to `last`, counted from 1; which events belong to them or lie between them).

    All of them count, except the last step of the profile if its end is unknown.
    """
    count = len(steps.number)
    low, high = (first or 1) - 1, min(last or count, count)
    chosen = np.arange(low, high)
    new_position = np.full(count + 1, -1, np.int32)  # the last element maps −1 to −1
    new_position[chosen] = np.arange(len(chosen))
    of_event = new_position[steps.of_event]
    in_range_events = of_event >= 0
    outside = steps.of_event < 0
    for plane in space.planes if len(chosen) else []:
        is_host = plane.name == HOST_PLANE and steps.host.exist[chosen].all()
        span = steps.host if is_host else StepSpans(steps.start_ps, steps.end_ps)
        times = space.events.start_ps[plane.events]
        between = (times >= span.start_ps[chosen].min()) & (times < span.end_ps[chosen].max())
        in_range_events[plane.events] |= outside[plane.events] & between
    counts = np.ones(len(chosen), np.bool_)
    if steps.source == grouping.NAMED and high == count and len(chosen) > 1:
        counts[-1] = False
    some = Steps(
        source=steps.source,
        number=steps.number[chosen],
        start_ps=steps.start_ps[chosen],
        end_ps=steps.end_ps[chosen],
        of_event=of_event[in_range_events],
        is_linked=steps.is_linked[in_range_events],
        host=steps.host.take(chosen),
        device=steps.device.take(chosen),
        chosen=counts,
        lost=steps.is_lost[chosen],
        marker=steps.marker[low:high],
    )
    return some, in_range_events
