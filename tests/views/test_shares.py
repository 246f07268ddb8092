"""Bars of where the time goes: times by default, shares that add up to the whole, one bar for a run alone."""

from __future__ import annotations

import pytest

from tests.views import chart_samples as samples
from tfcompare.compare.groups.aggregate import group_diff
from tfcompare.compare.side import Side
from tfcompare.views.chart_style import side_colour
from tfcompare.views.ops.figures import time_shares
from tfcompare.views.shares import ABSENT, share_bars, share_rows, time_bars

SIDES = (Side("before", 0), Side("after", 1))
TIME = "self_time_us"


def times(count: int = 4, by: str = "op_name"):
    return time_shares(group_diff(samples.diff(), by), by, count=count)


def test_the_bars_are_the_times_in_a_readable_unit():
    figure = time_bars(times(), SIDES, TIME, title="Self time", axis="Self time per step")
    ours, theirs = figure.data
    assert list(ours.x[:2]) == pytest.approx([200.0, 120.0])
    assert ours.text[0] == "200 ms"
    assert figure.layout.xaxis.title.text == "Self time per step (ms)"
    assert [ours.name, theirs.name] == ["Baseline · before", "Candidate · after"]
    assert ours.customdata[0].tolist() == ["IDLE", "200 ms", "38.7 %"]
    assert figure.layout.annotations[-1].text == "other (9 more)"


def test_shares_of_each_side_add_up_to_the_whole():
    figure = share_bars(times(), SIDES, TIME, title="Self time", axis="Share of self time")
    for trace in figure.data:
        assert sum(trace.x) == pytest.approx(1.0)
    assert figure.data[0].text[0] == "38.7 %"


def test_charts_side_by_side_can_have_the_same_scale():
    first, second = (
        time_bars(times(by=by), SIDES, TIME, title=by, axis="Time", reach=400_000.0) for by in ("op_name", "op_type")
    )
    assert first.layout.xaxis.range == second.layout.xaxis.range
    assert first.layout.xaxis.range[1] >= 400.0


def test_a_run_alone_has_one_bar_for_each_group_and_a_candidate_its_colour_in_every_chart():
    figure = time_bars(times(), [Side("only", 0, 1)], TIME, title="Self time", axis="Time")
    assert (len(figure.data), figure.layout.showlegend) == (1, False)
    assert "baseline" not in figure.data[0].hovertemplate
    third = Side("third", 3, 4)
    both = time_bars(times(by="op_type"), (Side("before", 0, 4), third), TIME, title="Self time", axis="Time")
    assert both.data[1].marker.color == side_colour(third)


def test_a_group_that_a_run_lacks_says_so():
    diff = samples.diff(samples.op_stats(samples.SLOW, without="Prefetch"), samples.op_stats(samples.FAST))
    shares = time_shares(group_diff(diff, "op_name"), "op_name", count=20)
    figure = time_bars(shares, SIDES, TIME, title="Self time", axis="Time")
    assert list(figure.data[0].text).count(ABSENT) == 1


def test_distributions_at_a_glance_are_whole_bars_and_a_group_has_one_colour_on_both_sides():
    rows = [("Host by op", times(by="op_name")), ("Host by op type", times(by="op_type"))]
    figure = share_rows(rows, SIDES, title="Shares")
    lengths, colours = {}, {}
    for trace in figure.data:
        for name, y, share in zip(trace.customdata, trace.y, trace.x, strict=True):
            lengths[y] = lengths.get(y, 0.0) + share
            colours.setdefault((round(y), name[0]), set()).add(trace.marker.color)
    assert len(lengths) == 4
    assert list(lengths.values()) == pytest.approx([1.0] * 4)
    assert all(len(of_group) == 1 for of_group in colours.values())
    assert [one.text for one in figure.layout.annotations] == ["Host by op", "Host by op type"]


def test_a_segment_without_room_has_no_text_but_tells_its_name_on_hovering():
    figure = share_rows([("Host by op", times(by="op_name"))], SIDES, title="Shares", pixels=300)
    written = [(text, share) for trace in figure.data for text, share in zip(trace.text, trace.x, strict=True)]
    assert any(text for text, _ in written)
    assert all(not text for text, share in written if share < 0.1)
    assert all(name[0] for trace in figure.data for name in trace.customdata)
