"""The op stats page, run by Streamlit without a browser."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, loaded_run, run_path
from tests.ui.op_stats_page import CONVOLUTION, shown, table
from tfcompare import compare, load, settings
from tfcompare.charts.verdicts import text_of
from tfcompare.compare.groups.aggregate import group_diff, metric_in
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.tools.columns import innermost_first
from tfcompare.tools.ops.op_figures import outside_of_steps
from tfcompare.tools.ops.op_stats import op_table
from tfcompare.ui.frame import narrow
from tfcompare.ui.frame.pair import choose_pair
from tfcompare.ui.widgets.tables import PAGE_ROWS
from tfcompare.units import format_percent, format_ratio, format_time_us
from tfcompare.views.op import rows_named
from tfcompare.views.view import NOTHING_TESTED

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
    as_shown = (lambda names: names.map(innermost_first)) if sort == "op_name" else None
    busy = diff[diff["op_type"] != "IDLE"]
    busy = busy.sort_values(sort.lstrip("-"), ascending=not falling, kind="stable", key=as_shown)
    expected = busy["self_time_us_per_step_candidate"].tolist()
    assert rows["self_time_us_per_step_candidate"].tolist() == expected


def test_ops_outside_of_the_included_steps_are_told(page):
    comparison = compare(loaded_run("filters_512_128"), loaded_run("filters_16_8"))
    sentence = outside_of_steps(comparison, comparison.candidates[0])
    assert sentence.startswith("Outside of the included steps: ")
    assert sentence in [caption.value for caption in shown(page).caption]


def test_a_chosen_op_is_shown_with_its_numbers_and_steps(page, diff):
    page.query_params["row"] = CONVOLUTION
    shown(page)
    row = diff[diff["op_name"] == CONVOLUTION.rpartition(":")[2]].iloc[0]
    assert "Self time in every step" in charts(page)
    (verdict,) = [m.value for m in page.markdown if "confidence interval" in m.value]
    low, high = format_ratio(row["interval_low"]), format_ratio(row["interval_high"])
    assert f"likely faster**: {format_ratio(row['self_time_us_per_step_ratio'])} self time" in verdict
    assert f"{low} to {high}" in verdict
    numbers = page.table[-1].value
    assert numbers.loc["Self time per step", "Candidate"] == format_time_us(row["self_time_us_per_step_candidate"])
    share = op_table(loaded_run("filters_512_128").in_steps("op_stats"), idle=False).set_index("op_name")[
        "host_self_share"
    ]
    assert numbers.loc["Share of self time", "Baseline"] == format_percent(share[row["op_name"]])
    assert page.button(key="by_hand_part").label == "Separate"


COMPILED = ("tensorflow_filters_128_32", "tensorflow_filters_16_8")


def compiled(page: AppTest) -> AppTest:
    for role, name in zip(("baseline", "candidate"), COMPILED, strict=True):
        page.query_params[role] = IDS[name]
    return page


def test_costs_are_among_all_columns_where_they_are_known(page):
    assert not [name for name in table(shown(compiled(page))).columns if name.startswith("flops")]
    page.toggle(key="all_columns").set_value(True)
    frame = table(shown(page)).set_index("op_name")
    expected = compare(*map(loaded_run, COMPILED)).table("op_stats").set_index("op_name")
    for role in ("baseline", "candidate"):
        intensity = f"operational_intensity_{role}"
        assert frame.loc["decoder_inner/Relu", intensity] == expected.loc["decoder_inner/Relu", intensity]
        for name in ("flops_per_step", "flops_per_s"):  # shown in multiples
            shown_rows, rows = (
                side.loc[["decoder_inner/Relu", "image/Sigmoid"], f"{name}_{role}"] for side in (frame, expected)
            )
            assert shown_rows.iloc[0] / shown_rows.iloc[1] == pytest.approx(rows.iloc[0] / rows.iloc[1])


def test_costs_that_no_op_has_are_in_no_column(page):
    page.query_params["all_columns"] = "true"
    columns = table(shown(page)).columns
    assert "is_eager_baseline" in columns
    assert "flops_per_s_baseline" not in columns


def test_the_share_of_time_in_a_layer_is_told(page):
    captions = [caption.value for caption in shown(compiled(page)).caption]
    assert any(re.match(r"Ops with a name scope: \d+\.\d % of self time in the baseline, ", text) for text in captions)


def test_a_choice_of_an_op_there_is_not_is_no_error(page):
    page.query_params["row"] = "Host:Nothing:at/all"
    assert "Self time in every step" not in charts(shown(page))


def test_the_change_of_a_part_of_the_step_is_attributed_to_its_ops(page):
    drawn = charts(shown(page))
    assert page.selectbox(key="part").value == "host_compute_us"
    assert any(title.startswith("Host compute by op: ") for title in drawn)


def test_where_the_time_goes_is_in_time_unless_shares_are_asked_for(page):
    title = "Self time on host by op"
    assert charts(shown(page))[title]["layout"]["xaxis"]["title"]["text"] == "Self time per step (ms)"
    page.toggle(key="shares").set_value(True)
    assert charts(shown(page))[title]["layout"]["xaxis"]["title"]["text"] == "Share of self time"


def test_a_run_alone_has_no_baseline_and_no_changes(page):
    page.query_params["baseline"] = IDS["filters_512_128"]
    page.query_params["row"] = CONVOLUTION
    shown(page)
    assert not {"verdict", "self_time_us_per_step_candidate"} & set(table(page).columns)
    drawn = charts(page)
    assert not any("change" in title for title in drawn)
    assert [len(drawn[title]["data"]) for title in ("Self time on host by op", "Self time in every step")] == [1, 1]
    values = [*page.markdown, *page.caption, *page.info, *page.subheader, *page.metric]
    words = " ".join(f"{element.label if element.type == 'metric' else ''} {element.value}" for element in values)
    assert not {"baseline", "candidate", "both"} & set(words.lower().split())
    assert not [button.key for button in page.button if str(button.key).startswith("by_hand")]


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


def numbers(cells: dict[str, str]) -> np.ndarray:
    """The numbers of a trace, as Plotly sends them."""
    return np.frombuffer(b64decode(cells["bdata"]), cells["dtype"])


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
    drawn = charts(page)["The 15 largest changes of self time"]
    signs = ("▼ ", "▲ ", "= ", "? ", "– ")
    words = [a["text"].partition(" · ")[0] for a in drawn["layout"]["annotations"] if a["text"][:2] in signs]
    assert words == [text_of(*row) for row in zip(frame["verdict"][:15], frame["evidence"][:15], strict=True)]
    assert set(frame["evidence"].dropna()) == {"single"}
    tested = frame[:15].dropna(subset="interval_low")
    lines = [numbers(trace["x"]) for trace in drawn["data"] if trace["type"] == "scatter"]
    found = sorted(x for line in lines for x in line if not np.isnan(x))
    baseline = tested["self_time_us_per_step_baseline"] / 1000
    expected = [(tested[end] - 1) * baseline for end in ("interval_low", "interval_high")]
    assert found == pytest.approx(np.sort(np.concatenate(expected)).tolist())


def test_where_nothing_could_be_tested_no_interval_is_drawn_and_it_says_why(page):
    of_corpus(page, "jax_conv_legacy", "jax_conv_08")
    (drawn,) = [spec for title, spec in charts(page).items() if "largest change" in title]
    assert {trace["type"] for trace in drawn["data"]} == {"bar"}
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


def test_the_view_of_a_renamed_op_has_the_kernels_of_both_names():
    rows = pd.DataFrame(
        {
            "op_name": ["a/conv", "a/conv", "b/conv", "a/other", "b/other"],
            "op_name_candidate": ["b/conv", None, "b/conv", "a/conv", "b/other"],
            "status": ["matched", "removed", "added", "matched", "added"],
        }
    )
    assert rows_named(rows, "a/conv", "b/conv").index.tolist() == [0, 1, 2]
    assert rows_named(rows, "a/conv", None).index.tolist() == [0, 1]
    assert rows_named(rows, None, "b/conv").index.tolist() == [0, 2]


def test_an_interval_is_of_the_ratio_that_is_shown():
    """Per run, runs with different numbers of steps have another ratio than per step."""
    long = load(RUNS["filters_512_128"])
    short = load(RUNS["filters_16_8"], steps="1:10")
    for per in ("step", "run"):
        pair = choose_pair(compare(long, short, per=per))
        rows = pair.ops(idle=False)
        tested = rows[rows["interval_low"].notna()]
        assert len(tested) > 5
        ratio = tested[f"{metric_in(rows, 'self_time_us')}_ratio"]
        for (_, row), value in zip(tested.iterrows(), ratio, strict=True):
            low, high = pair.interval(row)
            assert low <= value <= high


def test_per_occurrence_divides_the_table_by_what_ran(page):
    """One GPU against eight: per device 131 µs less, and per occurrence 26 µs."""
    page.query_params["each"] = "true"
    frame = table(of_corpus(page, "jax_conv_legacy", "jax_conv_08")).set_index("op_name")
    row = frame.loc["jit(forward_3d_conv)/jit(main)/conv_general_dilated"]
    expected = compare(*map(loaded_run, ("jax_conv_legacy", "jax_conv_08"))).per_occurrence("op_stats")
    expected = expected.set_index("op_name").loc[row.name]
    for side in ("baseline", "candidate"):
        name = f"self_time_us_per_occurrence_{side}"
        assert row[name] == pytest.approx(expected[name])
    assert row["self_time_us_per_occurrence_baseline"] == pytest.approx(698.2, abs=0.1)
    assert {"occurrences_per_device_baseline", "occurrences_per_device_candidate"} <= set(frame.columns)
