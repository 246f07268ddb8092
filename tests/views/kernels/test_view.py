"""The view of kernel stats: its rows, sentences and columns."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests.profiles import compared_runs
from tests.views.flat import flat, of_kind, only_pair, opened, pair_of, shown, texts, titles, words
from tfcompare import Comparison
from tfcompare.compare.groups.kernel_groups import group_kernels
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.views.blocks import Cards, Chart, Code, Links, Table
from tfcompare.views.kernels.details import details_of_row, kernel_key, launches_of, rows_of
from tfcompare.views.kernels.view import VIEW
from tfcompare.views.ops.figures import outside_of_steps

TF_GPU = ("gpu_filters_512_128", "gpu_filters_16_8")
TIME = "total_duration_us"


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compared_runs(*TF_GPU)


@pytest.fixture(scope="module")
def diff(comparison: Comparison) -> pd.DataFrame:
    return comparison.diffs("kernel_stats")


@pytest.fixture
def pair(comparison: Comparison) -> Pair:
    return only_pair(comparison)


def table(pair: Pair, nth: int = 0, **options: Any) -> Table:
    return shown(VIEW, pair, Table, **options)[nth]


def cards(pair: Pair, **options: Any) -> dict[str, float]:
    (found,) = shown(VIEW, pair, Cards, **options)
    return {figure.label: figure.candidate for figure in found.figures}


@pytest.mark.parametrize("per", ["step", "run"])
def test_kernels_outside_of_the_included_steps_are_told_where_figures_leave_them_out(per: Any) -> None:
    comparison = compared_runs(*TF_GPU, per)
    sentence = outside_of_steps(pair_with(comparison), "kernel_stats")
    said = [text for text in texts(VIEW, only_pair(comparison)) if "of the included steps" in text]
    assert said == ([sentence] if per == "step" else [])
    assert bool(sentence) == (per == "step")
    assert f"Kernel time per {per}" in cards(only_pair(comparison))


@pytest.mark.parametrize(
    ("by", "key", "rows"),
    [("op_name", "op_name", 58), ("kernel_and_op", "kernel_name", 86), ("launch", "grid_dim", 86)],
)
def test_each_grouping_sums_to_the_whole(pair: Pair, diff: pd.DataFrame, by: str, key: str, rows: int) -> None:
    found = table(pair, by=by)
    assert key in found.names
    assert len(found.rows) == rows
    for role in ("baseline", "candidate"):
        assert found.rows[f"{TIME}_{role}"].sum() == pytest.approx(diff[f"{TIME}_{role}"].sum())


def test_kernels_are_grouped_by_op_where_less_than_half_of_the_time_has_a_counterpart_by_name(pair: Pair) -> None:
    """Its libraries choose other kernels for fewer filters; the ops are the same."""
    why = "Grouped by op: only 23.0 % of the kernel time has a counterpart by kernel name."
    assert table(pair).names[0] == "op_name"
    assert why in texts(VIEW, pair)
    assert cards(pair)["Matched time"] == pytest.approx(1)
    assert table(pair, by="kernel_name").names[0] == "kernel_name"
    assert why not in texts(VIEW, pair, by="kernel_name")
    assert cards(pair, by="kernel_name")["Matched time"] == pytest.approx(0.2304, abs=5e-4)
    for other in (pair_of(TF_GPU[0], TF_GPU[0]), pair_of(TF_GPU[0])):
        assert table(other).names[0] == "kernel_name"


def test_all_columns_are_those_of_tensorboard_for_both_sides(pair: Pair) -> None:
    columns = set(table(pair, by="launch").every)
    for name in (
        *("time_rank", "time_share", "is_op_tensor_core_eligible", "is_kernel_using_tensor_core", TIME, "occurrences"),
        *("avg_duration_us", "min_duration_us", "max_duration_us"),
    ):
        assert {f"{name}_baseline", f"{name}_candidate"} <= columns
    for name in ("kernel_name", "op_name", "registers_per_thread", "shared_memory_bytes", "block_dim", "grid_dim"):
        assert {name, f"{name}_candidate"} <= columns


def test_the_op_of_a_chosen_row_is_shown_with_its_times(pair: Pair, diff: pd.DataFrame) -> None:
    found = opened(table(pair, by="op_name"), kernel_key(group_kernels(diff, "op_name")).iloc[0])
    assert found is not None
    assert any("Self time in every step" in title for title in titles(found.blocks))
    assert any("on device**" in text for text in words(found.blocks))


def test_a_row_there_is_not_opens_nothing_and_a_hidden_one_does(pair: Pair, diff: pd.DataFrame) -> None:
    by: Any = "kernel_name"
    assert opened(table(pair), "nothing") is None
    key = kernel_key(group_kernels(diff, by)).iloc[0]
    assert opened(table(pair, by=by, filter="no such kernel"), key) is not None
    for rows in (diff, *(group_kernels(diff, by) for by in ("kernel_name", "op_name", "kernel_and_op"))):
        assert kernel_key(rows).is_unique


def test_copies_can_be_shown_device_by_device() -> None:
    pair = pair_of("tf_gpu", "tf_gpu")
    assert len(table(pair, 1).rows) == 2
    by_device = table(pair, 1, by_device=True)
    assert len(by_device.rows) == 10
    assert {"host", "device"} <= set(by_device.names)


def test_kernels_of_no_op_and_without_copies_are_shown() -> None:
    pair = pair_of("jax_elementwise", "jax_conv_08")
    copies = table(pair, 1)
    assert copies.rows.empty
    assert copies.nothing.startswith("No copies were recorded")
    assert "" in table(pair, by="op_name").rows["op_name"].tolist()


def test_the_one_run_with_kernels_is_shown_alone() -> None:
    pair = pair_of("filters_16_8", TF_GPU[1])
    assert "ran without GPU events" in texts(VIEW, pair)[0]
    assert any("NVreg_RestrictProfilingToAdminUsers=0" in text for text in texts(VIEW, pair))
    rows = table(pair).rows
    assert rows[f"{TIME}_baseline"].isna().all()
    assert rows[f"{TIME}_candidate"].notna().all()


@pytest.mark.parametrize("by", ["kernel_name", "op_name"])
def test_every_grouping_has_verdicts_of_its_own_and_the_chart_their_intervals(
    pair: Pair, comparison: Comparison, by: Any
) -> None:
    rows = table(pair, by=by).rows
    groups = group_kernels(comparison.diffs("kernel_stats"), by, pair_with(comparison).group_verdicts)
    assert rows["verdict"].equals(groups["verdict"])
    assert "faster" in rows["verdict"].tolist()
    (chart,) = [one for one in shown(VIEW, pair, Chart, by=by) if one.name == "kernel_changes"]
    assert "95 % confidence interval" in chart.draw().to_json()


def test_each_row_of_a_run_alone_opens_its_own_launch() -> None:
    """Rows of a run alone are in another order than those of the diff, and the filter leaves some out."""
    pair = pair_of(TF_GPU[0])
    found = table(pair, by="launch", filter="conv")
    rows = found.rows
    assert len(rows) > 10
    assert rows[f"{TIME}_baseline"].is_monotonic_decreasing
    for _, row in rows.iterrows():
        launch = launches_of(pair, row, "launch").iloc[0]
        assert (launch["op_name"], launch["kernel_name"]) == (row["op_name"], row["kernel_name"])


def test_a_kernel_that_shares_its_name_with_another_opens_its_own_launch() -> None:
    pair = pair_of("h100_store_activations", "h100_recompute_activations")
    rows = rows_of(pair, "kernel_name").set_index("kernel_name", drop=False)
    for name, launches in (("gemm_fusion_dot_50 (candidate's)", 1), ("gemm_fusion_dot_50", 1)):
        details = details_of_row(pair, rows.loc[name], "kernel_name")
        assert details.title == name
        blocks = list(flat(details.blocks))
        assert [one.text for one in of_kind(blocks, Code)][:1] == ["gemm_fusion_dot_50"]
        assert len(launches_of(pair, rows.loc[name], "kernel_name")) == launches


def test_a_run_alone_has_no_counterparts() -> None:
    alone = pair_of(TF_GPU[0])
    assert texts(VIEW, alone)[0] == "Kernels take 7.02 ms per step, in 72 launches."
    assert "Matched time" not in cards(alone)


def test_tpu_runs_are_sent_to_op_stats() -> None:
    pair = pair_of("jax_tpu", "tf_cpu_base")
    assert "whose programs have no kernels" in VIEW.why_not(pair)
    assert [link.view for block in of_kind(VIEW.instead(pair), Links) for link in block.links] == ["op_stats"]
