"""How rows pair, tier by tier, and which pairs are sure enough, compared with every assignment there is."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from compare_runs import FakeRun, diff, run, table
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.model_family.family import compared, meaning
from tests.test_model_family import DOUBTFUL, RIGHT
from tfcompare.compare.matching.guesses import MARGIN, assign, names_apart
from tfcompare.compare.matching.sure_pairs import are_sure
from tfcompare.compare.matching.tiers import EXACT, MANUAL, PROBABLE
from tfcompare.comparison import compare
from tfcompare.tables.op_evidence import OpEvidence


def pairs(rows: pd.DataFrame, key: str, other: str) -> set[tuple[str, str, str, str]]:
    """(baseline's key, candidate's key, status, tier); the absent side's is empty."""
    ours = rows[key].where(rows["status"] != "added", "")
    theirs = rows[other].where(rows["status"] != "removed", "")
    return set(zip(ours, theirs, rows["status"], rows["match"].fillna(""), strict=True))


def test_kernels_pair_by_launch_then_by_another_spelling_then_by_their_place() -> None:
    before = table(
        "kernel_stats",
        kernel_name=["k", "void f<int>(float*)", "big", "twice", "twice", "gone"],
        op_name=["a", "b", "c", "d", "d", "e"],
        grid_dim=["1,1,1", "2,1,1", "64,1,1", "1,1,1", "2,1,1", "1,1,1"],
    )
    after = table(
        "kernel_stats",
        kernel_name=["k", "f<int>(float*, long)", "big", "twice", "twice", "new"],
        op_name=["a", "b", "c", "d", "d", "f"],
        grid_dim=["1,1,1", "2,1,1", "8,1,1", "3,1,1", "4,1,1", "1,1,1"],
    )
    rows = diff("kernel_stats", before, after)
    assert pairs(rows, "kernel_name", "kernel_name_candidate") == {
        ("k", "k", "matched", "exact"),
        ("void f<int>(float*)", "f<int>(float*, long)", "matched", "canonical"),
        ("big", "big", "matched", "structural"),
        ("twice", "", "removed", ""),
        ("", "twice", "added", ""),
        ("gone", "", "removed", ""),
        ("", "new", "added", ""),
    }
    big = rows[rows["match"] == "structural"].iloc[0]
    assert (big["grid_dim"], big["grid_dim_candidate"]) == ("64,1,1", "8,1,1")


def test_registers_that_no_side_tells_are_equal() -> None:
    kernels = table("kernel_stats", kernel_name=["k", "k"], registers_per_thread=[None, 16])
    assert diff("kernel_stats", kernels, kernels)["match"].tolist() == ["exact", "exact"]


def test_memory_of_another_shape_is_the_same_memory_grown() -> None:
    sizes = {"memory_id": ["GPU"] * 3, "op_name": ["conv", "bias", "old"]}
    before = table("memory_peak", **sizes, shape=["[512]", "[8]", "[1]"], allocation_bytes=[4000, 32, 1])
    after = table("memory_peak", **sizes, shape=["[16]", "[8]", "[1]"], allocation_bytes=[5000, 16, 1])
    rows = diff("memory_peak", before, after).set_index("op_name")
    assert rows["match"].to_dict() == {"conv": "structural", "bias": "exact", "old": "exact"}
    assert rows["verdict"].to_dict() == {"conv": "more", "bias": "less", "old": "same"}
    assert rows.loc["conv", "shape_candidate"] == "[16]"
    assert rows.loc["conv", "allocation_bytes_delta"] == 1000


def test_bytes_are_judged_and_times_are_not() -> None:
    memory = table("memory_summary", memory_id=["GPU"], peak_bytes=[10])
    more = table("memory_summary", memory_id=["GPU"], peak_bytes=[11])
    assert diff("memory_summary", memory, more)["verdict"].tolist() == ["more"]
    assert diff("memory_summary", more, memory)["verdict"].tolist() == ["less"]
    assert diff("memory_summary", memory, table("memory_summary", memory_id=["CPU"])).isna()["verdict"].all()
    kernels = table("kernel_stats", kernel_name=["k"], total_duration_us=[5.0])
    assert diff("kernel_stats", kernels, kernels)["verdict"].tolist() == ["untested"]


@pytest.mark.parametrize(("per", "before", "after"), [("step", 2.5, 1.0), ("run", 10, 4)])
def test_sums_are_put_per_step_and_levels_are_not(per: str, before: float, after: float) -> None:
    ours, theirs = run("before", step_count=4), run("after", step_count=4)
    for each, count in ((ours, 10), (theirs, 4)):
        each.frames["memory_summary"] = table(
            "memory_summary", memory_id=["GPU"], allocations=[count], peak_bytes=[100]
        )
    row = compare(ours, theirs, per=per).table("memory_summary").iloc[0]
    name = "allocations_per_step" if per == "step" else "allocations"
    assert (row[f"{name}_baseline"], row[f"{name}_candidate"]) == (before, after)
    assert (row["peak_bytes_baseline"], row["peak_bytes_ratio"]) == (100, 1.0)


def test_each_host_of_the_candidate_stands_beside_its_counterpart() -> None:
    ours: FakeRun = run("before", hosts=("a", "b"))
    theirs: FakeRun = run("after", hosts=("b", "a"))
    ours.frames["copies"] = table("copies", host=["a", "b"], kind=["peer", "peer"], duration_us=[1.0, 2.0])
    theirs.frames["copies"] = table("copies", host=["b", "a"], kind=["peer", "peer"], duration_us=[2.0, 1.0])
    assert (compare(ours, theirs).table("copies")["duration_us_per_step_delta"] == 0).all()


def test_allocations_pair_by_op_before_shape() -> None:
    """With half the filters, the kernel of one side has the shape that the bias had, and is no bias."""
    op = {"op_name": ["conv"] * 2, "memory_id": ["gpu"] * 2, "region_type": ["output"] * 2, "data_type": ["float"] * 2}
    before = table("memory_peak", **op, shape=["[64,16]", "[16]"], allocation_bytes=[4096, 64])
    after = table("memory_peak", **op, shape=["[16]", "[4]"], allocation_bytes=[64, 16])
    rows = diff("memory_peak", before, after)
    assert pairs(rows, "shape", "shape_candidate") == {
        ("[64,16]", "[16]", "matched", "structural"),
        ("[16]", "[4]", "matched", "structural"),
    }
    less = table("memory_peak", **{key: texts[:1] for key, texts in op.items()}, shape=["[16]"], allocation_bytes=[64])
    assert pairs(diff("memory_peak", before, less), "shape", "shape_candidate") == {
        ("[64,16]", "", "removed", ""),
        ("[16]", "[16]", "matched", "exact"),
    }
    forged = table("memory_peak", **op, shape=[f"[{'9' * 5000}]", "[]"], allocation_bytes=[1, 1])
    assert set(diff("memory_peak", forged, forged)["status"]) == {"matched"}


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


LIMIT = 0.5


@st.composite
def differences(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    cells = draw(st.lists(st.integers(0, 10), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.array(cells).reshape(shape) / 20  # none beyond the limit, so that every assignment is allowed


def assignments(apart: np.ndarray) -> list[tuple[float, set[tuple[int, int]]]]:
    """Every assignment of the shorter side, with its total."""
    rows, columns = apart.shape
    if rows > columns:
        return [(total, {(i, j) for j, i in pairs}) for total, pairs in assignments(apart.T)]
    all_pairs = [set(enumerate(chosen)) for chosen in permutations(range(columns), rows)]
    return [(float(sum(apart[i, j] for i, j in pairs)), pairs) for pairs in all_pairs]


@law(40)
@given(differences())
def test_a_pair_counts_if_every_assignment_without_it_is_worse(apart: np.ndarray) -> None:
    rows, columns = apart.shape
    names = [f"a{i}" for i in range(rows)], [f"b{j}" for j in range(columns)]
    every = assignments(apart)
    best = min(total for total, _ in every)
    sure = {
        (i, j)
        for i in range(rows)
        for j in range(columns)
        if min((total for total, pairs in every if (i, j) not in pairs), default=np.inf) >= best + MARGIN - 1e-9
    }
    assert set(assign(apart, names, LIMIT)) == sure
    assert {(i, j) for j, i in assign(apart.T, names[::-1], LIMIT)} == sure


def test_what_is_too_far_apart_is_no_pair() -> None:
    assert assign(np.array([[0.6]]), (["a"], ["b"]), LIMIT) == []
    assert assign(np.array([[0.1, 0.6], [0.6, 0.7]]), (["a", "b"], ["c", "d"]), LIMIT) == [(0, 0)]


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("dense/MatMul", "dense_7/MatMul", 0.0),
        ("encoder_outer", "enc_outer", 0.5),
        ("query", "key", 1.0),
        ("BatchNorm", "batch_norm", 0.0),
        ("123", "456", 1.0),
    ],
)
def test_names_are_apart_by_the_words_they_do_not_share(one: str, other: str, apart: float) -> None:
    assert names_apart([one], [other]).tolist() == [[apart]]
