"""Rules on captures of programs whose truth is known; suggestions without evidence: few, only where they can apply."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tfcompare as tfc
from tests.profiles import ALL_RUNS, loaded_run
from tests.views.advice.advice_facts import BETTER, copies, facts, kernels, memory, ops
from tfcompare.run import Run
from tfcompare.views.advice import RULES, Advice, Facts, advise_on, facts_of
from tfcompare.views.advice.worth_trying import MOST_SUGGESTIONS, SUGGESTIONS, worth_trying

ANY_OP = ops(("Device", "Conv2D", "conv", 1, 100.0), ("Host", "DecodeJpeg", "decode", 1, 100.0))
ONE_KERNEL = kernels(("k", "conv", 1, 100.0, False, False))
WAITING = {"input": 3000.0, "kernel_launch": 1000.0, "device_compute": 4000.0}


def run_on(device_type: str, name: str = "", **others: Any) -> Facts:
    """A run on such a device in which every suggestion could apply as far as the device and the framework go."""
    given = {"parts": WAITING, "pipeline": BETTER, "ops": ANY_OP, "copies": copies("host to device", 10)}
    found = facts(device_type=device_type, **(given | others))
    return replace(found, info=SimpleNamespace(**(vars(found.info) | {"device_name": name})))


def fitting(run: Facts) -> set[str]:
    return {name for name, one in SUGGESTIONS.items() if one.fits(run)}


def test_each_is_a_sentence_with_a_link_and_names_rules_that_exist() -> None:
    for name, one in SUGGESTIONS.items():
        assert one.name == name
        assert one.text.endswith(".")
        assert one.text.count("`") % 2 == one.title.count("`") % 2 == 0
        assert one.link.startswith("https://www.tensorflow.org/")
        assert set(one.rules) <= set(RULES)


def test_at_most_five_are_shown_and_none_that_a_rule_has_said() -> None:
    run = run_on("GPU", "NVIDIA H100, 85.0 GB", kernels=ONE_KERNEL)
    assert len(fitting(run)) > MOST_SUGGESTIONS
    shown = worth_trying(run, ())
    assert len(shown) == MOST_SUGGESTIONS
    assert "dali" in {one.name for one in shown}
    assert "dali" not in {one.name for one in worth_trying(run, ("decode_on_gpu",))}


def test_none_that_cannot_apply() -> None:
    of_gpu = {"nvidia_smi", "l2_fetch", "gpu_private", "memory_growth", "force_gpu_compatible", "oom_report", "dali"}
    nvidia = run_on("GPU", "NVIDIA H100, 85.0 GB", kernels=ONE_KERNEL)
    assert of_gpu <= fitting(nvidia)
    assert not of_gpu & fitting(run_on("TPU", "TPU v4"))
    assert not of_gpu & fitting(run_on("CPU"))
    amd = fitting(run_on("GPU", "AMD, compute capability 9.4, 304 compute units", kernels=ONE_KERNEL))
    assert of_gpu - amd == {"nvidia_smi", "l2_fetch"}
    jax = fitting(run_on("GPU", "NVIDIA H100, 85.0 GB", kernels=ONE_KERNEL, framework="JAX"))
    assert jax == {"synthetic_data", "dali", "nvidia_smi", "l2_fetch", "larger_batch"}


def test_what_rules_can_judge_is_suggested_only_where_the_profile_has_nothing_to_judge() -> None:
    unjudged = {"mixed_precision", "channels_last", "larger_batch"}
    assert unjudged <= fitting(run_on("GPU"))
    assert not unjudged & fitting(run_on("GPU", kernels=ONE_KERNEL, memory=memory("GPU_0_bfc", 9, 10)))
    assert "larger_batch" in fitting(run_on("GPU", memory=memory("gpu_host_bfc", 9, 10)))
    assert "fewer_callbacks" not in fitting(run_on("CPU"))
    assert "fewer_callbacks" in fitting(run_on("CPU", has_steps=False))


def test_the_input_is_spoken_of_where_the_run_waits_for_it() -> None:
    of_input = {"synthetic_data", "tf_data_options", "dali"}
    assert of_input <= fitting(run_on("GPU"))
    assert not of_input & fitting(run_on("GPU", parts={"input": 100.0, "device_compute": 8000.0}))
    assert "no_python_input" in fitting(run_on("CPU", pipeline=""))
    assert "shard_files" in fitting(run_on("CPU", hosts=2)) - fitting(run_on("CPU"))
    assert "shard_files" not in fitting(run_on("CPU", hosts=2, pipeline="Root 1 critical\n Range 30 critical\n"))


def test_few_steps_and_no_ops_give_none() -> None:
    assert worth_trying(facts(WAITING), ()) == ()
    few = replace(run_on("GPU"), steps=run_on("GPU").steps.head(2))
    found = advise_on(few, few)
    assert found.caveat and found.also_worth_trying == ()


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
        ("launch_bound", "gpu_filters_16_8", "gpu_filters_512_128"),
        ("convolutions", "gpu_filters_512_128", "gpu_filters_16_8"),
    ],
)
def test_a_rule_speaks_where_it_must_and_is_silent_where_it_must_not(rule: str, speaks: str, silent: str) -> None:
    assert rule in advice_on(speaks)
    assert rule not in advice_on(silent)


def test_a_program_that_runs_eagerly_has_its_true_share() -> None:
    assert facts_named("eager_loop").eager_share == pytest.approx(0.44, abs=0.02)
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
    assert facts_named("eager_in_one_step").eager_share == 0


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
