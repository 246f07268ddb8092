"""What steps are made of, as figures: the parts stack up to the step."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.input_runs import steps
from tfcompare.compare.attribution import part_means
from tfcompare.compare.side import Side
from tfcompare.schema import STEP_PARTS
from tfcompare.views.chart_style import MAX_MARKERS
from tfcompare.views.steps.part_charts import EXCLUDED_OPACITY, PART_COLOURS, parts_of_steps, step_breakdown

SIDES = (Side("before", 0), Side("after", 1))
BEFORE = steps(*[(100e3, 10e3), (100e3, 30e3)] * 3, other_us=5e3)
AFTER = steps((60e3, 30e3), other_us=10e3)


def test_the_average_step_has_a_bar_for_each_part_that_takes_time():
    figure = step_breakdown(part_means(BEFORE, AFTER), SIDES[0])
    (bars,) = figure.data
    assert list(figure.layout.yaxis.ticktext) == ["Input", "Host compute", "Other"]
    assert list(bars.x) == pytest.approx([20, 75, 5])
    assert list(bars.text) == ["20.0 ms (20.0 %)", "75.0 ms (75.0 %)", "5.00 ms (5.00 %)"]
    assert bars.customdata[0][2] == " ± 11.5 ms"
    assert figure.layout.title.text == "Average step by part: 100 ms"
    assert figure.layout.xaxis.title.text == "Mean over the included steps (ms)"


def test_a_single_part_has_room_for_the_axis_and_a_run_without_steps_has_no_parts():
    means = part_means(BEFORE, AFTER)
    means = means[means["mean_us_baseline"] > 0]
    one, two, three = (step_breakdown(means.iloc[:count], SIDES[0]).layout.height for count in (1, 2, 3))
    assert one == two < three
    assert len(step_breakdown(part_means(BEFORE.iloc[:0], AFTER), SIDES[0]).data[0].x) == 0


def test_every_step_is_its_parts_on_one_another():
    figure = parts_of_steps(SIDES[0], BEFORE)
    assert [sum(bar.y[i] for bar in figure.data) for i in range(6)] == pytest.approx([100] * 6)
    assert list(figure.data[0].marker.opacity) == [EXCLUDED_OPACITY, 1, 1, 1, 1, EXCLUDED_OPACITY]
    assert "excluded" in figure.layout.title.subtitle.text
    assert list(figure.data[0].customdata[0]) == ["10", "100 ms", "localhost", "<br>excluded", "10.0 ms", "10.0 %"]


def test_many_steps_are_areas_and_none_are_nothing():
    figure = parts_of_steps(SIDES[0], steps(*[(10.0, 1.0)] * (MAX_MARKERS + 1)))
    assert {trace.stackgroup for trace in figure.data} == {"parts"}
    assert len(parts_of_steps(SIDES[0], pd.DataFrame(BEFORE.iloc[:0])).data) == 0


def test_a_stray_step_stands_at_the_edge_with_its_time():
    figure = parts_of_steps(SIDES[0], steps(*[(100e3, 10e3), (102e3, 30e3)] * 5, (5e6, 10e3), (100e3, 10e3)))
    assert 102 < figure.layout.yaxis.range[1] < 250
    edge = figure.data[-1]
    assert (edge.x.tolist(), edge.text) == ([11], ("5.00 s",))
    assert "slow" in figure.data[0].customdata[10][3]
    assert "beyond the axis" in figure.layout.title.subtitle.text


def test_every_part_has_a_colour_of_its_own():
    assert list(PART_COLOURS) == list(STEP_PARTS)
    assert len(set(PART_COLOURS.values())) == len(STEP_PARTS)
