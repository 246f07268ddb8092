"""Names of ops: what frameworks add is left out, and those of two runs are paired by their scopes and numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tfcompare.compare.matching.name_tree import are_other_things, family, meant_digits
from tfcompare.compare.matching.names import align_names
from tfcompare.compare.matching.plain_names import plain_name, plain_paths, plain_type


def test_a_label_is_taken_apart_into_family_and_numbers():
    assert family("dense") == ("dense", (), False)
    assert family("dense_3") == ("dense", (3,), False)
    assert family("dense_1_2") == ("dense", (1, 2), False)
    assert family("fusion.123") == ("fusion", (123,), False)
    assert family("conv2d") == ("conv2d", (), False)
    assert family("_11") == ("", (11,), False)
    assert family("layer_1_conv") == ("layer_1_conv", (), False)
    assert family("handle_0x7f3a10") == ("handle_#", (), True)
    assert family("__inference_train_step_123__XlaMustCompile") == (
        "__inference_train_step_#__XlaMustCompile",
        (),
        True,
    )


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        ("m/conv1x1/conv2d_4", {"1x1", "2d"}),
        ("relu6_1/mobilenet_v2", {"relu6", "v2"}),
        ("cast_BF16/uint8/float32/q8", {"bf16", "uint8", "float32"}),
        ("mixed_3b/res3x3a/audio_mp3", {"3b", "3x3", "mp3"}),
        ("layers_0/block12/conv2/keypoint4/fc1/dense_64/resnet50/op_0x7f31", set()),
    ],
)
def test_digits_mean_something_or_count(name: str, digits: set[str]) -> None:
    assert meant_digits(name) == {(one, 0) for one in digits}


def test_a_dimension_in_the_scope_is_not_that_of_the_op() -> None:
    assert are_other_things("conv2d/Conv2D", "conv3d/Conv2D")
    assert not are_other_things("conv2d/Conv2D", "conv/Conv2D")


def numbered(name: str, first: int, count: int) -> str:
    return " ".join(f"{name}_{i}/MatMul" for i in range(first, first + count))


@pytest.mark.parametrize(
    ("baseline", "candidate", "counterparts"),
    [
        # A renamed layer pairs with all its ops, and numbers sort as numbers.
        ("m/dense/MatMul m/dense/BiasAdd", "m/dense_3/MatMul m/dense_3/BiasAdd", "m/dense/MatMul m/dense/BiasAdd"),
        (numbered("layer", 0, 12), numbered("layer", 12, 12), numbered("layer", 0, 12)),
        # A model that Keras 3 built a second time.
        (
            "s_1/d_1/MatMul s_1/d_1_2/MatMul s_1/d_2_1/MatMul",
            "s_1_1/d_3_1/MatMul s_1_1/d_4_1/MatMul s_1_1/d_5_1/MatMul",
            "s_1/d_1/MatMul s_1/d_1_2/MatMul s_1/d_2_1/MatMul",
        ),
        # Layers that moved on by one do not pair with their namesakes,
        ("m/dense/x m/dense_1/x", "m/dense_1/x m/dense_2/x", "m/dense/x m/dense_1/x"),
        # but namesakes do where moving on would lose ops or the numbers have gaps.
        ("b/conv b/relu b_1/mm b_1/add", "b_1/mm b_1/add b_2/conv b_2/relu", "b_1/mm b_1/add - -"),
        (
            "l_0/x l_1/x l_3/x l_4/x l_5/x l_6/x l_7/x",
            "l_0/x l_1/x l_2/x l_3/x l_4/x l_6/x l_7/x",
            "l_0/x l_1/x - l_3/x l_4/x l_6/x l_7/x",
        ),
        ("dense/x dense_1/x", "dense/x dense_3/x", "dense/x dense_1/x"),
        # Nothing is folded: more layers than there were pair with none of another name.
        ("m/dense/x m/dense_1/x", "m/dense/x m/dense_1/x m/dense_2/x", "m/dense/x m/dense_1/x -"),
        ("dense/x dense_1/x", "dense_3/x dense_4/x dense_5/x", "- - -"),
        # Gradients take the pairing of the forward layers, which may have none in one run,
        (
            "m/d/x m/d_1/x m/d_2/x gradient_tape/m/d_1/x/x gradient_tape/m/d_2/x/x",
            "m/d_3/x m/d_4/x m/d_5/x gradient_tape/m/d_3/x/x gradient_tape/m/d_4/x/x",
            "m/d/x m/d_1/x m/d_2/x - gradient_tape/m/d_1/x/x",
        ),
        ("d/x gradient_tape/d/x/x", "d/x d_1/x gradient_tape/d_1/x/x", "d/x - -"),
        ("d/x d/Relu gradient_tape/d/x/x", "d/Relu gradient_tape/d/x/x", "d/Relu gradient_tape/d/x/x"),
        (
            "call/m/d/x call/gradients/m/d/x_grad/x_1",
            "call/m/d_3/x call/gradients_1/m/d_3/x_grad/x_1",
            "call/m/d/x call/gradients/m/d/x_grad/x_1",
        ),
        # and numbers of their own.
        (
            "x gradient_tape/x gradient_tape/x_1",
            "x_2 gradient_tape/x gradient_tape/x_1",
            "x gradient_tape/x gradient_tape/x_1",
        ),
        # Fusions of XLA pair where their number agrees, addresses one with one only, functions by their order.
        ("fusion.5 fusion.17", "fusion.102 fusion.9", "fusion.17 fusion.5"),
        ("fusion.5", "fusion.9 fusion.102", "- -"),
        ("op_0x7f01", "op_0x55aa", "op_0x7f01"),
        ("op_0x7f01 op_0x7f02", "op_0x55aa op_0x55ab", "- -"),
        ("op_0x1 op_0x2", "op_0x1 op_0x3", "op_0x1 op_0x2"),
        (
            "__inference__next_331 __inference__next_441",
            "__inference__next_1007 __inference__next_999",
            "__inference__next_441 __inference__next_331",
        ),
        # Thousands of scopes are no trouble.
        ("/".join(["a"] * 5000) + " dense", "/".join(["a"] * 5000) + " dense_1", "/".join(["a"] * 5000) + " dense"),
    ],
)
def test_names_have_these_counterparts(baseline: str, candidate: str, counterparts: str) -> None:
    ours, theirs = baseline.split(), candidate.split()
    pairs = align_names([(n, "MatMul") for n in ours], [(n, "MatMul") for n in theirs])
    back = align_names([(n, "MatMul") for n in theirs], [(n, "MatMul") for n in ours])
    assert {b: c for c, b in pairs.items()} == back, "the rules know no direction"
    assert " ".join(pairs.get(name, "-") for name in theirs) == counterparts


labels = st.builds(
    lambda base, numbers: base + "".join(f"_{n}" for n in numbers),
    st.sampled_from(["dense", "add", "gradient_tape", "gradients", "h_0xff"]),
    st.lists(st.integers(0, 3), max_size=2),
)
names = st.lists(labels, min_size=1, max_size=4).map("/".join)
named_ops = st.lists(st.tuples(names, st.sampled_from(["A", "B"])), max_size=14)


@law(40)
@given(named_ops, named_ops, st.randoms())
def test_pairs_are_one_to_one_and_the_same_from_either_side_in_any_order(baseline, candidate, random):
    pairs = align_names(baseline, candidate)
    assert len(set(pairs.values())) == len(pairs)
    assert pairs.keys() <= {name for name, _ in candidate}
    assert set(pairs.values()) <= {name for name, _ in baseline}
    assert align_names(candidate, baseline) == {b: c for c, b in pairs.items()}
    random.shuffle(baseline)
    random.shuffle(candidate)
    assert align_names(baseline, candidate) == pairs


@law(40)
@given(named_ops, st.integers(1, 3))
def test_a_model_keeps_its_names_and_one_numbered_anew_pairs_whole(ops, step):
    assert align_names(ops, ops) == {name: name for name, _ in ops}
    moved = [("/".join(part.replace("dense", f"dense_{step + 7}", 1) for part in n.split("/")), t) for n, t in ops]
    pairs = align_names(ops, moved)
    assert {pairs.get(new) for new, _ in moved} == {old for old, _ in ops}


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("StatefulPartitionedCall/model/dense/MatMul", "model/dense/MatMul"),
        ("PartitionedCall_1/StatefulPartitionedCall/x", "x"),
        ("while/body/_12/model/dense/MatMul", "model/dense/MatMul"),
        (
            "while/body/_1/while/cond/then/_111/while/cond/StatefulPartitionedCall/gradient_tape/model/dense/MatMul",
            "gradient_tape/model/dense/MatMul",
        ),
        ("model/cond/else/_8/model/cond/MatMul", "model/cond/MatMul"),
        ("jit(step)/while/body/closed_call/jvp(model)/dense/dot_general", "jvp(model)/dense/dot_general"),
        ("jit(step)/jit(main)/while/body/dense/dot_general", "dense/dot_general"),
        ("model/while/body/dense/dot_general", "model/while/body/dense/dot_general"),
        ("model/lstm/while/body/_3/model/lstm/while/MatMul", "model/lstm/while/MatMul"),
        ("jit(f)/jit(main)/dense/dot_general", "dense/dot_general"),
        ("jit(f)/transpose(jvp(Dense))/dot_general", "transpose(jvp(Dense))/dot_general"),
        ("jit(f)/transpose(jvp(jvp()))/checkpoint/mlp/dot_general", "transpose(jvp(mlp))/dot_general"),
        ("jit(f)/transpose(jvp(jvp()))/checkpoint/jit(silu)/mul", "transpose(jvp(jit(silu)))/mul"),
        ("jit(f)/transpose(jvp(jvp()))/add_any", "transpose(jvp())/add_any"),
        ("jit(f)/transpose(jvp(layer_0))/jvp(layer_0)/checkpoint/mlp/mul", "transpose(jvp(layer_0))/mlp/mul"),
        ("jit(f)/transpose(jvp())/while/body/checkpoint/mlp/mul", "transpose(jvp())/while/body/mlp/mul"),
        (
            "jit(f)/transpose(jvp(jvp()))/checkpoint/rematted_computation/mlp/mul",  # work that is done twice
            "transpose(jvp(jvp()))/checkpoint/rematted_computation/mlp/mul",
        ),
        (
            "jit(f)/transpose(jvp(model))/layer_0/jvp(model)/layer_0/checkpoint/mlp/mul",
            "transpose(jvp(model))/layer_0/mlp/mul",
        ),
        ("jit(evaluate)/checkpoint/mlp/mul", "mlp/mul"),
        ("model/checkpoint/mul", "model/checkpoint/mul"),
        ("gradient_tape/compile_loss/mse/mul", "gradient_tape/mse/mul"),
        ("__inference_step_701", "__inference_step"),
        ("__inference_step_2_701", "__inference_step_2"),
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
