"""Charts over steps: what is drawn is what the frames say."""

from __future__ import annotations

import pytest

from tests.views import chart_samples as samples
from tfcompare.compare.side import Side
from tfcompare.views.chart_style import side_colour
from tfcompare.views.steps import charts as slow_steps
from tfcompare.views.steps.charts import op_in_steps, step_distribution, step_times

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
