from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tfcompare.compare.matching.name_tree import family
from tfcompare.compare.matching.names import align_names


def aligned(baseline: list[str], candidate: list[str], op_type: str = "MatMul") -> dict[str, str]:
    """Candidate name -> baseline name, of those pairs that are not each to itself."""
    pairs = align_names([(n, op_type) for n in baseline], [(n, op_type) for n in candidate])
    back = align_names([(n, op_type) for n in candidate], [(n, op_type) for n in baseline])
    assert {b: c for c, b in pairs.items()} == back, "the rules know no direction"
    return {c: b for c, b in pairs.items() if b != c}


def counterparts(baseline: list[str], candidate: list[str]) -> set[str]:
    """The candidate's names that pair with themselves."""
    return {c for c, b in align_names([(n, "") for n in baseline], [(n, "") for n in candidate]).items() if b == c}


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


def test_a_renamed_layer_pairs_with_all_its_ops():
    assert aligned(
        ["model/dense/MatMul", "model/dense/BiasAdd"], ["model/dense_3/MatMul", "model/dense_3/BiasAdd"]
    ) == {
        "model/dense_3/MatMul": "model/dense/MatMul",
        "model/dense_3/BiasAdd": "model/dense/BiasAdd",
    }


def test_a_model_built_a_second_time_by_keras_3_pairs_in_the_order_of_its_numbers():
    first = ["sequential_1/dense_1/MatMul", "sequential_1/dense_1_2/MatMul", "sequential_1/dense_2_1/MatMul"]
    second = ["sequential_1_1/dense_3_1/MatMul", "sequential_1_1/dense_4_1/MatMul", "sequential_1_1/dense_5_1/MatMul"]
    assert aligned(first, second) == dict(zip(second, first, strict=True))


def test_numbers_sort_as_numbers():
    first = [f"layer_{i}/MatMul" for i in range(12)]
    second = [f"layer_{i}/MatMul" for i in range(12, 24)]
    assert aligned(first, second) == dict(zip(second, first, strict=True))


def test_layers_that_moved_on_by_one_do_not_pair_with_their_namesakes():
    assert aligned(["m/dense/MatMul", "m/dense_1/MatMul"], ["m/dense_1/MatMul", "m/dense_2/MatMul"]) == {
        "m/dense_1/MatMul": "m/dense/MatMul",
        "m/dense_2/MatMul": "m/dense_1/MatMul",
    }


def test_namesakes_pair_where_moving_on_would_lose_ops():
    baseline = ["block/conv", "block/relu", "block_1/matmul", "block_1/add"]
    candidate = ["block_1/matmul", "block_1/add", "block_2/conv", "block_2/relu"]
    assert aligned(baseline, candidate) == {}
    assert counterparts(baseline, candidate) == {"block_1/matmul", "block_1/add"}


def test_namesakes_pair_where_the_numbers_have_gaps():
    baseline = [f"layer_{i}/MatMul" for i in range(8) if i != 2]
    candidate = [f"layer_{i}/MatMul" for i in range(8) if i != 5]
    assert aligned(baseline, candidate) == {}
    assert counterparts(baseline, candidate) == set(baseline) & set(candidate)


def test_one_renamed_layer_among_namesakes_pairs():
    assert aligned(["dense/MatMul", "dense_1/MatMul"], ["dense/MatMul", "dense_3/MatMul"]) == {
        "dense_3/MatMul": "dense_1/MatMul"
    }


def test_an_inserted_layer_folds_nothing():
    baseline = ["m/dense/MatMul", "m/dense_1/MatMul"]
    candidate = ["m/dense/MatMul", "m/dense_1/MatMul", "m/dense_2/MatMul"]
    assert aligned(baseline, candidate) == {}
    assert counterparts(baseline, candidate) == set(baseline)


def test_more_layers_of_other_names_pair_with_none():
    assert (
        align_names([("dense/MatMul", ""), ("dense_1/MatMul", "")], [(f"dense_{i}/MatMul", "") for i in (3, 4, 5)])
        == {}
    )


def test_gradients_take_the_pairing_of_the_forward_layers():
    forward = ["m/dense/MatMul", "m/dense_1/MatMul", "m/dense_2/MatMul"]
    moved = ["m/dense_3/MatMul", "m/dense_4/MatMul", "m/dense_5/MatMul"]
    # the first layer has no gradient in the baseline, the last has none in the candidate
    baseline = [*forward, "gradient_tape/m/dense_1/MatMul/MatMul", "gradient_tape/m/dense_2/MatMul/MatMul"]
    candidate = [*moved, "gradient_tape/m/dense_3/MatMul/MatMul", "gradient_tape/m/dense_4/MatMul/MatMul"]
    assert aligned(baseline, candidate) == {
        **dict(zip(moved, forward, strict=True)),
        "gradient_tape/m/dense_4/MatMul/MatMul": "gradient_tape/m/dense_1/MatMul/MatMul",
    }


def test_gradients_of_an_added_layer_pair_with_no_other_layer():
    baseline = ["dense/MatMul", "gradient_tape/dense/MatMul/MatMul"]
    candidate = ["dense/MatMul", "dense_1/MatMul", "gradient_tape/dense_1/MatMul/MatMul"]
    assert aligned(baseline, candidate) == {}
    assert counterparts(baseline, candidate) == {"dense/MatMul"}


def test_gradient_scopes_of_equal_name_pair_though_the_forward_op_is_gone():
    baseline = ["dense/MatMul", "dense/Relu", "gradient_tape/dense/MatMul/MatMul"]
    candidate = ["dense/Relu", "gradient_tape/dense/MatMul/MatMul"]
    assert counterparts(baseline, candidate) == set(candidate)


def test_gradients_of_tf1_and_below_a_wrapper():
    baseline = ["call/m/dense/MatMul", "call/gradients/m/dense/MatMul_grad/MatMul_1"]
    candidate = ["call/m/dense_3/MatMul", "call/gradients_1/m/dense_3/MatMul_grad/MatMul_1"]
    assert aligned(baseline, candidate) == dict(zip(candidate, baseline, strict=True))


def test_numbers_of_gradient_ops_are_their_own():
    baseline = ["Reshape", "gradient_tape/Reshape", "gradient_tape/Reshape_1"]
    candidate = ["Reshape_2", "gradient_tape/Reshape", "gradient_tape/Reshape_1"]
    assert aligned(baseline, candidate) == {"Reshape_2": "Reshape"}


def test_xla_fusions_pair_where_their_number_agrees():
    assert aligned(["fusion.5", "fusion.17"], ["fusion.102", "fusion.9"]) == {
        "fusion.9": "fusion.5",
        "fusion.102": "fusion.17",
    }
    assert align_names([("fusion.5", "")], [("fusion.9", ""), ("fusion.102", "")]) == {}


def test_addresses_pair_one_with_one_only():
    assert aligned(["op_0x7f01"], ["op_0x55aa"]) == {"op_0x55aa": "op_0x7f01"}
    assert aligned(["op_0x7f01", "op_0x7f02"], ["op_0x55aa", "op_0x55ab"]) == {}
    assert aligned(["op_0x1", "op_0x2"], ["op_0x1", "op_0x3"]) == {"op_0x3": "op_0x2"}


def test_traced_functions_pair_by_their_order():
    baseline = ["RemoteCall____inference__next_func_331", "RemoteCall____inference__next_func_441"]
    candidate = ["RemoteCall____inference__next_func_1007", "RemoteCall____inference__next_func_999"]
    assert aligned(baseline, candidate) == dict(zip(sorted(candidate, key=len), baseline, strict=True))


def test_a_name_with_thousands_of_scopes_is_no_trouble():
    deep = "/".join(["a"] * 5000)
    assert aligned([deep, "dense"], [deep, "dense_1"]) == {"dense_1": "dense"}


slowly = settings(deadline=None)
labels = st.builds(
    lambda base, numbers: base + "".join(f"_{n}" for n in numbers),
    st.sampled_from(["dense", "add", "gradient_tape", "gradients", "h_0xff"]),
    st.lists(st.integers(0, 3), max_size=2),
)
names = st.lists(labels, min_size=1, max_size=4).map("/".join)
named_ops = st.lists(st.tuples(names, st.sampled_from(["A", "B"])), max_size=14)


@slowly
@given(named_ops, named_ops)
def test_pairs_are_one_to_one_and_the_same_from_either_side(baseline, candidate):
    pairs = align_names(baseline, candidate)
    assert len(set(pairs.values())) == len(pairs)
    assert pairs.keys() <= {name for name, _ in candidate}
    assert set(pairs.values()) <= {name for name, _ in baseline}
    assert align_names(candidate, baseline) == {b: c for c, b in pairs.items()}


@slowly
@given(named_ops, named_ops, st.randoms())
def test_the_order_of_the_names_does_not_matter(baseline, candidate, random):
    pairs = align_names(baseline, candidate)
    random.shuffle(baseline)
    random.shuffle(candidate)
    assert align_names(baseline, candidate) == pairs


@slowly
@given(named_ops)
def test_a_run_beside_itself_keeps_its_names(ops):
    assert align_names(ops, ops) == {name: name for name, _ in ops}


@slowly
@given(named_ops, st.integers(1, 3))
def test_a_model_numbered_anew_pairs_whole(ops, step):
    moved = [("/".join(part.replace("dense", f"dense_{step + 7}", 1) for part in n.split("/")), t) for n, t in ops]
    pairs = align_names(ops, moved)
    assert {pairs.get(new) for new, _ in moved} == {old for old, _ in ops}
