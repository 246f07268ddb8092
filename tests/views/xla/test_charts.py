"""The charts of an XLA program: instructions, and where its memory, peaks and buffers lie over program order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tfcompare import schema
from tfcompare.compare.side import Side
from tfcompare.views.chart_style import LEGEND_ROW_PIXELS
from tfcompare.views.xla import charts as roofline
from tfcompare.views.xla import charts as time_icicle
from tfcompare.views.xla.charts import memory_over_program_order
from tfcompare.views.xla.memory import over_program_order

SIDES = (Side("before", 0), Side("after", 1))
TIME = "execution_time_us"


def tree(**more: list[object]) -> pd.DataFrame:
    """A program of one category with four instructions: matched, added, removed, and one too thin to see."""
    nodes = ["p", "p\nfusion", "p\nfusion\na", "p\nfusion\nb", "p\nfusion\nc", "p\nfusion\nd"]
    return pd.DataFrame(
        {
            "node": nodes,
            "parent": ["", "p", *["p\nfusion"] * 4],
            "label": [node.rpartition("\n")[2] for node in nodes],
            "depth": [0, 1, 2, 2, 2, 2],
            f"{TIME}_baseline": [180.1, 180.1, 100, 0, 80, 0.1],
            f"{TIME}_candidate": [250.1, 250.1, 200, 50, 0, 0.1],
            "width_us": [330.1, 330.1, 200, 50, 80, 0.1],
            "status": ["matched", "matched", "matched", "added", "removed", "matched"],
            "work": "",
            **more,
        }
    )


def test_the_icicle_hatches_what_only_one_run_has() -> None:
    trace = time_icicle.time_icicle(tree(), by="category", alone=False).data[0]
    shapes = dict(zip(trace.labels, trace.marker.pattern.shape, strict=True))
    assert (shapes["a"], shapes["b"], shapes["c"], shapes["1 smaller"]) == ("", "/", "\\", "")
    texts = dict(zip(trace.labels, trace.customdata[:, 0], strict=True))
    assert (texts["a"], texts["b"], texts["c"]) == ("+100 %", "added", "removed")


@pytest.mark.parametrize(("work", "shape"), [("more work", "."), ("same work", ""), ("less work", "")])
def test_the_icicle_dots_what_takes_more_time_for_more_work(work: str, shape: str) -> None:
    nodes = tree(work=["", "", work, "", "", ""])
    trace = time_icicle.time_icicle(nodes, by="category", alone=False).data[0]
    assert dict(zip(trace.labels, trace.marker.pattern.shape, strict=True))["a"] == shape


def test_only_instructions_have_a_size_of_their_own() -> None:
    trace = time_icicle.time_icicle(tree(), by="category", alone=False).data[0]
    sizes = dict(zip(trace.labels, trace["values"], strict=True))
    assert trace.branchvalues == "remainder"
    assert [sizes["p"], sizes["fusion"]] == [0, 0]
    assert [sizes[name] for name in "abc"] == [200, 50, 80]


def rows(**more: list[object]) -> pd.DataFrame:
    columns: dict[str, list[object]] = {"hlo_op": ["dot", "copy", "new"]}
    for role, rate in (("baseline", 1e12), ("candidate", 2e12)):
        columns |= {
            f"{TIME}_{role}": [100.0, 5.0, None if role == "baseline" else 1.0],
            f"operational_intensity_{role}": [50.0, 0.0, None if role == "baseline" else 2.0],
            f"flops_per_s_{role}": [rate, 0.0, None if role == "baseline" else 1e9],
            f"bandwidth_bytes_per_s_{role}": [rate / 50, 1e9, None if role == "baseline" else 5e8],
            f"peak_flops_per_s_{role}": [1e14] * 3,
            f"peak_bytes_per_s_{role}": [1e12] * 3,
        }
    return pd.DataFrame(columns | more)


def test_the_roofline_shows_each_side_and_an_arrow_between_them() -> None:
    roof, arrows, before, after = roofline.roofline(rows(), SIDES).data
    assert roof.name == "Peak 100 TFLOP/s, 1.00 TB/s"
    assert [y for x, y in zip(roof.x, roof.y, strict=True) if x == 100] == [1e14], "the roofs meet at 100 FLOP/byte"
    assert roof.y[0] == pytest.approx(1e12 * roof.x[0])
    assert list(arrows.x[:2]) == [50, 50] and list(arrows.y[:2]) == [1e12, 2e12]
    assert len(arrows.x) == 3, "no arrow for an instruction of one side only"
    assert [trace.customdata[:, 0].tolist() for trace in (before, after)] == [["dot"], ["dot", "new"]]
    assert list(after.marker.size) == [100, 1]


@pytest.mark.parametrize("peaks", [[1e14] * 3, [1e14, 5e14, 1e14]])
def test_the_legend_has_a_row_for_each_roof_and_side(peaks: list[object]) -> None:
    figure = roofline.roofline(rows(**{f"peak_flops_per_s_{role}": peaks for role in schema.SIDES}), SIDES)
    entries = sum(trace.showlegend is not False for trace in figure.data)
    assert entries == 2 + len(set(peaks))
    assert figure.layout.height == 460 + entries * LEGEND_ROW_PIXELS


def test_there_is_no_roof_where_the_peaks_are_unknown_and_nothing_to_draw_without_operations() -> None:
    unknown = {f"peak_flops_per_s_{role}": [None] * 3 for role in schema.SIDES}
    drawn = roofline.roofline(rows(**unknown), SIDES).data
    assert [trace.mode for trace in drawn] == ["lines+markers", *["markers"] * 2]
    none = {f"flops_per_s_{role}": [0.0] * 3 for role in schema.SIDES}
    assert [roofline.has_points(rows(**more), 2) for more in ({}, none)] == [True, False]


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
    lines = [(SIDES[0], order(1_000_000, 4_000_000)), (SIDES[1], order(1_000_000, 2_000_000, 500_000, 500_000))]
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
        figure = memory_over_program_order([(SIDES[0], order(1000)), (SIDES[1], order(theirs))], "Device memory")
        return [trace.textposition.split()[0] for trace in figure.data[2:]]

    assert places(100) == ["top", "top"]
    assert places(900) == ["top", "bottom"]
    assert places(1100) == ["bottom", "top"]


def test_a_buffer_is_as_high_as_it_is_large_and_as_long_as_it_is_live() -> None:
    buffer = pd.Series(
        {"hlo_op": "<i>", "size_bytes": 2_000_000, "first_position": 2, "last_position": 3, "positions": 4}
    )
    lines = [(SIDES[1], order(0, 4_000_000, 3_000_000, 0))]
    span = memory_over_program_order(lines, "Device memory", [(SIDES[1], buffer)]).data[0]
    assert (list(span.x), list(span.y)) == ([25, 25, 75, 75], [0, 2, 2, 0])
    assert span.name == "&lt;i&gt;, candidate"
    (empty, _) = memory_over_program_order([(SIDES[0], order(0))], "Device memory").data
    assert list(empty.y) == [0, 0]


def buffer(
    name: str, size: int, first: int, last: int, positions: int = 6, *, at_peak: bool = False, host: str = "vm"
) -> dict[str, object]:
    kind = "parameter" if (first, last) == (1, positions) else "temporary"
    place = {"host": host, "program": "f(1)", "memory_space": 0, "hlo_op": name, "is_live_at_peak": at_peak}
    return place | {
        "kind": kind,
        "size_bytes": size,
        "first_position": first,
        "last_position": last,
        "positions": positions,
    }


def test_live_bytes_follow_from_where_buffers_begin_and_end() -> None:
    memory = pd.DataFrame(
        [buffer("p", 1, 1, 6, at_peak=True), buffer("dot", 20, 2, 4, at_peak=True), buffer("", 300, 5, 5)]
    )
    rows = over_program_order(memory, {"f(1)"}, 0)
    assert rows[["position", "live_bytes"]].values.tolist() == [[1, 1], [2, 21], [5, 301], [6, 1]]
    assert rows["event"].tolist() == [
        "",
        "allocates dot, 20 B",
        "allocates a value of an unknown instruction, 300 B",
        "frees a value of an unknown instruction, 300 B",
    ]
    assert rows.loc[rows["is_peak"], "position"].tolist() == [5]
    assert set(rows["positions"]) == {6}
    assert over_program_order(memory, {"g(1)"}, 0).empty and over_program_order(memory, {"f(1)"}, 5).empty


def test_of_several_hosts_the_one_with_the_largest_peak_is_shown() -> None:
    small, large = (buffer("p", size, 1, 1, 1, at_peak=True, host=f"vm{size}") for size in (5, 7))
    assert over_program_order(pd.DataFrame([small, large]), {"f(1)"}, 0)["live_bytes"].tolist() == [7]


def test_a_long_program_keeps_its_peak() -> None:
    """A hundred thousand buffers, one live at a time, the largest in between."""
    sizes = np.full(100_000, 10)
    sizes[54_321] = 11
    rows = [buffer("a", 1, 1, 1, 1)] * len(sizes)
    memory = pd.DataFrame(rows).assign(
        size_bytes=sizes, first_position=range(1, 200_000, 2), last_position=range(1, 200_000, 2), positions=200_000
    )
    thinned = over_program_order(memory, {"f(1)"}, 0)
    assert len(thinned) < 2100
    assert thinned.loc[thinned["is_peak"], ["position", "live_bytes"]].values.tolist() == [[2 * 54_321 + 1, 11]]
    assert thinned["live_bytes"].max() == 11
