"""Rules for the input: each speaks on a small case of its own, and is silent where just that is missing."""

from __future__ import annotations

import pytest

from tests.input_runs import NAIVE as NAIVE_OPS
from tests.input_runs import input_ops
from tests.views.advice.advice_facts import BETTER, NAIVE, STEP_US, facts, ops
from tfcompare.views.advice import input_rules
from tfcompare.views.advice.input_advice import tf_data_advice as bottleneck_advice
from tfcompare.views.advice.model import Rule

WAITING = {"input": 6000.0}


@pytest.mark.parametrize("rule", input_rules.RULES)
def test_a_run_that_does_not_wait_is_given_no_advice_on_input(rule: Rule) -> None:
    assert rule(facts({"input": 0.04 * STEP_US}, pipeline=NAIVE, ops=ops(("Host", "PyFunc", "f", 1, 9000)))) is None


def test_who_waits_is_told_how_long_for_what_and_what_to_do() -> None:
    run = facts(WAITING, pipeline=NAIVE, waits={"Map": 5900.0})
    found = input_rules.input_bound(run)
    assert found is not None and run.bottleneck is not None
    assert found.title == "The steps wait for input 60.0 % of their time"
    assert found.text == (
        "A step waits 6.00 ms of 10.0 ms for its input. Slowest in the pipeline is `Map`: 5.90 ms per step. "
        + bottleneck_advice(run.bottleneck)
    )
    assert found.saves == pytest.approx(0.6)


def test_without_calls_of_tf_data_the_ops_of_the_input_tell() -> None:
    found = input_rules.input_bound(facts(WAITING, input_ops=input_ops(NAIVE_OPS)))
    assert "goes to preprocessing: 40.0 µs a step" in found.text


@pytest.mark.parametrize(("framework", "call"), [("TensorFlow", "prefetch(tf.data"), ("JAX", "jax.device_put")])
def test_without_any_op_of_the_input_the_framework_has_its_own_way(framework: str, call: str) -> None:
    found = input_rules.input_bound(facts(WAITING, framework=framework))
    assert found is not None and call in found.text


@pytest.mark.parametrize(
    ("framework", "name", "how"),
    [
        ("JAX", "load_batch", "Load the next batch while this one computes: read on worker processes (`grain`"),
        ("TensorFlow", "load_batch", "or `tf.data` ending in `prefetch(tf.data.AUTOTUNE)`."),
        ("", "load_batch", "while this one computes: on another thread or in worker processes."),
        ("JAX", "dataloader.py __next__", "Let the `DataLoader` work ahead of the step: `num_workers`"),
        ("JAX", "grain_next", "Let `grain` work ahead of the step"),
    ],
)
def test_input_that_the_program_gets_itself_is_named(framework: str, name: str, how: str) -> None:
    found = input_rules.getting_input(facts(framework=framework, around={name: 6000.0, "log": 500.0}))
    assert found.title == f"Input from `{name}` takes 60.0 % of the step"
    assert found.text.startswith(
        f"A step spends 6.00 ms of 10.0 ms in `{name}`, by the name to get input, and no op or device works meanwhile. "
    )
    assert how in found.text
    assert found.saves == pytest.approx(0.6)


def test_annotations_that_get_no_input_or_take_little_are_no_advice_on_input() -> None:
    assert input_rules.getting_input(facts(around={"log": 6000.0, "load_batch": 0.04 * STEP_US})) is None


def test_without_steps_the_calls_tell() -> None:
    found = input_rules.input_bound(facts(has_steps=False, pipeline=NAIVE))
    assert found.title == "Calls for input take 70.0 % of the profile"
    assert "Slowest in the pipeline is `Map`: 7.00 ms per call." in found.text
    assert found.saves == pytest.approx(0.7)
    assert input_rules.input_bound(facts(has_steps=False)) is None


def test_prefetch_is_for_pipelines_that_do_not_work_ahead() -> None:
    found = input_rules.prefetch(facts(WAITING, pipeline=NAIVE))
    assert found is not None and "`dataset.prefetch(tf.data.AUTOTUNE)`" in found.text
    assert found.saves == pytest.approx(0.4), "no more than there is left of the step to hide it in"
    assert input_rules.prefetch(facts(WAITING, pipeline=BETTER)) is None
    assert input_rules.prefetch(facts(WAITING, pipeline=NAIVE.replace(" Map", " ParallelMapV2"))) is None


SLOW_READING = """
Root 1 critical
 BatchV2 30 critical
  Map 7000 critical blamed
   Interleave 2000 critical
"""


def test_what_else_works_on_one_element_at_a_time() -> None:
    run = facts(WAITING, pipeline=SLOW_READING)
    found = input_rules.parallel(run)
    assert found is not None and "`interleave(…, num_parallel_calls=tf.data.AUTOTUNE)`" in found.text
    assert [(figure.subject, figure.of(run)) for figure in found.figures] == [
        ("Iterator::Root[0]::BatchV2[0]::Map[0]::Interleave", 2000.0)
    ]
    assert (
        input_rules.parallel(facts(WAITING, pipeline=SLOW_READING.replace("Interleave", "ParallelInterleaveV4")))
        is None
    )
    quick = facts(WAITING, pipeline=SLOW_READING, waits={"Interleave": 0.04 * STEP_US})
    assert input_rules.parallel(quick) is None, "no step waits for it"


def test_cache_is_for_data_that_is_repeated_and_not_kept() -> None:
    assert input_rules.cache(facts(WAITING, pipeline=NAIVE)) is not None
    assert input_rules.cache(facts(WAITING, pipeline=NAIVE.replace("ForeverRepeat", "FlatMap"))) is None
    cached = NAIVE.replace("    TFRecord 100", "    MemoryCacheImpl 1 critical\n     TFRecord 100")
    assert input_rules.cache(facts(WAITING, pipeline=cached)) is None
    quick = {"Map": 86.0, "TFRecord": 0.0}
    assert input_rules.cache(facts(WAITING, pipeline=NAIVE, waits=quick)) is None, "a cache saves nothing"


SHARDED = """
Root 1 critical
 Map 7000 critical blamed
  Shard 4 critical
   TFRecord 2500 critical
"""


def test_sharding_of_records_reads_every_file_on_every_worker() -> None:
    found = input_rules.shard(facts(WAITING, pipeline=SHARDED, hosts=4))
    assert "each of the 4 hosts reads all files, 2.50 ms in the slowest call" in found.text
    assert input_rules.shard(facts(WAITING, pipeline=SHARDED, hosts=1)) is None
    by_file = SHARDED.replace("Shard", "X").replace("TFRecord", "Shard").replace("X", "TFRecord")
    assert input_rules.shard(facts(WAITING, pipeline=by_file, hosts=4)) is None


LATE = """
Root 1 critical
 BatchV2 30 critical
  Shard 10 critical
   ParallelMapV2 5000 critical blamed
    Range 4 critical
"""


def test_what_is_made_below_a_shard_and_dropped() -> None:
    calls = {"Shard": {"calls": 32}, "ParallelMapV2": {"calls": 128}}
    found = input_rules.late_shard(facts(WAITING, pipeline=LATE, changed=calls))
    assert found is not None and found.title == "`shard` drops 75.0 % of what was made"
    assert "Each step waits 5.00 ms for elements made below `shard`" in found.text
    assert found.saves == pytest.approx(0.5 * 0.75)
    as_many = {"Shard": {"calls": 32}, "ParallelMapV2": {"calls": 32}}
    assert input_rules.late_shard(facts(WAITING, pipeline=LATE, changed=as_many)) is None
    cheap = facts(WAITING, pipeline=LATE, changed=calls, waits={"ParallelMapV2": 500.0})
    assert input_rules.late_shard(cheap) is None
    assert input_rules.late_shard(facts(WAITING, pipeline=NAIVE, changed=calls)) is None
    read = facts(WAITING, pipeline=LATE.replace("Range", "TFRecord"), changed=calls, hosts=4)
    assert input_rules.shard(read) is not None and input_rules.late_shard(read) is None
    assert input_rules.late_shard(facts({"input": 100.0}, pipeline=LATE, changed=calls)) is None


CAST = """
Root 1 critical
 Map 7000 critical blamed
  ParallelMapV2 200 critical
   ParallelBatch 2500 critical
"""
CAST_TYPES = {
    "Map": {"types": "float", "shapes": "[32,32]"},
    "ParallelMapV2": {"types": "float", "shapes": "[32,32]"},
    "ParallelBatch": {"types": "uint8", "shapes": "[32,32]"},
}


def test_casts_come_after_the_work() -> None:
    found = input_rules.late_casts(facts(WAITING, pipeline=CAST, changed=CAST_TYPES))
    assert found is not None and "grows from 1.02 kB to 4.10 kB" in found.text
    last = CAST_TYPES | {"ParallelMapV2": {"types": "uint8", "shapes": "[32,32]"}}
    assert input_rules.late_casts(facts(WAITING, pipeline=CAST, changed=last)) is None
    decoded = CAST_TYPES | {"ParallelBatch": {"types": "string", "shapes": "[]"}}
    assert input_rules.late_casts(facts(WAITING, pipeline=CAST, changed=decoded)) is None
    untold = CAST_TYPES | {"ParallelBatch": {"types": "uint8", "shapes": "<unknown>"}}
    assert input_rules.late_casts(facts(WAITING, pipeline=CAST, changed=untold)) is None


FULL_HOST = {"ParallelMapV2": {"parallelism": 8}, "Root": {"settings": "algorithm=DEFAULT, cpu_budget=8"}}
DECODING = ops(("Host", "DecodeJpeg", "DecodeJpeg", 32, 9000), ("Host", "Conv2D", "conv", 1, 500))


def test_decoding_moves_to_the_gpu_where_the_hosts_cores_are_the_limit() -> None:
    run = facts(WAITING, pipeline=BETTER, changed=FULL_HOST, ops=DECODING, device_type="GPU")
    assert run.cores == 8
    found = input_rules.decode_on_gpu(run)
    assert found is not None and "DALI" in found.text and "8 calls at a time on 8 cores" in found.text
    silent = [
        facts(WAITING, pipeline=BETTER, changed=FULL_HOST, ops=DECODING),
        facts(WAITING, pipeline=BETTER, changed=FULL_HOST, device_type="GPU", ops=ops(("Host", "Mul", "x", 1, 9000))),
        facts(WAITING, pipeline=BETTER, ops=DECODING, device_type="GPU"),
        facts(
            WAITING,
            pipeline=BETTER,
            changed=FULL_HOST | {"ParallelMapV2": {"parallelism": 4}},
            ops=DECODING,
            device_type="GPU",
        ),
    ]
    assert [input_rules.decode_on_gpu(run) for run in silent] == [None] * 4
