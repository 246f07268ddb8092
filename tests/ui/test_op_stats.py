"""The op stats page, run by Streamlit without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, loaded_run, run_path
from tests.ui.op_stats_page import CONVOLUTION, shown, table
from tfcompare import compare, settings
from tfcompare.charts.verdicts import text_of
from tfcompare.compare.aggregate import group_diff
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.ui.frame import narrow
from tfcompare.ui.widgets.changes import NOTHING_TESTED
from tfcompare.ui.widgets.tables import PAGE_ROWS

RUNS = {run.path.parents[2].name: run for run in find_runs(SAMPLES)}
IDS = {name: run.id for name, run in RUNS.items()}
NAMES = {name: run.name for name, run in RUNS.items()}


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings()):
        yield AppTest.from_file(str(ROOT / "pages" / "2_Op_stats.py"), default_timeout=90)


@pytest.fixture(scope="module")
def diff() -> pd.DataFrame:
    return compare(loaded_run("filters_512_128"), loaded_run("filters_16_8")).table("op_stats")


def of_corpus(page: AppTest, baseline: str, candidate: str) -> AppTest:
    for role, name in (("baseline", baseline), ("candidate", candidate)):
        page.query_params[role] = f"corpus/{run_path(name).relative_to(CORPUS)}"
    with settings.override(Settings(places=(CORPUS,))):
        return shown(page)


def test_the_table_shows_the_numbers_of_the_diff(page, diff):
    frame = table(shown(page))
    expected = diff[diff["op_type"] != "IDLE"].reset_index(drop=True)
    for column in ("self_time_us_per_step_baseline", "self_time_us_per_step_candidate", "self_time_us_per_step_delta"):
        assert frame[column].tolist() == expected[column].tolist()
    assert frame["op_type"].tolist() == expected["op_type"].tolist()
    assert list(frame.columns) == [
        "op_name",
        "op_type",
        "self_time_us_per_step_baseline",
        "self_time_us_per_step_candidate",
        "self_time_us_per_step_delta",
        "self_time_us_per_step_ratio",
        "status",
        "verdict",
    ]


def test_all_columns_are_those_of_tensorboard_and_the_diff(page):
    page.query_params["all_columns"] = "true"
    columns = set(table(shown(page)).columns)
    for name in ("rank", "total_time_us_per_step", "avg_time_us", "avg_self_time_us", "self_share", "cumulative_share"):
        assert {f"{name}_baseline", f"{name}_candidate"} <= columns
    assert {"is_eager_baseline", "occurrences_per_step_candidate", "match", "verdict", "op_name_candidate"} <= columns


def test_idle_is_an_op_only_when_asked_for(page):
    assert "IDLE" not in table(shown(page))["op_type"].tolist()
    page.toggle(key="idle").set_value(True)
    assert table(shown(page))["op_type"].tolist().count("IDLE") == 1


def test_a_filter_leaves_the_rows_with_all_its_words(page, diff):
    page.query_params["filter"] = "backprop IMAGE_1"
    names = table(shown(page))["op_name"].tolist()
    assert len(names) == diff["op_name"].str.contains("image_1.*Backprop").sum() > 0


def test_a_filter_that_nothing_passes_says_so(page):
    page.query_params["filter"] = "no*such`op"
    shown(page)
    assert any("Clear the filter" in info.value for info in page.info)
    assert not page.dataframe


@pytest.mark.parametrize("by", ["op_type", "scope"])
def test_ops_are_added_up_by_type_and_scope(page, diff, by):
    page.query_params["by"] = {"op_type": "op type", "scope": "name scope"}[by]
    frame = table(shown(page))
    assert frame[by].is_unique
    busy = diff[diff["op_type"] != "IDLE"]
    for role in ("baseline", "candidate"):
        name = f"self_time_us_per_step_{role}"
        assert frame[name].sum() == pytest.approx(busy[name].sum())


@pytest.mark.parametrize(("sort", "falling"), [("-self_time_us_per_step_candidate", True), ("op_name", False)])
def test_the_order_in_the_address_is_that_of_the_table(page, diff, sort, falling):
    page.query_params["sort"] = sort
    rows = table(shown(page))
    busy = diff[diff["op_type"] != "IDLE"].sort_values(sort.lstrip("-"), ascending=not falling, kind="stable")
    expected = busy["self_time_us_per_step_candidate"].tolist()
    assert rows["self_time_us_per_step_candidate"].tolist() == expected


def test_a_chosen_op_is_shown_in_every_step(page):
    page.query_params["row"] = CONVOLUTION
    shown(page)
    assert "#### `autoencoder_1/image_1/convolution` in every step" in [m.value for m in page.markdown]


def test_a_choice_of_an_op_there_is_not_is_no_error(page):
    page.query_params["row"] = "Host:Nothing:at/all"
    shown(page)
    assert any("Choose a row" in caption.value for caption in page.caption)


def test_per_run_sums_are_named_so(page):
    page.query_params["per"] = "run"
    assert "self_time_us_baseline" in table(shown(page)).columns


def test_host_and_device_are_told_apart_where_there_are_both(page):
    of_corpus(page, "tf_gpu", "tf_cpu_base")
    assert set(table(page)["host_or_device"]) == {"Host", "Device"}
    page.segmented_control(key="where").set_value("Device")
    with settings.override(Settings(places=(CORPUS,))):
        shown(page)
    assert "host_or_device" not in table(page).columns


def test_a_long_table_is_sent_a_page_at_a_time(page):
    of_corpus(page, "tf_gpu", "tf_cpu_base")
    assert len(table(page)) == PAGE_ROWS
    assert any(caption.value.startswith("Rows 1 to 500 of 6,") for caption in page.caption)


@pytest.mark.parametrize("name", ["tf_cpu_base", "tf_cpu_zoo", "jax_elementwise", "jax_conv_legacy", "jax_tpu"])
def test_every_kind_of_profile_is_shown(page, name):
    of_corpus(page, name, "jax_conv_08")
    assert not table(page).empty


def charts(page: AppTest) -> dict[str, dict]:
    """What is drawn, by title."""
    specs = (json.loads(chart.proto.spec) for chart in page.get("plotly_chart"))
    return {spec["layout"]["title"]["text"]: spec for spec in specs}


@pytest.mark.parametrize(("by", "column"), [("op", "op_name"), ("op type", "op_type"), ("name scope", "scope")])
def test_every_grouping_has_verdicts_of_its_own_and_the_chart_their_intervals(page, by, column):
    page.query_params["by"] = by
    page.query_params["all_columns"] = "true"
    frame = table(shown(page))
    comparison = compare(loaded_run("filters_512_128"), loaded_run("filters_16_8"))
    groups = group_diff(comparison.table("op_stats"), column, comparison.group_verdicts)
    expected = groups[groups[column] != "IDLE"].set_index(column)["verdict"]
    assert (expected == "faster").any()
    if by != "op":  # rows of the table are ops, and no two ops here have one name
        frame = frame[frame["status"] == "matched"]
    assert frame.set_index(column)["verdict"].to_dict() == expected.to_dict()
    assert frame["interval_low"].notna().equals(~frame["verdict"].isin(["untested"]))
    drawn = charts(page)["Confidence intervals of the changes of self time"]
    words = [a["text"] for a in drawn["layout"]["annotations"] if a["text"][:2] in ("▼ ", "▲ ", "= ", "? ", "– ")]
    assert words == [text_of(*row) for row in zip(frame["verdict"][:15], frame["evidence"][:15], strict=True)]
    assert set(frame["evidence"].dropna()) == {"single"}
    tested = frame[:15].dropna(subset="interval_low")
    intervals = [trace["x"] for trace in drawn["data"] if len(trace["x"]) == 3]
    columns = ["interval_low", "self_time_us_per_step_ratio", "interval_high"]
    assert np.array(intervals) == pytest.approx(tested[columns].to_numpy())


def test_where_nothing_could_be_tested_no_interval_is_drawn_and_it_says_why(page):
    of_corpus(page, "tf_cpu_zoo", "tf_gpu")
    assert not [title for title in charts(page) if title.startswith("Confidence")]
    assert any(caption.value == NOTHING_TESTED for caption in page.caption)


def test_a_narrow_page_has_the_figures_before_the_types(page):
    names = ["op_name", "op_type", "self_time_us_per_step_baseline"]
    wide = shown(page)
    assert list(table(wide).columns)[:3] == names
    page.session_state[narrow._IS_NARROW] = True
    page.query_params["sort"] = "-self_time_us_per_step_baseline"
    frame = table(shown(page))
    assert list(frame.columns)[:4] == [
        names[0],
        *(f"self_time_us_per_step_{r}" for r in ("baseline", "candidate", "delta")),
    ]
    assert frame["self_time_us_per_step_baseline"].is_monotonic_decreasing
    assert "op_type" in frame
