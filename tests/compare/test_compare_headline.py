from __future__ import annotations

import math

import numpy as np
import pytest
from compare_runs import run, steps

from tests.profiles import compared_runs, run_path
from tfcompare.compare import compare
from tfcompare.compare.headline import compared
from tfcompare.errors import Unknown
from tfcompare.run import load

DOUBT = ". Two recordings of the same program often differ by up to 15 %, so this does not prove a change."


def sentence(before_ms: float, after_ms: float) -> str:
    """Of runs with too few steps for a verdict."""
    return compare(run("logs/before", step_ms=before_ms), run("logs/after", step_ms=after_ms)).headline()


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "said"),
    [
        (351, 25.1, "`after` takes 25.1 ms a step against 351 ms of `before`: 14 times as fast."),
        (25.1, 351, "`after` takes 351 ms a step against 25.1 ms of `before`: 14 times as long."),
        (150, 100, "`after` takes 100 ms a step against 150 ms of `before`: 1.5 times as fast."),
        (100, 80, "`after` takes 80.0 ms a step against 100 ms of `before`: 20 % less time a step."),
        (100, 140, "`after` takes 140 ms a step against 100 ms of `before`: 40 % more time a step."),
        (100, 112, "`after` takes 112 ms a step against 100 ms of `before`: 12 % more time a step" + DOUBT),
        (112, 100, "`after` takes 100 ms a step against 112 ms of `before`: 11 % less time a step" + DOUBT),
        (100, 100, "`after` takes 100 ms a step against 100 ms of `before`: the same step time" + DOUBT),
    ],
)
def test_the_step_times_in_a_sentence(before_ms, after_ms, said):
    assert sentence(before_ms, after_ms) == said


def varied(mean_us: float, seed: int):
    noise = np.random.default_rng(seed).standard_normal(20)
    return steps((mean_us * np.exp(0.01 * noise)).tolist())


@pytest.mark.parametrize(
    ("after_ms", "said"),
    [
        (50.0, "`b` takes 50.0 ms a step against 100 ms of `a`: 2.0 times as fast."),
        (104.0, "The steps do not tell whether that is a change of the program: they allow for anything between 0."),
    ],
)
def test_the_verdict_says_how_far_to_trust_it(after_ms, said):
    ours = run("a", step_ms=100.0, step_frame=varied(100_000, 1))
    theirs = run("b", step_ms=after_ms, step_frame=varied(after_ms * 1000, 2))
    assert said in compare(ours, theirs).headline()
    assert "anything between" not in compare(ours, theirs, spread=0.0).headline()


def test_a_difference_too_small_to_count_is_said_to_be():
    ours, theirs = (run(n, step_ms=100.0, step_frame=varied(100_000, s)) for n, s in (("a", 1), ("b", 2)))
    assert (
        "That is too little to count: the steps allow for between 0.9" in compare(ours, theirs, spread=0.0).headline()
    )


def test_small_and_large_differences_keep_two_digits():
    assert compared(100.0, 100.4) == "0.40 % more time a step"
    assert compared(100.0, 100.0000001) == "less than 0.0001 % more time a step"
    assert compared(123456.0, 1.0) == "120,000 times as fast"
    assert compared(1.996, 1.0) == "2.0 times as fast"


def test_one_recording_beside_itself():
    comparison = compare(run("a", content="x"), run("b", content="x"))
    assert comparison.headline() == "`b` is the same recording as `a`, byte for byte."


def test_without_step_markers_it_says_how_to_get_them():
    said = compare(run("a"), run("b", has_steps=False)).headline()
    assert said == (
        "`b` has no step markers, so step times cannot be compared; record again with each step inside "
        "`tf.profiler.experimental.Trace('train', step_num=step, _r=1)`, or name the host event that begins each step "
        "(“Steps begin with” in the sidebar, `--step-marker` on the command line)."
    )
    said = compare(run("a"), run("b", has_steps=False, framework="JAX")).headline()
    assert "`jax.profiler.StepTraceAnnotation('train', step_num=step)`" in said
    said = compare(run("a", step_ms=math.nan), run("b", has_steps=False)).headline()
    assert said.startswith("`a` and `b` have no step markers")


def test_runs_of_one_name_go_by_their_ids_and_names_cannot_break_the_markdown():
    assert compare(run("x/train"), run("y/train")).headline().startswith("`y/train` takes 25.0 ms a step against")
    assert "`odd'name`" in compare(run("a"), run("odd`name")).headline()


def test_each_candidate_has_its_own():
    comparison = compare(run("a"), run("b"), run("c", step_ms=1))
    assert comparison.headline("c").startswith("`c` takes 1.00 ms")
    assert comparison.headline() == comparison.headline("b")
    with pytest.raises(Unknown, match="unknown candidate 'z'; must be one of: 'b', 'c'"):
        comparison.headline("z")


def test_runs_of_different_devices_are_told_apart_from_a_change_of_the_program():
    before, after = run("before", step_ms=784.0, device_type="TPU"), run("after", step_ms=10.6)
    assert compare(before, after).headline() == (
        "`after` takes 10.6 ms a step against 784 ms of `before`: 74 times as fast. They ran on different devices (TPU "
        "and CPU), which alone can make that difference."
    )


def test_a_run_with_hardly_any_steps_is_named():
    before, after = run("before", step_ms=21.3, steps_included=1), run("after", step_ms=10.6)
    assert compare(before, after).headline().endswith("2.0 times as fast. `before` has fewer than 3 steps to go by.")


def test_what_is_no_verdict_is_told_to_follow_the_headline() -> None:
    marker = "PjitFunction(forward_3d_conv)"
    ours, theirs = (load(run_path(name), step_marker=marker) for name in ("jax_conv_legacy", "jax_conv_08"))
    assert compare(ours, theirs).doubt() == (
        "Not tested: too few steps: 4, and a verdict takes 9 on each side. "
        "Not a verdict on the program alone: the runs differ in devices."
    )
    assert compared_runs("filters_512_128", "filters_16_8").doubt() == ""
    assert compared_runs("jax_conv_legacy", "jax_conv_08").doubt() == "", "the headline says that there are no steps"
