"""Intervals are drawn where they are, and every word has a sign."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tfcompare.charts import style
from tfcompare.charts.verdicts import SIGNS, Judged, colour_of, colours_of_change, text_of, verdict_intervals, word_of
from tfcompare.compare.stats.verdict import IDENTICAL, Verdict

FASTER = Verdict("faster", "20 steps", 0.5, 0.4, 0.6)
UNCLEAR = Verdict("unclear", "<b>20</b> steps", 1.05, 0.9, 1.2)


def drawn(*verdicts: Verdict):
    rows = [Judged(f"run {i}", verdict) for i, verdict in enumerate(verdicts, 1)]
    return verdict_intervals(rows, "Confidence interval of the step time", "Step time, candidate ÷ baseline")


def test_an_interval_is_drawn_from_end_to_end_with_the_ratio_between() -> None:
    figure = drawn(FASTER, UNCLEAR)
    assert [list(trace.x) for trace in figure.data] == [[0.4, 0.5, 0.6], [0.9, 1.05, 1.2]]
    assert figure.data[0].line.color == style.BETTER != figure.data[1].line.color
    assert [a.text for a in figure.layout.annotations] == [
        "run 1 · ▼ faster · 0.500× (0.400× to 0.600×)",
        "run 2 · ? inconclusive · 1.05× (0.900× to 1.20×)",
    ]
    assert "&lt;b&gt;20" in figure.data[1].customdata[0][2]


def test_no_change_is_marked_beside_each_interval_and_not_through_the_words() -> None:
    figure = drawn(FASTER, UNCLEAR)
    row_pixels = 46
    for shape in figure.layout.shapes:
        assert all(
            abs(shape_end - a.y) * row_pixels > 9 for a in figure.layout.annotations for shape_end in ends(shape)
        )
        assert not any(shape.y0 <= a.y <= shape.y1 for a in figure.layout.annotations)
    for trace in figure.data:
        beside = [shape for shape in figure.layout.shapes if shape.y0 < trace.y[0] < shape.y1]
        assert sorted(shape.type for shape in beside) == ["line", "rect"]


def ends(shape) -> tuple[float, float]:
    return shape.y0, shape.y1


def test_a_verdict_without_an_interval_is_a_word_alone() -> None:
    figure = drawn(IDENTICAL)
    assert not figure.data
    assert figure.layout.annotations[0].text == "run 1 · = same"


@pytest.mark.parametrize("verdict", [FASTER, UNCLEAR, Verdict("slower", "", 30.0, 20.0, 45.0), IDENTICAL])
def test_no_change_is_in_the_middle_of_an_axis_that_holds_everything(verdict: Verdict) -> None:
    low, high = drawn(verdict).layout.xaxis.range
    assert low == pytest.approx(-high)
    if verdict.has_interval:
        assert low < math.log10(verdict.low) < math.log10(verdict.high) < high
    ticks = drawn(verdict).layout.xaxis.tickvals
    assert 1.0 in ticks
    assert len(ticks) == len(set(drawn(verdict).layout.xaxis.ticktext)) >= 3


@pytest.mark.parametrize("word", ["faster", "slower", "same", "unclear", "untested"])
def test_every_word_has_a_sign_of_its_own(word: str) -> None:
    assert word_of(Verdict(word, "")) == text_of(word, "")
    assert text_of(word, "")[0] == SIGNS[word]
    assert len(set(SIGNS.values())) == len(SIGNS)


@pytest.mark.parametrize(("word", "plain"), [("faster", style.BETTER), ("slower", style.WORSE)])
def test_a_claim_from_single_captures_is_likely_and_has_a_weaker_colour(word: str, plain: str) -> None:
    assert text_of(word, "single") == f"{SIGNS[word]} likely {word}"
    assert text_of(word, "replicates") == f"{SIGNS[word]} {word}"
    assert colour_of(word, "replicates") == plain != colour_of(word, "single") != style.NEUTRAL


def test_differences_below_no_claim_have_no_colour() -> None:
    assert colours_of_change(UNCLEAR) == (style.NEUTRAL, style.NEUTRAL)
    assert colours_of_change(FASTER) == (style.BETTER, style.WORSE)
    assert colours_of_change(replace(FASTER, evidence="single")) == (style.LIKELY_BETTER, style.LIKELY_WORSE)
