"""The timeline in words: how long the compared steps are, where the candidate falls behind, what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfcompare.schema import SIDES, place_word
from tfcompare.text import as_code, capitalized
from tfcompare.units import format_delta, format_percent, format_ratio, format_time_us
from tfcompare.views.hosts.clocks import FEWEST_STEPS
from tfcompare.views.short_names import shorten_distinct
from tfcompare.views.timeline.aligned import Aligned
from tfcompare.views.timeline.drawing import Viewport, axes
from tfcompare.views.timeline.losses import Loss, window_of
from tfcompare.views.timeline.run_timeline import NONE
from tfcompare.views.timeline.selection import range_table
from tfcompare.xspace.space import PS_PER_US

if TYPE_CHECKING:
    import pandas as pd

NAME_LETTERS, JUMP_LETTERS = 80, 60
MOST_OPS = 3
JUMP_MARGIN = 0.5
"""Of what a jump leads to, shown before and after it."""


@dataclass(frozen=True)
class Jump:
    """A button that selects a span (`id`, negative for none, of a `side`) and shows a `window` in µs."""

    text: str
    title: str
    side: int
    id: int
    window: tuple[float, float]


def arrivals(aligned: Aligned, labels: list[str]) -> str:
    """`In step 13, `b` reaches `Reduce` 10 ms after `a`; it begins the step 2 ms later.`"""
    ours, theirs = labels
    meeting = aligned.meeting
    if meeting is None or aligned.steps is None:
        return f"{ours} and {theirs} have no common collective here, so the order of their events is unknown."
    collective, step = as_code(meeting.collective), f"In step {aligned.positions[0]}"
    if not meeting.is_ordered(meeting.late_us):
        why = "the offset of their clocks is unknown"
        if meeting.has_clock:
            why = f"they reach it closer together than the clock error of {format_time_us(meeting.error_us)}"
        return f"{step}, it is unknown which of {ours} and {theirs} reaches {collective} last: {why}."
    text = f"{step}, {theirs} reaches {collective} {_apart(meeting.late_us, 'after', 'before')} {ours}"
    begin_us = meeting.behind_us(aligned.begin_ps)
    if meeting.is_ordered(begin_us) and begin_us * meeting.late_us > 0:
        text += f"; it begins the step {_apart(begin_us, 'later', 'earlier')}"
    return f"{text}."


def _apart(late_us: float, later: str, earlier: str) -> str:
    return f"**{format_time_us(abs(late_us))}** {later if late_us > 0 else earlier}"


def aligned_how(aligned: Aligned, second: str) -> str:
    """What time 0 is on both hosts, and how far their clocks are apart."""
    meeting = aligned.meeting
    at_step = aligned.zero_ps == aligned.begin_ps and aligned.steps is not None
    at = "end of the collective" if aligned.is_at_meeting else "start of the step of each" if at_step else "same op"
    if meeting is None:
        return f"Aligned at the {at}."
    if not meeting.has_clock:
        return (
            f"Aligned at the {at}. The clock offset is unknown: fewer than {FEWEST_STEPS} steps begin with the same "
            "collective on both."
        )
    return (
        f"Aligned at the {at}. Clock offset of {second}: {format_delta(meeting.offset_us, 'µs')} "
        f"± {format_time_us(meeting.error_us)} (95 %), estimated from the collectives of {meeting.steps} steps."
    )


OVERLAP = (
    "The times of the places to go to are of the whole step, wherever time 0 is. Those of different threads overlap, "
    "so they do not add up to the step's change."
)


WALL_TIME = (
    "An instant is divided equally among the ops that run then, so the times add up to the time in which any op ran."
)


def lengths(aligned: Aligned, letters: Sequence[str], host: str = "") -> str:
    """`Step 12 of B takes 10.6 ms, step 10 of A 213 ms (−202 ms).` If just one is its run's typical step, says so."""
    if not aligned.steps:
        return "Not both runs have step times, so time 0 is the start of the same op, and what follows it is compared."
    is_typical = [side.typical == step for side, step in zip(aligned.timelines.sides, aligned.steps, strict=True)]
    names = [f"step {position} of {letter}" for letter, position in zip(letters, aligned.positions, strict=True)]
    if is_typical[0] != is_typical[1]:
        side = is_typical.index(True)
        names[side] = f"the typical step of {letters[side]} ({aligned.positions[side]})"
    ours, theirs = (length / PS_PER_US for length in aligned.lengths_ps)
    change = f" ({format_delta(theirs - ours, 'µs')})" if aligned.has_pairs else ""
    return f"{_on(host, names[1])} takes **{format_time_us(theirs)}**, {names[0]} **{format_time_us(ours)}**{change}."


def _on(host: str, subject: str) -> str:
    """How a sentence begins, with the host if there is one to name."""
    return f"On {host}, {subject}" if host else capitalized(subject)


def most(places: Sequence[Loss], name: str) -> str:
    """`Where B falls behind most`."""
    return f"Where {name} {'falls behind' if places[0].lost_us > 0 else 'gains'} most"


def place_of(loss: Loss, names: Sequence[str]) -> str:
    """`in MatMul`, `waiting before MatMul`, `in MatMul, only in B`."""
    return _place(loss, loss.unmatched or loss.op_name, names)


def _place(loss: Loss, name: str, names: Sequence[str]) -> str:
    if loss.unmatched:
        return f"in {name}, only in {names[loss.lost_us > 0]}"
    if loss.span == NONE:
        return "after the last matched op"
    return f"waiting before {name}" if loss.is_wait else f"in {name}"


def _join(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def alone(aligned: Aligned, host: str = "") -> str:
    """`Step 12 takes 10.6 ms. Longest on the host: `MatMul` (2 ms); for 8 % of it, no op runs there.`"""
    (axis,) = axes(aligned, Viewport())
    begin, end = axis.us(aligned.begin_ps[0]), axis.us(aligned.end_ps[0])
    subject = f"step {aligned.positions[0]} takes" if aligned.steps else "the profile covers"
    first = f"{_on(host, subject)} **{format_time_us(end - begin)}**."
    rows, coverage = range_table(aligned, Viewport(), (begin, end))
    if coverage.empty:
        return first
    place, share = coverage[["host_or_device", "baseline"]].iloc[0]
    rows = rows[rows["host_or_device"] == place].head(MOST_OPS)
    names = shorten_distinct(rows["op_name"].tolist(), NAME_LETTERS)
    times = zip(names, rows["wall_time_us_baseline"], strict=True)
    ops = [f"{as_code(name)} ({format_time_us(us)})" for name, us in times]
    idle = f"for {format_percent(1 - share)} of it, no op runs there"
    return f"{first} Longest on the {place_word(place)}: {_join(ops)}; {idle}."


HINT = (
    "Click a span to see its times, its partner and what launched it. Drag on the ruler to measure a range: how long "
    "ops run in it."
)


def without_partner(name: str) -> str:
    """`only in A, in this step`."""
    return f"only in {name}, in this step"


def of_all_kernels(names: Sequence[str], ratio: float) -> str:
    """`other kernels of this op on each side: all together, B takes 0.5×`."""
    return f"other kernels of this op on each side: all together, {names[1]} takes {format_ratio(ratio)}"


def name_in(names: Sequence[str]) -> str:
    """Whose name follows; of all sides without names."""
    return f"Name in {' and '.join(names)}:" if names else "Name:"


def range_title(range_us: tuple[float, float]) -> str:
    """`1.02 ms from 3.10 ms to 4.12 ms`."""
    low, high = range_us
    return f"{format_time_us(high - low)} from {format_time_us(low)} to {format_time_us(high)}"


def ops_on(place: str) -> str:
    """`Ops on the device`."""
    return f"Ops on the {place_word(place)}"


def busy(place: str, cells: Sequence[str], names: Sequence[str]) -> str:
    """`Ops on the device: A 4.10 ms, B 2.00 ms (−2.10 ms)`; a cell for each name, and the change."""
    times = [f"{name} {cell}" for name, cell in zip(names, cells, strict=False)]
    change = f" ({cells[-1]})" if len(cells) > len(names) else ""
    return f"{place}: {', '.join(times) if len(names) > 1 else cells[0]}{change}"


def covered(coverage: pd.DataFrame, letters: Sequence[str]) -> str:
    """`Ops cover 63 % of it on the device in A and 71 % in B.`"""
    texts = []
    for row in coverage.to_dict("records"):
        of_each = [f"{format_percent(row[role])} in {name}" for name, role in zip(letters, SIDES, strict=False)]
        texts.append(f"on the {place_word(row['host_or_device'])} {' and '.join(of_each)}")
    return f"Ops cover {'; '.join(texts)}." if texts else "No op ran in it."


def hits(find: str, counts: list[int], letters: Sequence[str]) -> str:
    """How many spans have a text."""
    if not any(counts):
        return f"No span of the compared step has {as_code(find)} in its name, op or op type."
    each = [f"{count:,} in {letter}" for letter, count in zip(letters, counts, strict=True)]
    return f"Spans with {as_code(find)} in the compared step: {', '.join(each)}."


def jumps(aligned: Aligned, look: Viewport, places: Sequence[Loss], letters: Sequence[str]) -> list[Jump]:
    """Buttons that lead to where hosts wait for each other, and to where the candidate loses or gains most."""
    names = _innermost([one.unmatched or one.op_name for one in places])
    found = []
    if meeting := aligned.meeting:
        on = axes(aligned, look)
        begin = min(axis.us(time) for axis, time in zip(on, meeting.reached_ps, strict=True))
        end = max(axis.us(time) for axis, time in zip(on, meeting.left_ps, strict=True))
        margin = JUMP_MARGIN * (end - begin)
        title = f"{meeting.collective}, in which the hosts wait for each other: select and show it"
        found.append(Jump("the collective", title, 0, meeting.span, (begin - margin, end + margin)))
    for place, short in zip(places, names, strict=True):
        lost = format_delta(place.lost_us, "µs")
        begin, end = window_of(aligned, look, place)
        margin = JUMP_MARGIN * (end - begin)
        text = f"{lost} {_place(place, short, letters)}"
        title = f"{lost} {place_of(place, letters)}: select and show it"
        found.append(Jump(text, title, 0, place.span, (begin - margin, end + margin)))
    return found


def _innermost(names: list[str]) -> list[str]:
    """Names that are too long with as many of their innermost scopes, whole, as there is room for."""
    labels = []
    for name in names:
        at = name.find("/", max(len(name) - JUMP_LETTERS, 0))
        labels.append(name if len(name) <= JUMP_LETTERS else f"…{name[at:]}" if at >= 0 else name)
    is_distinct = len(set(labels)) == len(set(names)) and all(len(label) <= JUMP_LETTERS + 1 for label in labels)
    return labels if is_distinct else shorten_distinct(names, JUMP_LETTERS)
