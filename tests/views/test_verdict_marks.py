"""Intervals are drawn where they are, and every word has a sign."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfcompare.compare.stats.verdict import Verdict
from tfcompare.views import chart_style as style
from tfcompare.views.verdict_marks import SIGNS, colour_of, colours_of_change, text_of, word_of

FASTER = Verdict("faster", "20 steps", 0.5, 0.4, 0.6)
UNCLEAR = Verdict("unclear", "<b>20</b> steps", 1.05, 0.9, 1.2)


@pytest.mark.parametrize("words", [("faster", "slower", "same", "unclear", "untested"), ("less", "more", "same")])
def test_every_word_has_a_sign_of_its_own(words: tuple[str, ...]) -> None:
    for word in words:
        assert word_of(Verdict(word, "")) == text_of(word, "")
        assert text_of(word, "")[0] == SIGNS[word]
    assert len({SIGNS[word] for word in words}) == len(words)


@pytest.mark.parametrize(("word", "plain"), [("faster", style.BETTER), ("slower", style.WORSE)])
def test_a_claim_from_single_captures_is_likely_and_has_a_weaker_colour(word: str, plain: str) -> None:
    assert text_of(word, "single") == f"{SIGNS[word]} likely {word}"
    assert text_of(word, "replicates") == f"{SIGNS[word]} {word}"
    assert colour_of(word, "replicates") == plain != colour_of(word, "single") != style.NEUTRAL


def test_differences_below_no_claim_have_no_colour() -> None:
    assert colours_of_change(UNCLEAR) == (style.NEUTRAL, style.NEUTRAL)
    assert colours_of_change(FASTER) == (style.BETTER, style.WORSE)
    assert colours_of_change(replace(FASTER, evidence="single")) == (style.LIKELY_BETTER, style.LIKELY_WORSE)
