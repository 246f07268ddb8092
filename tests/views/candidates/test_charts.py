"""Many runs in one figure: every run and every cell is where it belongs, and colour is not the only sign."""

from __future__ import annotations

import html
import math

import numpy as np
import pandas as pd
import pytest

from tfcompare.views import chart_style as style
from tfcompare.views.candidates.charts import MAX_NUMERIC_COLUMNS, OP_LENGTH, RUN_LENGTH, change_map, step_times
from tfcompare.views.verdict_marks import text_of

NAN = math.nan
LONG = "nightly/<b>" + "a_very_long_name_of_a_run_" * 3
OP = "model/layer_with_a_long_name/sublayer_with_a_longer_name/<i>MatMul"


def run(name: str, median: float, verdict: str = "", interval: tuple[float, float, float] = (NAN, NAN, NAN), **more):
    low, ratio, high = interval
    quantiles = {"mean": median, "median": median * 1.01, "tenth": median * 0.9, "ninetieth": median * 1.2}
    side = {"run": f"logs/{name}", "name": name, "role": "candidate" if verdict else "baseline", "verdict": verdict}
    times = {f"step_time_us_{which}": value for which, value in quantiles.items()}
    texts = {"reason": "", "caveat": "", "evidence": "", "start_time": pd.Timestamp("2026-01-02 03:04:05", tz="UTC")}
    return {**side, **times, "ratio": ratio, "interval_low": low, "interval_high": high, **texts, **more}


RUNS = pd.DataFrame(
    [
        run("first", 8_000.0, "faster", (0.7, 0.8, 0.9), reason="<b>20</b> steps", caveat="the runs differ in x"),
        run("base", 10_000.0),
        run(LONG, 11_000.0, "unclear", (0.9, 1.1, 1.3)),
        run("last", 10_000.0, "untested"),
    ]
)


def markers(figure):
    return {trace.name: trace for trace in figure.data if trace.mode == "markers"}


def intervals(figure):
    return [trace for trace in figure.data if trace.mode == "lines" and trace.line.width == 5]


def test_each_run_has_its_place_in_the_order_of_the_rows() -> None:
    figure = step_times(RUNS)
    found = markers(figure)
    places = {name: (list(trace.x), list(trace.y)) for name, trace in found.items()}
    assert places == {
        "Baseline": ([1], [10.0]),
        text_of("faster", ""): ([0], [8.0]),
        text_of("unclear", ""): ([2], [11.0]),
        text_of("untested", ""): ([3], [10.0]),
    }
    assert len({trace.marker.symbol for trace in found.values()}) == 4
    assert found[text_of("faster", "")].marker.color == style.BETTER
    alone = step_times(RUNS[RUNS["role"] == "candidate"])
    assert (len(alone.layout.shapes), len(markers(alone))) == (0, 3), "without a baseline there is no line"


def test_an_interval_crosses_the_baseline_only_where_the_verdict_says_so() -> None:
    figure = step_times(RUNS)
    line, thin = figure.layout.shapes[0].y0, figure.data[0]
    assert line == 10.0
    ends = [[y for y in trace.y if not np.isnan(y)] for trace in intervals(figure)]
    drawn = [pair for pair in ends if pair]
    assert drawn == [pytest.approx([7.0, 9.0]), pytest.approx([9.0, 13.0])]
    assert drawn[0][1] < line < drawn[1][1]
    assert np.nan_to_num(thin.y[:3]).tolist() == pytest.approx([7.2, 9.6, 0.0]), "most of the steps"
    assert thin.line.width < intervals(figure)[0].line.width


def test_names_are_cut_on_the_axis_and_whole_when_hovered() -> None:
    figure = step_times(RUNS)
    assert max(map(len, figure.layout.xaxis.ticktext)) <= RUN_LENGTH + len("&lt;&gt;")
    name, text = markers(figure)[text_of("unclear", "")].customdata[0]
    assert name == style.wrap_text(LONG) and "<b>" not in name
    assert "1.10× (0.900× to 1.30×)" in text
    assert "&lt;b&gt;20" in markers(figure)[text_of("faster", "")].customdata[0][1]
    assert "interval" in figure.layout.title.subtitle.text
    without = step_times(pd.DataFrame([run("base", 10.0), run("other", 15.0, "untested", (NAN, 1.5, NAN))]))
    assert "candidate ÷ baseline: 1.50×" in markers(without)[text_of("untested", "")].customdata[0][1]
    assert "interval" not in without.layout.title.subtitle.text


@pytest.mark.parametrize(("longest", "expected"), [(12_000.0, None), (500_000.0, "log")])
def test_step_times_far_apart_are_drawn_on_a_logarithmic_axis(longest: float, expected: str | None) -> None:
    figure = step_times(pd.DataFrame([run("base", 10_000.0), run("other", longest, "slower", (0.9, 1.0, 1.1))]))
    assert figure.layout.yaxis.type == expected


def cell(row: int, candidate: str, before: float, after: float, status: str = "matched", verdict: str = "untested"):
    times = {
        "baseline_us": before,
        "candidate_us": after,
        "ratio": after / before,
        "status": status,
        "verdict": verdict,
    }
    op = {"host_or_device": "Host", "op_type": "MatMul", "op_name": f"{OP}_{row}", "evidence": ""}
    return {"row": row, "candidate": candidate, **op, **times}


CELLS = pd.DataFrame(
    [
        cell(0, "a", 100.0, 50.0, verdict="faster"),
        cell(0, "b", 100.0, NAN, "removed", ""),
        cell(1, "a", NAN, NAN, "neither", ""),
        cell(1, "b", NAN, 30.0, "added", ""),
        cell(2, "a", 10.0, 10.2),
        cell(2, "b", 10.0, 1000.0),
    ]
)
NAMES = {"b": "the older", "a": "the newer"}


def test_a_column_is_a_run_in_the_order_of_the_names_and_an_absent_op_has_no_colour_of_change() -> None:
    figure = change_map(CELLS, NAMES, per="step")
    background, heat, absent = figure.data
    assert list(figure.layout.xaxis.ticktext) == ["the older", "the newer"]
    assert np.array(heat.z, dtype=float)[:, 1].tolist()[0] == -1.0, "half the time"
    assert np.array(heat.z, dtype=float)[2].tolist() == pytest.approx([3.0, math.log2(1.02)]), "colours end at ×8"
    assert [list(row) for row in heat.text] == [["–", "0.50"], ["+", ""], ["100", "1.02"]]
    assert sorted(zip(absent.x, absent.y, absent.text, strict=True)) == [(0, 0, "–"), (0, 1, "+"), (1, 1, "")]
    for trace, shown in ((background, [[1, 0], [1, 1], [0, 0]]), (heat, [[0, 1], [0, 0], [1, 1]])):
        assert (~np.isnan(np.array(trace.z, dtype=float))).astype(int).tolist() == shown
    text = heat.customdata[0][1]
    for part in (style.wrap_text(f"{OP}_0"), "baseline 100 µs, candidate 50.0 µs", "0.500×", text_of("faster", "")):
        assert part in text
    assert any("gone" in text for text in absent.customdata)
    assert "<i>" not in text


def test_where_ratios_do_not_fit_a_sign_tells_the_direction() -> None:
    runs = [f"run {i}" for i in range(MAX_NUMERIC_COLUMNS + 1)]
    after = [100.0, 101.0, 200.0, *[50.0] * (len(runs) - 3)]
    cells = pd.DataFrame([cell(0, name, 100.0, us) for name, us in zip(runs, after, strict=True)])
    heat = change_map(cells, {name: name for name in runs}, per="run").data[1]
    assert list(heat.text[0])[:4] == ["=", "=", "▲", "▼"]


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.0, "<0.01"), (0.071, "0.07"), (1.0, "1.00"), (2.44, "2.4"), (14.2, "14"), (12345.0, ">9,999"), (math.inf, "∞")],
)
def test_a_ratio_fits_into_its_cell(ratio: float, text: str) -> None:
    figure = change_map(pd.DataFrame([cell(0, "a", 1.0, 1.0) | {"ratio": ratio}]), {"a": "a"}, per="step")
    assert figure.data[1].text[0][0] == text


def test_labels_of_ops_are_cut_and_tell_host_from_device_and_op_types_have_rows_as_well() -> None:
    alone = change_map(CELLS, NAMES, per="step").layout.yaxis.ticktext
    assert len(set(alone)) == 3
    assert all(len(html.unescape(label)) <= OP_LENGTH for label in alone)
    both = change_map(CELLS.assign(host_or_device=["Host"] * 4 + ["Device"] * 2), NAMES, per="step")
    assert [label.rpartition(" · ")[2] for label in both.layout.yaxis.ticktext] == ["host", "host", "device"]
    types = CELLS.drop(columns="op_name").assign(op_type=["MatMul"] * 2 + ["Cast"] * 2 + ["Relu"] * 2)
    figure = change_map(types, NAMES, per="step")
    assert list(figure.layout.yaxis.ticktext) == ["MatMul", "Cast", "Relu"]
    assert "op type" in figure.layout.title.text
