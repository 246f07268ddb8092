"""Layers that only one side has."""

from __future__ import annotations

import pytest
from compare_runs import ops, run

from tests.views.flat import KNOWN_TRUTH, only_pair
from tfcompare.compare.work.lone_layers import lone_layers
from tfcompare.comparison import compare
from tfcompare.run import load

FAMILY = KNOWN_TRUTH.parent / "model_family"


def found(baseline: str, candidate: str) -> list[tuple[str, int, float]]:
    """The lone layers of two `op_stats` frames, each given as text."""
    sides = ("\n".join(filter(None, map(str.strip, text.splitlines()))) for text in (baseline, candidate))
    pair = only_pair(compare(*(run(name, ops(text)) for name, text in zip(("before", "after"), sides, strict=True))))
    return [(one.name, one.side, one.self_time_us) for one in lone_layers(pair.diff())]


def test_a_layer_with_its_gradient_is_one_and_has_the_time_of_all_its_ops() -> None:
    before = """
        Host MatMul model/first/MatMul 1 100
        Host Relu model/first/Relu 1 10
        Host MatMul gradient_tape/model/first/MatMul 1 90
    """
    extra = """
        Host MatMul model/inner/MatMul 1 50
        Host Relu model/inner/Relu 1 5
        Host MatMul gradient_tape/model/inner/MatMul 1 40
    """
    assert found(before, before + extra) == [("inner", 1, 95.0)]
    assert found(before + extra, before) == [("inner", 0, 95.0)]
    assert found(before, before) == []


def test_an_op_alone_and_a_layer_of_both_sides_with_other_ops_are_none() -> None:
    before = "Host MatMul model/first/MatMul 1 100\nHost Relu model/first/Relu 1 10"
    assert found(before, f"{before}\nHost Mul adam/Mul_27/Read 1 50\nHost Tanh model/first/Tanh 1 20") == []


def test_an_op_in_whose_name_its_gradient_is_computed_is_no_layer() -> None:
    """`tf.matmul` makes a scope: the gradient of `dense/MatMul` is computed in it."""
    before = "Host MatMul model/dense/MatMul 1 100\nHost BiasAdd model/dense/BiasAdd 1 10"
    gradients = "\n".join(f"Host {op} gradient_tape/model/dense/MatMul/{op} 1 50" for op in ("MatMul", "Transpose"))
    assert found(before, f"{before}\n{gradients}") == []


def test_the_outermost_scope_is_named() -> None:
    before = "Device dot_general jit(f)/jvp(model)/first/dot_general 1 100"
    block = "\n".join(
        f"Device {op} jit(f)/{around}(model){end}/block/{part}/{op} 1 10"
        for around, end in (("jvp", ""), ("transpose(jvp", ")"))
        for part, op in (("attention", "dot_general"), ("mlp", "tanh"))
    )
    assert found(before, f"{before}\n{block}") == [("block", 1, 40.0)]


@pytest.mark.parametrize(("candidate", "name", "side"), [("inserted", "dense_2_1", 1), ("removed", "dense_3_1", 0)])
def test_of_layers_that_keras_numbers_the_one_without_a_counterpart_is_found(candidate, name, side) -> None:
    pair = only_pair(compare(load(FAMILY / "auto"), load(FAMILY / candidate)))
    assert [(one.name, one.side) for one in lone_layers(pair.diff())] == [(name, side)]


def test_a_layer_of_a_jax_program() -> None:
    pair = only_pair(compare(load(KNOWN_TRUTH / "jax_layers"), load(KNOWN_TRUTH / "jax_layers_inserted")))
    (layer,) = lone_layers(pair.diff())
    diff = pair.diff()
    own = diff[diff["op_name_candidate"].fillna("").str.contains("inserted")]
    assert (layer.name, layer.side) == ("inserted", 1)
    assert layer.self_time_us == pytest.approx(own["self_time_us_candidate"].sum())


@pytest.mark.parametrize("candidate", ["renamed", "explicit", "fit", "auto_again"])
def test_renamed_layers_are_none(candidate) -> None:
    assert lone_layers(only_pair(compare(load(FAMILY / "auto"), load(FAMILY / candidate))).diff()) == []
