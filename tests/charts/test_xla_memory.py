"""The chart of a program's memory: where its lines, peaks and buffers lie."""

from __future__ import annotations

import pandas as pd

from tfcompare.charts.style import Side
from tfcompare.charts.xla.xla_memory import memory_over_program_order

BEFORE, AFTER = Side("before", 0), Side("after", 1)


def order(*live_bytes: int) -> pd.DataFrame:
    """The rows of a program with as many positions as levels."""
    return pd.DataFrame(
        {
            "position": range(1, len(live_bytes) + 1),
            "positions": len(live_bytes),
            "live_bytes": live_bytes,
            "event": [f"allocates <b>{i}" for i in range(len(live_bytes))],
            "is_peak": [i == live_bytes.index(max(live_bytes)) for i in range(len(live_bytes))],
        }
    )


def test_programs_of_different_length_are_drawn_equally_long() -> None:
    lines = [(BEFORE, order(1_000_000, 4_000_000)), (AFTER, order(1_000_000, 2_000_000, 500_000, 500_000))]
    ours, theirs, *peaks = memory_over_program_order(lines, "Device memory").data
    assert (list(ours.x), list(ours.y)) == ([0, 50, 100], [1, 4, 4])
    assert (list(theirs.x), list(theirs.y)) == ([0, 25, 50, 75, 100], [1, 2, 0.5, 0.5, 0.5])
    assert ours.customdata[1] == ["4.00 MB", "2 of 2", ": allocates &lt;b&gt;1"]
    assert [(peak.x[0], peak.y[0], peak.text[0]) for peak in peaks] == [
        (50, 4, "<b>4.00 MB</b>"),
        (25, 2, "<b>2.00 MB</b>"),
    ]


def test_a_label_is_below_its_marker_only_where_it_would_cover_the_other() -> None:
    def places(theirs: int) -> list[str]:
        figure = memory_over_program_order([(BEFORE, order(1000)), (AFTER, order(theirs))], "Device memory")
        return [trace.textposition.split()[0] for trace in figure.data[2:]]

    assert places(100) == ["top", "top"]
    assert places(900) == ["top", "bottom"]
    assert places(1100) == ["bottom", "top"]


def test_a_buffer_is_as_high_as_it_is_large_and_as_long_as_it_is_live() -> None:
    buffer = pd.Series(
        {"hlo_op": "<i>", "size_bytes": 2_000_000, "first_position": 2, "last_position": 3, "positions": 4}
    )
    lines = [(AFTER, order(0, 4_000_000, 3_000_000, 0))]
    span = memory_over_program_order(lines, "Device memory", [(AFTER, buffer)]).data[0]
    assert (list(span.x), list(span.y)) == ([25, 25, 75, 75], [0, 2, 2, 0])
    assert span.name == "&lt;i&gt;, candidate"


def test_a_program_without_memory_can_be_drawn() -> None:
    (line, _) = memory_over_program_order([(BEFORE, order(0))], "Device memory").data
    assert list(line.y) == [0, 0]
