"""Verdicts on groups of ops and kernels: on what a group took in each step, added up over its rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from compare_runs import FakeRun, op_stats, run, steps

from tests.profiles import EACH_KIND, compared_runs, loaded_run
from tfcompare import compare
from tfcompare.compare import Comparison
from tfcompare.compare.groups.aggregate import group_diff
from tfcompare.compare.groups.kernel_groups import KEYS, group_kernels
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.spread import Spread
from tfcompare.tables.step_cells import StepCells

STEPS = 20
SPREAD = 0.002
TIME = "self_time_us_per_step"
VERDICT = ["interval_low", "interval_high", "verdict"]
Op = tuple[str, str, str]
Series = dict[Op, np.ndarray]


def noisy(mean: float, seed: int, noise: float = 0.005, count: int = STEPS) -> np.ndarray:
    return mean * np.exp(noise * np.random.default_rng(seed).standard_normal(count))


def made(run_id: str, series: Series, outside: dict[Op, float] | None = None) -> FakeRun:
    """A run of these ops (side, type, name) with their times in each step, and with what they took outside of steps."""
    more = outside or {}
    rows = [(*op, len(times), float(times.sum()) + more.get(op, 0.0)) for op, times in series.items()]
    count = max(len(times) for times in series.values())
    fake = run(run_id, op_stats(rows), step_frame=steps([1000.0] * count), step_count=count)
    keys = fake.frames["op_stats"][["host", "host_or_device", "op_type", "op_name"]]
    cells = [
        pd.DataFrame({"row": row, "step": range(len(times)), "occurrences": 1, "time_us": times})
        for row, times in enumerate(series.values())
    ]
    fake.cells["op_stats"] = StepCells(keys, pd.concat(cells, ignore_index=True))
    return fake


BEFORE = {
    ("Host", "Conv2D", "model/a/Conv2D"): noisy(100.0, 1),
    ("Host", "Conv2D", "model/b/Conv2D"): noisy(300.0, 2),
    ("Host", "Relu", "model/a/Relu"): noisy(50.0, 3),
    ("Host", "MatMul", "old/MatMul"): noisy(40.0, 4),
    ("Host", "Tiny", "tiny/Tiny"): noisy(0.1, 5),
    ("Device", "MatMul", "model/d/MatMul"): noisy(80.0, 6),
}
AFTER = {
    ("Host", "Conv2D", "model/a/Conv2D"): noisy(50.0, 11),
    ("Host", "Conv2D", "model/b/Conv2D"): noisy(75.0, 12),
    ("Host", "Conv2D", "more/Conv2D"): noisy(25.0, 14),
    ("Host", "Relu", "model/a/Relu"): noisy(50.0, 13),
    ("Host", "Tiny", "tiny/Tiny"): noisy(0.3, 15),
    ("Device", "MatMul", "model/d/MatMul"): noisy(160.0, 16),
}


def of(before: Series = BEFORE, after: Series = AFTER, **options: object) -> Comparison:
    return compare(made("before", before), made("after", after), spread=SPREAD, **options)  # type: ignore[arg-type]


def groups_of(comparison: Comparison, by: str) -> pd.DataFrame:
    found = group_diff(comparison.table("op_stats"), by, comparison.group_verdicts)  # type: ignore[arg-type]
    return found.set_index(["host_or_device", by])


def test_a_group_takes_in_a_step_what_its_rows_take_together_paired_or_not():
    groups = groups_of(of(), "op_type")
    conv = groups.loc[("Host", "Conv2D")]
    assert conv[f"{TIME}_ratio"] == pytest.approx(0.375, rel=0.02)
    assert conv["verdict"] == "faster"
    assert set(of().table("op_stats").set_index("op_name").loc[["more/Conv2D", "old/MatMul"], "match"].isna()) == {True}
    both = [
        [sum(times for (_, op_type, _), times in ops.items() if op_type == kind) for kind in ("Conv2D", "Relu")]
        for ops in (BEFORE, AFTER)
    ]
    device = "Device", "MatMul", "model/d/MatMul"
    tiny = "Host", "Tiny", "tiny/Tiny"
    ours, theirs = (np.array([*sums, ops[device], ops[tiny]]) for sums, ops in zip(both, (BEFORE, AFTER), strict=True))
    expected = ChangeTest(Spread(SPREAD, "")).rows([Times(ours)], [Times(theirs)])
    order = [("Host", "Conv2D"), ("Host", "Relu"), ("Device", "MatMul"), ("Host", "Tiny")]
    pd.testing.assert_frame_equal(groups.loc[order, VERDICT].reset_index(drop=True), expected[VERDICT])
    assert groups.loc[order, "verdict"].tolist() == ["faster", "same", "slower", "untested"]


def test_a_group_on_one_side_only_has_no_verdict():
    groups = groups_of(of(), "op_type")
    assert groups.loc[("Host", "MatMul"), "status"] == "removed"
    assert groups.loc[("Host", "MatMul"), VERDICT].isna().all()
    back = groups_of(of(AFTER, BEFORE), "op_type")
    assert back.loc[("Host", "MatMul"), "status"] == "added"
    assert back.loc[("Host", "MatMul"), VERDICT].isna().all()


def test_a_group_of_one_row_is_judged_as_that_row():
    comparison = of()
    rows = comparison.table("op_stats").set_index(["host_or_device", "op_name"])
    groups = groups_of(comparison, "op_name")
    pd.testing.assert_frame_equal(groups[VERDICT].sort_index(), rows[VERDICT].sort_index())
    assert groups["interval_low"].notna().sum() == 4


def test_a_group_whose_steps_do_not_bear_out_the_number_on_display_is_not_tested():
    """Much of the type's time lies outside of the steps, so the ratio on display is another than that of the steps."""
    conv = "Host", "Conv2D", "model/a/Conv2D"
    outside = compare(made("before", BEFORE, {conv: 40_000.0}), made("after", AFTER), spread=SPREAD)
    assert groups_of(outside, "op_type").loc[("Host", "Conv2D"), "verdict"] == "untested"
    rows = outside.table("op_stats").set_index("op_name")
    assert rows.loc["model/a/Conv2D", "verdict"] == "untested"
    assert rows.loc["model/a/Relu", "verdict"] == "same"


def test_shown_per_run_a_group_has_the_verdict_on_its_time_per_step():
    longer = {op: np.concatenate([times, times]) for op, times in AFTER.items()}
    per_step, per_run = (groups_of(of(BEFORE, longer, per=per), "op_type") for per in ("step", "run"))
    assert per_run.loc[("Host", "Conv2D"), "self_time_us_ratio"] == pytest.approx(0.75, rel=0.02)
    pd.testing.assert_frame_equal(per_step[VERDICT].sort_index(), per_run[VERDICT].sort_index())
    assert per_run.loc[("Host", "Conv2D"), "verdict"] == "faster"


def test_each_candidate_is_a_family_of_its_own():
    comparison = compare(made("before", BEFORE), made("after", AFTER), made("copy", BEFORE), spread=SPREAD)
    groups = group_diff(comparison.table("op_stats"), "op_type", comparison.group_verdicts)
    for candidate, series in (("after", AFTER), ("copy", BEFORE)):
        alone = groups_of(compare(made("before", BEFORE), made(candidate, series), spread=SPREAD), "op_type")
        here = groups[groups["candidate"] == candidate].set_index(["host_or_device", "op_type"])
        pd.testing.assert_frame_equal(here[VERDICT], alone[VERDICT])


@pytest.mark.parametrize("by", ["op_name", "op_type", "scope"])
def test_too_few_steps_or_none_test_no_group(by: str):
    short = {op: times[:8] for op, times in AFTER.items()}
    unmarked = made("after", AFTER)
    unmarked.info.has_steps = False
    for after in (made("after", short), unmarked):
        groups = groups_of(compare(made("before", BEFORE), after, spread=SPREAD), by)
        matched = groups[groups["status"] == "matched"]
        assert set(matched["verdict"]) == {"untested"}
        assert matched["interval_low"].isna().all()


def test_without_a_judge_a_group_is_same_only_where_all_its_rows_are():
    diff = of().table("op_stats")
    groups = group_diff(diff, "scope").set_index(["host_or_device", "scope"])
    assert groups.loc[("Host", "model/a"), "verdict"] == "untested"
    assert "interval_low" not in groups


def test_every_node_of_the_tree_has_a_verdict_on_the_time_below_it():
    comparison = of()
    tree = scope_tree(comparison.table("op_stats"), judge=comparison.group_verdicts).set_index("node")
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
    assert scope_tree(comparison.table("op_stats"), judge=comparison.group_verdicts).empty
    assert group_diff(comparison.table("op_stats"), "op_type", comparison.group_verdicts).empty
    assert group_kernels(comparison.table("kernel_stats"), "op_name", comparison.group_verdicts).empty


@pytest.mark.parametrize("by", ["op_name", "op_type", "scope"])
def test_where_one_run_has_no_ops_every_group_is_on_one_side(by: str):
    for before, after, status in ((BEFORE, None, "removed"), (None, AFTER, "added")):
        runs = (made(name, ops) if ops else run(name) for name, ops in (("before", before), ("after", after)))
        groups = groups_of(compare(*runs, spread=SPREAD), by)
        assert set(groups["status"]) == {status}
        assert groups[VERDICT].isna().all(axis=None)


def every_grouping(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """All groups of a comparison, each with the `ratio` on display and what tells it apart as its index."""
    ops, kernels = comparison.table("op_stats"), comparison.table("kernel_stats")
    found = {by: groups_of(comparison, by) for by in ("op_name", "op_type", "scope")}
    found = {by: groups.assign(ratio=groups[f"{TIME}_ratio"]) for by, groups in found.items()}
    tree = scope_tree(ops, judge=comparison.group_verdicts).set_index("node")
    found["tree"] = tree.assign(ratio=tree[f"{TIME}_candidate"] / tree[f"{TIME}_baseline"].where(lambda us: us > 0))
    for by, keys in KEYS.items():
        groups = group_kernels(kernels, by, comparison.group_verdicts).set_index(keys)
        found[f"kernels {by}"] = groups.assign(ratio=groups["total_duration_us_per_step_ratio"])
    return found | {
        "ops": ops.assign(ratio=ops[f"{TIME}_ratio"]),
        "kernels": kernels.assign(ratio=kernels["total_duration_us_per_step_ratio"]),
    }


WITH_STEPS = [name for name in EACH_KIND if name not in ("tf_gpu", "jax_elementwise", "jax_conv_08", "jax_conv_legacy")]
PAIRS = list(zip(WITH_STEPS, [*WITH_STEPS[1:], WITH_STEPS[0]], strict=True))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_on_every_profile_the_ratio_on_display_lies_in_the_interval_of_its_verdict(one: str, other: str):
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


@pytest.mark.parametrize(("one", "other"), PAIRS[4:7])
def test_swapped_sides_mirror_every_group(one: str, other: str):
    turned = {"faster": "slower", "slower": "faster"}
    forth, back = compared_runs(one, other), compared_runs(other, one)
    there, again = (
        group_diff(c.table("op_stats"), "op_type", c.group_verdicts).set_index(["host_or_device", "op_type"])
        for c in (forth, back)
    )
    again = again.loc[there.index]
    assert there["verdict"].fillna("").tolist() == again["verdict"].fillna("").replace(turned).tolist()
    assert there["interval_low"].to_numpy() == pytest.approx(1 / again["interval_high"].to_numpy(), nan_ok=True)


@pytest.mark.parametrize("name", ["tf_cpu_base", "filters_16_8", "filters_16_8_simulated"])
def test_a_run_held_against_itself_is_the_same_in_every_group(name: str):
    found = every_grouping(compare(loaded_run(name), loaded_run(name)))
    for groups in found.values():
        assert set(groups["verdict"]) <= {"same"}
    assert len(found["op_type"])
