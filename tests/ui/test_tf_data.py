"""The tf.data page, run by Streamlit without a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, loaded_run, run_path
from tests.tf_data_runs import STEPS, plain, write, zipped
from tfcompare import compare, load, settings
from tfcompare.charts.verdicts import word_of
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.units import format_ratio

OF_MADE = "plugins/profile/2026_01_02_03_04_05"
PAGE = str(ROOT / "pages" / "6_tf_data.py")


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings()):
        yield AppTest.from_file(PAGE, default_timeout=90)


def shown(page: AppTest, places: tuple[Path, ...] = (), **query: str) -> AppTest:
    for name, value in query.items():
        page.query_params[name] = value
    with settings.override(Settings(places=places)):
        page.run()
    assert not page.exception
    return page


def of_corpus(page: AppTest, baseline: str, candidate: str, **query: str) -> AppTest:
    ids = {
        role: f"corpus/{run_path(name).relative_to(CORPUS)}"
        for role, name in (("baseline", baseline), ("candidate", candidate))
    }
    return shown(page, (CORPUS,), **ids, **query)


def of_made(page: AppTest, folder: Path, **query: str) -> AppTest:
    """Two runs written by hand, `a` and `b`, below one folder."""
    ids = {role: f"{folder.name}/{name}/{OF_MADE}" for role, name in (("baseline", "a"), ("candidate", "b"))}
    return shown(page, (folder,), **ids, **query)


def beside_itself(page: AppTest, folder: Path, name: str) -> AppTest:
    """Two copies of a run, `a` and `b`."""
    for copy in ("a", "b"):
        shutil.copytree(next(iter(find_runs(run_path(name)))).path, folder / copy / OF_MADE)
    return of_made(page, folder)


def table(page: AppTest, nth: int) -> pd.DataFrame:
    frame = page.dataframe[nth].value
    frame.columns = [column[-1] for column in frame.columns]
    return frame


def words(page: AppTest) -> str:
    return "\n".join(element.value for element in (*page.markdown, *page.info, *page.caption)).replace("\\", "")


def titles(page: AppTest) -> list[str]:
    """The graphs of the executions."""
    return [chart.proto.spec for chart in page.get("plotly_chart")]


def test_the_mean_call_has_its_interval_its_word_and_what_that_rests_on(page: AppTest) -> None:
    shown(page)
    ours, theirs = (loaded_run(name) for name in ("filters_512_128", "filters_16_8"))
    comparison = compare(ours, theirs)
    (call,) = comparison.call_verdicts(theirs, comparison.table("tf_data_pipelines"))
    verdict = call.verdict
    assert verdict.ratio == pytest.approx(call.candidate_us / call.baseline_us)
    (line,) = (element for element in page.markdown if "Mean call to" in element.value and "badge" in element.value)
    badge = f":gray-badge[{word_of(verdict)} {format_ratio(verdict.ratio)}]"
    interval = f"95 % CI {format_ratio(verdict.low)}–{format_ratio(verdict.high)}"
    assert line.value.replace("\\", "") == f"Mean call to Host:0 {badge} {interval}"
    assert line.help.replace("\\", "") == f"{verdict.reason}."
    assert table(page, 0)["verdict"].tolist() == [verdict.word]


def test_the_samples_say_what_changed_and_show_both_graphs(page: AppTest) -> None:
    shown(page)
    assert "### B is input-bound (bottleneck: Map), A is not. Mean call: B 6.78 ms, A 7.68 ms" in words(page)
    assert not any(line.value.endswith("\\") for line in page.markdown)
    charts = titles(page)
    assert len(charts) == 2
    assert "Slowest execution: baseline filters_512_128" in charts[0]
    assert "Slowest execution: candidate filters_16_8" in charts[1]
    for count in (8, 6):
        assert f"{count} iterators, all on the critical path" in words(page)
    assert words(page).count("Bottleneck: **Map** (Root › Batch › Map), ") == 1
    assert words(page).count("Slowest on it: **Map** (Root › Batch › Map), ") == 1
    assert "How to speed up **Map** in B" in [expander.label for expander in page.expander]
    assert "Give it `num_parallel_calls=tf.data.AUTOTUNE`" in words(page)
    assert "https://www.tensorflow.org/guide/data_performance_analysis" in words(page)


def test_a_run_alone_has_one_graph_and_no_baseline_or_candidate(page: AppTest) -> None:
    shown(page, baseline=next(run.id for run in find_runs(SAMPLES) if run.path.parents[2].name == "filters_16_8"))
    said = "\n".join([words(page), *(expander.label for expander in page.expander)])
    assert "### Input-bound: the mean call takes 6.78 ms (bottleneck: Map)" in said
    assert not any(word in said.lower() for word in ("baseline", "candidate", "both", "95 % ci"))
    (graph,) = titles(page)
    assert json.loads(graph)["layout"]["title"]["text"] == "Slowest execution: filters_16_8"
    assert {"self_time_us_candidate", "status"}.isdisjoint(table(page, 1).columns)


def test_the_tables_are_the_diffs(page: AppTest) -> None:
    runs = [loaded_run(name) for name in ("filters_512_128", "filters_16_8")]
    diff = compare(*runs)
    shown(page, all_columns="true", all_pipeline_columns="true")
    pipelines, iterators = table(page, 0), table(page, 1)
    expected = diff.table("tf_data")
    assert iterators["iterator_id"].tolist() == expected["iterator_id"].tolist()
    for column in ("self_time_us_baseline", "calls_candidate", "on_critical_path_baseline"):
        pd.testing.assert_series_equal(iterators[column], expected[column], check_dtype=False)
    absent_as_0 = expected["self_time_us_candidate"].fillna(0) - expected["self_time_us_baseline"].fillna(0)
    assert iterators["self_time_us_delta"].tolist() == pytest.approx(absent_as_0.tolist())
    for column in ("min_latency_us_baseline", "max_latency_us_candidate", "slow_calls_per_step_baseline"):
        assert pipelines[column].tolist() == diff.table("tf_data_pipelines")[column].tolist()


def test_another_execution_is_chosen_by_its_rank(page: AppTest) -> None:
    shown(page, rank="3")
    latency = loaded_run("filters_512_128").table("tf_data").query("execution == 3 and parent_id == ''")
    roots = table(page, 1).query("iterator == 'Root'")
    assert roots["total_duration_us_baseline"].tolist() == latency["total_duration_us"].tolist()
    assert "Execution 3: baseline" in titles(page)[0]
    page.number_input(key="rank").set_value(0)
    shown(page)
    assert "Slowest execution: baseline" in titles(page)[0]


def test_pipelines_are_chosen_by_name_and_the_longest_call_comes_first(page: AppTest, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, [(zipped(i, 0)[0], plain(i)[0]) for i in range(STEPS)])
    of_made(page, tmp_path)
    choice = page.selectbox(key="pipeline")
    assert choice.options == ["Host:1", "Host:0"] or choice.options == ["Host:0", "Host:1"]
    longest = load(tmp_path / "a").table("tf_data_pipelines").sort_values("max_latency_us")["pipeline"].tolist()
    assert choice.options == longest[::-1]
    other = choice.options[1]
    fresh = AppTest.from_file(PAGE, default_timeout=90)
    of_made(fresh, tmp_path, pipeline=other)
    assert fresh.selectbox(key="pipeline").value == other
    assert words(fresh).count(f"`{other}`: slowest of ") == 2


def test_hosts_are_chosen_where_there_are_several(page: AppTest, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, [plain(i) for i in range(STEPS)], host="one")
        write(tmp_path / name, [plain(i, 6000) for i in range(STEPS)], host="two")
    of_made(page, tmp_path)
    assert page.selectbox(key="tf_host").value == "two"
    assert words(page).count("on host `two`: slowest of ") == 2
    fresh = AppTest.from_file(PAGE, default_timeout=90)
    of_made(fresh, tmp_path, tf_host="one")
    assert words(fresh).count("on host `one`: slowest of ") == 2


def test_runs_without_tf_data_say_so_and_how_to_record_it(page: AppTest) -> None:
    of_corpus(page, "jax_conv_08", "jax_tpu")
    assert "No tf.data calls were recorded in either run" in words(page)
    assert "host_tracer_level=2" in words(page)
    assert not titles(page)
    assert not page.dataframe


@pytest.mark.parametrize("address", [{"rank": "999999"}, {"rank": "x"}, {"pipeline": "Host:7"}, {"tf_host": "none"}])
def test_a_choice_there_is_not_is_no_error(page: AppTest, address: dict[str, str]) -> None:
    shown(page, **address)
    assert len(titles(page)) == 2
