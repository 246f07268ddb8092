"""The facts of runs that should agree before they are compared, and the marks of verdicts."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from tests.profiles import loaded_run
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.frames.steps.steps import WHOLE_PROFILE
from tfcompare.run import RunInfo
from tfcompare.units import MISSING
from tfcompare.views import chart_style as style
from tfcompare.views.caveats import environment
from tfcompare.views.verdict_marks import SIGNS, colour_of, colours_of_change, text_of, word_of


@pytest.fixture(scope="module")
def info() -> RunInfo:
    return loaded_run("filters_16_8").info


def test_what_should_agree_and_does_not_is_marked(info):
    other = dataclasses.replace(info, device_type="GPU", device_count=8, size_bytes=1, duration_ms=1.0)
    assert not any(fact.differs for fact in environment([info, info]))
    assert {fact.label for fact in environment([info, other]) if fact.differs} == {"Device type", "Devices"}


def test_a_run_that_marks_no_steps_has_none_of_them(info):
    unmarked = dataclasses.replace(info, step_source=WHOLE_PROFILE, step_count=1, steps_included=1)
    facts = {fact.name: fact.values for fact in environment([info, unmarked])}
    assert (facts["step_count"], facts["steps_included"]) == (("22", MISSING), ("20", MISSING))
    assert "step_count" not in {fact.name for fact in environment([unmarked, unmarked])}


def test_the_environment_is_told_in_the_readers_time_zone(info):
    facts = {fact.name: fact for fact in environment([info, info], "Europe/Vienna")}
    assert facts["start_time"].values[0].endswith(("CET", "CEST"))
    assert facts["step_count"].values == ("22", "22")
    assert "device_name" not in facts, "what no run knows is left out"
    assert environment([info])[-1].label == "Size"


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
