from __future__ import annotations

import pytest

from tfcompare.compare.matching.names import align_names
from tfcompare.compare.matching.plain_names import plain_name, plain_paths, plain_type


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("StatefulPartitionedCall/model/dense/MatMul", "model/dense/MatMul"),
        ("PartitionedCall_1/StatefulPartitionedCall/x", "x"),
        ("while/body/_12/model/dense/MatMul", "model/dense/MatMul"),
        ("model/lstm/while/body/_3/model/lstm/while/MatMul", "model/lstm/while/MatMul"),
        ("jit(f)/jit(main)/dense/dot_general", "dense/dot_general"),
        ("jit(f)/transpose(jvp(Dense))/dot_general", "transpose(jvp(Dense))/dot_general"),
        ("jit(f)/transpose(jvp(jvp()))/checkpoint/mlp/dot_general", "transpose(jvp(mlp))/dot_general"),
        ("jit(f)/transpose(jvp(jvp()))/checkpoint/jit(silu)/mul", "transpose(jvp(jit(silu)))/mul"),
        ("jit(f)/transpose(jvp(jvp()))/checkpoint/mul", "transpose(jvp())/mul"),
        ("jit(f)/transpose(jvp(jvp()))/add_any", "transpose(jvp())/add_any"),
        ("jit(f)/transpose(jvp(layer_0))/jvp(layer_0)/checkpoint/mlp/mul", "transpose(jvp(layer_0))/mlp/mul"),
        ("jit(f)/transpose(jvp(layer_0))/jvp(layer_0)/add_any", "transpose(jvp(layer_0))/add_any"),
        ("jit(f)/transpose(jvp(jit(a)))/checkpoint/mlp/mul", "transpose(jvp(jit(a)))/mlp/mul"),
        ("jit(f)/transpose(jvp())/while/body/checkpoint/mlp/mul", "transpose(jvp())/while/body/mlp/mul"),
        (
            "jit(f)/transpose(jvp(jvp()))/checkpoint/rematted_computation/mlp/mul",  # work that is done twice
            "transpose(jvp(jvp()))/checkpoint/rematted_computation/mlp/mul",
        ),
        (
            "jit(f)/transpose(jvp(model))/layer_0/jvp(model)/layer_0/checkpoint/mlp/mul",
            "transpose(jvp(model))/layer_0/mlp/mul",
        ),
        ("jit(f)/transpose(jvp(jvp()))/checkpoint/while/body/mul", "transpose(jvp())/while/body/mul"),
        ("jit(f)/jvp(layer)/checkpoint/mlp/mul", "jvp(layer)/mlp/mul"),
        ("jit(evaluate)/checkpoint/mlp/mul", "mlp/mul"),
        ("model/checkpoint/mul", "model/checkpoint/mul"),
        ("gradient_tape/compile_loss/mse/mul", "gradient_tape/mse/mul"),
        ("StatefulPartitionedCall/gradient_tape/model/Sum", "gradient_tape/model/Sum"),
        ("__inference_step_701", "__inference_step"),
        ("__inference_step_2_701", "__inference_step_2"),
        ("model/dense_1/MatMul", "model/dense_1/MatMul"),
        ("StatefulPartitionedCall", "StatefulPartitionedCall"),
        ("", ""),
    ],
)
def test_what_frameworks_add_is_left_out(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_a_type_loses_the_number_of_its_function() -> None:
    assert plain_type("__inference_evaluate_754") == "__inference_evaluate"
    assert plain_type("MatMul_2") == "MatMul_2"


def test_names_that_would_become_one_stay_as_they_are() -> None:
    train, evaluate = "jit(train)/dot_general", "jit(evaluate)/dot_general"
    assert plain_paths([train, evaluate], [train]) == {train: train, evaluate: evaluate}
    assert align_names([(train, ""), (evaluate, "")], [(train, "")]) == {train: train}


def test_a_function_that_was_traced_in_another_order_pairs_with_itself() -> None:
    baseline, candidate = ["__inference_a_10", "__inference_b_20"], ["__inference_b_12", "__inference_a_25"]
    pairs = align_names([(name, "") for name in baseline], [(name, "") for name in candidate])
    assert pairs == {"__inference_a_25": "__inference_a_10", "__inference_b_12": "__inference_b_20"}
