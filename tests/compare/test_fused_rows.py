"""Ops that TensorFlow fused, compared with all that they were made of."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from tests.compare.compare_runs import FakeRun, run_of_series
from tests.test_known_truth import recorded
from tfcompare.compare.groups.aggregate import group_diff
from tfcompare.compare.groups.fused_rows import row_name, row_name_as_code
from tfcompare.compare.matching.fused import fused_product
from tfcompare.compare.matching.manual import ManualChoice
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import Comparison, compare
from tfcompare.run import Run
from tfcompare.tables.op_evidence import OpEvidence
from tfcompare.views import answer
from tfcompare.views.blocks import Facts
from tfcompare.views.candidates.figures import By, changes_by_run
from tfcompare.views.ops.figures import ops_of, sentence
from tfcompare.views.ops.op import details_of_row
from tfcompare.views.steps.attribution import attribution_of, within

PLAIN, FUSED = "layers_unfused", "layers_fused"
LAYERS = {
    "model/inside/Relu": ["model/inside/Conv2D:Conv2D", "model/inside/BiasAdd:BiasAdd", "model/inside/Relu:Relu"],
    "model/activation/Relu": ["model/apart/Conv2D:Conv2D", "model/apart/BiasAdd:BiasAdd", "model/activation/Relu:Relu"],
    "model/dense/Relu": ["model/dense/MatMul:MatMul", "model/dense/BiasAdd:BiasAdd", "model/dense/Relu:Relu"],
}
"""What each fused op of the recorded program was made of."""
METRIC = "self_time_us"

Line = tuple[str, str, float]
"""An op's type, name and self time a step, in the order in which they run."""


def made(name: str, *ops: Line, is_ordered: bool = True) -> FakeRun:
    """A run of 20 steps in which these host ops run, one after another."""
    noise = 1 + 0.01 * np.random.default_rng(len(ops)).standard_normal((len(ops), 20))
    times = [time_us * by / by.mean() for (*_, time_us), by in zip(ops, noise, strict=True)]
    series = {("Host", op_type, op): of_op for (op_type, op, _), of_op in zip(ops, times, strict=True)}
    found = run_of_series(name, series, step_us=50_000.0)
    places = {op: (i, i) for i, (_, op, _) in enumerate(ops)}
    found.evidence = OpEvidence(frozenset(places), places=places if is_ordered else {})
    return found


@cache
def layers(ours: str = PLAIN, theirs: str = FUSED) -> Comparison:
    return compare(recorded(ours), recorded(theirs))


def fused_rows(ours: FakeRun | Run, theirs: FakeRun | Run, *choices: ManualChoice) -> pd.DataFrame:
    """The rows matched as fused, by the baseline's name."""
    diff = compare(ours, theirs, manual_pairs={theirs.id: choices}).diffs("op_stats")  # type: ignore[arg-type, dict-item]
    return diff[diff["match"] == "fused"].set_index("op_name")


@pytest.mark.parametrize(("ours", "theirs"), [(PLAIN, FUSED), (FUSED, PLAIN)])
def test_each_recorded_layer_is_one_row_whichever_side_was_fused(ours: str, theirs: str) -> None:
    comparison = layers(ours, theirs)
    diff = comparison.diffs("op_stats")
    found = diff[diff["match"] == "fused"].set_index("op_name")
    plain = "baseline" if ours == PLAIN else "candidate"
    assert {name: list(parts) for name, parts in found[f"constituents_{plain}"].items()} == LAYERS
    assert (found["status"] == "matched").all()
    assert set(diff["status"]) == {"matched"}, "no part has a row of its own"
    assert (comparison.coverage()["matched_share"] > 0.99).all()
    for side, name in (("baseline", ours), ("candidate", theirs)):
        run = recorded(name)
        ops = run.tables.in_steps("op_stats").set_index(["op_name", "op_type"])
        times = ops["self_time_us"] / run.info.steps_included
        assert diff[f"{METRIC}_{side}"].sum() == pytest.approx(times.sum()), "the rows add up to the whole"
        for parts, sum_us in found[[f"constituents_{side}", f"{METRIC}_{side}"]].itertuples(index=False):
            assert sum_us == pytest.approx(sum(times[tuple(part.rsplit(":", 1))] for part in parts))
    arrow = "Conv2D + BiasAdd + Relu → _FusedConv2D" if ours == PLAIN else "_FusedConv2D → Conv2D + BiasAdd + Relu"
    assert found["op_type"]["model/inside/Relu"] == arrow


def test_recorded_layers_mirror_and_add_up_by_type_and_per_occurrence() -> None:
    one, other, same = (
        rows[rows["match"] == "fused"].set_index("op_name")
        for rows in (layers(*names).diffs("op_stats") for names in ((PLAIN, FUSED), (FUSED, PLAIN), (FUSED, FUSED)))
    )
    other = other.reindex(one.index)
    assert one[f"{METRIC}_delta"].tolist() == (-other[f"{METRIC}_delta"]).tolist()
    assert one["interval_low"].to_numpy() == pytest.approx(1 / other["interval_high"].to_numpy())
    assert same.empty
    comparison = layers()
    diff = comparison.diffs("op_stats")
    groups = group_diff(diff, "op_type", pair_with(comparison).group_verdicts)
    types = set(groups["op_type"])
    assert {"_FusedConv2D", "_FusedMatMul"} <= types and not {"Conv2D", "MatMul", "BiasAdd", "Relu"} & types
    assert groups[f"{METRIC}_baseline"].sum() == pytest.approx(diff[f"{METRIC}_baseline"].sum())
    each = comparison.diffs("op_stats", per_occurrence=True).set_index("op_name")
    by_type = pair_with(comparison).rows_per_occurrence(groups, "op_stats").set_index("op_type")
    ratio = "self_time_us_ratio"
    assert by_type.loc["_FusedMatMul", ratio] == pytest.approx(each.loc["model/dense/Relu", ratio])
    assert len(each) == len(diff)


@pytest.mark.parametrize(
    ("op_name", "op_type", "name", "as_markdown"),
    [
        ("m/d/Relu", "Relu", "m/d/Relu", "`m/d/Relu`"),
        (
            "m/d/BiasAdd",
            "MatMul + BiasAdd → _FusedMatMul",
            "m/d: MatMul + BiasAdd → _FusedMatMul",
            "`m/d`: MatMul + BiasAdd → \\_FusedMatMul",
        ),
        (
            "Relu",
            "_FusedConv2D → 2 × Conv2D + Relu",
            "Relu: _FusedConv2D → 2 × Conv2D + Relu",
            "`Relu`: \\_FusedConv2D → 2 × Conv2D + Relu",
        ),
    ],
)
def test_a_fused_row_is_called_after_its_layer_and_what_became_what(
    op_name: str, op_type: str, name: str, as_markdown: str
) -> None:
    assert row_name(op_name, op_type) == name
    assert row_name_as_code(op_name, op_type, 20) == as_markdown
    assert len(row_name_as_code("m/" * 99, f"{'A + ' * 999}B → C", 20)) < 250


@pytest.mark.parametrize(
    ("names", "types"), [((PLAIN, FUSED), "{} + BiasAdd + Relu → {}"), ((FUSED, PLAIN), "{1} → {0} + BiasAdd + Relu")]
)
def test_every_surface_says_what_became_what(names: tuple[str, str], types: str) -> None:
    pair = pair_with(layers(*names))
    dense, conv = (types.format(*both) for both in (("MatMul", "_FusedMatMul"), ("Conv2D", "_FusedConv2D")))
    facts = next(iter(answer.changes(pair, 0)))
    assert isinstance(facts, Facts)
    called = [f"model/activation: {conv}", f"model/dense: {dense}", f"model/inside: {conv}"]
    assert sorted(cells[0] for cells in facts.rows if "Fused" in cells[0]) == called
    assert sorted(one.label for one in facts.findings if "Fused" in one.label) == called
    found = next(one for one in facts.findings if one.label == called[1])
    assert facts.opens is not None and facts.opens.details is not None
    opened = facts.opens.details(found.id)
    assert opened is not None and opened.title == "model/dense/Relu"
    largest = row_name_as_code("model/activation/Relu", conv, 80)
    assert f"above all {largest}" in attribution_of(pair).sentence
    assert largest in within(pair, "host_compute_us").sentence
    assert f"Largest change: {largest} (" in sentence(ops_of(pair, idle=False), "step")
    rows = pair.diff()
    assert details_of_row(pair, rows[rows["op_name"] == "model/dense/Relu"].iloc[0]).title == called[1]


DENSE = [("MatMul", "m/dense/MatMul", 4000.0), ("BiasAdd", "m/dense/BiasAdd", 1000.0), ("Relu", "m/dense/Relu", 1000.0)]
ONE = ("_FusedMatMul", "m/dense/Relu", 3000.0)


def test_the_verdict_is_on_the_sums() -> None:
    """By name alone, the Relu would be three times as slow."""
    ours, theirs = made("plain", *DENSE), made("fused", ONE)
    row = fused_rows(ours, theirs).loc["m/dense/Relu"]
    assert row["verdict"] == "faster"
    assert row[f"{METRIC}_ratio"] == pytest.approx(0.5)
    assert row["interval_low"] < 0.5 < row["interval_high"]
    assert row["occurrences_baseline"] == 1, "the three ran once each"
    assert fused_rows(theirs, ours).loc["m/dense/Relu", "verdict"] == "slower"
    each = compare(ours, theirs).diffs("op_stats", per_occurrence=True).set_index("op_name").loc["m/dense/Relu"]  # type: ignore[arg-type]
    assert each[[f"self_time_us_{side}" for side in ("baseline", "candidate")]].tolist() == [6000, 3000]
    assert each["verdict"] == "faster", "it ran equally often on both sides"


def test_without_its_product_or_after_a_manual_choice_no_row_is_of_that_kind() -> None:
    ours, theirs = made("plain", *DENSE[1:]), made("fused", ONE)
    assert fused_rows(ours, theirs).empty
    diff = compare(ours, theirs).diffs("op_stats").set_index("op_name")  # type: ignore[arg-type]
    assert diff["verdict"]["m/dense/Relu"] == "untested"
    whole = made("plain", *DENSE)
    for is_pair, name in ((True, "m/dense/MatMul"), (False, "m/dense/Relu")):
        assert fused_rows(whole, theirs, ManualChoice(is_pair, (name,), ("m/dense/Relu",))).empty


def test_what_cannot_be_a_part_or_runs_elsewhere_keeps_its_row() -> None:
    more = [("Cast", "m/dense/Cast", 1.0), ("Mul", "m/scale/mul", 2.0), ("Relu", "m/other/Relu", 3.0)]
    early = ("Mul", "m/dense/mul", 5.0)
    ours, theirs = made("plain", early, *DENSE, *more), made("fused", ONE)
    (parts,) = fused_rows(ours, theirs)["constituents_baseline"]
    assert [part.partition(":")[0] for part in parts] == [name for _, name, _ in DENSE]
    diff = compare(ours, theirs).diffs("op_stats")  # type: ignore[arg-type]
    assert set(diff.loc[diff["status"] == "removed", "op_name"]) == {early[1], *(name for _, name, _ in more)}


def test_a_layer_with_another_scope_around_it_is_fused_as_any_other() -> None:
    ours = made("plain", *DENSE, ("Relu6", "m/head/q/Relu6", 9.0))
    theirs = made("fused", ("_FusedMatMul", "net/m/dense/Relu", 3000.0), ("Relu6", "net/m/head/q/Relu6", 9.0))
    row = fused_rows(ours, theirs).loc["m/dense/Relu"]
    assert row["op_name_candidate"] == "net/m/dense/Relu"
    assert row["op_type"] == "MatMul + BiasAdd + Relu → _FusedMatMul"


TWICE = [
    (kind, f"{name}{number}", time)
    for number in ("", "_1")
    for kind, name, time in [("MatMul", "MatMul", 40.0), ("BiasAdd", "BiasAdd", 10.0), ("Relu", "Relu", 10.0)]
]


def test_ops_without_scopes_are_told_apart_by_their_order_or_not_at_all() -> None:
    theirs = [("_FusedMatMul", "Relu", 30.0), ("_FusedMatMul", "Relu_1", 30.0)]
    found = fused_rows(made("plain", *TWICE), made("fused", *theirs))["constituents_baseline"]
    assert {name: parts[0] for name, parts in found.items()} == {"Relu": "MatMul:MatMul", "Relu_1": "MatMul_1:MatMul"}
    assert fused_rows(made("plain", *TWICE, is_ordered=False), made("fused", *theirs, is_ordered=False)).empty


def test_a_normalization_takes_the_activation_of_another_layer_that_became_an_identity() -> None:
    """As on GPUs: the fused op is named after the normalization, and `Identity` stays in the activation's place."""
    before = [
        ("FusedBatchNormV3", "m/bn/FusedBatchNormV3", 4000.0),
        ("AddV2", "m/add/add", 1000.0),
        ("Relu", "m/out/Relu", 1000.0),
        ("Relu", "m/later/Relu", 1000.0),
    ]
    after = [
        ("_FusedBatchNormEx", "m/bn/FusedBatchNormV3", 4000.0),
        ("Identity", "m/out/Relu", 10.0),
        ("Relu", "m/later/Relu", 1000.0),
    ]
    ours, theirs = made("plain", *before), made("fused", *after)
    (row,) = fused_rows(ours, theirs).itertuples()
    assert row.constituents_baseline == ("m/bn/FusedBatchNormV3:FusedBatchNormV3", "m/out/Relu:Relu")
    assert row.constituents_candidate == ("m/bn/FusedBatchNormV3:_FusedBatchNormEx", "m/out/Relu:Identity")
    for sides in ((ours, theirs), (theirs, ours)):
        types = set(group_diff(compare(*sides).diffs("op_stats"), "op_type")["op_type"])  # type: ignore[arg-type]
        assert "_FusedBatchNormEx" in types and "FusedBatchNormV3" not in types


def test_the_bias_of_a_gradient_is_found_beside_it() -> None:
    scope = "gradient_tape/m/conv"
    before = [
        ("Conv2DBackpropFilter", f"{scope}/convolution/Conv2DBackpropFilter", 40.0),
        ("BiasAddGrad", f"{scope}/BiasAdd/BiasAddGrad", 10.0),
    ]
    after = [("_MklNativeConv2DBackpropFilterWithBias", f"{scope}/convolution/Conv2DBackpropFilter", 30.0)]
    (parts,) = fused_rows(made("plain", *before), made("onednn", *after))["constituents_baseline"]
    assert len(parts) == 2


def test_the_type_names_the_product() -> None:
    products = {
        "_FusedMatMul": "MatMul",
        "_MklNativeFusedConv2D": "Conv2D",
        "_MklFusedBatchMatMulV2": "BatchMatMul",
        "_FusedDepthwiseConv2dNative": "DepthwiseConv2dNative",
        "_MklNativePadWithFusedConv2D": "Conv2D",
        "_MklNativeConv2DBackpropFilterWithBias": "Conv2DBackpropFilter",
        "_FusedBatchNormGradEx": "FusedBatchNormGrad",
        "FusedBatchNormV3": "",
        "_MklMatMul": "",
        "Relu": "",
    }
    assert {op_type: fused_product(op_type) for op_type in products} == products


def test_what_is_fused_in_one_way_here_and_in_another_there_is_left_apart() -> None:
    """No row may count twice."""
    ours = made("ours", ("Identity", "m/l1/MatMul", 53.5), ("_FusedMatMul", "m/l1/Relu", 29.0))
    theirs = made("theirs", ("_FusedMatMul", "m/l1/MatMul", 83.0), ("Identity", "m/l1/Relu", 32.3))
    diff = compare(ours, theirs).diffs("op_stats")  # type: ignore[arg-type]
    assert diff[f"{METRIC}_baseline"].sum() == pytest.approx(82.5)
    assert diff[f"{METRIC}_candidate"].sum() == pytest.approx(115.3)


@pytest.mark.parametrize("by", ["op_name", "op_type"])
def test_of_several_candidates_the_layer_is_one_row_whoever_fused_it(by: By) -> None:
    twice = [(op_type, name, 2 * time_us) for op_type, name, time_us in DENSE]
    comparison = compare(made("plain", *DENSE), made("fused", ONE), made("slow", *twice))  # type: ignore[arg-type]
    cells = changes_by_run(comparison.diffs("op_stats"), by)
    assert cells[["op_type", "candidate", "baseline_us", "candidate_us", "status"]].values.tolist() == [
        ["MatMul + BiasAdd + Relu", "fused", 6000.0, 3000.0, "matched"],
        ["MatMul + BiasAdd + Relu", "slow", 6000.0, 12000.0, "matched"],
    ]
