"""Rules on captures of programs whose truth is known: where each must speak, and where it must not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import tfcompare as tfc
from tests.profiles import ALL_RUNS, loaded_run
from tfcompare.run import Run
from tfcompare.views.advice import Advice, Facts, advise_on, facts_of
from tfcompare.views.steps.figures import eager_share

KNOWN_TRUTH = Path(__file__).parents[2] / "known_truth"


@cache
def run_named(name: str) -> Run:
    return loaded_run(name) if name in ALL_RUNS else tfc.load(KNOWN_TRUTH / name)


@cache
def facts_named(name: str) -> Facts:
    return facts_of(run_named(name))


def advice_on(name: str) -> dict[str, Advice]:
    run = facts_named(name)
    return {advice.rule: advice for advice in advise_on(run, run).advice}


@pytest.mark.parametrize(
    ("rule", "speaks", "silent"),
    [
        ("python_op", "py_op_5ms", "py_op_none"),
        ("python_op", "py_op_5ms", "map_10ms"),  # its function makes the input
        ("python_input", "map_10ms", "py_op_5ms"),
        ("input_bound", "map_5ms", "no_sleep"),
        ("input_bound", "filters_16_8", "filters_512_128"),  # as slow an input, but a step of 213 ms
        ("prefetch", "filters_16_8", "map_5ms"),
        ("cache", "filters_16_8", "map_quick"),  # an element takes 130 µs
        ("eager", "eager_loop", "eager_in_one_step"),
        ("eager", "eager_loop", "matmuls_10"),
        ("between_steps", "sleep_between_10ms", "sleep_inside_10ms"),
        ("other_time", "sleep_inside_10ms", "py_op_5ms"),
        ("launch_bound", "filters_16_8_simulated", "filters_512_128_simulated"),
        ("convolutions", "filters_512_128_simulated", "filters_16_8_simulated"),
    ],
)
def test_a_rule_speaks_where_it_must_and_is_silent_where_it_must_not(rule: str, speaks: str, silent: str) -> None:
    assert rule in advice_on(speaks)
    assert rule not in advice_on(silent)


def test_a_program_that_runs_eagerly_has_its_true_share() -> None:
    assert eager_share(run_named("eager_loop")) == pytest.approx(0.44, abs=0.02)
    found = advice_on("eager_loop")["eager"]
    assert found.title == "Eager ops take 43.7 % of the step"
    steps = run_named("eager_loop").table("op_steps").query("step == 8")
    eager = steps[steps["op_name"].str.startswith("EagerLocalExecute: ")]
    assert eager["occurrences"].sum() == 42, "20 MatMuls, 20 Relus, a Sum and the constant for its axis"


def test_the_longest_idle_gap_of_a_step_is_named_with_the_ops_around_it() -> None:
    text = advice_on("sleep_inside_10ms")["other_time"].text
    assert "no op runs for 10.3 ms after `Sum`, until the end of the step." in text
    assert all("Longest gap" not in advice.text for advice in advice_on("py_op_5ms").values())


def test_the_summary_writer_of_one_step_is_no_eager_program() -> None:
    assert eager_share(run_named("eager_in_one_step")) == 0


def test_parallel_calls_are_not_called_useless() -> None:
    found = advise_on(facts_named("map_10ms"), facts_named("map_parallel_5ms"))
    texts = " ".join(advice.text for advice in found.advice)
    assert "Parallel calls help a `py_function` while it waits or computes in NumPy" in texts


def test_a_run_of_a_step_or_two_gets_no_advice_on_times() -> None:
    short = facts_of(tfc.load(KNOWN_TRUTH / "map_5ms", steps="3:4"))
    assert len(short.steps) == 2
    found = advise_on(short, short)
    assert found.advice == ()
    assert found.caveat == "Advice on times needs 3 included steps, and this run has 2. Profile more steps."
    assert advise_on(short, facts_named("map_5ms")).caveat == ""
