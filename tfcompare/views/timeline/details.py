"""What the panel beside the lanes shows, as texts: the selected span with its partner, and what ran in a range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from tfcompare.schema import SIDES
from tfcompare.text import middle_ellipsis
from tfcompare.units import MISSING, format_delta, format_ratio, format_time_us
from tfcompare.views.timeline import words
from tfcompare.views.timeline.aligned import Aligned
from tfcompare.views.timeline.host_pair import Meeting
from tfcompare.views.timeline.hosts import ShownHosts
from tfcompare.views.timeline.selection import Selected, select
from tfcompare.views.verdict_marks import text_of

HEADING_LETTERS = 120
START = "Start after time 0"
CHANGE = "Change"


def details(shown: ShownHosts, aligned: Aligned, selected: tuple[int, int] | None) -> dict[str, Any]:
    """Of the selected (side, span): `title`, `about`, the `header` and `rows` of a table, and `names` as recorded with
    whose they are; without a span, a `hint`."""
    sides = select(aligned, *selected) if selected else []
    if not selected or not sides:
        return {"hint": words.HINT}
    one = next(side for side in sides if side)
    meeting = aligned.meeting if aligned.is_at_meeting else None  # else times count from an op on the host's own clock
    return {
        "title": middle_ellipsis(one.op_name or one.name, HEADING_LETTERS),
        "about": _about(shown, aligned, selected, one),
        "header": ["", *shown.names[: len(sides)], *([CHANGE] if len(sides) > 1 else [])],
        "rows": _rows(sides, meeting),
        "names": _whole_names(sides, shown.names),
    }


def _whole_names(sides: list[Selected | None], letters: Sequence[str]) -> list[tuple[str, str]]:
    """The names of the spans as recorded, if the title does not show them: of kernels, and of what is long."""
    names = {letter: side.name for letter, side in zip(letters, sides, strict=False) if side}
    hidden = [
        name
        for name in dict.fromkeys(names.values())
        if not any(side and side.name == name and (side.op_name or name) in name[:HEADING_LETTERS] for side in sides)
    ]
    whose = [[letter for letter, of in names.items() if of == name] for name in hidden]
    return [(words.name_in(of if len(of) < len(letters) else []), name) for of, name in zip(whose, hidden, strict=True)]


def _about(shown: ShownHosts, aligned: Aligned, selected: tuple[int, int], one: Selected) -> str:
    """Which op it is and the verdict on it, or that it has no partner."""
    letters, texts, sides = shown.names, [], select(aligned, *selected)
    if one.op >= 0:
        row = aligned.timelines.op_stats.iloc[one.op]
        texts.append(str(row["op_type"]))
        if len(one.op_name) > HEADING_LETTERS:
            texts.append(one.op_name)
        if not shown.pair.is_single and aligned.has_pairs and isinstance(row["verdict"], str):
            texts.append(f"over all steps {text_of(row['verdict'], row['evidence'])}")
    if (ratio := aligned.change_of_kernels(*selected)) is not None:
        texts.append(words.of_all_kernels(letters, ratio))
    elif len(sides) > 1 and None in sides:
        if aligned.has_pairs:
            texts.append(words.without_partner(letters[0 if sides[0] else 1]))
    elif len(sides) > 1 and sides[0] and sides[1] and sides[0].duration_us > 0:
        texts.append(f"here {letters[1]} takes {format_ratio(sides[1].duration_us / sides[0].duration_us)}")
    return " · ".join(texts)


def _rows(sides: list[Selected | None], meeting: Meeting | None) -> list[list[str]]:
    """Times and places: a label, a cell for each side, and the change.

    How far apart events of two hosts are is left out if it is less than the error of their clocks.
    """
    times: dict[str, Callable[[Selected], float]] = {
        START: lambda side: side.start_us,
        "Duration": lambda side: side.duration_us,
        "Self time": lambda side: side.self_time_us,
    }
    if any(side and not math.isnan(side.delay_us) for side in sides):
        times["Starts after its launch"] = lambda side: side.delay_us
    rows = []
    for label, value in times.items():
        cells = [format_time_us(value(side)) if side else MISSING for side in sides]
        if len(sides) > 1:
            ours, theirs = sides
            change = format_delta(value(theirs) - value(ours), "µs") if ours and theirs else MISSING
            if meeting and ours and theirs and label == START and not meeting.is_ordered(value(theirs) - value(ours)):
                change = f"< {format_time_us(meeting.error_us)}" if meeting.has_clock else MISSING
            cells.append(change)
        rows.append([label, *cells])
    texts: dict[str, Callable[[Selected], str]] = {"Step": lambda side: side.step, "Lane": lambda side: side.lane}
    if any(side and side.launched_by for side in sides):
        texts["Launched by"] = lambda side: middle_ellipsis(side.launched_by, HEADING_LETTERS)
    blank = [""] if len(sides) > 1 else []
    return rows + [
        [label, *((text(side) if side else "") or MISSING for side in sides), *blank] for label, text in texts.items()
    ]


def ranged(
    shown: ShownHosts, aligned: Aligned, range_us: tuple[float, float], coverage: pd.DataFrame
) -> dict[str, Any]:
    """Of a range, with how much of it ops cover as `range_table` returns it: `range`, its `title`, the `header` and
    `rows` of a table of how long any op ran, and the same in a `text` of one line."""
    length_us = range_us[1] - range_us[0]
    rows, texts = [], []
    for row in coverage.to_dict("records"):
        times = [row[role] * length_us for role, _ in zip(SIDES, shown.names, strict=False)]
        cells = [format_time_us(time_us) for time_us in times]
        if len(times) > 1:
            cells.append(format_delta(times[1] - times[0], "µs") if aligned.has_pairs else MISSING)
        place = words.ops_on(row["host_or_device"])
        rows.append([place, *cells])
        texts.append(words.busy(place, cells, shown.marks))
    return {
        "range": list(range_us),
        "title": words.range_title(range_us),
        "about": words.covered(coverage, shown.names),
        "header": ["", *shown.names, *([CHANGE] if len(shown.names) > 1 else [])],
        "rows": rows,
        "text": " · ".join([format_time_us(length_us), *texts]),
    }
