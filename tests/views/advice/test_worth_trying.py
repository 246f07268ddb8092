"""Suggestions without evidence: few, only where they can apply, and never what a rule has said."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tests.views.advice.advice_facts import BETTER, copies, facts, kernels, memory, ops
from tfcompare.views.advice import Facts, advise_on
from tfcompare.views.advice.advise import RULES
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
