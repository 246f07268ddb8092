"""Charts of memory: what is drawn is what the frames say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

from tfcompare import schema
from tfcompare.compare.side import Side
from tfcompare.units import MISSING
from tfcompare.views.chart_style import side_colour
from tfcompare.views.memory.charts import memory_composition, peak_treemap, timeline, typical_step

SIDES = (Side("before", 0), Side("after", 1))


def line(in_use: list[int], positions: list[float] | None = None, **columns: object) -> pd.DataFrame:
    """Events as `memory_series.drawn` gives them; the peak is the first of the largest."""
    frame = pd.DataFrame(
        {
            "host": "vm",
            "memory_id": "gpu",
            "time_us": [1000.0 * i for i in range(len(in_use))],
            "event": "allocation",
            "op_name": "a<b>/conv",
            "requested_bytes": 90,
            "allocation_bytes": 100,
            "region_type": "temp",
            "data_type": "float",
            "shape": "[2,3]",
            "step": 7,
            "stack_bytes": 0,
            "heap_bytes": in_use,
            "free_bytes": [10_000_000 - size for size in in_use],
            "in_use_bytes": in_use,
            "fragmentation": 0.25,
        }
    )
    frame = schema.MEMORY_TIMELINE.conform(frame.assign(**columns))
    peak = frame.index == frame["in_use_bytes"].idxmax() if len(frame) else []
    return frame.assign(position=positions or frame["time_us"], is_peak=peak)


BEFORE, AFTER = line([1_000_000, 4_000_000, 2_000_000]), line([1_000_000, 3_000_000])


def test_both_runs_are_steps_on_one_axis_with_their_peaks() -> None:
    figure = timeline([(SIDES[0], BEFORE), (SIDES[1], AFTER)], [], "in_use_bytes", "time")
    before, after, before_peak, after_peak = figure.data
    assert [trace.line.shape for trace in (before, after)] == ["hv", "hv"]
    assert list(before.x) == [0, 1, 2]
    assert list(before.y) == [1, 4, 2]
    assert before.name == "Baseline · before, peak 4.00 MB"
    assert after.name == "Candidate · after, peak 3.00 MB"
    assert (before_peak.x[0], before_peak.y[0], before_peak.text[0]) == (1, 4, "<b>4.00 MB</b>")
    assert (after_peak.x[0], after_peak.y[0], after_peak.marker.symbol) == (1, 3, "diamond")
    assert figure.layout.title.text == "Memory in use over time"
    assert figure.layout.xaxis.title.text == "Time since the first event (ms)"
    assert (figure.layout.yaxis.title.text, figure.layout.yaxis.rangemode) == ("In use (MB)", "tozero")


def hover(frame: pd.DataFrame, point: int) -> str:
    """What hovering tells of a point, less whose it is."""
    trace: Any = timeline([(SIDES[0], frame)], [], "in_use_bytes", "time").data[0]
    text = re.sub(r"%{customdata\[(\d+)]}", lambda found: trace.customdata[point][int(found[1])], trace.hovertemplate)
    return text.removeprefix("Baseline: ").removesuffix("<extra></extra>")


def test_hovering_tells_what_the_guide_lists_and_what_was_not_recorded_is_a_dash_or_left_out() -> None:
    assert hover(BEFORE, 1) == (
        "<b>allocation of 100 B</b>, requested 90 B<br>a&lt;b&gt;/conv<br>temp · float · [2,3]"
        "<br>in use 4.00 MB: stack 0 B, heap 4.00 MB<br>free 6.00 MB, fragmentation 25.0 %<br>step number 7, at 1.00 ms"
    )
    frame = line(
        [5],
        op_name="",
        region_type="",
        data_type="",
        shape="",
        step=pd.NA,
        requested_bytes=pd.NA,
        fragmentation=float("nan"),
    )
    assert hover(frame, 0).startswith(f"<b>allocation of 100 B</b>, requested {MISSING}<br>in use 5 B")
    assert f"fragmentation {MISSING}<br>step number {MISSING}" in hover(frame, 0)


def test_the_fragmentation_has_a_panel_of_its_own_on_the_same_time() -> None:
    lines = [(SIDES[0], BEFORE), (SIDES[1], AFTER)]
    figure = timeline(lines, lines, "in_use_bytes", "time")
    below = [trace for trace in figure.data if trace.yaxis == "y2"]
    assert [list(trace.y) for trace in below] == [[25] * 3, [25] * 2]
    assert all(trace.xaxis is None and not trace.showlegend for trace in below)
    assert figure.layout.yaxis2.domain[1] < figure.layout.yaxis.domain[0]
    assert figure.layout.yaxis2.overlaying is None


def test_fragmentation_as_the_level_is_one_panel_and_of_free_memory_the_minimum_is_named() -> None:
    lines = [(SIDES[0], BEFORE)]
    figure = timeline(lines, lines, "fragmentation", "time")
    assert not [trace for trace in figure.data if trace.yaxis == "y2"]
    assert figure.layout.title.text == "Fragmentation over time"
    assert figure.data[0].name == "Baseline · before, peak 25.0 %"
    (free, _) = timeline(lines, [], "free_bytes", "time").data
    assert (free.name, list(free.y)) == ("Baseline · before, minimum 6.00 MB", [9, 6, 8])


def test_a_run_without_the_memory_is_not_drawn_and_one_that_is_empty_is_a_line_at_zero() -> None:
    figure = timeline([(SIDES[0], BEFORE.iloc[:0]), (SIDES[1], AFTER)], [], "in_use_bytes", "time")
    assert (len(figure.data), figure.data[0].line.color) == (2, side_colour(SIDES[1]))
    level, peak = timeline([(SIDES[0], line([0, 0]))], [], "in_use_bytes", "time").data
    assert (list(level.y), peak.text[0]) == ([0, 0], "<b>0 B</b>")


@pytest.mark.parametrize(("positions", "says"), [([1.0, 1.5, 2.0], False), ([0.5, 1.5, 2.0], True)])
def test_by_step_the_axis_is_steps_and_says_what_stands_before_the_first(positions: list[float], says: bool) -> None:
    frame = line([1, 2, 3], positions)
    figure = timeline([(SIDES[0], frame)], [], "in_use_bytes", "step")
    assert list(figure.data[0].x) == positions
    assert figure.layout.xaxis.title.text == "Step, by position"
    assert ("before the first step" in figure.layout.title.subtitle.text) == says


def step_of(*median: int, steps: int = 3) -> pd.DataFrame:
    """A typical step in slices of 1 ms, with a band of 10 % around its median."""
    share = [i / len(median) for i in range(len(median))]
    frame = pd.DataFrame({"share": share, "median": median, "steps": steps})
    return frame.assign(time_us=1000.0 * frame.index, low=0.9 * frame["median"], high=1.1 * frame["median"])


@pytest.mark.parametrize(("axis", "ends"), [("time", (3, 1)), ("share", (75, 50))])
def test_a_typical_step_of_both_runs_is_on_one_axis_with_its_band(axis: Any, ends: tuple[float, float]) -> None:
    steps = [(SIDES[0], step_of(1_000_000, 4_000_000, 2_000_000, 1_000_000)), (SIDES[1], step_of(10_000, 20_000))]
    figure = typical_step(steps, "in_use_bytes", axis)
    before, after = (figure.data[i : i + 3] for i in (0, 3))
    assert [list(trace.y) for trace in before] == [
        pytest.approx(level) for level in ([0.9, 3.6, 1.8, 0.9], [1.1, 4.4, 2.2, 1.1], [1, 4, 2, 1])
    ]
    assert [trace.fill for trace in before] == [None, "tonexty", None]
    assert (before[2].x[-1], after[2].x[-1]) == ends
    assert before[2].name == "Baseline · before, typical peak 4.00 MB"
    assert after[2].name == "Candidate · after, typical peak 20.0 kB"
    assert before[2].customdata[1].tolist() == ["4.00 MB", "3.60 MB", "4.40 MB"]
    assert figure.layout.title.subtitle.text == "line: median of 3 steps; band: lowest to highest"
    assert (figure.layout.yaxis.title.text, figure.layout.yaxis.rangemode) == ("In use (MB)", "tozero")


def test_a_typical_step_of_a_run_alone_has_one_series() -> None:
    figure = typical_step([(Side("only", 0, 1), step_of(5, 7))], "free_bytes", "time")
    assert [trace.name for trace in figure.data if trace.showlegend is not False] == ["only, typical minimum 5 B"]


def test_stack_heap_and_free_stand_on_one_another_below_the_capacity() -> None:
    figure = memory_composition(SIDES[0], BEFORE, "time")
    assert [trace.name for trace in figure.data] == ["stack", "heap", "free"]
    assert {trace.stackgroup for trace in figure.data} == {"memory"}
    assert [sum(levels) for levels in zip(*(trace.y for trace in figure.data), strict=True)] == [10, 10, 10]
    assert figure.layout.yaxis.range == (0, 8)
    assert figure.layout.title.subtitle.text.startswith("of 10.0 MB; the axis ends below")
    full = memory_composition(SIDES[0], line([9_000_000]), "time")
    assert (full.layout.yaxis.range, full.layout.title.subtitle.text) == ((0, 10), "of 10.0 MB")


def treemap(rows: list[tuple[str, str, str, str, float, float, float]], sides: Sequence[Side], **columns: float) -> Any:
    names = ["node", "parent", "what", "detail", "bytes", "baseline_bytes", "candidate_bytes"]
    tree = pd.DataFrame(rows, columns=names)
    return peak_treemap(tree.assign(label=tree["what"], **columns), sides, by="region")


def test_the_treemap_of_a_run_alone_has_no_changes() -> None:
    rows = [("baseline", "", "baseline", "", 4e6, 4e6, 4e6), ("baseline/0", "baseline", "conv", "", 4e6, 4e6, 4e6)]
    figure = treemap(rows, [Side("only", 0, 1)])
    (trace,) = figure.data
    assert list(trace.labels) == ["only", "conv"]
    assert "customdata[2]" not in trace.hovertemplate
    assert "run" not in figure.layout.title.text


def test_a_treemap_has_the_bytes_of_both_runs_and_their_change() -> None:
    rows = [
        ("both runs", "", "both runs", "", 6e6, 4e6, 2e6),
        ("baseline", "both runs", "baseline", "", 4e6, 4e6, 2e6),
        ("baseline/0", "baseline", "conv", "output · 1 allocation", 4e6, 4e6, 0.0),
        ("candidate", "both runs", "candidate", "", 2e6, 4e6, 2e6),
        ("candidate/0", "candidate", "x<y>", "", 2e6, 0.0, 2e6),
    ]
    (trace,) = treemap(rows, SIDES).data
    assert list(trace.values) == [6e6, 4e6, 4e6, 2e6, 2e6]
    assert trace.branchvalues == "total"
    assert list(trace.labels) == ["both runs", "Baseline · before", "conv", "Candidate · after", "x&lt;y&gt;"]
    assert trace.customdata[2].tolist() == [
        "<b>conv</b><br>output · 1 allocation",
        "4.00 MB",
        "baseline 4.00 MB, candidate 0 B: only the baseline has it",
    ]
    assert trace.customdata[0][2].endswith("−50.0 %")
    assert trace.marker.colors[0] < 0 < trace.marker.colors[4]
    (nearly,) = treemap(rows, SIDES, candidate_bytes=4_020_000.0).data
    assert nearly.marker.colors[0] == 0, "a difference of 0.5 % is none"
