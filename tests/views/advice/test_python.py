"""Rules for Python functions: each speaks on a small case of its own, and is silent where just that is missing."""

from __future__ import annotations

from tests.views.advice.advice_facts import NAIVE, facts, ops
from tfcompare.views.advice import python_rules

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
