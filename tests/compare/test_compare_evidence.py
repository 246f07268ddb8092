"""Shapes and order beside names: which members of a family of numbered layers or ops are which."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import pytest
from compare_runs import named, ops

from tfcompare.compare.matching.matching import pair_rows
from tfcompare.schema import OP_STATS
from tfcompare.tables.op_evidence import OpEvidence

Shapes = Mapping[str, str]


def pairs(before: pd.DataFrame, after: pd.DataFrame, ours: OpEvidence, theirs: OpEvidence) -> set[tuple[str, str, str]]:
    """(baseline's name, candidate's, tier), empty where a side has no such row. Swapped sides give the mirror image."""
    forth, back = one_way(before, after, (ours, theirs)), one_way(after, before, (theirs, ours))
    assert forth == {(b, c, tier) for c, b, tier in back}
    return forth


def one_way(
    before: pd.DataFrame, after: pd.DataFrame, evidence: tuple[OpEvidence, OpEvidence]
) -> set[tuple[str, str, str]]:
    found = pair_rows(OP_STATS, before, after, evidence=evidence)
    ours, theirs = (
        [side["op_name"].iloc[row] if row >= 0 else "" for row in rows]
        for side, rows in ((before, found.baseline), (after, found.candidate))
    )
    return {(b, c, tier or "") for b, c, tier in zip(ours, theirs, found.match, strict=True)}


def layers(*shapes: str) -> tuple[pd.DataFrame, OpEvidence]:
    """Dense layers as Keras numbers them, by the shapes of what they make."""
    names = [f"m/dense{f'_{i}' if i else ''}/MatMul" for i in range(len(shapes))]
    return named(*names), OpEvidence(shapes=dict(zip(names, shapes, strict=True)))


def compared(ours: tuple[str, ...], theirs: tuple[str, ...]) -> set[tuple[str, str, str]]:
    (before, known), (after, known_after) = layers(*ours), layers(*theirs)
    found = pairs(before, after, known, known_after)
    return {(b.removeprefix("m/").removesuffix("/MatMul"), c[2:-7] if c else "", tier) for b, c, tier in found}


def test_shapes_say_which_layer_was_inserted() -> None:
    assert compared(("[8,1]", "[8,2]", "[8,3]"), ("[8,1]", "[8,9]", "[8,2]", "[8,3]")) == {
        ("dense", "dense", "exact"),
        ("dense_1", "dense_2", "canonical"),
        ("dense_2", "dense_3", "canonical"),
        ("", "dense_1", ""),
    }


def test_a_removed_layer_and_one_put_in_elsewhere_are_a_guess_at_most() -> None:
    assert compared(("[8,1]", "[8,2]", "[8,3]"), ("[8,1]", "[8,3]", "[8,4]")) == {
        ("dense", "dense", "exact"),
        ("dense_2", "dense_1", "canonical"),
        ("dense_1", "dense_2", "probable"),
    }


def test_layers_that_became_narrower_stay_exact() -> None:
    same = {(name, name, "exact") for name in ("dense", "dense_1", "dense_2")}
    assert compared(("[8,512]", "[8,128]", "[8,64]"), ("[8,16]", "[8,8]", "[8,4]")) == same


def test_layers_built_in_another_order_pair_by_their_shapes() -> None:
    assert compared(("[8,1]", "[8,2]"), ("[8,2]", "[8,1]")) == {
        ("dense", "dense_1", "canonical"),
        ("dense_1", "dense", "canonical"),
    }


@pytest.mark.parametrize("shape", ["", "[8,8]"])
def test_without_a_difference_an_inserted_layer_makes_namesakes_doubtful(shape: str) -> None:
    tiers = {tier for *_, tier in compared((shape,) * 2, (shape,) * 3)}
    assert tiers == {"probable", ""}


def test_ops_without_shapes_are_doubtful_beside_ops_that_were_renumbered() -> None:
    before = named("adam/Square", "adam/Square_1", "adam/Pow", "adam/Pow_1", "adam/Once")
    ours, theirs = (
        OpEvidence(shapes=dict(zip(["adam/Square", "adam/Square_1"], shapes, strict=True)))
        for shapes in (("[4]", "[9]"), ("[9]", "[4]"))
    )
    assert pairs(before, before, ours, theirs) == {
        ("adam/Square", "adam/Square_1", "canonical"),
        ("adam/Square_1", "adam/Square", "canonical"),
        ("adam/Pow", "adam/Pow", "probable"),
        ("adam/Pow_1", "adam/Pow_1", "probable"),
        ("adam/Once", "adam/Once", "exact"),
    }


def places(*names: str) -> OpEvidence:
    return OpEvidence(places={name: (i, i) for i, name in enumerate(names)})


def test_layers_that_look_alike_and_run_in_the_other_order_are_doubtful() -> None:
    first, second = "m/dense/MatMul", "m/dense_1/MatMul"
    before = named(first, second)
    assert {tier for *_, tier in pairs(before, before, places(first, second), places(second, first))} == {"probable"}
    assert {tier for *_, tier in pairs(before, before, places(first, second), places(first, second))} == {"exact"}


def test_an_order_that_is_not_the_same_in_all_steps_is_no_evidence() -> None:
    first, second = "m/dense/MatMul", "m/dense_1/MatMul"
    before = named(first, second)
    at_random = OpEvidence(places={first: (0, 1), second: (0, 1)})
    assert {tier for *_, tier in pairs(before, before, places(second, first), at_random)} == {"exact"}


def test_renamed_layers_that_hold_the_same_pair_in_the_order_in_which_they_run() -> None:
    ours, theirs = ["m/z/MatMul", "m/a/MatMul"], ["m/query/MatMul", "m/key/MatMul"]
    found = pairs(named(*ours), named(*theirs), places(*ours), places(*theirs))
    assert found == {(b, c, "structural") for b, c in zip(ours, theirs, strict=True)}


def test_nothing_is_guessed_across_two_scopes_that_are_paired() -> None:
    before = ops("Host MatMul a/x/MatMul 1 10\nHost Relu a/same 1 1\nHost Relu b/same 1 1")
    after = ops("Host MatMul b/x/MatMul 1 10\nHost Relu a/same 1 1\nHost Relu b/same 1 1")
    nothing = OpEvidence()
    assert pairs(before, after, nothing, nothing) == {
        ("a/same", "a/same", "exact"),
        ("b/same", "b/same", "exact"),
        ("a/x/MatMul", "", ""),
        ("", "b/x/MatMul", ""),
    }
