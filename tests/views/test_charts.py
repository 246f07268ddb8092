"""Every chart of a comparison by its name, and the colours, names and units that all share."""

from __future__ import annotations

import html
import math

import plotly.graph_objects as go
import pytest

from tests.profiles import compared_runs, loaded_run
from tests.views.flat import KNOWN_TRUTH
from tfcompare import Comparison, compare, load
from tfcompare.compare.side import Side
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import shorten_distinct, side_colour, side_label, side_symbol, time_scale
from tfcompare.views.registry import charts

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
    | {
        *("scopes_host", "hosts_baseline", "hosts_candidate", "hosts_change", "host_parts", "input_by_core"),
    }
)
"""What the sample runs recorded (sample_logs/README.md), as charts."""


def test_runs_have_the_charts_that_they_have_data_for() -> None:
    comparison = compared_runs("filters_512_128_simulated", "filters_16_8_simulated")
    assert set(comparison.figure_names()) == GPU
    assert isinstance(comparison.figure("tensor_cores"), go.Figure)


def test_a_chart_without_data_is_refused_and_the_others_are_listed() -> None:
    with pytest.raises(TfcompareError) as caught:
        compared_runs("workers_balanced", "workers_slow_input").figure("roofline")
    listed = str(caught.value).removeprefix("these runs have nothing for the chart 'roofline'; they have: ").split(", ")
    assert set(listed) == WORKERS


@pytest.fixture(scope="module")
def several() -> Comparison:
    return compare(loaded_run("filters_512_128"), *map(loaded_run, ("filters_16_8", "filters_16_8_simulated")))


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


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


SIGNS = [style.BASELINE_COLOUR, *style.CANDIDATE_COLOURS, style.BETTER, style.WORSE]


@pytest.mark.parametrize("background", ["#FFFFFF", "#12161C"])
@pytest.mark.parametrize("colour", SIGNS)
def test_every_colour_can_be_seen_on_light_and_dark_and_stands_for_one_thing(colour, background):
    assert contrast(colour, background) >= 2.9
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
    [
        ("word " * 60, " "),
        ("gradient_tape/model/dense/" * 12, "/"),
        ("template<int,float,double>" * 12, ","),
    ],
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
