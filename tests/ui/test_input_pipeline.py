"""The input pipeline page, run by Streamlit without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, loaded_run, run_path
from tfcompare import compare, settings
from tfcompare.charts.verdicts import word_of
from tfcompare.run import Run
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.tables.step_times import on_slowest_host
from tfcompare.tools.input.input_bound import InputWait, input_wait
from tfcompare.tools.input.input_verdicts import on_waiting
from tfcompare.units import format_percent, format_ratio, format_time_us

IDS = {run.path.parents[2].name: run.id for run in find_runs(SAMPLES)}
ROOT_ITERATOR = "localhost:preprocessing:Iterator::Root"


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings()):
        yield AppTest.from_file(str(ROOT / "pages" / "5_Input_pipeline.py"), default_timeout=90)


@pytest.fixture(scope="module")
def runs() -> tuple[Run, Run]:
    return loaded_run("filters_512_128"), loaded_run("filters_16_8")


def shown(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def of_samples(page: AppTest, baseline: str, *candidates: str) -> AppTest:
    page.query_params["baseline"] = IDS[baseline]
    page.query_params["candidate"] = [IDS[name] for name in candidates]
    return shown(page)


def of_any(page: AppTest, baseline: str, candidate: str) -> AppTest:
    """The page on two runs of the corpus or the samples."""
    for role, name in (("baseline", baseline), ("candidate", candidate)):
        path = run_path(name)
        is_sample = SAMPLES in path.parents
        run = find_runs(path)[0]
        place = SAMPLES if is_sample else CORPUS
        page.query_params[role] = f"{place.name}/{run.path.relative_to(place)}"
    with settings.override(Settings(places=(CORPUS, SAMPLES))):
        return shown(page)


def wait_of(run: Run) -> InputWait:
    return input_wait(on_slowest_host(run.table("steps")), run.info)


def markdown(page: AppTest) -> str:
    return "\n".join(element.value for element in page.markdown)


def expanders(page: AppTest) -> list[str]:
    return [expander.label for expander in page.expander]


def infos(page: AppTest) -> str:
    return "\n".join(element.value for element in page.info)


def metrics(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def table(page: AppTest) -> pd.DataFrame:
    """The table of the ops as it is sent to the browser, by the frame's column names."""
    frame = page.dataframe[-1].value
    frame.columns = [column[-1] for column in frame.columns]
    return frame


def test_all_columns_are_those_of_tensorboard_and_the_diff(page):
    page.query_params["all_columns"] = "true"
    columns = set(table(shown(page)).columns)
    for name in ("occurrences_per_step", "total_time_us_per_step", "self_time_us_per_step"):
        assert {f"{name}_{part}" for part in ("baseline", "candidate", "delta", "ratio")} <= columns
    assert {"input_total_share_baseline", "status", "match", "verdict", "host", "op_name_candidate"} <= columns


def test_a_category_and_words_leave_the_rows_that_fit(page, runs):
    diff = compare(*runs).table("input_pipeline")
    page.query_params["category"] = "reading on demand"
    assert set(table(shown(page))["category"]) == {"reading on demand"}
    page.text_input(key="filter").set_value("flatmap[1]")
    assert (
        len(table(shown(page)))
        == (diff["op_name"].str.contains("FlatMap[1]", regex=False) & (diff["category"] == "reading on demand")).sum()
    )
    page.text_input(key="filter").set_value("no such op")
    assert "Clear it to see all" in infos(shown(page))


def op_charts(page: AppTest) -> list[str]:
    """The charts of a selected op."""
    specs = [chart.proto.spec for chart in page.get("plotly_chart")]
    return [spec for spec in specs if "Self time in every step" in spec]


def test_a_chosen_op_is_shown_in_every_step(page):
    page.query_params["row"] = ROOT_ITERATOR
    (chart,) = op_charts(shown(page))
    assert "Iterator::Root" in chart


def test_a_choice_of_an_op_there_is_not_is_no_error(page):
    page.query_params["row"] = "nowhere:nothing:at/all"
    assert not op_charts(shown(page))


def test_one_of_several_candidates_is_looked_at(page):
    of_samples(page, "filters_512_128", "filters_16_8", "filters_16_8_better_input")
    assert "### B waits for input 62.2 %" in markdown(page)
    page.segmented_control(key="detail").set_value(IDS["filters_16_8_better_input"])
    wait = wait_of(loaded_run("filters_16_8_better_input"))
    assert f"### C waits for input {format_percent(wait.share.average)} of the step" in markdown(shown(page))


def test_without_steps_and_input_each_part_says_so_and_what_to_do(page):
    of_any(page, "jax_elementwise", "jax_conv_08")
    assert infos(page).startswith("No input pipeline was recorded in either run. Mark each step with `")
    assert "StepTraceAnnotation" in infos(page)
    assert "host_tracer_level=2" in infos(page)
    assert not page.metric
    assert not page.dataframe


def test_the_waiting_and_the_mean_call_have_their_interval_their_word_and_what_that_rests_on(page, runs):
    lines = {line.value.replace("\\", ""): line.help.replace("\\", "") for line in shown(page).markdown if line.help}
    comparison = compare(*runs)
    waiting, call = on_waiting(comparison, runs[1]), comparison.slowest_call_verdict(runs[1])
    for verdict, name in ((waiting, "Input wait"), (call.verdict, "Mean tf.data call (Host:0)")):
        badge = f":gray-badge[{word_of(verdict)} {format_ratio(verdict.ratio)}]"
        line = f"{name} {badge} 95 % CI {format_ratio(verdict.low)}–{format_ratio(verdict.high)}"
        assert lines[line] == f"{verdict.reason}."
    assert metrics(page)["Mean tf.data call"] == format_time_us(call.candidate_us)


def test_a_run_alone_has_one_series_and_no_baseline_or_candidate(page):
    page.query_params["baseline"] = IDS["filters_16_8"]
    shown(page)
    text = "\n".join([markdown(page), infos(page), *expanders(page), *metrics(page)])
    assert "### Highly input-bound: it waits for input 62.2 % of the step time" in text
    assert not any(word in text.lower() for word in ("baseline", "candidate", "both", "95 % ci"))
    assert {metric.delta for metric in page.metric} == {""}
    specs = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]
    assert [len(spec["data"]) for spec in specs] == [2, 1]
    assert page.dataframe[-1].value.shape[1] == 4


def test_the_wait_is_shown_as_a_share_on_request(page):
    page.query_params["wait_as"] = "share"
    charts = [chart.proto.spec for chart in shown(page).get("plotly_chart")]
    assert any("Input wait as a share of each step" in chart for chart in charts)
    assert not any("Step time and input wait" in chart for chart in charts)
