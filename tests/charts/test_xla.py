"""The charts of an XLA program: what is drawn for which instruction."""

from __future__ import annotations

import pandas as pd
import pytest

from tfcompare import schema
from tfcompare.charts.style import Side
from tfcompare.charts.xla import roofline, time_icicle

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
            "change_us": [230, 230, 100, 50, 80, 0],
            "status": ["matched", "matched", "matched", "added", "removed", "matched"],
            **more,
        }
    )


def test_the_icicle_hatches_what_only_one_run_has() -> None:
    trace = time_icicle.time_icicle(tree(), by="category", alone=False).data[0]
    shapes = dict(zip(trace.labels, trace.marker.pattern.shape, strict=True))
    assert (shapes["a"], shapes["b"], shapes["c"], shapes["1 smaller"]) == ("", "/", "\\", "")
    texts = dict(zip(trace.labels, trace.customdata[:, 0], strict=True))
    assert (texts["a"], texts["b"], texts["c"]) == ("+100 %", "added", "removed")


@pytest.mark.parametrize(("width", "expected"), [("width_us", [200, 50, 80]), ("change_us", [100, 50, 80])])
def test_only_instructions_have_a_size_of_their_own(width: str, expected: list[float]) -> None:
    trace = time_icicle.time_icicle(tree(), by="category", alone=False, width=width).data[0]
    sizes = dict(zip(trace.labels, trace["values"], strict=True))
    assert trace.branchvalues == "remainder"
    assert [sizes["p"], sizes["fusion"]] == [0, 0]
    assert [sizes[name] for name in "abc"] == expected


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


def test_there_is_no_roof_where_the_peaks_are_unknown() -> None:
    unknown = {f"peak_flops_per_s_{role}": [None] * 3 for role in schema.SIDES}
    assert [trace.mode for trace in roofline.roofline(rows(**unknown), SIDES).data] == [
        "lines+markers",
        *["markers"] * 2,
    ]


def test_without_floating_point_operations_there_is_nothing_to_draw() -> None:
    none = {f"flops_per_s_{role}": [0.0] * 3 for role in schema.SIDES}
    assert roofline.has_points(rows(), 2)
    assert not roofline.has_points(rows(**none), 2)
