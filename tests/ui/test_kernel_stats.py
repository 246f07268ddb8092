"""The kernel stats page, run by Streamlit without a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, SIMULATED_RUNS, loaded_run, run_path
from tfcompare import compare, settings
from tfcompare.compare.kernel_groups import group_kernels
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.tools.op_figures import outside_of_steps
from tfcompare.ui.frame.pair import choose_pair
from tfcompare.ui.pages.kernel_stats import Choice, launches_of
from tfcompare.ui.pages.kernel_stats_table import TABLE, row_key

IDS = {run.path.parents[2].name: run.id for run in find_runs(SAMPLES)}
SIMULATED = ("filters_512_128_simulated", "filters_16_8_simulated")
TIME = "total_duration_us_per_step"


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings()):
        made = AppTest.from_file(str(ROOT / "pages" / "3_Kernel_stats.py"), default_timeout=90)
        choose(made, *SIMULATED)
        yield made


@pytest.fixture(scope="module")
def diff() -> pd.DataFrame:
    return compare(*(loaded_run(name) for name in SIMULATED)).table("kernel_stats")


def choose(page: AppTest, baseline: str, candidate: str) -> None:
    for role, name in (("baseline", baseline), ("candidate", candidate)):
        page.query_params[role] = IDS[name]


def shown(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def of_corpus(page: AppTest, baseline: str, candidate: str) -> AppTest:
    for role, name in (("baseline", baseline), ("candidate", candidate)):
        page.query_params[role] = f"corpus/{run_path(name).relative_to(CORPUS)}"
    with settings.override(Settings(places=(CORPUS,))):
        return shown(page)


def table(page: AppTest, position: int = 0) -> pd.DataFrame:
    """A table as it is sent to the browser, by the frame's column names."""
    frame = page.dataframe[position].value
    frame.columns = [column[-1] for column in frame.columns]
    return frame


def cards(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def texts(page: AppTest) -> str:
    return "\n".join(element.value for element in [*page.markdown, *page.info, *page.caption, *page.warning])


def test_the_top_says_what_became_of_the_kernels_and_that_they_were_simulated(page):
    shown(page)
    assert "Kernel time per step fell from 8.10 ms to 1.08 ms" in texts(page)
    assert cards(page)["Kernel time per step"] == "1.08 ms"
    assert cards(page)["Launches per step"] == "282"
    remarks = [text.value for text in page.markdown if all(f"`{name}`" in text.value for name in SIMULATED_RUNS)]
    assert sum("simulate\\.py" in remark for remark in remarks) == 1, "one remark on both"


@pytest.mark.parametrize("per", ["step", "run"])
def test_kernels_outside_of_the_included_steps_are_told_where_figures_leave_them_out(page, per):
    page.query_params["per"] = per
    comparison = compare(*(loaded_run(name) for name in SIMULATED), per=per)
    sentence = outside_of_steps(comparison, comparison.candidates[0], "kernel_stats")
    told = [caption.value for caption in shown(page).caption if "of the included steps" in caption.value]
    assert told == ([sentence] if per == "step" else [])
    assert bool(sentence) == (per == "step")


def test_the_table_adds_kernels_up_and_keeps_their_whole_names(page, diff):
    frame = table(shown(page))
    expected = group_kernels(diff, "kernel_name")
    assert frame["kernel_name"].tolist() == expected["kernel_name"].tolist()
    for column in (f"{TIME}_{part}" for part in ("baseline", "candidate")):
        assert frame[column].tolist() == pytest.approx(expected[column].tolist(), nan_ok=True)
    change = frame[f"{TIME}_candidate"].fillna(0) - frame[f"{TIME}_baseline"].fillna(0)
    assert frame[f"{TIME}_delta"].tolist() == pytest.approx(change.tolist()), "a missing side counts as 0 on the page"
    assert frame[f"{TIME}_baseline"].sum() == pytest.approx(diff[f"{TIME}_baseline"].sum())


@pytest.mark.parametrize(
    ("by", "key", "rows"),
    [("op", "op_name", 254), ("kernel and op", "kernel_name", 296), ("every launch", "grid_dim", 296)],
)
def test_each_grouping_sums_to_the_whole(page, diff, by, key, rows):
    page.query_params["by"] = by
    frame = table(shown(page))
    assert key in frame
    assert len(frame) == rows
    for role in ("baseline", "candidate"):
        assert frame[f"{TIME}_{role}"].sum() == pytest.approx(diff[f"{TIME}_{role}"].sum())


def test_all_columns_are_those_of_tensorboard_for_both_sides(page):
    page.query_params |= {"by": "every launch", "all_columns": "true"}
    columns = set(table(shown(page)).columns)
    for name in ("time_rank", "time_share", "is_op_tensor_core_eligible", "is_kernel_using_tensor_core", TIME,
                 "occurrences_per_step", "avg_duration_us", "min_duration_us", "max_duration_us"):  # fmt: skip
        assert {f"{name}_baseline", f"{name}_candidate"} <= columns
    for name in ("kernel_name", "op_name", "registers_per_thread", "shared_memory_bytes", "block_dim", "grid_dim"):
        assert {name, f"{name}_candidate"} <= columns


def test_a_filter_goes_over_kernels_and_ops(page, diff):
    page.query_params |= {"by": "kernel and op", "filter": "igemm TRANSPOSE"}
    frame = table(shown(page))
    names = diff["kernel_name"] + diff["op_name"]
    assert len(frame) == names.str.contains("igemm.*transpose").sum() > 0
    page.text_input(key="filter").set_value("no*such`kernel")
    shown(page)
    assert "Clear the filter" in texts(page)


@pytest.mark.parametrize("by", ["kernel", "op", "kernel and op", "every launch"])
def test_movers_can_be_of_launches(page, by):
    page.query_params |= {"by": by, "movers": "launches"}
    shown(page)
    if by == "op":
        assert "None of these rows changed its kernel launches." in texts(page)
    else:
        assert "changed its" not in texts(page)


def test_a_chosen_row_shows_its_whole_name_and_its_launches(page, diff):
    groups = group_kernels(diff, "kernel_name")
    name = next(name for name in groups["kernel_name"] if "scalar_cmp_op" in name)
    page.query_params["row"] = row_key(groups)[groups["kernel_name"] == name].iloc[0]
    shown(page)
    assert [code.value for code in page.code] == [name]
    launches = next(frame for frame in map(partial(table, page), range(len(page.dataframe))) if "block_dim" in frame)
    expected = diff[diff["kernel_name"] == name]
    assert len(launches) == len(expected)
    assert launches[f"{TIME}_candidate"].sum() == pytest.approx(expected[f"{TIME}_candidate"].sum())


def test_the_op_of_a_chosen_kernel_is_shown_with_its_times(page, diff):
    page.query_params["by"] = "op"
    groups = group_kernels(diff, "op_name")
    page.query_params["row"] = row_key(groups).iloc[0]
    shown(page)
    assert any("Self time in every step" in chart.proto.spec for chart in page.get("plotly_chart"))
    assert any("on device**" in markdown.value for markdown in page.markdown)


def test_a_run_alone_has_no_baseline_and_no_changes(page):
    del page.query_params["candidate"]
    shown(page)
    assert "Kernels take 8.10 ms per step, in 282 launches." in texts(page)
    assert "Time with a counterpart" not in cards(page)
    assert not {"verdict", f"{TIME}_candidate"} & set(table(page))
    assert not any("largest changes" in chart.proto.spec for chart in page.get("plotly_chart"))
    assert not {"baseline", "candidate", "both"} & set(texts(page).lower().split())


def test_a_choice_of_a_row_there_is_not_is_no_error(page):
    page.query_params["row"] = "nothing"
    assert not shown(page).code


def test_rows_of_any_table_have_names_of_their_own(diff):
    for rows in (diff, *(group_kernels(diff, by) for by in ("kernel_name", "op_name", "kernel_and_op"))):
        assert row_key(rows).is_unique


def test_a_copy_of_a_run_shows_no_difference(page, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(run_path(SIMULATED[0]), tmp_path / "logs" / name)
    found = {run.path.parents[2].name: run.id for run in find_runs(tmp_path / "logs")}
    page.query_params |= {"baseline": found["one"], "candidate": found["two"], "all_columns": "true"}
    with settings.override(Settings(places=(tmp_path / "logs",))):
        frame = table(shown(page))
    assert "Both runs are the same capture" in texts(page)
    assert "None of these rows changed its kernel time." in texts(page)
    assert (frame[f"{TIME}_delta"] == 0).all()
    assert set(frame["verdict"]) == {"same"}


def test_copies_stand_in_a_table_of_their_own(page):
    copies = table(shown(page), -1)
    assert set(copies["kind"]) == {"host to device", "device to host"}
    assert {"bandwidth_bytes_per_s_baseline", "size_bytes_per_step_candidate", "duration_us_per_step_delta"} <= set(
        copies
    )


def test_copies_can_be_shown_device_by_device(page):
    of_corpus(page, "tf_gpu", "jax_conv_legacy")
    assert len(table(page, -1)) == 3
    page.toggle(key="by_device").set_value(True)
    with settings.override(Settings(places=(CORPUS,))):
        shown(page)
    frame = table(page, -1)
    assert len(frame) == 11
    assert {"host", "device"} <= set(frame)


def test_figures_per_run_are_named_so(page):
    page.query_params["per"] = "run"
    assert "total_duration_us_baseline" in table(shown(page))
    assert "Kernel time per run" in cards(page)


def test_kernels_of_no_op_and_without_copies_are_shown(page):
    of_corpus(page, "jax_elementwise", "jax_conv_08")
    assert "No copies were recorded" in texts(page)
    page.segmented_control(key="by").set_value("op_name")
    with settings.override(Settings(places=(CORPUS,))):
        assert "" in table(shown(page))["op_name"].tolist()


def test_two_runs_without_a_gpu_are_told_how_to_record_kernels(page):
    choose(page, "filters_512_128", "filters_16_8")
    shown(page)
    assert "No kernels." in texts(page)
    assert "NVreg_RestrictProfilingToAdminUsers=0" in texts(page)
    assert not page.dataframe


def test_tpu_runs_are_sent_to_op_stats(page):
    of_corpus(page, "jax_tpu", "tf_cpu_base")
    assert "whose programs have no kernels" in texts(page)
    assert "Show the ops instead" in texts(page)


def test_the_one_run_with_kernels_is_shown_alone(page):
    choose(page, "filters_16_8", SIMULATED[1])
    frame = table(shown(page))
    assert "ran without GPU events" in texts(page)
    assert frame[f"{TIME}_baseline"].isna().all()
    assert frame[f"{TIME}_candidate"].notna().all()


def test_two_runs_without_kernels_share_a_sentence(page):
    choose(page, "filters_512_128", "filters_16_8")
    shown(page)
    assert "`filters_512_128` and `filters_16_8` ran without GPU events" in texts(page)


def test_without_kernels_the_samples_on_a_simulated_gpu_are_offered(page):
    choose(page, "filters_512_128", "filters_16_8")
    assert "No kernels." in texts(shown(page))
    assert "Show the sample runs on a simulated GPU" in texts(page)


def test_elsewhere_no_samples_are_offered(page):
    with settings.override(Settings(places=(CORPUS,))):
        of_corpus(page, "tf_cpu_base", "tf_cpu_zoo")
    assert "Show the sample runs" not in texts(page)


@pytest.mark.parametrize(("by", "column"), [("kernel", "kernel_name"), ("op", "op_name")])
def test_every_grouping_has_verdicts_of_its_own_and_the_chart_their_intervals(page, by, column):
    choose(page, *SIMULATED)
    page.query_params["by"] = by
    frame = table(shown(page))
    comparison = compare(*(loaded_run(name) for name in SIMULATED))
    groups = group_kernels(comparison.table("kernel_stats"), column, comparison.group_verdicts)
    assert frame["verdict"].tolist() == groups["verdict"].fillna(groups["status"]).tolist()
    assert "faster" in frame["verdict"].tolist()
    assert sum("95 % confidence interval" in c.proto.spec for c in page.get("plotly_chart")) == 1


def test_each_row_of_a_run_alone_opens_its_own_launch():
    """Rows of a run alone are in another order than those of the diff, and the filter leaves some out."""
    run = loaded_run("filters_512_128_simulated")
    pair, choice = choose_pair(compare(run, run)), Choice("launch", "conv")
    rows = TABLE._largest_first(TABLE.rows(pair, choice))
    assert len(rows) > 10
    for _, row in rows.iterrows():
        launch = launches_of(pair, row, choice.by).iloc[0]
        assert (launch["op_name"], launch["kernel_name"]) == (row["op_name"], row["kernel_name"])
