"""The input pipeline page, run by Streamlit without a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.input_runs import BETTER, NAIVE, input_diff
from tests.profiles import ALL_RUNS, CORPUS, ROOT, SAMPLES, loaded_run, run_path
from tfcompare import compare, settings
from tfcompare.charts.verdicts import word_of
from tfcompare.run import Run
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.tables.step_times import on_slowest_host
from tfcompare.tools.input_bound import InputWait, headline, input_wait
from tfcompare.tools.input_verdicts import on_waiting
from tfcompare.ui.pages.input_pipeline_ops import row_key
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


def test_the_sentence_the_words_and_the_cards_are_those_of_the_frames(page, runs):
    text = markdown(shown(page))
    ours, theirs = (wait_of(run) for run in runs)
    assert f"### {headline(ours, theirs, ('A', 'B')).removesuffix('.')}" in text
    assert metrics(page)["Input wait per step"] == format_time_us(theirs.input_time_us.average)
    assert metrics(page)["Share of the step"] == f"{100 * theirs.share.average:.1f} %"


def test_the_help_of_a_card_has_mean_deviation_and_range_of_each_run(page, runs):
    shown(page)
    helps = {metric.label: metric.help for metric in page.metric}
    for label, field in (("Input wait per step", "input_time_us"), ("Mean step time", "step_time_us")):
        for role, run in zip(("Baseline", "Candidate"), runs, strict=True):
            spread = getattr(wait_of(run), field)
            numbers = (spread.average, spread.deviation, spread.smallest, spread.largest)
            assert f"| {role} | {' | '.join(map(format_time_us, numbers))} | 20 |" in helps[label]


def test_swapped_runs_are_the_mirror_image(page, runs):
    of_samples(page, "filters_16_8", "filters_512_128")
    ours, theirs = (wait_of(run) for run in runs)
    assert f"### {headline(theirs, ours, ('A', 'B')).removesuffix('.')}" in markdown(page)
    assert "(not input-bound)" in markdown(page)
    assert not any("input time" in label for label in expanders(page))


def test_the_table_shows_the_numbers_of_the_diff(page, runs):
    diff = compare(*runs).table("input_pipeline")
    frame = table(shown(page))
    name = "self_time_us_per_step_"
    assert list(frame.columns) == [
        "op_name", "category", f"{name}baseline", f"{name}candidate", f"{name}delta",
        "input_self_share_baseline", "input_self_share_candidate",
    ]  # fmt: skip
    assert frame[f"{name}candidate"].tolist() == diff[f"{name}candidate"].tolist()
    assert frame["category"].tolist() == diff["category"].tolist()
    assert frame["input_self_share_baseline"].sum() == pytest.approx(100)


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


@pytest.mark.parametrize(("ours", "theirs"), [(NAIVE, BETTER), (NAIVE, ""), (NAIVE, NAIVE)])
def test_no_two_rows_have_one_name(ours, theirs):
    assert row_key(input_diff(ours, theirs)).is_unique
    diff = input_diff(ours, theirs)
    twice = pd.concat([diff, diff[diff["status"] == "matched"].assign(status="added")], ignore_index=True)
    assert row_key(twice).is_unique


def test_a_choice_of_an_op_there_is_not_is_no_error(page):
    page.query_params["row"] = "nowhere:nothing:at/all"
    assert not op_charts(shown(page))


def test_the_advice_is_on_what_the_candidate_spends_its_input_time_on(page):
    text = markdown(shown(page))
    assert "B: **98.0 %** of the input time is preprocessing: `Iterator::Root::BatchV2::Map`" in expanders(page)
    assert "Give `map`" in text
    assert "https://www.tensorflow.org/guide/profiler" in text


def test_a_run_beside_itself_shows_no_difference(page, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(run_path("filters_16_8"), tmp_path / name)
    with settings.override(Settings(places=(tmp_path,))):
        shown(page)
    assert "A and B are the same capture" in markdown(page)
    assert "None of these ops changed its self time." in [caption.value for caption in page.caption]
    assert {metric.delta for metric in page.metric} == {"unchanged"}


def test_one_of_several_candidates_is_looked_at(page):
    of_samples(page, "filters_512_128", "filters_16_8", "filters_16_8_better_input")
    assert "### B waits for input 62.2 %" in markdown(page)
    page.segmented_control(key="detail").set_value(IDS["filters_16_8_better_input"])
    wait = wait_of(loaded_run("filters_16_8_better_input"))
    assert f"### C waits for input {format_percent(wait.share.average)} of the step" in markdown(shown(page))


def test_without_steps_and_input_each_part_says_so_and_what_to_do(page):
    of_any(page, "jax_elementwise", "jax_conv_08")
    assert "### No input pipeline was recorded in either run" in markdown(page)
    assert "StepTraceAnnotation" in infos(page)
    assert "host_tracer_level=2" in infos(page)
    assert not page.metric
    assert not page.dataframe


def test_one_side_without_input_is_named_and_the_other_shown(page):
    of_any(page, "jax_tpu", "tf_cpu_zoo")
    assert "A does not show how long it waits for input" in markdown(page)
    assert metrics(page)["Input wait per step"] != "–"
    assert not table(page).empty


def test_without_steps_the_candidate_is_judged_by_its_calls_to_tf_data(page, monkeypatch):
    monkeypatch.setattr("tfcompare.tools.input_bound.why_unknown", lambda _: "no step markers were found")
    assert "B is highly input-bound: tf.data calls take" in markdown(shown(page))
    assert not [chart for chart in page.get("plotly_chart") if "Step time and input wait" in chart.proto.spec]


@pytest.mark.parametrize("name", ALL_RUNS)
def test_every_kind_of_profile_is_shown(page, name):
    of_any(page, name, "tf_cpu_sleepy" if name != "tf_cpu_sleepy" else "tf_gpu")
    (found,) = (line.value for line in page.markdown if line.value.startswith("### "))
    assert "input" in found
    assert bool(page.info) == found.startswith("### No ")


def test_the_waiting_and_the_mean_call_have_their_interval_their_word_and_what_that_rests_on(page, runs):
    lines = {line.value.replace("\\", ""): line.help.replace("\\", "") for line in shown(page).markdown if line.help}
    comparison = compare(*runs)
    waiting, call = on_waiting(comparison, runs[1]), comparison.slowest_call_verdict(runs[1])
    for verdict, name in ((waiting, "Input wait"), (call.verdict, "Mean tf.data call (Host:0)")):
        badge = f":gray-badge[{word_of(verdict)} {format_ratio(verdict.ratio)}]"
        line = f"{name} {badge} 95 % CI {format_ratio(verdict.low)}–{format_ratio(verdict.high)}"
        assert lines[line] == f"{verdict.reason}."
    assert metrics(page)["Mean tf.data call"] == format_time_us(call.candidate_us)


def test_a_card_has_a_colour_only_where_its_verdict_is_faster_or_slower(page, runs):
    shown(page)
    comparison = compare(*runs)
    waiting = on_waiting(comparison, runs[1])
    colours = {metric.label: metric.proto.color for metric in page.metric}
    gray = colours["Share of the step"]
    assert (colours["Input wait per step"] == gray) == (waiting.word not in ("faster", "slower"))
    assert colours["Mean step time"] != gray
    assert colours["Input ops per step"] == gray


def test_a_run_beside_itself_needs_no_interval(page):
    of_samples(page, "filters_16_8", "filters_16_8")
    assert "95 % CI" not in markdown(page)


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
