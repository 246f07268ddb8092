"""Renamed and inserted layers: what pairs by place or likeness, held against pairs that are known to be true."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from compare_runs import named, op_stats, ops, run
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.profiles import loaded_run
from tfcompare.compare import compare
from tfcompare.compare.matching.matching import pair_rows
from tfcompare.compare.matching.sequences import agreed_alignment
from tfcompare.compare.matching.tiers import PROBABLE, STRUCTURAL
from tfcompare.schema import IDLE, OP_STATS

LAYERS = ["encoder_outer_1", "encoder_inner_1", "decoder_inner_1", "decoder_outer_1", "image_1"]
WORDS = ["alpha", "bottleneck", "conv_a", "enc", "out", "stem", "up_b", "x3", "head", "block_e", "proj", "dec_outer"]
NOISE = 0.1


def renamed(frame: pd.DataFrame, labels: dict[str, str]) -> pd.DataFrame:
    """The frame with each component of its op names renamed as `labels` says, in gradients too."""
    names = ["/".join(labels.get(part, part) for part in name.split("/")) for name in frame["op_name"]]
    return frame.assign(op_name=pd.Series(names, index=frame.index, dtype="str"))


def recorded_again(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The frame's rows in another order and with other times, as another recording would have them."""
    rng = np.random.default_rng(seed)
    times = [c for c in frame.columns if c.endswith("_us")]
    noise = np.exp(rng.normal(0, NOISE, len(frame)))
    return frame.assign(**{c: frame[c] * noise for c in times}).sample(frac=1, random_state=seed, ignore_index=True)


def diff(before: pd.DataFrame, after: pd.DataFrame, table: str = "op_stats") -> pd.DataFrame:
    ours, theirs = run("before"), run("after")
    ours.frames[table], theirs.frames[table] = before, after
    return compare(ours, theirs).table(table)


def pairs(before: pd.DataFrame, after: pd.DataFrame) -> set[tuple[str, str, str]]:
    """(baseline's name, candidate's, tier), empty where a side has no such row. Swapped sides give the mirror image."""
    forth, back = one_way(before, after), one_way(after, before)
    assert sorted(forth) == sorted((b, c, tier) for c, b, tier in back)
    return set(forth)


def one_way(before: pd.DataFrame, after: pd.DataFrame) -> list[tuple[str, str, str]]:
    """As `pairs`, one for each row of the diff."""
    pairing = pair_rows(OP_STATS, before, after)
    ours, theirs = (
        [side["op_name"].iloc[row] if row >= 0 else "" for row in rows]
        for side, rows in ((before, pairing.baseline), (after, pairing.candidate))
    )
    return [(b, c, tier or "") for b, c, tier in zip(ours, theirs, pairing.match, strict=True)]


def matched_share(rows: pd.DataFrame, metric: str) -> float:
    sides = rows[[f"{metric}_per_step_{side}" for side in ("baseline", "candidate")]].astype("float64")
    return float(sides[rows["status"] == "matched"].sum().sum() / sides.sum().sum())


def busy(name: str, table: str = "op_stats") -> pd.DataFrame:
    frame = loaded_run(name).table(table)
    return frame[frame["op_type"] != IDLE] if "op_type" in frame else frame


def other_labels(seed: int) -> dict[str, str]:
    chosen = random.Random(seed).sample(WORDS, len(LAYERS))
    return dict(zip(LAYERS, chosen, strict=True)) | {"autoencoder_1": "model"}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["filters_16_8", "filters_512_128", "filters_16_8_simulated"])
def test_a_model_whose_layers_were_all_renamed_pairs_whole_and_right(name: str, seed: int) -> None:
    before = busy(name)
    labels = other_labels(seed)
    rows = diff(before, recorded_again(renamed(before, labels), seed))
    true_names = renamed(rows, labels)["op_name"]
    there = rows["status"] == "matched"
    assert (rows["op_name_candidate"] == true_names)[there].all()
    assert matched_share(rows, "self_time_us") >= 0.98
    assert set(rows["match"][there & (rows["op_name"] != rows["op_name_candidate"])]) <= {STRUCTURAL, PROBABLE}
    assert set(rows["match"][there & (rows["op_name"] == rows["op_name_candidate"])]) == {"exact"}


@pytest.mark.parametrize("seed", range(3))
def test_kernels_of_renamed_layers_pair_through_their_ops(seed: int) -> None:
    before = busy("filters_16_8_simulated", "kernel_stats")
    labels = other_labels(seed)
    rows = diff(before, recorded_again(renamed(before, labels), seed), "kernel_stats")
    there = rows["status"] == "matched"
    assert (rows["op_name_candidate"] == renamed(rows, labels)["op_name"])[there].all()
    assert (rows["kernel_name_candidate"] == rows["kernel_name"])[there].all()
    assert matched_share(rows, "total_duration_us") >= 0.98


def with_layer(frame: pd.DataFrame, original: str, copy: str) -> pd.DataFrame:
    """The frame with all ops of one layer a second time, as another layer."""
    is_of = frame["op_name"].str.split("/").map(lambda parts: original in parts)
    return pd.concat([frame, renamed(frame[is_of], {original: copy})], ignore_index=True)


@pytest.mark.parametrize("original", LAYERS)
def test_of_a_layer_put_in_exactly_its_ops_are_added(original: str) -> None:
    before = busy("filters_16_8")
    rows = diff(before, recorded_again(with_layer(before, original, "extra"), 1))
    alone = rows[rows["status"] != "matched"]
    assert set(alone["status"]) == {"added"}
    assert all("extra" in name.split("/") for name in alone["op_name_candidate"])
    assert set(rows["match"].dropna()) == {"exact"}
    assert (rows["status"] == "matched").sum() == len(before)


@pytest.mark.parametrize("place", [0, 1, 3, 4])
def test_layers_that_an_inserted_one_moved_on_by_a_number_stay_themselves(place: int) -> None:
    """As TensorFlow numbers: conv2d … conv2d_4, then a copy behind one of them, so that those after it move on.

    Not behind the third: it holds the same as the fourth, so nothing tells which of the three then is new.
    """
    numbers = ["conv2d", *(f"conv2d_{i}" for i in range(1, 6))]
    before = busy("filters_16_8")
    after = with_layer(before, LAYERS[place], "extra")
    moved = [*LAYERS[: place + 1], "extra", *LAYERS[place + 1 :]]
    first, second = dict(zip(LAYERS, numbers, strict=False)), dict(zip(moved, numbers, strict=True))
    rows = diff(renamed(before, first), recorded_again(renamed(after, second), 1))
    there = rows["status"] == "matched"
    truth = {first[layer]: second[layer] for layer in LAYERS}
    assert (rows["op_name_candidate"] == renamed(rows, truth)["op_name"])[there].all()
    assert set(rows["status"]) == {"matched", "added"}
    assert there.sum() == len(before)


def test_of_equal_layers_with_one_put_in_between_as_many_as_before_are_paired() -> None:
    layers = "m/dense/MatMul", "m/dense_1/MatMul", "m/dense_2/MatMul", "m/dense_3/MatMul"
    assert pairs(named(*layers[:3]), named(*layers)) == {
        *((name, name, "probable") for name in layers[:3]),
        ("", layers[3], ""),
    }


def test_layers_renamed_and_one_put_in() -> None:
    before = busy("filters_16_8")
    labels = dict(zip(LAYERS, ["enc_outer", "enc_inner", "dec_inner", "dec_outer", "out"], strict=True))
    rows = diff(before, recorded_again(renamed(with_layer(before, "image_1", "extra"), labels), 2))
    there = rows["status"] == "matched"
    assert (rows["op_name_candidate"] == renamed(rows, labels)["op_name"])[there].sum() >= 0.98 * there.sum()
    assert all(
        {"extra", "out"} & set(name.split("/")) for name in rows.loc[rows["status"] == "added", "op_name_candidate"]
    )


def test_a_renamed_layer_pairs_by_what_it_holds() -> None:
    before = ops("""
        Host MatMul  m/first/MatMul   1 10
        Host Relu    m/first/Relu     1 1
        Host MatMul  m/second/MatMul  1 10
        Host Softmax m/second/Softmax 1 1
    """)
    after = ops("""
        Host MatMul  m/a/MatMul  1 10
        Host Relu    m/a/Relu    1 1
        Host MatMul  m/b/MatMul  1 10
        Host Softmax m/b/Softmax 1 1
    """)
    assert pairs(before, after) == {
        ("m/first/MatMul", "m/a/MatMul", "structural"),
        ("m/first/Relu", "m/a/Relu", "structural"),
        ("m/second/MatMul", "m/b/MatMul", "structural"),
        ("m/second/Softmax", "m/b/Softmax", "structural"),
    }


def test_layers_that_hold_the_same_are_told_apart_by_time_and_only_as_a_guess() -> None:
    before = ops("""
        Host MatMul  m/short/MatMul  1 10
        Host MatMul  m/long/MatMul   1 50
    """)
    after = ops("""
        Host MatMul  m/a/MatMul  1 51
        Host MatMul  m/b/MatMul  1 11
    """)
    assert pairs(before, after) == {
        ("m/short/MatMul", "m/b/MatMul", "probable"),
        ("m/long/MatMul", "m/a/MatMul", "probable"),
    }


def test_what_nothing_tells_apart_is_not_paired() -> None:
    layers = "Host MatMul m/{0}/MatMul 1 10\nHost MatMul m/{1}/MatMul 1 10"
    found = pairs(ops(layers.format("query", "key")), ops(layers.format("a", "b")))
    assert {tier for *_, tier in found} == {""}


def test_blocks_renamed_at_every_level_pair_by_type_and_nesting() -> None:
    shape = "Host MatMul m/{0}/{1}/MatMul 1 9\nHost Softmax m/{0}/{1}/Softmax 1 9\nHost Relu m/{0}/{2}/Relu 1 9"
    found = pairs(ops(shape.format("block", "attention", "mlp")), ops(shape.format("layer", "heads", "feed")))
    assert found == {
        ("m/block/attention/MatMul", "m/layer/heads/MatMul", "structural"),
        ("m/block/attention/Softmax", "m/layer/heads/Softmax", "structural"),
        ("m/block/mlp/Relu", "m/layer/feed/Relu", "structural"),
    }


def test_numbered_layers_of_another_name_pair_in_their_order() -> None:
    found = pairs(named(*(f"m/dense_{i}/MatMul" for i in range(12))), named(*(f"m/fc_{i}/MatMul" for i in range(12))))
    assert found == {(f"m/dense_{i}/MatMul", f"m/fc_{i}/MatMul", "structural") for i in range(12)}


def test_gradients_follow_a_renamed_layer() -> None:
    layers = [("Conv2D", "{}/conv"), ("BiasAdd", "{}/bias"), ("Conv2DBackpropFilter", "gradient_tape/{}/conv/back")]
    before, after = (op_stats([("Host", t, n.format(layer), 1, 5.0) for t, n in layers]) for layer in ("a", "b"))
    assert {tier for *_, tier in pairs(before, after)} == {"structural"}


def test_an_op_that_moved_to_another_scope_is_a_guess() -> None:
    before = ops("Host MatMul net/tower/dense/MatMul 4 10")
    after = ops("Host MatMul net/dense/MatMul 4 10")
    assert pairs(before, after) == {("net/tower/dense/MatMul", "net/dense/MatMul", "probable")}


def test_a_scope_that_only_wraps_does_not_count() -> None:
    before = ops("Host MatMul jit(f)/jit(main)/dense/MatMul 4 10")
    after = ops("Host MatMul jit(f)/dense/MatMul 4 10")
    assert pairs(before, after) == {("jit(f)/jit(main)/dense/MatMul", "jit(f)/dense/MatMul", "canonical")}


def test_two_models_that_have_nothing_in_common_but_types_do_not_pair() -> None:
    before = ops("Host BiasAdd sequential/dense/BiasAdd 40 10\nHost Cast Cast 3 1")
    after = ops("Host BiasAdd resnet/block/conv/BiasAdd 22 90\nHost Cast normalize/to_float 3 1")
    assert {tier for *_, tier in pairs(before, after)} == {""}


@pytest.mark.parametrize(
    "name_of",
    [
        lambda i: f"model/layer{i}x/op",
        lambda i: f"op_{i}",
        lambda i: f"scope_{i % 97}/{'abcdefghij'[i % 10]}{i}z/op",
        lambda i: "/".join(f"s{(i >> bit) & 1}_{bit}" for bit in range(14)),
    ],
)
def test_thousands_of_names_that_changed_pair_one_to_one(name_of: Callable[[int], str]) -> None:
    before, after = (
        op_stats([("Host", f"T{i % 40}", f"{prefix}{name_of(i)}{suffix}", 1, float(i)) for i in range(3_000)])
        for prefix, suffix in (("", ""), ("", "q"))
    )
    rows = diff(before, after)
    there = rows[rows["status"] == "matched"]
    assert there["op_name"].is_unique
    assert there["op_name_candidate"].is_unique
    assert (rows["status"] != "added").sum() == (rows["status"] != "removed").sum() == 3_000


slowly = law(15)
parts = st.sampled_from(["a", "b", "dense", "dense_1", "dense_2", "fc", "fc_1", "gradient_tape", "conv"])
names = st.lists(parts, min_size=1, max_size=4).map("/".join)
frames = st.lists(
    st.tuples(st.just("Host"), st.sampled_from(["MatMul", "Relu"]), names, st.integers(1, 3), st.floats(1, 100)),
    max_size=14,
    unique_by=lambda row: (row[1], row[2]),
).map(op_stats)


@slowly
@given(frames, frames)
def test_swapped_sides_mirror_and_no_row_has_two_partners(before: pd.DataFrame, after: pd.DataFrame) -> None:
    pairs(before, after)
    pairing = pair_rows(OP_STATS, before, after)
    for rows, side in ((pairing.baseline, before), (pairing.candidate, after)):
        assert sorted(rows[rows >= 0]) == list(range(len(side)))
    both = (pairing.baseline >= 0) & (pairing.candidate >= 0)
    assert ([tier is not None for tier in pairing.match] == both).all()


@slowly
@given(frames, frames, st.integers(0, 5))
def test_the_order_of_the_rows_does_not_matter(before: pd.DataFrame, after: pd.DataFrame, seed: int) -> None:
    turned = [side.sample(frac=1, random_state=seed, ignore_index=True) for side in (before, after)]
    assert sorted(one_way(before, after)) == sorted(one_way(*turned))


@slowly
@given(frames)
def test_a_run_beside_itself_is_exact(frame: pd.DataFrame) -> None:
    assert {tier for *_, tier in one_way(frame, frame)} <= {"exact"}


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


def test_iterators_below_an_inserted_transformation_are_the_same_ones_in_op_stats() -> None:
    before = "Host Dataset Iterator::Root::Map 20 500\n Host Dataset Iterator::Root::Map::Shuffle 20 300"
    after = before.replace("Root::", "Root::Prefetch::FiniteTake::") + (
        "\n Host Dataset Iterator::Root::Prefetch 20 5\n Host Dataset Iterator::Root::Prefetch::FiniteTake 20 5"
    )
    layers = "\n Host MatMul m/dense/MatMul 20 700"
    diff = compare(run("loop", ops(before + layers)), run("fit", ops(after + layers))).table("op_stats")
    paired = diff[diff["status"] == "matched"].set_index("op_name")["op_name_candidate"].to_dict()
    inserted = "Iterator::Root::Prefetch::FiniteTake::"
    assert paired == {
        "m/dense/MatMul": "m/dense/MatMul",
        "Iterator::Root::Map": f"{inserted}Map",
        "Iterator::Root::Map::Shuffle": f"{inserted}Map::Shuffle",
    }
    assert set(diff.loc[diff["op_type"] == "Dataset", "match"].dropna()) == {"structural"}
    assert set(diff.loc[diff["status"] == "added", "op_name"]) == {
        inserted.removesuffix("::"),
        "Iterator::Root::Prefetch",
    }
