"""Waterfalls as figures: bars begin where the one before ended, and say what they are."""

from __future__ import annotations

import html

import pandas as pd
import pytest

from tfcompare.compare.attribution import MOVE_COLUMNS, Waterfall, factor_moves
from tfcompare.compare.side import Side
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import side_colour
from tfcompare.views.steps.part_charts import UNEXPLAINED, part_waterfall, step_waterfall

SIDES = (Side("before", 0), Side("after <b>", 1))
NAN = float("nan")
STEP = Waterfall(
    9500.0,
    4500.0,
    pd.DataFrame(
        [
            ("Kernel launch", "giving work", "part", 700.0, 2720.0, 2020.0),
            ("Host compute", "computing", "part", 30.0, 30.0, 0.0),
            ("Device compute", "computing", "part", 8100.0, 1080.0, -7020.0),
        ],
        columns=MOVE_COLUMNS,
    ),
)
WITHIN = Waterfall(
    100.0,
    20.0,
    pd.DataFrame(
        [
            ("conv<1>", "Conv2D", "matched", 90.0, 10.0, -80.0),
            ("old", "Relu", "removed", 8.0, NAN, -8.0),
            ("new", "Gelu", "added", NAN, 5.0, 5.0),
            ("No op running", "rest", "no op running", 2.0, 5.0, 3.0),
        ],
        columns=MOVE_COLUMNS,
    ),
)


def ends_of(bars) -> list[tuple[float, float]]:
    return [(base, base + length) for base, length in zip(bars.base, bars.x, strict=True)]


def test_bars_begin_where_the_one_before_ended_and_say_what_they_are():
    figure = step_waterfall(STEP, SIDES)
    connectors, baseline, candidate, moves = figure.data
    assert ends_of(baseline) == [(0, 9.5)]
    assert ends_of(candidate) == [(0, 4.5)]
    assert [pytest.approx(end) for end in ends_of(moves)] == [(9.5, 11.52), (11.52, 11.52), (4.5, 11.52)]
    assert [x for x in connectors.x if x is not None][::2] == pytest.approx([9.5, 11.52, 11.52, 4.5])
    assert (baseline.marker.color, candidate.marker.color) == (side_colour(SIDES[0]), side_colour(SIDES[1]))
    assert list(moves.text) == ["▲ +2.02 ms (+289 %)", "unchanged", "▼ −7.02 ms (−86.7 %)"]
    assert [moves.marker.color[0], moves.marker.color[2]] == [style.WORSE, style.BETTER]
    assert figure.layout.title.text == "Average step by part: 9.50 ms → 4.50 ms"
    assert figure.layout.xaxis.title.text == "Mean over the included steps (ms)"
    assert list(figure.layout.yaxis.ticktext) == [
        *("Baseline", "Kernel launch", "Host compute", "Device compute", "Candidate"),
    ]
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert sorted(y for bar in bars for y in bar.y) == list(figure.layout.yaxis.tickvals), "each label is at its bar"


def test_what_one_side_lacks_and_time_in_which_no_op_ran_is_hatched_and_named():
    figure = part_waterfall(WITHIN, SIDES, "Host compute")
    moves = figure.data[-1]
    assert list(moves.text) == [
        "▼ −80.0 µs (−88.9 %)",
        "▼ −8.00 µs (removed)",
        "▲ +5.00 µs (added)",
        "▲ +3.00 µs (+150 %)",
    ]
    assert list(moves.marker.pattern.shape) == ["", "x", "/", "."]
    assert moves.marker.color[3] == UNEXPLAINED
    notes = figure.layout.title.subtitle.text
    assert "hatched: only one side has it; dotted: no op was running" in notes
    assert "below 0" not in notes
    assert figure.layout.xaxis.range[0] == 0
    assert moves.customdata[0].tolist()[:2] == ["conv&lt;1&gt;", "Conv2D"]
    assert moves.customdata[1].tolist()[4] == "–", "the absent side is no 0"


def test_small_changes_of_a_long_step_are_not_slivers():
    moves = pd.DataFrame([("Input", "", "part", 500.0, 510.0, 10.0)], columns=MOVE_COLUMNS)
    figure = step_waterfall(Waterfall(1000.0, 1010.0, moves), SIDES)
    low, high = figure.layout.xaxis.range
    assert (high - low) / 2 < 0.010, "in milliseconds: the change takes more than half of the axis"
    assert "does not begin at 0" in figure.layout.title.subtitle.text
    assert step_waterfall(STEP, SIDES).layout.title.subtitle.text is None


def test_where_nothing_moved_there_is_no_bar_between_and_it_says_so():
    figure = step_waterfall(Waterfall(100.0, 100.0, STEP.moves.assign(delta_us=0.0)), SIDES)
    assert [trace.type for trace in figure.data] == ["scatter", "bar", "bar"]
    assert "no part changed" in figure.layout.title.subtitle.text
    assert ends_of(figure.data[1]) == ends_of(figure.data[2]) == [(0, 100)]


def test_factors_show_what_they_were_and_also_below_0():
    moves = factor_moves((100, 100), (2.0, 4.0), ("Launches", "Time each"))
    figure = part_waterfall(Waterfall(200.0, 400.0, moves), SIDES, "Kernel launch")
    assert list(figure.data[-1].text) == ["unchanged", "▲ +200 µs (from 2.00 µs to 4.00 µs)"]
    assert figure.layout.title.text.startswith("Kernel launch by factor")
    few_and_long = Waterfall(2000.0, 500.0, factor_moves((1000, 10), (2.0, 50.0), ("Launches", "Time each")))
    assert few_and_long.levels_us.tolist() == [2000, -23740, 500]
    layout = part_waterfall(few_and_long, SIDES, "Kernel launch").layout
    assert (layout.xaxis.range[0], layout.xaxis.zeroline) == (pytest.approx(-23.740), True)
    assert "below 0" in layout.title.subtitle.text


def test_on_a_narrow_page_half_of_the_width_is_for_text_and_names_are_short():
    long = WITHIN.moves.assign(name=[f"{at}{'scope/' * 20}{name}" for at, name in enumerate(WITHIN.moves["name"])])
    wide, narrow = (part_waterfall(Waterfall(100.0, 20.0, long), SIDES, "Host", narrow=n) for n in (False, True))
    longest = {False: 100 / wide.layout.xaxis.range[1], True: 100 / narrow.layout.xaxis.range[1]}
    assert longest[False] > 0.7
    assert 0.4 < longest[True] < 0.55
    assert [max(len(html.unescape(one.text)) for one in f.layout.annotations) for f in (wide, narrow)] == [72, 48]
