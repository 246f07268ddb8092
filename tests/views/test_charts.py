"""Every chart of a comparison by its name, what all share, and how large they are as JSON."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io
import pytest

from tests.compare.compare_runs import WITHOUT_COSTS
from tests.profiles import compared_runs, loaded_run
from tests.views import chart_samples as samples
from tests.views.flat import KNOWN_TRUTH
from tests.views.memory.test_charts import line
from tfcompare import Comparison, compare, load, schema
from tfcompare.compare.diff import INTERVAL
from tfcompare.compare.groups.aggregate import group_diff, largest_changes
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.side import Side
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.views import bars as ops
from tfcompare.views import chart_style as downsampling
from tfcompare.views import chart_style as style
from tfcompare.views import icicles as scopes
from tfcompare.views.chart_style import shorten_distinct, side_colour, side_label, side_symbol, time_scale
from tfcompare.views.input import charts as input_pipeline
from tfcompare.views.input.figures import share_by_step
from tfcompare.views.memory import charts as memory
from tfcompare.views.memory.curve import thin
from tfcompare.views.ops.figures import time_shares, with_shares
from tfcompare.views.registry import charts
from tfcompare.views.shares import time_bars
from tfcompare.views.steps import charts as steps
from tfcompare.views.steps import part_charts as step_parts

STEPS = {"step_times", "step_distribution", "step_parts_baseline", "input_wait"}
PAIR = {*STEPS, "waterfall", "step_parts_candidate", "op_changes", "op_shares"}
INPUT = {"input_host", "tf_data_baseline", "tf_data_candidate"}
GPU = (
    PAIR
    | INPUT
    | {
        *("memory_step", "memory_run", "memory_peak", "memory_peak_changes", "scopes_host", "scopes_device"),
        *("kernel_changes", "tensor_cores"),
    }
)
WORKERS = (
    PAIR
    | INPUT
    | {*("scopes_host", "hosts_baseline", "hosts_candidate", "hosts_change", "host_parts", "input_by_core")}
)
"""What the sample runs recorded (sample_logs/README.md), as charts."""


def test_runs_have_the_charts_that_they_have_data_for() -> None:
    comparison = compared_runs("gpu_filters_512_128", "gpu_filters_16_8")
    assert set(comparison.figure_names()) == GPU
    assert isinstance(comparison.figure("tensor_cores"), go.Figure)


def test_a_chart_without_data_is_refused_and_the_others_are_listed() -> None:
    with pytest.raises(TfcompareError) as caught:
        compared_runs("workers_balanced", "workers_slow_input").figure("roofline")
    listed = str(caught.value).removeprefix("these runs have nothing for the chart 'roofline'; they have: ").split(", ")
    assert set(listed) == WORKERS


@pytest.fixture(scope="module")
def several() -> Comparison:
    return compare(loaded_run("filters_512_128"), *map(loaded_run, ("filters_16_8", "gpu_filters_16_8")))


def test_a_candidate_is_chosen_by_its_id(several: Comparison) -> None:
    first, second = (run.id for run in several.candidates)
    assert several.figure("memory_step") == several.figure("memory_step", first)
    assert several.figure("memory_step") != several.figure("memory_step", second)


def test_unknown_names_and_candidates_are_refused(several: Comparison) -> None:
    with pytest.raises(Unknown, match="unknown chart 'pie'; must be one of: 'waterfall', "):
        several.figure("pie")
    for ask in (several.figure_names, lambda run: several.figure("waterfall", run)):
        with pytest.raises(Unknown, match="unknown candidate 'nobody'; must be one of: 'filters_16_8/"):
            ask("nobody")


def test_the_documentation_names_every_chart() -> None:
    assert [name for name in charts() if f"`{name}`" not in str(Comparison.__doc__)] == []


def test_a_single_step_is_a_figure_and_no_chart() -> None:
    workers = compare(*(load(KNOWN_TRUTH / name, steps="5:5") for name in ("workers_even", "workers_uneven")))
    names = set(workers.figure_names())
    assert not names & {*STEPS, "step_parts_candidate"}
    assert names & {"hosts_baseline", "hosts_candidate", "hosts_change", "host_parts"} == {"host_parts"}
    assert "Time without collectives and waits per step, by host" in str(workers.view("hosts"))


def luminance(colour: str) -> float:
    """WCAG 2's relative luminance."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


SIGNS = [style.BASELINE_COLOUR, *style.CANDIDATE_COLOURS, style.BETTER, style.WORSE]


@pytest.mark.parametrize("background", ["#FFFFFF", "#12161C"])
@pytest.mark.parametrize("colour", SIGNS)
def test_every_colour_can_be_seen_on_light_and_dark_and_stands_for_one_thing(colour, background):
    dark, light = sorted((luminance(colour), luminance(background)))
    assert (light + 0.05) / (dark + 0.05) >= 2.9
    assert SIGNS.count(colour) == 1


def test_a_side_is_told_apart_by_role_colour_and_marker():
    sides = [Side("run", position, 5) for position in range(5)]
    assert [s.role for s in sides] == ["Baseline", "Candidate B", "Candidate C", "Candidate D", "Candidate E"]
    assert len({side_colour(s) for s in sides}) == len({side_symbol(s) for s in sides}) == 5
    assert Side("run", 2, 5).role_in_text == "candidate C"
    assert Side("run", 1, 2).role == "Candidate"
    assert side_colour(Side("run", 5, 6)) == side_colour(Side("run", 1, 6))
    assert side_label(Side("<b>a&b</b>", 0)) == "Baseline · &lt;b&gt;a&amp;b&lt;/b&gt;"


@pytest.mark.parametrize(
    ("largest_us", "unit"), [(0.3, "µs"), (999.0, "µs"), (1000.0, "ms"), (351e3, "ms"), (2e6, "s"), (-2e6, "s")]
)
def test_the_unit_of_an_axis_is_that_of_its_largest_time(largest_us, unit):
    assert time_scale([0.0, largest_us, math.nan]).unit == unit


def test_without_times_the_unit_is_microseconds():
    assert time_scale([]).unit == "µs"


def test_names_that_would_read_alike_show_where_they_differ():
    assert shorten_distinct(["a/b", "a/b", "c"], 10) == ["a/b", "a/b", "c"], "short ones stay as they are"
    names = [
        "gradient_tape/autoencoder_1/image_1/convolution/Conv2DBackpropInput",
        "gradient_tape/autoencoder_1/encoder_inner_1/convolution/Conv2DBackpropInput",
    ]
    labels = shorten_distinct(names, 36)
    assert labels == ["…image_1/con…ion/Conv2DBackpropInput", "…encoder_inn…ion/Conv2DBackpropInput"]
    assert max(map(len, labels)) <= 36


def test_a_path_that_all_names_have_in_common_goes_first():
    names = ["jit(train_step)/jvp(autoencoder)/encoder/conv", "jit(train_step)/jvp(autoencoder)/decoder/dot_general"]
    assert shorten_distinct(names, 28) == ["…encoder/conv", "…decoder/dot_general"]
    assert shorten_distinct(names, 60) == names, "where there is room, nothing goes"
    assert shorten_distinct([names[0], names[0]], 28) == ["jit(train…oder)/encoder/conv"] * 2


def test_names_that_no_cut_tells_apart_are_numbered_and_no_number_is_another_names_label():
    names = ["a" * 40 + "1" + "b" * 40, "a" * 40 + "2" + "b" * 40]
    first, second = shorten_distinct(names, 20)
    assert (len(first), second) == (20, "aaaaa…bbbbbbbbbb (2)")
    assert shorten_distinct([names[0], names[0]], 20) == [first, first], "the same name is no other name"
    assert shorten_distinct([*names, second], 20)[1:] == ["aaaaa…bbbbbbbbbb (3)", second]


@pytest.mark.parametrize("length", [0, 1, 5])
def test_names_are_told_apart_however_little_room_there_is(length):
    assert len(set(shorten_distinct(["one/long/name", "another/long/name", "", "x"], length))) == 4


def test_a_figure_leaves_colours_of_text_and_ground_to_the_theme():
    layout = style.figure("Title", "subtitle", height=300).to_dict()["layout"]
    assert not {"paper_bgcolor", "plot_bgcolor", "font"} & set(layout)
    assert layout["title"]["text"] == "Title"


@pytest.mark.parametrize(
    ("text", "ends"),
    [("word " * 60, " "), ("gradient_tape/model/dense/" * 12, "/"), ("template<int,float,double>" * 12, ",")],
)
def test_a_long_text_is_whole_on_hovering_in_lines_that_end_where_a_word_does(text, ends):
    lines = style.wrap_text(text).split("<br>")
    assert "".join(lines) == style.safe(text)
    assert len(lines) > 1
    assert all(len(html.unescape(line)) <= style.HOVER_LENGTH for line in lines)
    assert all(line.endswith(ends) for line in lines[:-1])


def test_a_word_longer_than_a_line_is_broken_and_no_markup_gets_through():
    lines = style.wrap_text("<b>" + "x" * 250).split("<br>")
    assert [len(html.unescape(line)) for line in lines] == [100, 100, 53]
    assert lines[0].startswith("&lt;b&gt;")
    assert style.wrap_text("") == ""


SIDES = (Side("a_run_with_a_long_name/of/the/slow/one", 0), Side("a_run_with_a_long_name/of/the/fast/one", 1))
MANY_STEPS, OPS, EVENTS = 10_000, 20_000, 200_000
MOST_BYTES = 1_500_000
"""Of the 2 MB of a page; tables and texts have the rest."""

SCOPE = "gradient_tape/encoder_decoder_with_attention/transformer_block_{}/multi_head_attention/einsum_{}/Einsum"


@cache
def many_steps(seed: int) -> pd.DataFrame:
    """Steps that are all different, of which one in fifty is far from the others, each made of every part."""
    rng = np.random.default_rng(seed)
    times = rng.lognormal(11, 0.05, MANY_STEPS) * np.where(rng.random(MANY_STEPS) < 0.02, 3, 1)
    frame = samples.steps(times.tolist(), host="worker-17.training.example.com")
    parts = rng.dirichlet(np.ones(len(schema.STEP_PARTS)), MANY_STEPS) * times[:, np.newaxis]
    frame = frame.assign(**dict(zip(schema.STEP_PARTS, parts.T, strict=True)))
    return frame.assign(input_share=share_by_step(frame))


@cache
def many_ops(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    times = rng.lognormal(8, 2, OPS)
    return schema.OP_STATS.conform(
        pd.DataFrame(
            {
                "host": schema.ALL_HOSTS,
                "host_or_device": schema.HOST,
                "op_type": [f"Einsum{i % 50}" for i in range(OPS)],
                "op_name": [SCOPE.format(i % 200, i) for i in range(OPS)],
                "occurrences": 100,
                "total_time_us": 1e6,
                "self_time_us": times,
                "wall_time_us": times,
                "is_eager": False,
                **WITHOUT_COSTS,
            }
        )
    )


@cache
def op_diff() -> pd.DataFrame:
    rows = samples.diff(many_ops(1), many_ops(2))
    ratios = rows[f"{samples.METRIC}_ratio"]
    return rows.assign(**{INTERVAL[0]: ratios * 0.9, INTERVAL[1]: ratios * 1.1, "verdict": "unclear"})


@cache
def timeline_of(seed: int) -> pd.DataFrame:
    """What is drawn of a timeline of so many events."""
    rng = np.random.default_rng(seed)
    levels = np.abs(rng.integers(-(2**20), 2**20, EVENTS).cumsum())
    kept = thin(np.arange(EVENTS, dtype=float), levels.astype(float), int(levels.argmax()))
    names = [SCOPE.format(i % 200, i) for i in kept]
    return line(
        levels[kept].tolist(),
        kept.astype(float).tolist(),
        op_name=names,
        shape="[1024,512,512,128]",
        fragmentation=rng.random(len(kept)),
    )


def overview() -> list[Any]:
    every = [(Side(f"run_{i}", i, 6), many_steps(i % 2)) for i in range(6)]
    changes = largest_changes(op_diff(), n=ops.TOP)
    return [
        steps.step_times(every),
        steps.step_distribution(every),
        *(step_parts.parts_of_steps(side, many_steps(side.position)) for side in SIDES),
        ops.movers(changes, samples.METRIC, per="step"),
    ]


def op_stats() -> list[Any]:
    changes = largest_changes(op_diff(), n=15)
    times = [time_shares(with_shares(group_diff(op_diff(), by)), by) for by in ("op_name", "op_type")]
    in_steps = [(side, many_steps(side.position).assign(self_time_us=lambda f: f["input_us"])) for side in SIDES]
    return [
        ops.movers(changes, samples.METRIC, per="step"),
        *(time_bars(rows, SIDES, "self_time_us", title="op", axis="time") for rows in times),
        scopes.scope_icicle(scope_tree(op_diff()), samples.METRIC, per="step", place="host"),
        steps.op_in_steps(in_steps, SCOPE),
    ]


def memory_page() -> list[Any]:
    lines = [(side, timeline_of(side.position)) for side in SIDES]
    composed = [memory.memory_composition(side, frame, "time") for side, frame in lines]
    return [memory.timeline(lines, lines, "in_use_bytes", "time"), *composed]


def input_page() -> list[Any]:
    series = [(side, many_steps(side.position)) for side in SIDES]
    return [input_pipeline.step_times(series), input_pipeline.input_share_per_step(series)]


@pytest.mark.parametrize("page", [overview, op_stats, memory_page, input_page])
def test_the_figures_of_a_page_are_small_however_large_the_runs(page: Callable[[], list[Any]]) -> None:
    figures = page()
    assert all(figure.data for figure in figures)
    assert sum(len(plotly.io.to_json(figure, validate=False)) for figure in figures) < MOST_BYTES


def test_a_long_line_keeps_every_step_that_is_marked_and_the_extremes() -> None:
    frame = many_steps(0)
    line, marks = steps.step_times([(SIDES[0], frame)]).data[:2]
    assert len(line.x) <= downsampling.MAX_LINE_POINTS + downsampling.MAX_MARKED + 2
    drawn = frame["duration_us"].iloc[np.asarray(line.x) - 1]
    assert (drawn.min(), drawn.max()) == (frame["duration_us"].min(), frame["duration_us"].max())
    assert set(marks.x) <= set(line.x)
    assert {1, MANY_STEPS} <= set(line.x)
    assert [line.customdata[0][0], line.customdata[-1][0]] == [str(frame["step"].iloc[i]) for i in (0, -1)]


def test_of_the_marked_steps_the_farthest_have_a_marker() -> None:
    values = np.append(np.full(1000, 10.0), np.arange(11.0, 11.0 + 2 * downsampling.MAX_MARKED))
    chosen = downsampling.steps_to_mark(values, values > 10)
    assert chosen.sum() == downsampling.MAX_MARKED
    assert values[chosen].min() == values.max() - downsampling.MAX_MARKED + 1
    assert downsampling.steps_to_mark(values, values > 400).sum() == (values > 400).sum()


def test_a_line_that_fits_is_drawn_whole_and_says_nothing() -> None:
    assert downsampling.steps_to_draw(np.arange(100.0)).tolist() == list(range(100))
    assert downsampling.note(100) == ""
    assert "of 10,000 steps" in steps.step_times([(SIDES[0], many_steps(0))]).layout.title.subtitle.text


def test_the_box_of_many_steps_is_that_of_all_of_them() -> None:
    frame = many_steps(0)[lambda f: f["included"]]
    box = steps.step_distribution([(SIDES[0], frame)]).data[0]
    times = frame["duration_us"].to_numpy() / 1e3
    assert box.median[0] == pytest.approx(np.median(times))
    assert np.mean(times < box.q1[0]) == pytest.approx(0.25, abs=1e-3)
    assert np.mean(times < box.q3[0]) == pytest.approx(0.75, abs=1e-3)
    points = np.array(box.x[0])
    assert len(points) == len(box.customdata[0]) == steps.MAX_BOX_POINTS
    assert (points.min(), points.max()) == (pytest.approx(times.min()), pytest.approx(times.max()))


def test_a_subtitle_has_as_many_lines_as_a_narrow_page_needs_and_the_chart_room_for_them() -> None:
    wide = style.figure("Title", " ".join(["subtitle"] * 20), height=300)
    narrow = style.for_narrow_page(wide)
    lines = narrow.layout.title.subtitle.text.split("<br>")
    assert len(lines) == 4 and max(map(len, lines)) <= style.NARROW_LINE
    added = narrow.layout.height - wide.layout.height, narrow.layout.margin.t - wide.layout.margin.t
    assert added == (3 * style.NARROW_LINE_PIXELS,) * 2
    short = style.figure("Title", "subtitle", height=300)
    assert style.for_narrow_page(short).layout.height == short.layout.height
