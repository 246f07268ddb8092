"""Renamed and inserted layers: what pairs by place, by likeness, and by shapes and order beside names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from compare_runs import diff, mirrored_pairs, named, op_stats, paired_names, table
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.matching.name_tree import agreed_alignment
from tfcompare.tables.op_evidence import OpEvidence


def side(text: str) -> pd.DataFrame:
    """Ops on the host from `type name time`, separated by commas."""
    kinds_names_times = (op.split() for op in text.split(", "))
    return op_stats([("Host", kind, name, 20, float(time)) for kind, name, time in kinds_names_times])


def told(found: set[tuple[str, str, str]]) -> set[str]:
    """The pairs as `baseline = candidate tier`, what has none as `baseline = -` or `- = candidate`."""
    return {f"{ours or '-'} = {theirs or '-'} {tier}".rstrip() for ours, theirs, tier in found}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # Of equal layers with one put in, as many as before are paired.
        (
            "MatMul m/d/x 10, MatMul m/d_1/x 11, MatMul m/d_2/x 12",
            "MatMul m/d/x 10, MatMul m/d_1/x 11, MatMul m/d_2/x 12, MatMul m/d_3/x 13",
            "m/d/x = m/d/x probable, m/d_1/x = m/d_1/x probable, m/d_2/x = m/d_2/x probable, - = m/d_3/x",
        ),
        # A renamed layer pairs by what it holds, blocks renamed at every level by type and nesting,
        (
            "MatMul m/one/x 10, Relu m/one/r 1, MatMul m/two/x 10, Softmax m/two/s 1",
            "MatMul m/a/x 10, Relu m/a/r 1, MatMul m/b/x 10, Softmax m/b/s 1",
            "m/one/x = m/a/x structural, m/one/r = m/a/r structural, m/two/x = m/b/x structural, "
            "m/two/s = m/b/s structural",
        ),
        (
            "MatMul m/block/attention/x 9, Softmax m/block/attention/s 9, Relu m/block/mlp/r 9",
            "MatMul m/layer/heads/x 9, Softmax m/layer/heads/s 9, Relu m/layer/feed/r 9",
            "m/block/attention/x = m/layer/heads/x structural, m/block/attention/s = m/layer/heads/s structural, "
            "m/block/mlp/r = m/layer/feed/r structural",
        ),
        # and layers that hold the same by their time, only as a guess.
        (
            "MatMul m/short/x 10, MatMul m/long/x 50",
            "MatMul m/a/x 51, MatMul m/b/x 11",
            "m/short/x = m/b/x probable, m/long/x = m/a/x probable",
        ),
        # What nothing tells apart is not paired, nor what has nothing in common but types.
        (
            "MatMul m/query/x 10, MatMul m/key/x 10",
            "MatMul m/a/x 10, MatMul m/b/x 10",
            "m/query/x = -, m/key/x = -, - = m/a/x, - = m/b/x",
        ),
        (
            "BiasAdd net/dense/Add 10, Cast Cast 1",
            "BiasAdd resnet/block/conv/Add 90, Cast norm/to_float 1",
            "net/dense/Add = -, Cast = -, - = resnet/block/conv/Add, - = norm/to_float",
        ),
        # Nothing is guessed across two scopes that are paired.
        (
            "MatMul a/x/MatMul 10, Relu a/same 1, Relu b/same 1",
            "MatMul b/x/MatMul 10, Relu a/same 1, Relu b/same 1",
            "a/same = a/same exact, b/same = b/same exact, a/x/MatMul = -, - = b/x/MatMul",
        ),
        # In another scope it is a guess, unless the scope only wraps.
        ("MatMul net/tower/dense/x 10", "MatMul net/dense/x 10", "net/tower/dense/x = net/dense/x probable"),
        ("MatMul jit(f)/jit(main)/d/x 10", "MatMul jit(f)/d/x 10", "jit(f)/jit(main)/d/x = jit(f)/d/x canonical"),
        # Iterators below an inserted transformation are the same ones.
        (
            "Dataset Iterator::Root::Map 500, Dataset Iterator::Root::Map::Shuffle 300, MatMul m/x 700",
            "Dataset Iterator::Root::Take::Map 500, Dataset Iterator::Root::Take::Map::Shuffle 300, MatMul m/x 700, "
            "Dataset Iterator::Root::Take 5",
            "Iterator::Root::Map = Iterator::Root::Take::Map structural, m/x = m/x exact, - = Iterator::Root::Take, "
            "Iterator::Root::Map::Shuffle = Iterator::Root::Take::Map::Shuffle structural",
        ),
    ],
)
def test_what_pairs_by_place_or_likeness(before: str, after: str, expected: str) -> None:
    assert told(mirrored_pairs(side(before), side(after))) == set(expected.split(", "))


def test_numbered_layers_of_another_name_pair_in_their_order() -> None:
    found = mirrored_pairs(
        named(*(f"m/dense_{i}/MatMul" for i in range(12))), named(*(f"m/fc_{i}/MatMul" for i in range(12)))
    )
    assert found == {(f"m/dense_{i}/MatMul", f"m/fc_{i}/MatMul", "structural") for i in range(12)}


def test_gradients_follow_a_renamed_layer() -> None:
    layers = [("Conv2D", "{}/conv"), ("BiasAdd", "{}/bias"), ("Conv2DBackpropFilter", "gradient_tape/{}/conv/back")]
    before, after = (op_stats([("Host", t, n.format(layer), 1, 5.0) for t, n in layers]) for layer in ("a", "b"))
    assert {tier for *_, tier in mirrored_pairs(before, after)} == {"structural"}


ENCODER = "MatMul {}enc_0/q/MatMul 9, Softmax {}enc_0/Softmax 2, MatMul {}enc_1/q/MatMul 8, Softmax {}enc_1/Softmax 1"
BLOCKS = "Conv2D b_0/{}conv/Conv2D 9, Relu b_0/{}conv/Relu 2, Conv2D b_1/{}conv/Conv2D 9, Relu b_1/{}conv/Relu 2"
BACK = f"{ENCODER}, MatMul gradient_tape/{{}}enc_0/q/back 7, MatMul gradient_tape/{{}}enc_1/q/back 5"
BESIDE = ", MatMul head/MatMul 3, Cast Cast 1"


def below(model: str, *scopes: str, more: str = "") -> list[str]:
    """The ops of a model with each of these scopes around its layers."""
    return [part for scope in scopes for part in (model.replace("{}", scope) + more).split(", ")]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (below(ENCODER, "", more=BESIDE), below(ENCODER, "encoder/", more=BESIDE)),
        (below(ENCODER, "m/"), below(ENCODER, "m/encoder/")),
        (below(ENCODER, ""), below(ENCODER, "net/encoder/")),
        (below(ENCODER, "modelA/", more=BESIDE), below(ENCODER, "net/", more=BESIDE)),
        (below(BLOCKS, ""), below(BLOCKS, "inner/")),
        (below(BACK, ""), below(BACK, "encoder/")),
        (below(BACK, ""), [op.replace("enc_0", "enc_4").replace("enc_1", "enc_5") for op in below(BACK, "encoder/")]),
        (below(ENCODER, "jit(f)/jvp(a)/"), below(ENCODER, "jit(f)/jvp(b)/")),
    ],
)
def test_layers_with_another_scope_around_them_are_the_same(ours: list[str], theirs: list[str]) -> None:
    found = mirrored_pairs(side(", ".join(ours)), side(", ".join(theirs)))
    names = ([op.split()[1] for op in ops] for ops in (ours, theirs))
    assert found == {(b, c, "exact" if b == c else "structural") for b, c in zip(*names, strict=True)}


def test_layers_with_another_scope_around_them_have_their_kernels_and_memory() -> None:
    names = [[op.split()[1] for op in below(ENCODER, scope)] for scope in ("", "encoder/")]
    for name, columns in (
        ("kernel_stats", {"kernel_name": ["gemm"] * 4, "total_duration_us": [9.0, 2.0, 8.0, 1.0]}),
        ("memory_peak", {"shape": ["[8]"] * 4, "allocation_bytes": [32, 32, 32, 32]}),
    ):
        rows = diff(name, *(table(name, op_name=of_side, **columns) for of_side in names))
        found = set(zip(rows["op_name"], rows["op_name_candidate"], rows["match"], strict=True))
        assert found == {(*pair, "structural") for pair in zip(*names, strict=True)}, name


def test_in_the_tree_of_scopes_layers_stand_where_the_baseline_has_them() -> None:
    rows = diff("op_stats", side(", ".join(below(ENCODER, ""))), side(", ".join(below(ENCODER, "encoder/"))))
    assert set(scope_tree(rows)["status"]) == {"matched"}
    assert "Host/encoder" not in set(scope_tree(rows)["node"])


@pytest.mark.parametrize(
    ("ours", "theirs", "tier"),
    [
        # Which layer is new is a guess, and so is a model that shares no more than half with the other.
        (
            below(ENCODER, "modelA/"),
            [*below(ENCODER, "net/"), "MatMul net/enc_2/q/MatMul 8", "Softmax net/enc_2/Softmax 1"],
            "probable",
        ),
        (
            [*below(ENCODER, "a/"), *(f"Relu a/x_{i}/Relu 1" for i in range(3))],
            [*below(ENCODER, "b/"), *(f"Tanh b/y_{i}/Tanh 1" for i in range(3))],
            "probable",
        ),
        (
            [*below(ENCODER, "a/"), *(f"Relu a/x_{i}/Relu 1" for i in range(5))],
            [*below(ENCODER, "b/"), *(f"Tanh b/y_{i}/Tanh 1" for i in range(5))],
            "",
        ),
        # What could be either of two scopes is neither.
        (below(ENCODER, ""), below(ENCODER, "encoder/", "decoder/"), ""),
    ],
)
def test_less_evidence_is_a_guess_and_two_candidates_are_none(ours: list[str], theirs: list[str], tier: str) -> None:
    found = mirrored_pairs(side(", ".join(ours)), side(", ".join(theirs)))
    assert {match for b, _, match in found if "enc_0/q" in b} == {tier}


CONV = "Conv2D {0}/{1}/Conv2D 10, BiasAdd {0}/{1}/BiasAdd 1"
IN_BLOCKS = ", ".join(CONV.format(f"m/block_{i}", "{}") for i in range(3))


@pytest.mark.parametrize(
    "model",
    [
        *(CONV.format("m", "{}"), IN_BLOCKS, "Conv2D m/{} 10, Relu m/end 1", CONV.format("m/{}", "conv")),
        CONV.format("m", "{}_1"),
    ],
)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        *(("conv1x1", "conv3x3"), ("res3x3a", "res5x5a"), ("Conv_1x1", "Conv_3x3"), ("cast_fp16", "cast_fp32")),
        *(("int8", "int4"), ("conv2d", "conv3d"), ("block_v1", "block_v2"), ("mixed_3b", "mixed_4b")),
    ],
)
def test_names_with_other_digits_that_mean_something_are_other_layers(model: str, ours: str, theirs: str) -> None:
    found = mirrored_pairs(side(model.replace("{}", ours)), side(model.replace("{}", theirs)))
    assert {(b, c) for b, c, _ in found if ours in b or theirs in c} & {(b, c) for b, c, _ in found if b and c} == set()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        *(("conv2d_1", "conv2d_4"), ("dense.3", "dense.5"), ("layers_0", "layers_2"), ("block12", "block14")),
        *(("conv1x1_1", "conv1x1_3"), ("conv1x1", "shortcut"), ("conv", "conv2d")),
    ],
)
def test_counters_and_other_names_are_renamed_layers(ours: str, theirs: str) -> None:
    found = mirrored_pairs(side(CONV.format("m", ours)), side(CONV.format("m", theirs)))
    assert {bool(tier) for *_, tier in found} == {True}


def test_models_of_two_versions_with_the_same_layers_are_one_model() -> None:
    found = mirrored_pairs(side(", ".join(below(ENCODER, "model_v1/"))), side(", ".join(below(ENCODER, "model_v2/"))))
    assert {tier for *_, tier in found} == {"structural"}
    a_layer = [side(CONV.format(f"model_v{n}", "conv")) for n in (1, 2)]
    assert {tier for *_, tier in mirrored_pairs(*a_layer)} == {""}


def test_a_thousand_names_that_changed_pair_one_to_one() -> None:
    names = [f"scope_{i % 97}/{'abcdefghij'[i % 10]}{i}z/op" for i in range(1_000)]
    before, after = (
        op_stats([("Host", f"T{i % 40}", f"{prefix}{name}{suffix}", 1, float(i)) for i, name in enumerate(names)])
        for prefix, suffix in (("", ""), ("", "q"))
    )
    rows = diff("op_stats", before, after)
    there = rows[rows["status"] == "matched"]
    assert there["op_name"].is_unique and there["op_name_candidate"].is_unique
    assert (rows["status"] != "added").sum() == (rows["status"] != "removed").sum() == 1_000


parts = st.sampled_from(["a", "b", "dense", "dense_1", "dense_2", "fc", "fc_1", "gradient_tape", "conv"])
names = st.lists(parts, min_size=1, max_size=4).map("/".join)
frames = st.lists(
    st.tuples(st.just("Host"), st.sampled_from(["MatMul", "Relu"]), names, st.integers(1, 3), st.floats(1, 100)),
    max_size=14,
    unique_by=lambda row: (row[1], row[2]),
).map(op_stats)


@law(8)
@given(frames, frames, st.integers(0, 5))
def test_swapped_sides_mirror_in_any_order_and_no_row_has_two_partners(
    before: pd.DataFrame, after: pd.DataFrame, seed: int
) -> None:
    forth, back = paired_names(before, after), paired_names(after, before)
    assert sorted(forth) == sorted((ours, theirs, tier) for theirs, ours, tier in back)
    for i, side in enumerate((before, after)):
        assert sorted(pair[i] for pair in forth if pair[i]) == sorted(side["op_name"])
    assert all(bool(tier) == bool(ours and theirs) for ours, theirs, tier in forth)
    turned = [side.sample(frac=1, random_state=seed, ignore_index=True) for side in (before, after)]
    assert sorted(forth) == sorted(paired_names(*turned))
    assert {tier for *_, tier in paired_names(before, before)} <= {"exact"}


@pytest.mark.parametrize(
    ("gains", "agreed"),
    [
        ([[1, 0], [0, 1]], [(0, 0), (1, 1)]),
        ([[1, 1]], []),
        ([[0, 1], [1, 0]], []),
        ([[2, 1], [1, 0]], [(0, 0)]),
        ([[1, 0, 0], [0, 0, 1]], [(0, 0), (1, 2)]),
        ([[1, 1, 0], [0, 0, 1]], [(1, 2)]),
    ],
)
def test_an_alignment_claims_what_all_the_best_agree_on(gains: list[list[int]], agreed: list[tuple[int, int]]) -> None:
    assert agreed_alignment(np.array(gains)) == agreed


# --- shapes and order beside names


def layers(shapes: str) -> tuple[pd.DataFrame, OpEvidence]:
    """Dense layers as Keras numbers them, by the shapes of what they make."""
    names = [f"d_{i}/x" for i in range(len(shapes.split()))]
    return named(*names), OpEvidence(shapes=dict(zip(names, shapes.replace("-", "").split(" "), strict=True)))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        # Shapes say which layer was inserted, and which is which if they were built in another order.
        ("1 2 3", "1 9 2 3", "0 = 0 exact, 1 = 2 canonical, 2 = 3 canonical, - = 1"),
        ("1 2", "2 1", "0 = 1 canonical, 1 = 0 canonical"),
        # One removed and one put in elsewhere are a guess at most; layers that became narrower stay exact.
        ("1 2 3", "1 3 4", "0 = 0 exact, 2 = 1 canonical, 1 = 2 probable"),
        ("512 128 64", "16 8 4", "0 = 0 exact, 1 = 1 exact, 2 = 2 exact"),
        # Without a difference, an inserted one makes namesakes doubtful.
        ("8 8", "8 8 8", "0 = 0 probable, 1 = 1 probable, - = 2"),
        ("- -", "- - -", "0 = 0 probable, 1 = 1 probable, - = 2"),
    ],
)
def test_shapes_say_which_layer_is_which(ours: str, theirs: str, expected: str) -> None:
    (before, known), (after, known_after) = layers(ours), layers(theirs)
    found = told(mirrored_pairs(before, after, (known, known_after)))
    assert {pair.replace("d_", "").replace("/x", "") for pair in found} == set(expected.split(", "))


def test_ops_without_shapes_are_doubtful_beside_ops_that_were_renumbered() -> None:
    before = named("a/Square", "a/Square_1", "a/Pow", "a/Pow_1", "a/Once")
    ours, theirs = (OpEvidence(shapes={"a/Square": one, "a/Square_1": other}) for one, other in ("49", "94"))
    assert told(mirrored_pairs(before, before, (ours, theirs))) == {
        "a/Square = a/Square_1 canonical",
        "a/Square_1 = a/Square canonical",
        "a/Pow = a/Pow probable",
        "a/Pow_1 = a/Pow_1 probable",
        "a/Once = a/Once exact",
    }


def places(*names: str) -> OpEvidence:
    return OpEvidence(places={name: (i, i) for i, name in enumerate(names)})


FIRST, SECOND = "m/dense/MatMul", "m/dense_1/MatMul"


@pytest.mark.parametrize(
    ("theirs", "tier"),
    [
        (places(FIRST, SECOND), "exact"),
        (places(SECOND, FIRST), "probable"),
        # An order that is not the same in all steps is no evidence.
        (OpEvidence(places={FIRST: (0, 1), SECOND: (0, 1)}), "exact"),
    ],
)
def test_layers_that_look_alike_and_run_in_the_other_order_are_doubtful(theirs: OpEvidence, tier: str) -> None:
    both = named(FIRST, SECOND)
    assert {tier for *_, tier in mirrored_pairs(both, both, (places(FIRST, SECOND), theirs))} == {tier}


def test_renamed_layers_that_hold_the_same_pair_in_the_order_in_which_they_run() -> None:
    ours, theirs = ["m/z/MatMul", "m/a/MatMul"], ["m/query/MatMul", "m/key/MatMul"]
    found = mirrored_pairs(named(*ours), named(*theirs), (places(*ours), places(*theirs)))
    assert found == {(b, c, "structural") for b, c in zip(ours, theirs, strict=True)}
