"""Charts over steps and their parts: what is drawn is what the frames say."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.input_runs import steps
from tests.views import chart_samples as samples
from tfcompare.compare.attribution import part_means
from tfcompare.compare.side import Side
from tfcompare.schema import STEP_PARTS
from tfcompare.views.chart_style import MAX_MARKERS, side_colour
from tfcompare.views.steps import charts as slow_steps
from tfcompare.views.steps.charts import op_in_steps, step_distribution, step_times
from tfcompare.views.steps.part_charts import EXCLUDED_OPACITY, PART_COLOURS, parts_of_steps, step_breakdown

SLOW, FAST = Side("before", 0), Side("after", 1)
BEFORE = samples.steps([351e3, 350e3, 352e3, 349e3, 351e3, 360e3])
AFTER = samples.steps([25e3, 26e3, 24e3, 25e3, 25e3, 30e3])


def test_every_step_of_both_runs_in_milliseconds_and_excluded_ones_hollow():
    figure = step_times([(SLOW, BEFORE), (FAST, AFTER)])
    before, after = figure.data
    assert list(before.x) == [1, 2, 3, 4, 5, 6]
    assert list(before.y) == [351, 350, 352, 349, 351, 360]
    assert list(after.y) == [25, 26, 24, 25, 25, 30]
    assert (before.name, after.name) == ("Baseline · before", "Candidate · after")
    assert figure.layout.yaxis.title.text == "Step time (ms)"
    assert figure.layout.yaxis.range is None, "two runs far apart are no outliers"
    assert list(before.marker.symbol) == ["circle-open", *["circle"] * 4, "circle-open"]
    assert list(before.customdata[0]) == ["10", "351 ms", "localhost", "<br>excluded"]
    assert before.customdata[1][3] == ""


def test_a_run_without_steps_is_not_drawn_and_the_others_keep_their_colours():
    figure = step_times([(Side("a", 0, 3), BEFORE), (Side("b", 1, 3), AFTER.iloc[:0]), (Side("c", 2, 3), AFTER)])
    assert [trace.name for trace in figure.data] == ["Baseline · a", "Candidate C · c"]
    assert figure.data[1].line.color == side_colour(Side("c", 2, 3))


def test_many_steps_are_a_line_without_markers():
    assert step_times([(SLOW, samples.steps([1e3] * 501))]).data[0].mode == "lines"


def test_distributions_near_each_other_share_an_axis_of_times():
    figure = step_distribution([(SLOW, BEFORE), (FAST, samples.steps([300e3] * 6))])
    assert list(figure.data[0].x) == [350, 352, 349, 351], "only the included steps"
    assert figure.layout.xaxis.title.text == "Step time (ms)"
    assert figure.data[0].name == "Baseline<br>mean 350 ms"


def test_distributions_far_apart_are_drawn_around_their_means():
    figure = step_distribution([(SLOW, BEFORE), (FAST, AFTER)])
    assert list(figure.data[1].x) == pytest.approx([0.04, -0.04, 0.0, 0.0])
    assert figure.layout.xaxis.title.text == "Deviation from the run's mean step"
    assert figure.data[1].customdata[0].tolist() == ["11", "26.0 ms"]


STRAY = samples.steps([30e3, *[25e3, 26e3, 24e3, 25e3] * 4, 500e3, 28.5e3, 30e3])
NEAR = samples.steps([26e3, *[22e3, 26e3, 24e3, 25e3] * 4, 41e3, 26e3])


def test_a_slow_step_has_a_sign_of_its_own_and_says_so():
    figure = step_times([(SLOW, NEAR)])
    trace = figure.data[0]
    assert [i for i, symbol in enumerate(trace.marker.symbol) if symbol == slow_steps.SYMBOL] == [17]
    assert trace.customdata[17].tolist() == ["27", "41.0 ms", "localhost", slow_steps.HOVER]
    assert trace.marker.size[17] > trace.marker.size[16]
    assert slow_steps.NOTE in figure.layout.title.subtitle.text
    assert slow_steps.NOTE not in step_times([(SLOW, BEFORE.iloc[:5])]).layout.title.subtitle.text
    assert figure.layout.yaxis.range is None, "near the others"


def test_a_stray_step_does_not_press_the_others_flat_and_is_at_the_edge_with_its_time():
    figure = step_times([(SLOW, samples.steps([20e3] * 20)), (FAST, STRAY)])
    low, high = figure.layout.yaxis.range
    assert (low, 28.5 < high < 60) == (0, True)
    assert slow_steps.BEYOND_NOTE in figure.layout.title.subtitle.text
    line, edge = figure.data[1:]
    assert line.y[17] == 500.0, "the line leads where the step is"
    assert (edge.x.tolist(), edge.text) == ([18], ("500 ms",))
    assert 0.9 * high < edge.y[0] < high
    assert edge.marker.color == side_colour(FAST)
    excluded = step_times([(SLOW, samples.steps([9e6, *[20e3, 21e3] * 8, 20e3]))])
    assert (excluded.layout.yaxis.range[1], excluded.data[1].text) == (pytest.approx(21 * 1.3), ("9.00 s",))


def test_a_box_is_not_pressed_flat_by_a_slow_step_either():
    long = STRAY.assign(duration_us=STRAY["duration_us"].clip(upper=100e3))
    figure = step_distribution([(SLOW, samples.steps([20e3, 21e3] * 10)), (FAST, long)])
    low, high = figure.layout.xaxis.range
    assert low < 20 and 28.5 < high < 40
    assert figure.data[1].x.max() == 100.0
    assert figure.data[1].name.endswith("<br>1 beyond: 100 ms")
    assert "beyond" not in figure.data[0].name
    assert step_distribution([(SLOW, NEAR)]).layout.xaxis.range is None


def test_one_op_in_every_step():
    frames = [f.assign(self_time_us=f["duration_us"] / 1000) for f in (BEFORE, AFTER)]
    figure = op_in_steps([(SLOW, frames[0]), (FAST, frames[1])], "a<b>/MatMul")
    assert list(figure.data[0].y) == [351, 350, 352, 349, 351, 360]
    assert figure.layout.yaxis.title.text == "Self time (µs)"
    assert figure.layout.title.subtitle.text.startswith("a&lt;b&gt;/MatMul · hollow")


SIDES = (Side("before", 0), Side("after", 1))
PARTS_BEFORE = steps(*[(100e3, 10e3), (100e3, 30e3)] * 3, other_us=5e3)
PARTS_AFTER = steps((60e3, 30e3), other_us=10e3)


def test_the_average_step_has_a_bar_for_each_part_that_takes_time():
    figure = step_breakdown(part_means(PARTS_BEFORE, PARTS_AFTER), SIDES[0])
    (bars,) = figure.data
    assert list(figure.layout.yaxis.ticktext) == ["Input", "Host compute", "Other"]
    assert list(bars.x) == pytest.approx([20, 75, 5])
    assert list(bars.text) == ["20.0 ms (20.0 %)", "75.0 ms (75.0 %)", "5.00 ms (5.00 %)"]
    assert bars.customdata[0][2] == " ± 11.5 ms"
    assert figure.layout.title.text == "Average step by part: 100 ms"
    assert figure.layout.xaxis.title.text == "Mean over the included steps (ms)"


def test_a_single_part_has_room_for_the_axis_and_a_run_without_steps_has_no_parts():
    means = part_means(PARTS_BEFORE, PARTS_AFTER)
    means = means[means["mean_us_baseline"] > 0]
    one, two, three = (step_breakdown(means.iloc[:count], SIDES[0]).layout.height for count in (1, 2, 3))
    assert one == two < three
    assert len(step_breakdown(part_means(PARTS_BEFORE.iloc[:0], PARTS_AFTER), SIDES[0]).data[0].x) == 0


def test_every_step_is_its_parts_on_one_another():
    figure = parts_of_steps(SIDES[0], PARTS_BEFORE)
    assert [sum(bar.y[i] for bar in figure.data) for i in range(6)] == pytest.approx([100] * 6)
    assert list(figure.data[0].marker.opacity) == [EXCLUDED_OPACITY, 1, 1, 1, 1, EXCLUDED_OPACITY]
    assert "excluded" in figure.layout.title.subtitle.text
    assert list(figure.data[0].customdata[0]) == ["10", "100 ms", "localhost", "<br>excluded", "10.0 ms", "10.0 %"]


def test_many_steps_are_areas_and_none_are_nothing():
    figure = parts_of_steps(SIDES[0], steps(*[(10.0, 1.0)] * (MAX_MARKERS + 1)))
    assert {trace.stackgroup for trace in figure.data} == {"parts"}
    assert len(parts_of_steps(SIDES[0], pd.DataFrame(PARTS_BEFORE.iloc[:0])).data) == 0


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
