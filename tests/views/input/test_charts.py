"""Charts on the input: what is drawn is what the frames say."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.input_runs import BETTER, NAIVE, input_diff, steps
from tfcompare.compare.side import Side
from tfcompare.views.chart_style import MAX_MARKERS, side_label
from tfcompare.views.input.charts import category_times, input_share_per_step, step_times
from tfcompare.views.input.figures import share_by_step
from tfcompare.views.input.ops import category_times as categories_of

SLOW, FAST = Side("before", 0), Side("after <b>", 1)


def with_shares(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(input_share=share_by_step(frame))


BEFORE = with_shares(steps(*[(100e3, 10e3)] * 5, (80e3, 60e3), (90e3, 0.0)))
AFTER = with_shares(steps(*[(60e3, 30e3)] * 4))


def test_every_step_is_its_waiting_and_the_rest_in_a_panel_for_each_run():
    figure = step_times([(SLOW, BEFORE), (FAST, AFTER)])
    waiting, rest = figure.data[:2]
    assert list(waiting.y) == [10, 10, 10, 10, 10, 60, 0]
    assert [a + b for a, b in zip(waiting.y, rest.y, strict=True)] == [100, 100, 100, 100, 100, 80, 90]
    assert list(waiting.customdata[5]) == ["15", "60.0 ms", "80.0 ms", "75.0 %", "localhost", ""]
    assert [trace.xaxis for trace in figure.data] == ["x", "x", "x2", "x2"]
    assert [note.text for note in figure.layout.annotations] == [
        "<b>Baseline</b><br>before",
        "<b>Candidate</b><br>after &lt;b&gt;",
    ]
    alone = step_times([(Side("only", 0, 1), BEFORE)])
    assert (len(alone.data), alone.layout.annotations) == (2, ())


def test_runs_share_one_scale_however_far_apart():
    figure = step_times([(SLOW, BEFORE), (FAST, with_shares(steps((500.0, 100.0))))])
    assert figure.layout.yaxis2.matches == "y"
    assert (figure.layout.yaxis.title.text, list(figure.data[2].y)) == ("Time (ms)", [0.1])


@pytest.mark.parametrize(("count", "tick"), [(1, 1), (10, 1), (11, None)])
def test_few_steps_have_a_tick_each(count, tick):
    figure = step_times([(SLOW, with_shares(steps(*[(100.0, 10.0)] * count)))])
    assert figure.layout.xaxis.dtick == tick


def test_excluded_steps_are_hollow_and_say_so():
    figure = step_times([(SLOW, BEFORE)])
    marker = figure.data[0].marker
    assert [colour == "rgba(0,0,0,0)" for colour in marker.color] == [True, *[False] * 5, True]
    assert [width > 0 for width in marker.line.width] == [True, *[False] * 5, True]
    assert "hollow" in figure.layout.title.subtitle.text
    assert "hollow" not in step_times([(FAST, AFTER)]).layout.title.subtitle.text


def test_a_run_without_steps_has_no_panel_and_the_other_keeps_its_colour():
    figure = step_times([(SLOW, BEFORE.iloc[:0]), (FAST, AFTER)])
    assert (len(figure.data), figure.data[0].marker.color[0]) == (2, "rgba(176,48,154,1.0)")
    assert [trace.name for trace in input_share_per_step([(SLOW, BEFORE.iloc[:0]), (FAST, AFTER)]).data] == [
        side_label(FAST)
    ]


def test_many_steps_are_areas():
    traces = step_times([(SLOW, with_shares(steps(*[(10.0, 1.0)] * (MAX_MARKERS + 1))))]).data
    assert [trace.type for trace in traces] == ["scatter", "scatter"]
    assert {trace.stackgroup for trace in traces} == {"Baseline"}


def test_shares_of_both_runs_on_one_axis():
    before, after = input_share_per_step([(SLOW, BEFORE), (FAST, AFTER)]).data
    assert list(before.y) == pytest.approx([0.1] * 5 + [0.75, 0.0])
    assert list(after.y) == [0.5] * 4
    assert list(before.marker.symbol) == ["circle-open", *["circle"] * 5, "circle-open"]


def test_categories_of_both_runs_as_pairs_of_bars_and_of_a_run_alone_without_a_legend():
    figure = category_times(categories_of(input_diff()), (SLOW, FAST), per="step")
    before, after = figure.data
    assert [list(before.x), list(after.x)] == [[200, 0, 800], [0, 50, 450]]
    assert list(before.text) == ["200 µs (20.0 %)", "none", "800 µs (80.0 %)"]
    assert figure.layout.xaxis.title.text == "Self time per step (µs)"
    assert [note.text for note in figure.layout.annotations] == [
        "Reading on demand",
        "Reading in advance",
        "Preprocessing",
    ]
    alone = category_times(categories_of(input_diff()), [Side("only", 0, 1)], per="step")
    assert [list(trace.x) for trace in alone.data] == [[200, 800]]
    assert not alone.layout.showlegend


@pytest.mark.parametrize(("ours", "theirs", "label"), [(NAIVE, "", side_label(SLOW)), ("", BETTER, side_label(FAST))])
def test_a_side_without_input_ops_is_not_drawn(ours, theirs, label):
    figure = category_times(categories_of(input_diff(ours, theirs)), (SLOW, FAST), per="run")
    assert [trace.name for trace in figure.data] == [label]
    assert figure.layout.showlegend
