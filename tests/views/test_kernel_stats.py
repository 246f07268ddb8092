"""The view of kernel stats: its rows, sentences and columns."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.profiles import compared_runs, loaded_run, run_path
from tfcompare import Comparison, compare, load
from tfcompare.charts.pair import Pair, pairs_of
from tfcompare.compare.groups.kernel_groups import group_kernels
from tfcompare.tools.ops.op_figures import outside_of_steps
from tfcompare.views.blocks import Beside, Block, Cards, Chart, Code, Details, Live, Section, Table, Text
from tfcompare.views.kernel_details import kernel_key, launches_of, of_row, rows_of
from tfcompare.views.kernel_stats import VIEW

SIMULATED = ("filters_512_128_simulated", "filters_16_8_simulated")
TIME = "total_duration_us_per_step"
BY = ("kernel_name", "op_name", "kernel_and_op", "launch")


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compared_runs(*SIMULATED)


@pytest.fixture(scope="module")
def diff(comparison: Comparison) -> pd.DataFrame:
    return comparison.table("kernel_stats")


@pytest.fixture
def pair(comparison: Comparison) -> Pair:
    return pair_of(comparison)


def pair_of(comparison: Comparison) -> Pair:
    (found,) = pairs_of(comparison)
    return found


def flat(blocks: Iterator[Block] | list[Block]) -> Iterator[Block]:
    for block in blocks:
        yield from flat(block.blocks) if isinstance(block, Section | Beside) else [block]


def shown(pair: Pair, **options: Any) -> list[Block]:
    return list(flat(VIEW.blocks(pair, **options)))


def table(pair: Pair, nth: int = 0, **options: Any) -> Table:
    return [block for block in shown(pair, **options) if isinstance(block, Table)][nth]


def texts(pair: Pair, **options: Any) -> list[str]:
    return [block.text for block in shown(pair, **options) if isinstance(block, Text)]


def cards(pair: Pair) -> dict[str, float]:
    (found,) = [block for block in shown(pair) if isinstance(block, Cards)]
    return {figure.label: figure.candidate for figure in found.figures}


def details(pair: Pair, key: str, **options: Any) -> Details | None:
    opens = table(pair, **options).opens
    assert opens is not None
    return opens.details(key)


def test_the_top_says_what_became_of_the_kernels(pair: Pair) -> None:
    assert texts(pair)[0].startswith("Kernel time per step fell from 8.10 ms to 1.08 ms")
    assert cards(pair)["Kernel time per step"] == pytest.approx(1080, rel=0.01)
    assert cards(pair)["Launches per step"] == pytest.approx(282, abs=0.5)


@pytest.mark.parametrize("per", ["step", "run"])
def test_kernels_outside_of_the_included_steps_are_told_where_figures_leave_them_out(per: Any) -> None:
    comparison = compare(*map(loaded_run, SIMULATED), per=per)
    sentence = outside_of_steps(comparison, comparison.candidates[0], "kernel_stats")
    told = [text for text in texts(pair_of(comparison)) if "of the included steps" in text]
    assert told == ([sentence] if per == "step" else [])
    assert bool(sentence) == (per == "step")


@pytest.mark.parametrize(
    ("by", "key", "rows"),
    [("op_name", "op_name", 254), ("kernel_and_op", "kernel_name", 296), ("launch", "grid_dim", 296)],
)
def test_each_grouping_sums_to_the_whole(pair: Pair, diff: pd.DataFrame, by: str, key: str, rows: int) -> None:
    found = table(pair, by=by)
    assert key in found.names
    assert len(found.rows) == rows
    for role in ("baseline", "candidate"):
        assert found.rows[f"{TIME}_{role}"].sum() == pytest.approx(diff[f"{TIME}_{role}"].sum())


def test_all_columns_are_those_of_tensorboard_for_both_sides(pair: Pair) -> None:
    columns = set(table(pair, by="launch").every)
    for name in ("time_rank", "time_share", "is_op_tensor_core_eligible", "is_kernel_using_tensor_core", TIME,
                 "occurrences_per_step", "avg_duration_us", "min_duration_us", "max_duration_us"):  # fmt: skip
        assert {f"{name}_baseline", f"{name}_candidate"} <= columns
    for name in ("kernel_name", "op_name", "registers_per_thread", "shared_memory_bytes", "block_dim", "grid_dim"):
        assert {name, f"{name}_candidate"} <= columns


def test_a_filter_goes_over_kernels_and_ops(pair: Pair, diff: pd.DataFrame) -> None:
    found = table(pair, by="kernel_and_op", filter="igemm TRANSPOSE").rows
    names = diff["kernel_name"] + diff["op_name"]
    assert len(found) == names.str.contains("igemm.*transpose").sum() > 0
    nothing = table(pair, filter="no*such`kernel")
    assert nothing.rows.empty
    assert "Clear the filter" in nothing.nothing


@pytest.mark.parametrize("by", BY)
def test_changes_can_be_of_launches(pair: Pair, by: str) -> None:
    told = [text for text in texts(pair, by=by, changes="launches") if "changed its" in text]
    assert told == (["None of these rows changed its kernel launches."] if by == "op_name" else [])
    drawn = [one for one in shown(pair, by=by, changes="launches") if getattr(one, "name", "") == "kernel_changes"]
    assert len(drawn) == (by != "op_name")


def test_the_op_of_a_chosen_row_is_shown_with_its_times(pair: Pair, diff: pd.DataFrame) -> None:
    found = details(pair, kernel_key(group_kernels(diff, "op_name")).iloc[0], by="op_name")
    assert found is not None
    drawn = [one.draw() for one in found.blocks if isinstance(one, Chart)]
    assert any("Self time in every step" in figure.layout.title.text for figure in drawn)
    assert any("on device**" in one.text for one in found.blocks if isinstance(one, Text))


def test_a_row_there_is_not_opens_nothing_and_a_hidden_one_does(pair: Pair, diff: pd.DataFrame) -> None:
    assert details(pair, "nothing") is None
    key = kernel_key(group_kernels(diff, "kernel_name")).iloc[0]
    assert details(pair, key, filter="no such kernel") is not None


def test_rows_of_any_table_have_names_of_their_own(diff: pd.DataFrame) -> None:
    for rows in (diff, *(group_kernels(diff, by) for by in ("kernel_name", "op_name", "kernel_and_op"))):
        assert kernel_key(rows).is_unique


def test_a_copy_of_a_run_shows_no_difference(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(run_path(SIMULATED[0]), tmp_path / name)
    pair = pair_of(compare(*(load(tmp_path / name) for name in ("one", "two"))))
    assert texts(pair)[0].startswith("Both runs are the same capture")
    assert "None of these rows changed its kernel time." in texts(pair)
    rows = table(pair).rows
    assert (rows[f"{TIME}_delta"] == 0).all()
    assert set(rows["verdict"]) == {"same"}


def test_copies_are_in_a_table_of_their_own(pair: Pair) -> None:
    copies = table(pair, 1)
    assert set(copies.rows["kind"]) == {"host to device", "device to host"}
    expected = {"bandwidth_bytes_per_s_baseline", "size_bytes_per_step_candidate", "duration_us_per_step_delta"}
    assert expected <= set(copies.names)


def test_copies_can_be_shown_device_by_device() -> None:
    pair = pair_of(compared_runs("tf_gpu", "jax_conv_legacy"))
    assert len(table(pair, 1).rows) == 3
    by_device = table(pair, 1, by_device=True)
    assert len(by_device.rows) == 11
    assert {"host", "device"} <= set(by_device.names)


def test_figures_per_run_are_named_so() -> None:
    pair = pair_of(compare(*map(loaded_run, SIMULATED), per="run"))
    assert "total_duration_us_baseline" in table(pair).names
    assert "Kernel time per run" in cards(pair)


def test_kernels_of_no_op_and_without_copies_are_shown() -> None:
    pair = pair_of(compared_runs("jax_elementwise", "jax_conv_08"))
    copies = table(pair, 1)
    assert copies.rows.empty
    assert copies.nothing.startswith("No copies were recorded")
    assert "" in table(pair, by="op_name").rows["op_name"].tolist()


def test_the_one_run_with_kernels_is_shown_alone() -> None:
    pair = pair_of(compared_runs("filters_16_8", SIMULATED[1]))
    assert "ran without GPU events" in texts(pair)[0]
    assert any("NVreg_RestrictProfilingToAdminUsers=0" in text for text in texts(pair))
    rows = table(pair).rows
    assert rows[f"{TIME}_baseline"].isna().all()
    assert rows[f"{TIME}_candidate"].notna().all()


def test_two_runs_without_kernels_share_a_sentence() -> None:
    told = VIEW.why_not(pair_of(compared_runs("filters_512_128", "filters_16_8")))
    assert told.startswith("No kernels. `filters_512_128` and `filters_16_8` ran without GPU events")


@pytest.mark.parametrize("by", ["kernel_name", "op_name"])
def test_every_grouping_has_verdicts_of_its_own_and_the_chart_their_intervals(
    pair: Pair, comparison: Comparison, by: Any
) -> None:
    rows = table(pair, by=by).rows
    groups = group_kernels(comparison.table("kernel_stats"), by, comparison.group_verdicts)
    assert rows["verdict"].equals(groups["verdict"])
    assert "faster" in rows["verdict"].tolist()
    (chart,) = [one for one in shown(pair, by=by) if isinstance(one, Chart) and one.name == "kernel_changes"]
    assert "95 % confidence interval" in chart.draw().to_json()


def test_each_row_of_a_run_alone_opens_its_own_launch() -> None:
    """Rows of a run alone are in another order than those of the diff, and the filter leaves some out."""
    run = loaded_run(SIMULATED[0])
    pair = pair_of(compare(run, run))
    found = table(pair, by="launch", filter="conv")
    rows = found.rows
    assert len(rows) > 10
    assert rows[f"{TIME}_baseline"].is_monotonic_decreasing
    for _, row in rows.iterrows():
        launch = launches_of(pair, row, "launch").iloc[0]
        assert (launch["op_name"], launch["kernel_name"]) == (row["op_name"], row["kernel_name"])


def test_a_kernel_that_shares_its_name_with_another_opens_its_own_launch() -> None:
    pair = pair_of(compared_runs("h100_store_activations", "h100_recompute_activations"))
    rows = rows_of(pair, "kernel_name").set_index("kernel_name", drop=False)
    for name, launches in (("gemm_fusion_dot_50 (candidate's)", 1), ("gemm_fusion_dot_50", 1)):
        details = of_row(pair, rows.loc[name], "kernel_name")
        assert details.title == name
        blocks = list(flat(details.blocks))
        assert [one.text for one in blocks if isinstance(one, Code)][:1] == ["gemm_fusion_dot_50"]
        assert len(launches_of(pair, rows.loc[name], "kernel_name")) == launches


def test_a_run_alone_has_no_counterparts() -> None:
    run = loaded_run(SIMULATED[0])
    alone = pair_of(compare(run, run))
    assert texts(alone)[0] == "Kernels take 8.10 ms per step, in 282 launches."
    assert "Time with a counterpart" not in cards(alone)
    assert {"verdict", f"{TIME}_candidate"}.isdisjoint(column.name for column in table(alone).columns)
    assert not [one for one in shown(alone) if isinstance(one, Live)]
    assert not [one for one in shown(alone) if isinstance(one, Chart) and one.name == "kernel_changes"]
