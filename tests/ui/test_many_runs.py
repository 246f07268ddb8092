"""The section on all runs, run by Streamlit without a browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLE_RUNS, SIMULATED_RUNS, run_path
from tfcompare import compare, load
from tfcompare.tools.runs.many_runs import fastest_first, runs_table
from tfcompare.views.candidates import REFERENCE

TEN = [f"{name}{suffix}" for suffix in ("", "_copy", "_copy_2") for name in sorted(SAMPLE_RUNS)][:10]


def section(paths: list[str]) -> None:
    import streamlit as st

    from tfcompare import compare, load
    from tfcompare.charts.pair import pairs_of
    from tfcompare.ui.widgets.renderer import Renderer
    from tfcompare.views.candidates import VIEW

    comparison = st.session_state.setdefault("comparison", compare(*map(load, paths)))
    Renderer(pairs_of(comparison)[0], {}).show_view(VIEW)


def page(*paths: Path) -> AppTest:
    return AppTest.from_function(section, default_timeout=90, kwargs={"paths": [str(path) for path in paths]})


def shown(app: AppTest) -> AppTest:
    app.run()
    assert not app.exception
    return app


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Ten runs, the baseline first, some of them copies of others."""
    folder = tmp_path_factory.mktemp("ten")
    for name in TEN:
        shutil.copytree(SAMPLE_RUNS[name.partition("_copy")[0]], folder / name)
    return [folder / name for name in ("filters_512_128", *(n for n in TEN if n != "filters_512_128"))]


def table(app: AppTest) -> pd.DataFrame:
    frame = app.dataframe[0].value
    frame.columns = [column[-1] for column in frame.columns]
    return frame


def figures(app: AppTest) -> list[dict]:
    return [json.loads(element.proto.spec) for element in app.get("plotly_chart")]


def titles(app: AppTest) -> list[str]:
    return [figure["layout"]["title"]["text"] for figure in figures(app)]


def test_of_ten_runs_each_has_a_row_the_fastest_first(ten):
    rows = table(shown(page(*ten)))
    expected = fastest_first(runs_table(compare(*map(load, ten))))
    letters, names = zip(*rows["name"].str.split(" · "), strict=True)
    assert list(names) == expected["name"].tolist()
    assert sorted(letters) == list("ABCDEFGHIJ"), "the letters of the charts and sentences"
    for of in ("mean", "median"):
        assert rows[f"step_time_ms_{of}"].tolist() == (expected[f"step_time_us_{of}"] / 1000).tolist()
    assert rows["ratio"].dropna().tolist() == expected["ratio"].dropna().tolist()
    baseline = rows[rows["verdict_text"] == REFERENCE]
    assert baseline["name"].tolist() == ["A · filters_512_128"]
    assert baseline[["ratio", "peak_bytes_delta"]].isna().all(axis=None)
    assert set(rows["verdict_text"].str[1:].str.strip(" =")) >= {"likely faster", "same"}
    assert not rows["verdict_text"].str.startswith("'").any()


def test_a_header_sorts_the_table(ten):
    app = page(*ten)
    app.query_params["runs_sort"] = "-peak_bytes"
    peaks = table(shown(app))["peak_bytes"].tolist()
    assert peaks == sorted(peaks, reverse=True)
    assert len(set(peaks)) > 1


def test_the_charts_say_what_they_show_and_the_rows_can_be_op_types(ten):
    app = shown(page(*ten))
    assert titles(app) == [
        "Step time of every run, oldest first",
        "Change of self time by op and run, oldest run first",
    ]
    assert len(figures(app)[1]["layout"]["xaxis"]["ticktext"]) == 9, "a column for each candidate"
    app.segmented_control(key="changes_by").set_value("op_type")
    assert "by op type" in titles(shown(app))[1]


def test_one_candidate_alone_is_not_many_runs():
    one = compare(load(run_path("filters_512_128")), load(run_path("filters_16_8")))
    assert "There is only one candidate" in str(one.view("candidates"))


def test_copies_of_one_run_have_no_op_that_changed(tmp_path):
    for name in "abc":
        shutil.copytree(run_path("filters_16_8"), tmp_path / name)
    app = shown(page(*(tmp_path / name for name in "abc")))
    assert [info.value for info in app.info] == [
        "No op's self time differs between the baseline and any of these runs."
    ]
    assert set(table(app)["verdict_text"]) == {REFERENCE, "\u2009= same"}


def test_what_keeps_a_verdict_from_being_one_on_the_program_is_said_below():
    app = shown(page(*SAMPLE_RUNS.values(), *SIMULATED_RUNS.values()))
    rows = table(app)
    rows = rows.set_index(rows["name"].str.partition(" · ")[2])
    for name in SIMULATED_RUNS:
        assert rows.loc[name, "verdict_text"].endswith(" *")
    assert any("device type" in caption.value for caption in app.caption)


def test_runs_without_steps_say_so():
    names = ("jax_conv_legacy", "jax_conv_08", "jax_elementwise")
    app = shown(page(*(run_path(name) for name in names)))
    assert any("jax.profiler.StepTraceAnnotation" in info.value for info in app.info)
    assert "step_time_ms_mean" not in table(app)
    assert len(table(app)) == 3


def test_a_run_without_steps_among_others_is_named():
    app = shown(page(run_path("filters_16_8"), run_path("filters_16_8_again"), run_path("jax_conv_08")))
    assert any("mark no steps" in caption.value for caption in app.caption)
    assert titles(app)[0] == "Step time of every run, oldest first"
    assert len(table(app)) == 3
