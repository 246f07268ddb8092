"""Charts over ops: bars and icicles draw what the frames say, and parts add up to the whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.views import chart_samples as samples
from tests.views.chart_samples import FAST, METRIC, SLOW
from tfcompare.compare.groups.aggregate import group_diff, largest_changes
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.side import Side
from tfcompare.views import bars as ops
from tfcompare.views import chart_style as style
from tfcompare.views.icicles import SMALLER, fold_chains, log_ratio, merge_small_scopes, scope_icicle

SIDES = (Side("before", 0), Side("after", 1))


def judged(diff: pd.DataFrame) -> pd.DataFrame:
    """The largest changes, each with the verdict that it is real."""
    changes = largest_changes(diff)
    words = (changes[f"{METRIC}_change"] < 0).map({True: "faster", False: "slower"})
    return changes.assign(verdict=words.where(changes["status"] == "matched"))


def texts(figure) -> list[str]:
    return [annotation.text for annotation in figure.layout.annotations]


def test_movers_point_left_for_less_and_right_for_more():
    figure = ops.movers(judged(samples.diff()), METRIC, per="step")
    less, more = figure.data
    assert (less.name, more.name) == ("▼ less time", "▲ more time")
    assert (less.marker.color, more.marker.color) == (style.BETTER, style.WORSE)
    assert less.x[0] == pytest.approx(-116.0)
    assert more.x[0] == pytest.approx(1.2)
    assert texts(figure)[10] == "▼ faster · −116 ms"
    assert texts(figure)[20] == "−96.7 %"
    assert figure.layout.title.text == "The 10 largest changes of self time"
    assert figure.layout.xaxis.title.text == "Change of self time (ms per step)"


def test_the_interval_of_a_change_is_that_of_its_ratio_times_the_baseline():
    changes = judged(samples.diff()).head(3)
    changes = changes.assign(interval_low=[0.02, 0.01, np.nan], interval_high=[0.05, 1.2, np.nan])
    changes = changes.assign(verdict=["faster", "unclear", "untested"])
    figure = ops.movers(changes, METRIC, per="step")
    lines = {trace.line.color: trace for trace in figure.data if trace.type == "scatter"}
    assert list(lines) == [style.BETTER, style.NEUTRAL]
    assert list(lines[style.BETTER].x[:2]) == pytest.approx([-0.98 * 120, -0.95 * 120])
    assert list(lines[style.NEUTRAL].x[:2]) == pytest.approx([-0.99 * 90, 0.2 * 90])
    assert texts(figure)[3:] == [
        "▼ faster · −116 ms",
        "? inconclusive · −87.0 ms",
        "– not tested · −57.5 ms",
        "−96.7 % (−98.0 to −95.0)",
        "−96.7 % (−99.0 to +20.0)",
        "−95.8 %",
    ]
    low, high = figure.layout.xaxis.range
    assert low < -0.98 * 120 and high > 0.2 * 90, "the axis includes every interval"
    assert "confidence interval" in figure.layout.title.subtitle.text


def test_what_only_one_side_has_is_hatched_and_named():
    diff = samples.diff(samples.op_stats(SLOW, without="Prefetch"), samples.op_stats(FAST, without="conv2d_1/Conv2D"))
    figure = ops.movers(judged(diff), METRIC, per="step")
    (alone,) = (trace for trace in figure.data if trace.marker.pattern.shape[0])
    assert (alone.name, alone.marker.color) == (ops.ONE_SIDED, style.NEUTRAL)
    found = dict(zip(alone.customdata[:, 2], alone.marker.pattern.shape, strict=True))
    assert found["removed · −120 ms"] == "x"
    assert found["added · +2.00 ms"] == "/"
    assert [t.name for t in figure.data if t.showlegend] == ["▼ less time", "▲ more time", ops.ONE_SIDED]
    narrow = ops.movers(judged(diff), METRIC, per="step", letters=20)
    assert (figure.layout.legend.orientation, narrow.layout.legend.orientation) == ("h", "v")
    assert narrow.layout.margin.t - figure.layout.margin.t == 2 * style.LEGEND_ROW_PIXELS


def test_what_no_verdict_calls_better_or_worse_is_a_thin_outline_without_a_colour():
    """`slower` beside a figure that fell is about another figure: the time per step, where those shown are per run."""
    verdicts = ["untested", "unclear", "same", "slower"]
    changes = largest_changes(samples.diff(), n=5).assign(verdict=["faster", *verdicts])
    solid, pale = ops.movers(changes, METRIC, per="run").data
    assert (len(solid.x), len(pale.x), max(pale.x) < 0) == (1, 4, True)
    assert pale.width < solid.width
    assert (solid.marker.color, pale.marker.color) == (style.BETTER, "rgba(0,0,0,0)")
    assert (pale.name, pale.marker.line.color) == (ops.NO_CLAIM, style.NEUTRAL)


def test_more_time_for_more_work_is_told_from_more_time_at_the_same_work():
    changes = judged(samples.diff()).head(6)
    ratios = {"count_ratio": 1.0, "time_per_work_ratio": np.nan, "time_each_ratio": np.nan, "work_in": "FLOPs"}
    work = [1.5, 1.0, 0.25, np.nan, 0.5, 2.0]
    changes = changes.assign(
        **ratios, work_ratio=work, verdict=["slower", "slower", "faster", "faster", "faster", None]
    )
    changes[f"{METRIC}_change"] = changes[f"{METRIC}_change"].abs() * [1, 1, -1, -1, -1, 1]
    figure = ops.movers(changes, METRIC, per="step")
    dots = {trace.name: trace.marker.pattern.shape == "." for trace in figure.data}
    assert dots == {
        "▼ less time, less work": True,
        "▼ less time": False,
        "▲ more time, more work": True,
        "▲ more time, same work": False,
        ops.NO_CLAIM: False,
    }
    assert figure.layout.legend.orientation == "v", "five entries do not fit in a row"
    assert figure.data[0].customdata[0][1].endswith(" · 1/4 of the FLOPs")
    each = ops.movers(changes, METRIC, per="occurrence")
    assert not any(trace.name.endswith(" work") for trace in each.data), "the work is that of a step"
    hidden = ops.movers(changes.assign(work_ratio=np.nan, work_in=None), METRIC, per="step")
    assert [trace.name for trace in hidden.data] == ["▼ less time", "▲ more time", ops.NO_CLAIM]


@pytest.mark.parametrize(("unit", "colours"), [("bytes", {style.BETTER, style.WORSE}), ("", {style.NEUTRAL})])
def test_bytes_need_no_verdict_and_of_counts_neither_is_better(unit, colours):
    quantity = style.Quantity("memory", unit, "less", "more")
    changes = largest_changes(samples.diff()).assign(interval_low=0.5, interval_high=0.6)
    figure = ops.movers(changes, METRIC, per="", quantity=quantity)
    assert {trace.name: trace.marker.color for trace in figure.data}.keys() == {"▼ less", "▲ more"}
    assert {trace.marker.color for trace in figure.data} == colours
    assert "−96.7 %" in texts(figure), "exact, so without an interval"


def test_groups_can_be_movers_too_and_their_names_are_cut_and_no_markup():
    changes = largest_changes(group_diff(samples.diff(), "op_type"), n=3)
    figure = ops.movers(changes, METRIC, per="step", by="op_type")
    assert [text.partition(" · ")[0] for text in texts(figure)[:3]] == [
        "Conv2DBackpropFilter",
        "Conv2DBackpropInput",
        "Conv2D",
    ]
    assert texts(figure)[0] == "Conv2DBackpropFilter · 120 ms → 4.00 ms"
    narrow = ops.movers(changes, METRIC, per="step", by="op_type", letters=10)
    assert len(set(texts(narrow)[:3])) == 3 and max(map(len, texts(narrow)[:3])) <= 10
    assert narrow.layout.xaxis.domain[1] < figure.layout.xaxis.domain[1]
    hostile = ops.movers(changes.head(1).assign(op_type="<a href='x'>y</a>"), METRIC, per="step", by="op_type")
    assert texts(hostile)[0].startswith("&lt;a href='x'&gt;y&lt;/a&gt; · ")
    assert "<a" not in hostile.data[0].customdata[0][0]


SIDE_COLUMNS = [f"{METRIC}_baseline", f"{METRIC}_candidate"]


def children_add_up(nodes: pd.DataFrame) -> bool:
    for column in SIDE_COLUMNS:
        below = nodes[nodes["parent"] != ""].groupby("parent")[column].sum()
        own = nodes.set_index("node")[column].loc[below.index]
        if not np.allclose(below, own):
            return False
    return True


def test_every_node_is_the_sum_of_its_children_and_a_scope_that_holds_one_scope_is_drawn_with_it():
    tree = scope_tree(samples.diff())
    merged = merge_small_scopes(tree, METRIC)
    assert children_add_up(tree) and children_add_up(merged) and children_add_up(fold_chains(merged))
    folded = fold_chains(tree).set_index("node")
    chain = folded.loc["Host/gradient_tape/autoencoder/conv2d_1/Conv2D"]
    assert (chain["label"], chain["parent"]) == ("gradient_tape/autoencoder/conv2d_1/Conv2D", "Host")
    assert folded.loc["Host", "label"] == "Host"


def test_what_is_too_small_to_see_is_one_node():
    names = [f"model/op_{i}" for i in range(50)]
    nodes = pd.DataFrame(
        {
            "node": ["Host", "Host/model", *(f"Host/{name}" for name in names), "Host/large"],
            "parent": ["", "Host", *["Host/model"] * 50, "Host"],
            "label": ["Host", "model", *(name[6:] for name in names), "large"],
            SIDE_COLUMNS[0]: [100_050.0, 50.0, *[1.0] * 50, 100_000.0],
            SIDE_COLUMNS[1]: [100_050.0, 50.0, *[1.0] * 50, 100_000.0],
            "status": "matched",
        }
    )
    merged = merge_small_scopes(nodes, METRIC)
    assert merged["label"].tolist() == ["Host", "large", "1 smaller"]
    assert merged[SIDE_COLUMNS[0]].tolist() == [100_050.0, 100_000.0, 50.0]


def test_colours_are_symmetric_and_end_at_eight_times():
    ratio = log_ratio(np.array([1.0, 2.0, 1.0, 0.0, 5.0, 0.0, 1.0]), np.array([2.0, 1.0, 1.0, 7.0, 0.0, 0.0, 100.0]))
    assert ratio.tolist() == [1.0, -1.0, 0.0, 3.0, -3.0, 0.0, 3.0]


def test_the_figure_shows_both_runs_time_and_its_change():
    figure = scope_icicle(scope_tree(samples.diff()), METRIC, per="step", place="host")
    icicle = figure.data[0]
    at = list(icicle.ids).index("Host/autoencoder/conv2d/Relu")
    assert icicle.values[at] == pytest.approx(4400.0)
    assert icicle.customdata[at].tolist() == ["−90.0 %", "Host/autoencoder/conv2d/Relu", "4.00 ms", "400 µs", ""]
    assert icicle.marker.colors[at] == -3.0
    assert icicle.branchvalues == "total"


def test_hovering_tells_the_verdict_of_a_scope_that_has_one_and_what_only_one_side_has():
    tree = scope_tree(samples.diff(candidate=samples.op_stats(samples.FAST, without="max_pooling2d")))
    icicle = scope_icicle(tree.assign(verdict="unclear", evidence="single"), METRIC, per="step", place="host").data[0]
    told = dict(zip(icicle.ids, icicle.customdata, strict=True))
    assert told["Host/autoencoder"][4] == "<br>? inconclusive"
    assert {texts[4] for node, texts in told.items() if node.endswith(SMALLER + ")")} <= {""}
    assert told["Host/autoencoder/max_pooling2d/MaxPool"][0] == "removed"
