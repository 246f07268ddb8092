"""Heat maps of hosts and the parts of their steps: what is drawn for which host."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tfcompare.compare.side import Side
from tfcompare.schema import STEP_PARTS
from tfcompare.views.hosts import charts as hosts

SIDES = (Side("before", 0), Side("after", 1))
MS = 1000.0


def matrix(*rows: list[float], names: str = "abcdefgh") -> pd.DataFrame:
    return pd.DataFrame([[value * MS for value in row] for row in rows], index=list(names[: len(rows)]))


def means(**input_ms: float) -> pd.DataFrame:
    zero = pd.DataFrame(0.0, index=list(input_ms), columns=list(STEP_PARTS))
    return zero.assign(input_us=[ms * MS for ms in input_ms.values()], host_compute_us=2 * MS)


def test_both_sides_share_the_scale_which_reaches_to_the_slow_host_but_not_to_a_single_outlier() -> None:
    ours, theirs = matrix([10] * 50, [11] * 50), matrix([12] * 50, [30] * 50)
    limits = hosts.colour_range([ours, theirs])
    assert limits == (10 * MS, 30 * MS)
    drawn = [hosts.heat_map("A", "", one, limits).data[0] for one in (ours, theirs)]
    assert {(trace.zmin, trace.zmax) for trace in drawn} == {(10, 30)}
    values = matrix(*([10] * 50 for _ in range(8)))
    values.iloc[3, 7] = 900 * MS
    assert hosts.colour_range([values])[1] < 12 * MS
    assert hosts.colour_range([values.iloc[2:5, :20]])[1] < 12 * MS
    low, high = hosts.colour_range([matrix([10, 10])])
    assert low < high, "equal times have a scale"


def test_the_first_host_is_on_top_and_names_are_escaped() -> None:
    values = matrix([1, 2], [3, 4]).set_axis(["<b>x</b>", "y"])
    figure = hosts.heat_map("A", "", values, (MS, 4 * MS))
    assert figure.data[0].z.tolist() == [[1, 2], [3, 4]]
    assert figure.layout.yaxis.range == (1.5, -0.5)
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;x&lt;/b&gt;", "y")
    assert figure.data[0].y == ("&lt;b&gt;x&lt;/b&gt;", "y")


def test_the_scale_of_changes_is_symmetric() -> None:
    trace = hosts.change_map("B − A", "", matrix([-1, -1], [3, 3])).data[0]
    assert (trace.zmin, trace.zmax) == (-3, 3)
    unchanged = hosts.change_map("B − A", "", matrix([0, 0])).data[0]
    assert unchanged.zmin < 0 < unchanged.zmax


def test_bars_of_both_sides_add_up_to_the_steps() -> None:
    sides = list(zip(SIDES, (means(a=1, b=2), means(b=5, c=7)), strict=True))
    figure = hosts.host_parts("Step 3 by part", sides, ["c", "b", "a"], ["c: slowest", "b", "a"])
    assert {trace.name for trace in figure.data} == {"Input", "Host compute"}
    lengths: dict[tuple[str, str], float] = {}
    for number, trace in enumerate(figure.data):
        for text, length in zip(trace.customdata, trace.x, strict=True):
            key = (SIDES[number % 2].role, text[3])
            lengths[key] = lengths.get(key, 0.0) + float(length)
    assert lengths == pytest.approx(
        {("Baseline", "a"): 3, ("Baseline", "b"): 4, ("Candidate", "b"): 7, ("Candidate", "c"): 9}
    )


def test_many_hosts_are_thin_columns_which_add_up_to_their_steps_too() -> None:
    sides = list(zip(SIDES, (means(a=1, b=2), means(b=5, c=7)), strict=True))
    figure = hosts.all_host_parts("Step 3 by part", sides, ["a", "b", "c"], ["b", "c"])
    heights: dict[tuple[str, str], float] = {}
    for trace in figure.data:
        for (name, _), height in zip(trace.customdata, trace.y, strict=True):
            key = (str(trace.xaxis), name)
            heights[key] = heights.get(key, 0.0) + float(height)
    assert heights == pytest.approx({("x", "a"): 3, ("x", "b"): 4, ("x2", "b"): 7, ("x2", "c"): 9})
    marks = [(one.text, one.x, one.xref) for one in figure.layout.annotations]
    assert marks == [("slowest: b", 1, "x"), ("slowest: c", 2, "x2")]


def test_each_cell_has_a_point_to_click_on_unless_there_are_too_many_steps() -> None:
    heat, points = hosts.heat_map("A", "", matrix([1, 2, 3], [4, 5, 6]), (MS, 6 * MS)).data
    cells = list(zip(points.x, points.y, points.text, points.customdata, strict=True))
    assert cells == [(step, name, name, str(1 + step + 3 * row)) for row, name in enumerate("ab") for step in range(3)]
    assert heat.hoverinfo == "skip"
    long = pd.DataFrame(np.ones((1, hosts.MOST_CLICKABLE + 1)) * MS)
    assert len(hosts.heat_map("A", "", long, (MS, 2 * MS)).data) == 1


def test_thin_rows_share_their_points() -> None:
    many = pd.DataFrame(
        np.arange(50 * 2).reshape(50, 2) * MS, index=pd.Index([f"host-{number}" for number in range(50)])
    )
    points = hosts.heat_map("A", "", many, (0, 100 * MS)).data[1]
    assert len(points.x) == 2 * 17
    assert points.text[0] == "host-0 and 2 below"
    assert (points.y[0], points.customdata[0], points.customdata[1]) == ("host-1", "0 to 4", "1 to 5")
    assert points.text[-1] == "host-48 and 1 below"
    hundreds = pd.DataFrame(np.random.default_rng(1).normal(10 * MS, MS, (256, 100)), index=[*map(str, range(256))])
    figure = hosts.heat_map("A", "", hundreds, hosts.colour_range([hundreds]))
    assert len(figure.to_json()) < 2_000_000
    assert len(figure.layout.yaxis.tickvals) <= hosts.MOST_LABELS
