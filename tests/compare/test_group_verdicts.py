"""Verdicts on groups of ops and kernels: on what a group took in each step, added up over its rows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from compare_runs import Op, run, run_of_series

from tests.profiles import compared_runs
from tfcompare import compare
from tfcompare.compare.groups.aggregate import group_diff
from tfcompare.compare.groups.kernel_groups import KEYS, group_kernels
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import Spread
from tfcompare.comparison import Comparison

STEPS = 20
SPREAD = 0.002
TIME = "self_time_us"
VERDICT = ["interval_low", "interval_high", "verdict"]
Series = dict[Op, np.ndarray]


def noisy(mean: float, seed: int, noise: float = 0.005, count: int = STEPS) -> np.ndarray:
    return mean * np.exp(noise * np.random.default_rng(seed).standard_normal(count))


OPS = [
    # Where, type and name, and how long it takes before and after.
    ("Host", "Conv2D", "model/a/Conv2D", 100.0, 50.0),
    ("Host", "Conv2D", "model/b/Conv2D", 300.0, 75.0),
    ("Host", "Conv2D", "more/Conv2D", None, 25.0),
    ("Host", "Relu", "model/a/Relu", 50.0, 50.0),
    ("Host", "MatMul", "old/MatMul", 40.0, None),
    ("Host", "Tiny", "tiny/Tiny", 0.1, 0.3),
    ("Device", "MatMul", "model/d/MatMul", 80.0, 160.0),
]
BEFORE = {tuple(op): noisy(before, i) for i, (*op, before, _) in enumerate(OPS) if before}
AFTER = {tuple(op): noisy(after, 10 + i) for i, (*op, _, after) in enumerate(OPS) if after}


def of(before: Series = BEFORE, after: Series = AFTER, **options: object) -> Comparison:
    return compare(run_of_series("before", before), run_of_series("after", after), spread=SPREAD, **options)  # type: ignore[arg-type]


@cache
def usual() -> Comparison:
    return of(BEFORE, AFTER)


def groups_of(comparison: Comparison, by: str) -> pd.DataFrame:
    found = group_diff(comparison.diffs("op_stats"), by, pair_with(comparison).group_verdicts)  # type: ignore[arg-type]
    return found.set_index(["host_or_device", by])


def test_a_group_takes_in_a_step_what_its_rows_take_together_paired_or_not():
    groups = groups_of(usual(), "op_type")
    conv = groups.loc[("Host", "Conv2D")]
    assert conv[f"{TIME}_ratio"] == pytest.approx(0.375, rel=0.02)
    assert conv["verdict"] == "faster"
    assert set(usual().diffs("op_stats").set_index("op_name").loc[["more/Conv2D", "old/MatMul"], "match"].isna()) == {
        True
    }
    both = [
        [sum(times for (_, op_type, _), times in ops.items() if op_type == kind) for kind in ("Conv2D", "Relu")]
        for ops in (BEFORE, AFTER)
    ]
    device = "Device", "MatMul", "model/d/MatMul"
    tiny = "Host", "Tiny", "tiny/Tiny"
    ours, theirs = (np.array([*sums, ops[device], ops[tiny]]) for sums, ops in zip(both, (BEFORE, AFTER), strict=True))
    expected = ChangeTest(Spread(SPREAD, "", is_known=True)).rows([Times(ours)], [Times(theirs)])
    order = [("Host", "Conv2D"), ("Host", "Relu"), ("Device", "MatMul"), ("Host", "Tiny")]
    pd.testing.assert_frame_equal(groups.loc[order, VERDICT].reset_index(drop=True), expected[VERDICT])
    assert groups.loc[order, "verdict"].tolist() == ["faster", "same", "slower", "untested"]


def test_a_group_on_one_side_only_has_no_verdict():
    for comparison, status in ((usual(), "removed"), (of(AFTER, BEFORE), "added")):
        group = groups_of(comparison, "op_type").loc[("Host", "MatMul")]
        assert group["status"] == status and group[VERDICT].isna().all()


def test_a_group_of_one_row_is_judged_as_that_row():
    comparison = usual()
    rows = comparison.diffs("op_stats").set_index(["host_or_device", "op_name"])
    groups = groups_of(comparison, "op_name")
    pd.testing.assert_frame_equal(groups[VERDICT].sort_index(), rows[VERDICT].sort_index())
    assert groups["interval_low"].notna().sum() == 4


def test_a_group_whose_steps_do_not_bear_out_the_number_on_display_is_not_tested():
    """Much of the type's time lies outside of the steps, so the ratio on display is another than that of the steps."""
    conv = "Host", "Conv2D", "model/a/Conv2D"
    outside = compare(
        run_of_series("before", BEFORE, outside_us={conv: 40_000.0}), run_of_series("after", AFTER), spread=SPREAD
    )
    assert groups_of(outside, "op_type").loc[("Host", "Conv2D"), "verdict"] == "untested"
    rows = outside.diffs("op_stats").set_index("op_name")
    assert rows.loc["model/a/Conv2D", "verdict"] == "untested"
    assert rows.loc["model/a/Relu", "verdict"] == "same"


def test_shown_per_run_a_group_has_the_verdict_on_its_time_per_step():
    longer = {op: np.concatenate([times, times]) for op, times in AFTER.items()}
    per_step, per_run = (groups_of(of(BEFORE, longer, per=per), "op_type") for per in ("step", "run"))
    assert per_run.loc[("Host", "Conv2D"), "self_time_us_ratio"] == pytest.approx(0.75, rel=0.02)
    pd.testing.assert_frame_equal(per_step[VERDICT].sort_index(), per_run[VERDICT].sort_index())
    assert per_run.loc[("Host", "Conv2D"), "verdict"] == "faster"


def test_each_candidate_is_a_family_of_its_own():
    comparison = compare(
        run_of_series("before", BEFORE), run_of_series("after", AFTER), run_of_series("copy", BEFORE), spread=SPREAD
    )
    for candidate, series in (("after", AFTER), ("copy", BEFORE)):
        alone = groups_of(
            compare(run_of_series("before", BEFORE), run_of_series(candidate, series), spread=SPREAD), "op_type"
        )
        pair = pair_with(comparison, candidate)
        here = group_diff(pair.diff(), "op_type", pair.group_verdicts).set_index(["host_or_device", "op_type"])
        pd.testing.assert_frame_equal(here[VERDICT], alone[VERDICT])


@pytest.mark.parametrize("by", ["op_name", "op_type", "scope"])
def test_too_few_steps_or_none_test_no_group(by: str):
    short = {op: times[:8] for op, times in AFTER.items()}
    unmarked = run_of_series("after", AFTER)
    unmarked.info.has_steps = False
    for after in (run_of_series("after", short), unmarked):
        groups = groups_of(compare(run_of_series("before", BEFORE), after, spread=SPREAD), by)
        matched = groups[groups["status"] == "matched"]
        assert set(matched["verdict"]) == {"untested"}
        assert matched["interval_low"].isna().all()


def test_without_a_judge_a_group_is_same_only_where_all_its_rows_are():
    diff = usual().diffs("op_stats")
    groups = group_diff(diff, "scope").set_index(["host_or_device", "scope"])
    assert groups.loc[("Host", "model/a"), "verdict"] == "untested"
    assert "interval_low" not in groups


def test_every_node_of_the_tree_has_a_verdict_on_the_time_below_it():
    comparison = usual()
    tree = scope_tree(comparison.diffs("op_stats"), judge=pair_with(comparison).group_verdicts).set_index("node")
    shown = tree[f"{TIME}_candidate"] / tree[f"{TIME}_baseline"]
    tested = tree[tree["interval_low"].notna()]
    middle = np.sqrt(tested["interval_low"] * tested["interval_high"])
    assert middle.to_numpy() == pytest.approx(shown[tested.index].to_numpy())
    words = tree["verdict"].fillna("").to_dict()
    assert {node: words[node] for node in ("Host", "Host/model", "Host/model/a", "Host/old", "Host/tiny")} == {
        "Host": "faster",
        "Host/model": "faster",
        "Host/model/a": "faster",
        "Host/old": "",
        "Host/tiny": "untested",
    }
    assert words["Device"] == words["Device/model/d/MatMul"] == "slower"


def test_the_tree_of_nothing_has_no_verdicts_to_give():
    comparison = compare(run("a"), run("b"))
    assert scope_tree(comparison.diffs("op_stats"), judge=pair_with(comparison).group_verdicts).empty
    assert group_diff(comparison.diffs("op_stats"), "op_type", pair_with(comparison).group_verdicts).empty
    assert group_kernels(comparison.diffs("kernel_stats"), "op_name", pair_with(comparison).group_verdicts).empty


def every_grouping(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """All groups of a comparison, each with the `ratio` on display and what tells it apart as its index."""
    ops, kernels = comparison.diffs("op_stats"), comparison.diffs("kernel_stats")
    found = {by: groups_of(comparison, by) for by in ("op_name", "op_type", "scope")}
    found = {by: groups.assign(ratio=groups[f"{TIME}_ratio"]) for by, groups in found.items()}
    tree = scope_tree(ops, judge=pair_with(comparison).group_verdicts).set_index("node")
    found["tree"] = tree.assign(ratio=tree[f"{TIME}_candidate"] / tree[f"{TIME}_baseline"].where(lambda us: us > 0))
    for by, keys in KEYS.items():
        groups = group_kernels(kernels, by, pair_with(comparison).group_verdicts).set_index(keys)
        found[f"kernels {by}"] = groups.assign(ratio=groups["total_duration_us_ratio"])
    return found | {
        "ops": ops.assign(ratio=ops[f"{TIME}_ratio"]),
        "kernels": kernels.assign(ratio=kernels["total_duration_us_ratio"]),
    }


PAIRS = [
    ("gpu_filters_512_128", "gpu_filters_16_8"),
    pytest.param("workers_balanced", "workers_slow_input", marks=pytest.mark.thorough),
    pytest.param("tf_cpu_base", "filters_16_8", marks=pytest.mark.thorough),
    pytest.param("h100_store_activations", "h100_recompute_activations", marks=pytest.mark.thorough),
    pytest.param("tensorflow_filters_16_8", "jax_filters_16_8", marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_on_real_pairs_the_ratio_on_display_lies_in_the_interval_and_mirrors(one: str, other: str):
    comparison = compared_runs(one, other)
    assert comparison.per == "step"
    for groups in every_grouping(comparison).values():
        tested = groups[groups["interval_low"].notna()]
        assert (tested["ratio"] >= tested["interval_low"] * (1 - 1e-6)).all()
        assert (tested["ratio"] <= tested["interval_high"] * (1 + 1e-6)).all()
        assert set(tested["verdict"]) <= {"faster", "slower", "same", "unclear"}
        untested = groups[groups["interval_low"].isna()]
        assert set(untested["verdict"].dropna()) <= {"untested"}
        assert (untested["verdict"].isna() == (untested["status"] != "matched")).all()
        assert (tested.loc[tested["verdict"] == "faster", "ratio"] < 1).all()
        assert (tested.loc[tested["verdict"] == "slower", "ratio"] > 1).all()
    there, again = (groups_of(both, "op_type") for both in (comparison, compared_runs(other, one)))
    again, turned = again.loc[there.index], {"faster": "slower", "slower": "faster"}
    assert there["verdict"].fillna("").tolist() == again["verdict"].fillna("").replace(turned).tolist()
    assert there["interval_low"].to_numpy() == pytest.approx(1 / again["interval_high"].to_numpy(), nan_ok=True)


def test_a_run_compared_with_itself_is_the_same_in_every_group():
    found = every_grouping(compared_runs("gpu_filters_16_8", "gpu_filters_16_8"))
    for groups in found.values():
        assert set(groups["verdict"]) <= {"same"}
    assert len(found["op_type"])
