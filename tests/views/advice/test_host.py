"""Rules for the host and for Python functions: each speaks on a small case, and is silent just below its threshold."""

from __future__ import annotations

import pytest

from tests.views.advice.advice_facts import NAIVE, facts, ops
from tfcompare.views.advice import host_rules, python_rules

CORES = {"Root": {"settings": "threadpool_size=2"}}


@pytest.mark.parametrize(("framework", "call"), [("TensorFlow", "`tf.function`"), ("JAX", "`jax.lax.scan`")])
def test_time_that_nothing_explains(framework: str, call: str) -> None:
    found = host_rules.other_time(facts({"other": 1500}, framework=framework))
    assert found is not None and call in found.text
    assert found.title == "15.0 % of the step is unexplained"
    assert found.text.startswith("For 1.50 ms of each step no recorded event explains what happens")
    assert host_rules.other_time(facts({"other": 900})) is None
    assert host_rules.other_time(facts(has_steps=False)) is None


@pytest.mark.parametrize(("framework", "call"), [("TensorFlow", "drop_remainder"), ("JAX", "static_argnums")])
def test_compiling_within_steps(framework: str, call: str) -> None:
    found = host_rules.compiling(facts({"compile": 600}, framework=framework))
    assert found is not None and call in found.text
    assert host_rules.compiling(facts({"compile": 400})) is None


def test_a_device_that_waits_for_ops_of_the_host() -> None:
    assert host_rules.host_ops(facts({"host_compute": 1500, "device_compute": 8500}, device_type="GPU")) is not None
    assert host_rules.host_ops(facts({"host_compute": 500, "device_compute": 9500}, device_type="GPU")) is None
    assert host_rules.host_ops(facts({"host_compute": 10_000})) is None, "there is no device to wait"


def test_eager_ops() -> None:
    there = ops(("Host", "MatMul", "a", 100, 5000), eager=True)
    found = host_rules.eager(facts(ops=there, eager_share=0.5))
    assert found.title == "Eager ops take 50.0 % of the step"
    assert "100 ops a step one by one, `a` the longest" in found.text
    assert found.saves == 0.5
    assert host_rules.eager(facts(ops=there, eager_share=0.05)) is None
    assert host_rules.eager(facts(framework="JAX", ops=there, eager_share=0.5)) is None


def test_an_execution_around_an_op_that_has_a_name_is_not_counted_twice() -> None:
    rows = [("Host", "MatMul", "EagerLocalExecute: MatMul", 100, 2000.0), ("Host", "MatMul", "a", 100, 5000.0)]
    assert host_rules.EAGER_OPS.of(facts(ops=ops(*rows, eager=True))) == 100


def test_input_that_is_read_between_steps() -> None:
    """As `for step, batch in enumerate(dataset)` does: 7 ms of calls, and no waiting in any step."""
    outside = facts({"host_compute": 9000.0}, between_us=8_000.0, pipeline=NAIVE)
    found = host_rules.input_between_steps(outside)
    assert found is not None and "calls to the input pipeline outside of steps take 7.00 ms per step" in found.text
    assert host_rules.between_steps(outside) is None, "it is said once"
    within = facts({"host_compute": 2000.0, "input": 7000.0}, between_us=8_000.0, pipeline=NAIVE)
    assert host_rules.input_between_steps(within) is None and host_rules.between_steps(within) is not None
    long = facts({"host_compute": 9000.0}, between_us=20_000.0, pipeline=NAIVE)
    assert host_rules.input_between_steps(long) is None, "most of that is something else"
    assert host_rules.input_between_steps(facts(between_us=8_000.0)) is None
    logs = host_rules.between_steps(facts(between_us=8_000.0, between={"log": 6_000.0, "load_batch": 500.0}))
    assert "No step time contains it. `log` takes 6.00 ms of it. Look for" in logs.text
    little = host_rules.between_steps(facts(between_us=8_000.0, between={"log": 1_000.0}))
    assert "No step time contains it. Look for" in little.text


@pytest.mark.parametrize(
    ("pipeline", "between", "told"),
    [
        ("", {"next(iterator)": 7_000.0, "log": 500.0}, "calls of `next(iterator)` outside of steps take 7.00 ms"),
        (
            "",
            {"load_batch": 3_000.0, "next_batch": 4_000.0},
            "calls of `next_batch`, `load_batch` outside of steps take 7",
        ),
        (NAIVE, {"next(iterator)": 7_100.0}, "calls of `next(iterator)` outside of steps take 7.10 ms"),
        (NAIVE, {"load_batch": 300.0}, "calls to the input pipeline outside of steps take 7.00 ms"),
    ],
)
def test_what_gets_input_between_steps_has_its_own_time(pipeline: str, between: dict[str, float], told: str) -> None:
    run = facts({"host_compute": 9000.0}, between_us=8_000.0, pipeline=pipeline, between=between)
    assert told in host_rules.input_between_steps(run).text


def test_much_time_between_steps() -> None:
    found = host_rules.between_steps(facts(between_us=10_000.0))
    assert found.title == "50.0 % of the time is between steps"
    assert host_rules.between_steps(facts(between_us=1000.0)) is None
    assert host_rules.between_steps(facts(has_steps=False)) is None


def test_more_threads_within_ops_than_cores() -> None:
    busy = ops(("Host", "Conv2D", "a", 1, 25_000))
    found = host_rules.threads(facts(pipeline=NAIVE, changed=CORES, ops=busy))
    assert "On average 2.50 threads are within an op, on 2 cores" in found.text
    calm = ops(("Host", "Conv2D", "a", 1, 19_000))
    assert host_rules.threads(facts(pipeline=NAIVE, changed=CORES, ops=calm)) is None
    waiting = ops(("Host", "Dataset", "a", 1, 25_000), ("Host", "PyFunc", "b", 1, 25_000))
    assert host_rules.threads(facts(pipeline=NAIVE, changed=CORES, ops=waiting)) is None
    assert host_rules.threads(facts(ops=busy)) is None, "nothing tells how many cores there are"


WAITING = {"input": 6000.0}
CALLED = ops(("Host", "PyFunc", "f", 2, 5000))


def test_python_that_makes_the_input() -> None:
    makes = {"input_us": 5000.0}
    found = python_rules.python_input(facts(WAITING, ops=CALLED, python=makes))
    assert found is not None and found.title == "`py_function` produces the input"
    assert "Python (`f`) produces the input" in found.text
    assert "waits for it 50.0 % of the time (calls: 2 a step)" in found.text
    assert found.saves == 0.5
    assert python_rules.python_input(facts(WAITING, ops=CALLED, python={"input_us": 400.0})) is None
    assert python_rules.python_input(facts(WAITING, ops=ops(("Host", "DecodePng", "f", 2, 5000)), python=makes)) is None
    assert python_rules.python_input(facts({"input": 40.0}, ops=CALLED, python=makes)) is None
    blamed = NAIVE.replace("Map", "Generator")
    found = python_rules.python_input(facts(WAITING, pipeline=blamed, ops=CALLED, python=makes))
    assert found is not None and found.title == "`from_generator` produces the input"
    behind = facts(WAITING, pipeline=NAIVE.replace("TFRecord", "Generator"), ops=CALLED, python=makes)
    assert behind.bottleneck is not None and behind.bottleneck["iterator"] == "Map"
    found = python_rules.python_input(behind)
    assert found is not None and found.title == "`py_function` produces the input", "the generator takes 100 µs"
    waited = {"Generator": 3000.0}
    behind = facts(WAITING, pipeline=NAIVE.replace("TFRecord", "Generator"), ops=CALLED, python=makes, waits=waited)
    found = python_rules.python_input(behind)
    assert found is not None and found.title == "`from_generator` produces the input"


def test_parallel_calls_are_never_called_useless() -> None:
    found = python_rules.python_input(facts(WAITING, ops=CALLED, python={"input_us": 5000.0}))
    assert found is not None and "(`num_parallel_calls`): that helps where the function waits" in found.text


def test_python_within_the_step() -> None:
    found = python_rules.python_op(facts(ops=CALLED, python={"host_compute_us": 8200.0}))
    assert found is not None and found.title == "Python functions take 82.0 % of the step"
    assert "`f` the longest, take 82.0 % of the step (calls: 2 a step)" in found.text
    assert python_rules.python_op(facts(ops=CALLED, python={"host_compute_us": 400.0})) is None
    assert python_rules.python_op(facts(ops=CALLED, python={"input_us": 8200.0})) is None, "that is the input's"
    assert python_rules.python_op(facts(ops=CALLED, has_steps=False)) is None
