"""What steps are made of, as figures: the parts stack up to the step."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.input_runs import steps
from tfcompare.charts.downsampling import MAX_MARKERS
from tfcompare.charts.step_parts import EXCLUDED_OPACITY, PART_COLOURS, average_steps, parts_of_steps
from tfcompare.charts.style import Side
from tfcompare.compare.attribution import part_means
from tfcompare.schema import STEP_PARTS

SIDES = (Side("before", 0), Side("after", 1))
BEFORE = steps(*[(100e3, 10e3), (100e3, 30e3)] * 3, other_us=5e3)
AFTER = steps((60e3, 30e3), other_us=10e3)


def test_average_steps_are_stacked_to_the_step():
    figure = average_steps(part_means(BEFORE, AFTER), SIDES)
    assert [bar.name for bar in figure.data] == ["Input", "Host compute", "Other"]
    assert [sum(bar.x[i] for bar in figure.data) for i in (0, 1)] == pytest.approx([100, 60])
    assert list(figure.data[0].text) == ["20.0 ms", "30.0 ms"]
    assert figure.data[0].customdata[0] == ["Baseline", "20.0 ms", " ± 11.5 ms", "20.0 %"]
    assert figure.data[0].customdata[1] == ["Candidate", "30.0 ms", "", "50.0 %"], "one step has no deviation"
    assert figure.layout.xaxis.title.text == "Time (ms)"


def test_steps_far_apart_are_shares():
    figure = average_steps(part_means(BEFORE, steps((600.0, 60.0))), SIDES)
    assert [sum(bar.x[i] for bar in figure.data) for i in (0, 1)] == pytest.approx([1, 1])
    assert "as shares" in figure.layout.title.text
    assert figure.layout.annotations[1].text == "Candidate · after · 600 µs"


def test_a_side_without_steps_is_not_drawn():
    figure = average_steps(part_means(BEFORE.iloc[:0], AFTER), SIDES)
    assert [note.text for note in figure.layout.annotations] == ["Candidate · after · 60.0 ms"]
    assert all(len(bar.x) == 1 for bar in figure.data)


def test_every_step_is_its_parts_on_one_another():
    figure = parts_of_steps(SIDES[0], BEFORE)
    assert [sum(bar.y[i] for bar in figure.data) for i in range(6)] == pytest.approx([100] * 6)
    assert list(figure.data[0].marker.opacity) == [EXCLUDED_OPACITY, 1, 1, 1, 1, EXCLUDED_OPACITY]
    assert "set aside" in figure.layout.title.subtitle.text
    assert list(figure.data[0].customdata[0]) == ["10", "100 ms", "localhost", "<br>set aside", "10.0 ms", "10.0 %"]


def test_many_steps_are_areas_and_none_are_nothing():
    figure = parts_of_steps(SIDES[0], steps(*[(10.0, 1.0)] * (MAX_MARKERS + 1)))
    assert {trace.stackgroup for trace in figure.data} == {"parts"}
    assert len(parts_of_steps(SIDES[0], pd.DataFrame(BEFORE.iloc[:0])).data) == 0


def test_a_stray_step_stands_at_the_edge_with_its_time():
    figure = parts_of_steps(SIDES[0], steps(*[(100e3, 10e3), (102e3, 30e3)] * 5, (5e6, 10e3), (100e3, 10e3)))
    assert 102 < figure.layout.yaxis.range[1] < 250
    edge = figure.data[-1]
    assert (edge.x.tolist(), edge.text) == ([11], ("5.00 s",))
    assert "outlying" in figure.data[0].customdata[10][3]
    assert "beyond the axis" in figure.layout.title.subtitle.text


def test_every_part_has_a_colour_of_its_own():
    assert list(PART_COLOURS) == list(STEP_PARTS)
    assert len(set(PART_COLOURS.values())) == len(STEP_PARTS)
