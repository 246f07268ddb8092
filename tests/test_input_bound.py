"""How much of its steps a run waits for input, and what is said of it."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.input_runs import MARKED, UNMARKED, pipelines, steps
from tests.profiles import loaded_run
from tfcompare import input_bound
from tfcompare.input_bound import InputWait, calls_of, headline, in_time, input_wait, level_of, words
from tfcompare.step_series import on_slowest_host

MODULE = SimpleNamespace(has_steps=True, step_source="XLA module jit_f")

LEVELS = {
    "highly": input_wait(steps((100.0, 30.0)), MARKED),
    "moderately": input_wait(steps((100.0, 10.0)), MARKED),
    "perhaps": input_wait(steps((100.0, 1.0), other_us=7.0), MARKED),
    "not": input_wait(steps((200.0, 2.0)), MARKED),
    "unknown": input_wait(steps(), UNMARKED),
}


def test_the_figures_are_those_of_the_steps_that_count():
    frame = steps((900.0, 900.0), (100.0, 10.0), (100.0, 20.0), (200.0, 90.0), (100.0, 40.0), (900.0, 0.0))
    wait = input_wait(frame, MARKED)
    assert wait.steps == 4
    assert (wait.step_time_us.average, wait.step_time_us.smallest, wait.step_time_us.largest) == (125.0, 100.0, 200.0)
    assert wait.step_time_us.deviation == pytest.approx(50.0)
    assert (wait.input_time_us.average, wait.input_time_us.smallest, wait.input_time_us.largest) == (40.0, 10.0, 90.0)
    assert wait.share.average == pytest.approx(160 / 500), "of all step time together"
    assert (wait.share.smallest, wait.share.largest) == (0.1, 0.45)
    assert wait.level == "highly"


def test_one_step_has_no_deviation():
    assert math.isnan(LEVELS["highly"].share.deviation)


@pytest.mark.parametrize(
    ("share", "unexplained", "level"),
    [
        (0.20, 0.9, "highly"),
        (0.199, 0.9, "moderately"),
        (0.05, 0.0, "moderately"),
        (0.049, 0.03, "perhaps"),
        (0.049, 0.029, "not"),
    ],
)
def test_the_classes_begin_at_their_thresholds(share, unexplained, level):
    assert level_of(share, unexplained) == level


@pytest.mark.parametrize("level", LEVELS)
def test_each_class_is_reached(level):
    assert LEVELS[level].level == level


def test_a_run_without_steps_or_whose_steps_hold_no_waiting_tells_nothing():
    assert words(LEVELS["unknown"]).endswith("since it has no step markers.")
    wait = input_wait(steps((100.0, 0.0)), MODULE)
    assert not wait.is_known
    assert "XLA module" in words(wait)
    assert not input_wait(steps((0.0, 0.0)), MARKED).is_known


def test_what_is_said_of_a_run():
    assert words(LEVELS["highly"]) == (
        "is highly input bound: it waits for input 30.0 % of its step time, 30.0 µs of 100 µs in each step on average."
    )
    assert "waits for input only 1.00 % of its step time" in words(LEVELS["not"])
    assert words(LEVELS["perhaps"]).startswith("may be input bound")
    assert "7.00 %" in words(LEVELS["perhaps"])


@pytest.mark.parametrize(
    ("slowest", "said"), [(7_080.0, "took 7.08 ms: above 50.0 µs"), (50.0, "no more than 50.0 µs")]
)
def test_without_steps_the_calls_to_tf_data_are_told(slowest, said):
    assert said in words(LEVELS["unknown"], slowest)
    assert words(LEVELS["highly"], slowest) == words(LEVELS["highly"])


def test_calls_that_only_feed_a_device_are_not_asked_for_by_the_program():
    calls = calls_of(pipelines((10, 4, 80.0, False), (30, 6, 70.0, False), (5, 5, 900.0, True)))
    assert (calls.slowest_us, calls.slow_share) == (80.0, 0.25)
    nothing = calls_of(pipelines((5, 5, 900.0, True)))
    assert math.isnan(nothing.slowest_us)
    assert math.isnan(nothing.slow_share)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("highly", "not", "it is no longer input bound"),
        ("perhaps", "not", "it is not input bound, which the baseline may be"),
        ("not", "highly", "it has become highly input bound"),
        ("perhaps", "moderately", "it clearly is moderately input bound"),
        ("moderately", "highly", "it has become highly input bound"),
        ("highly", "moderately", "it still is input bound, but less so"),
        ("highly", "perhaps", "it is no longer clearly input bound, though 7.00 % of its step time is unexplained"),
        ("not", "perhaps", "it may be input bound, since 7.00 % of its step time is unexplained"),
        ("not", "not", "neither is input bound"),
        ("highly", "highly", "both are highly input bound"),
    ],
)
def test_the_sentence_on_a_pair(before, after, said):
    sentence = headline(LEVELS[before], LEVELS[after])
    assert sentence.endswith(f": {said}.")
    ours, theirs = (f"{100 * LEVELS[level].share.average:.3g}" for level in (before, after))
    assert sentence.index(theirs) < sentence.index("against") < sentence.rindex(ours)


def test_a_side_that_tells_nothing_is_named():
    sentence = headline(LEVELS["unknown"], LEVELS["highly"])
    assert sentence.startswith("The candidate waits for input 30.0 % of its step time: it is highly input bound.")
    assert sentence.endswith("Of the baseline that cannot be told, since it has no step markers.")
    assert headline(LEVELS["not"], LEVELS["unknown"]).startswith("The baseline waits for input 1.00 %")


def test_when_neither_side_tells_anything_both_reasons_are_given_once():
    unmarked, module = LEVELS["unknown"], input_wait(steps((1.0, 0.0)), MODULE)
    assert headline(unmarked, unmarked).count("no step markers") == 1
    assert "the baseline, since it has no step markers; the candidate, since what" in headline(unmarked, module)
    assert in_time(unmarked, LEVELS["highly"]) == ""


def test_one_recording_beside_itself_did_not_change():
    sentence = headline(LEVELS["highly"], LEVELS["highly"], identical=True)
    assert sentence.startswith("Both runs are the same recording, which is highly input bound")
    assert "against" not in sentence


def test_a_share_that_grew_because_the_rest_shrank_says_so():
    slow, fast = (input_wait(steps((duration, wait)), MARKED) for duration, wait in ((1000.0, 40.0), (100.0, 40.0)))
    assert in_time(slow, fast).endswith("no longer than before, but the rest of the step got shorter.")
    assert in_time(fast, slow).endswith("no less than before, but the rest of the step got longer.")
    assert in_time(fast, replace(fast)) == "On average a step waits 40.0 µs against 40.0 µs."


def wait_of(name: str) -> InputWait:
    run = loaded_run(name)
    return input_wait(on_slowest_host(run.table("steps")), run.info)


def test_the_samples_are_input_bound_as_their_recording_made_them():
    naive_but_slow_model, naive, better = (
        wait_of(name) for name in ("filters_512_128", "filters_16_8", "filters_16_8_better_input")
    )
    assert naive_but_slow_model.level == "not", "the model takes so long that its input does not matter"
    assert naive.level == wait_of("filters_16_8_again").level == "highly"
    assert better.level not in input_bound.BOUND, "it is read ahead and in parallel"
    assert better.input_time_us.average < naive.input_time_us.average / 5
