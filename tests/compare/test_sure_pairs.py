"""Which pairs of ops are sure enough for a verdict."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.model_family.family import compared, meaning
from tests.test_model_family import DOUBTFUL, RIGHT
from tfcompare.compare.matching.sure_pairs import are_sure
from tfcompare.compare.matching.tiers import EXACT, MANUAL, PROBABLE
from tfcompare.tables.op_evidence import OpEvidence


def row(name: str, candidate: str = "", *, kind: str = "MatMul", other: str = "", match: str = EXACT) -> pd.DataFrame:
    cells = {
        "op_name": name,
        "op_name_candidate": candidate or name,
        "op_type": kind,
        "op_type_candidate": other or kind,
    }
    return pd.DataFrame([cells | {"match": match}])


def is_sure(pair: pd.DataFrame, ours: list[str], theirs: list[str], *shapes: dict[str, str]) -> bool:
    evidence = [OpEvidence(frozenset(names), shapes[k] if shapes else {}) for k, names in enumerate((ours, theirs))]
    (found,) = are_sure(pair, (evidence[0], evidence[1]))
    return bool(found)


NAMES = ["op_name", "op_name_candidate"]
TWO, THREE = ["m/dense/MatMul", "m/dense_1/MatMul"], ["m/dense/MatMul", "m/dense_1/MatMul", "m/dense_2/MatMul"]


def test_a_number_says_nothing_where_the_family_has_another_size() -> None:
    pair = row("m/dense_1/MatMul")
    assert is_sure(pair, TWO, TWO)
    assert not is_sure(pair, TWO, THREE)
    assert not is_sure(pair, THREE, TWO)
    assert is_sure(row("m/head/MatMul"), ["m/head/MatMul", *TWO], ["m/head/MatMul", *THREE]), "another family"
    assert not is_sure(row("m/dense_1/MatMul", match=PROBABLE), TWO, TWO)
    assert is_sure(row("m/dense_1/MatMul", match=MANUAL), TWO, THREE)


def test_a_fusion_of_xla_is_no_pair_of_an_op_that_ran_by_itself() -> None:
    plain, fused = OpEvidence(frozenset({"m/Relu"})), OpEvidence(frozenset({"m/Relu"}), fusions=frozenset({"m/Relu"}))
    pair = row("m/Relu", kind="Relu")
    assert [bool(are_sure(pair, sides)[0]) for sides in ((plain, plain), (fused, fused))] == [True, True]
    assert [bool(are_sure(pair, sides)[0]) for sides in ((plain, fused), (fused, plain))] == [False, False]


def test_shapes_of_its_own_tell_which_member_it_is() -> None:
    ours = {"m/dense/MatMul": "8x4", "m/dense_1/MatMul": "8x2"}
    theirs = {"m/dense/MatMul": "8x4", "m/dense_1/MatMul": "8x8", "m/dense_2/MatMul": "8x2"}
    assert is_sure(row("m/dense_1/MatMul", "m/dense_2/MatMul"), TWO, THREE, ours, theirs)
    assert not is_sure(row("m/dense_1/MatMul"), TWO, THREE, ours, theirs), "8x2 is not 8x8"
    twice = theirs | {"m/dense_1/MatMul": "8x2"}
    assert not is_sure(row("m/dense_1/MatMul", "m/dense_2/MatMul"), TWO, THREE, ours, twice), "two have this shape"


@pytest.mark.parametrize(
    ("ours", "theirs", "sure"),
    [
        ("MatMul", "_MklMatMul", True),
        ("_MklNativeConv2D", "Conv2D", True),
        ("__inference_step_701", "__inference_step_95", True),
        ("MatMul", "_FusedMatMul", False),
        ("_MklNativeConv2DWithBias", "_FusedConv2D", True),
        ("Relu", "Tanh", False),
        ("Unknown", "Relu", True),
    ],
)
def test_types_may_differ_by_their_implementation_only(ours: str, theirs: str, sure: bool) -> None:
    assert is_sure(row("m/op", kind=ours, other=theirs), ["m/op"], ["m/op"]) is sure


CHOSEN = (("auto", "inserted"), ("branches", "branches_reordered"), ("explicit", "renamed"))
MODELS = [*DOUBTFUL, *((baseline, candidate) for baseline, candidate, _ in RIGHT)]


@pytest.mark.parametrize(
    "names", [pytest.param(names, marks=[] if names in CHOSEN else pytest.mark.thorough) for names in MODELS]
)
def test_of_recorded_models_no_sure_pair_is_wrong_and_most_that_are_right_are_sure(names: tuple[str, str]) -> None:
    comparison = compared(*names)
    rows = comparison.diffs("op_stats")
    rows = rows[(rows["status"] == "matched") & (rows["op_type"] != "IDLE")]
    evidence = [run.tables.op_evidence() for run in (comparison.baseline, *comparison.candidates)]
    sure = are_sure(rows, (evidence[0], evidence[1]))
    roles = [rows[column].map(lambda op, of=name: meaning(of, op)) for column, name in zip(NAMES, names, strict=True)]
    is_right = (roles[0] == roles[1]).to_numpy()
    assert not (sure & ~is_right).any(), rows.loc[sure & ~is_right, NAMES]
    if names not in DOUBTFUL and "fit" not in names:
        assert (sure & is_right).sum() > 0.9 * is_right.sum()
