"""Charts over ops: what is drawn is what the frames say, and parts add up to the whole."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.charts import chart_samples as samples
from tests.charts.chart_samples import FAST, METRIC, OPS, SLOW
from tfcompare.charts import ops, style
from tfcompare.charts.style import Side
from tfcompare.compare.aggregate import group_diff, largest_changes
from tfcompare.tools.op_stats import op_table, own_side_shares, time_shares

SIDES = (Side("before", 0), Side("after", 1))


def test_top_ops_show_share_and_cumulative_share():
    ranked = own_side_shares(op_table(samples.op_stats(SLOW), idle=False))
    figure = ops.top_ops(SIDES[0], ranked, "host")
    bars, line, shares, cumulative = figure.data
    whole = sum(op[2] for op in OPS)
    assert list(bars.x) == pytest.approx([op[2] / whole for op in OPS[:10]])
    assert line.x[-1] == pytest.approx(sum(op[2] for op in OPS[:10]) / whole)
    assert list(shares.text)[:2] == ["37.9 %", "28.4 %"]
    assert list(cumulative.text)[:2] == ["37.9 %", "66.3 %"]
    assert figure.layout.title.text == "Top 10 ops on host: before"
    assert bars.customdata[0].tolist()[:3] == [OPS[0][1], "Conv2DBackpropFilter", "2.40 s"]


def judged(diff: pd.DataFrame) -> pd.DataFrame:
    """The largest changes, each with the verdict that it is real."""
    changes = largest_changes(diff)
    words = (changes[f"{METRIC}_change"] < 0).map({True: "faster", False: "slower"})
    return changes.assign(verdict=words.where(changes["status"] == "matched"))


def test_movers_point_left_for_less_and_right_for_more():
    changes = judged(samples.diff())
    figure = ops.movers(changes, METRIC, per="step")
    less, more = figure.data
    assert (less.name, more.name) == ("▼ less time", "▲ more time")
    assert (less.marker.color, more.marker.color) == (style.BETTER, style.WORSE)
    assert less.x[0] == pytest.approx(-116.0)
    assert less.text[0] == "−116 ms (−96.7 %)"
    assert more.x[0] == pytest.approx(1.2)
    assert more.text[0] == "+1.20 ms (+150 %)"
    assert figure.layout.title.text == "The 10 largest changes of self time"
    assert figure.layout.xaxis.title.text == "Change of self time (ms per step)"


def test_what_only_one_side_has_is_hatched_and_named():
    diff = samples.diff(samples.op_stats(SLOW, without="Prefetch"), samples.op_stats(FAST, without="conv2d_1/Conv2D"))
    figure = ops.movers(judged(diff), METRIC, per="step")
    (alone,) = (trace for trace in figure.data if trace.marker.pattern.shape[0])
    assert alone.name == ops.NO_CLAIM
    assert alone.marker.color == style.NEUTRAL
    found = dict(zip(alone.text, alone.marker.pattern.shape, strict=True))
    assert found["−120 ms (removed)"] == "x"
    assert found["+2.00 ms (added)"] == "/"
    assert [t.name for t in figure.data if t.showlegend] == ["▼ less time", "▲ more time", ops.NO_CLAIM]
    assert "hatched" in figure.layout.title.subtitle.text


@pytest.mark.parametrize("verdict", ["untested", "unclear", "same", "slower"])
def test_what_no_verdict_calls_better_or_worse_has_no_such_colour(verdict):
    """`slower` beside a figure that fell is about another figure: the time per step, where those shown are per run."""
    changes = largest_changes(samples.diff(), n=3).assign(verdict=verdict)
    (bars,) = ops.movers(changes, METRIC, per="run").data
    assert (bars.name, bars.marker.color) == (ops.NO_CLAIM, style.NEUTRAL)
    assert bars.text[0] == "−116 ms (−96.7 %)"
    assert all(x < 0 for x in bars.x)


@pytest.mark.parametrize(("unit", "colours"), [("bytes", {style.BETTER, style.WORSE}), ("", {style.NEUTRAL})])
def test_bytes_need_no_verdict_and_of_counts_neither_is_better(unit, colours):
    quantity = style.Quantity("memory", unit, "less", "more")
    figure = ops.movers(largest_changes(samples.diff()), METRIC, per="", quantity=quantity)
    assert {trace.name: trace.marker.color for trace in figure.data}.keys() == {"▼ less", "▲ more"}
    assert {trace.marker.color for trace in figure.data} == colours


def test_names_begin_at_the_left_end_where_the_bars_go_both_ways():
    changes = judged(samples.diff())
    one_way = ops.movers(changes, METRIC, per="step")
    assert {a.xref for a in one_way.layout.annotations} == {"x"}
    both_ways = changes.assign(**{f"{METRIC}_change": [90.0, -90.0] * 5})
    assert {a.xref for a in ops.movers(both_ways, METRIC, per="step").layout.annotations} == {"paper"}


def test_groups_can_be_movers_too():
    changes = largest_changes(group_diff(samples.diff(), "op_type"), n=3)
    figure = ops.movers(changes, METRIC, per="step", by="op_type")
    assert [a.text for a in figure.layout.annotations] == ["Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv2D"]


def test_shares_of_each_side_add_up_to_the_whole():
    shares = time_shares(group_diff(samples.diff(), "op_name"), "op_name", count=4)
    figure = ops.self_time_shares(shares, SIDES, by="op", place="host")
    for trace in figure.data:
        assert sum(trace.x) == pytest.approx(1.0)
    assert [trace.name for trace in figure.data] == ["Baseline · before", "Candidate · after"]
    assert figure.layout.annotations[-1].text == "other (9 more)"
    assert figure.data[0].customdata[0].tolist() == ["IDLE", "38.7 %", "200 ms"]


def test_a_candidate_keeps_its_colour_in_every_chart():
    shares = time_shares(group_diff(samples.diff(), "op_type"), "op_type")
    third = Side("third", 3, 4)
    figure = ops.self_time_shares(shares, (Side("before", 0, 4), third), by="op type", place="host")
    assert figure.data[1].marker.color == third.colour


def test_names_are_no_markup():
    stats = samples.op_stats(SLOW)
    stats.loc[0, "op_name"] = "<a href='x'>y</a>"
    ranked = own_side_shares(op_table(stats, idle=False))
    figure = ops.top_ops(SIDES[0], ranked, "host")
    assert figure.layout.annotations[2].text == "&lt;a href='x'&gt;y&lt;/a&gt;"
    assert "<a" not in figure.data[0].customdata[0][0]
