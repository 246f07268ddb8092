"""Colours, names and units that all charts share."""

from __future__ import annotations

import html
import math

import pytest

from tfcompare.compare.side import Side
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import shorten_distinct, side_colour, side_label, side_symbol, time_scale


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
