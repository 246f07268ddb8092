"""The section on all runs, run by Streamlit without a browser."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLE_RUNS, compared_runs, loaded_run
from tests.tf_gpu_runs import FILTERS
from tests.ui.pages import charts, table
from tests.views.flat import shown, texts
from tfcompare import compare, load
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.run import Run
from tfcompare.views.blocks import Chart, Table
from tfcompare.views.candidates.figures import fastest_first, runs_table
from tfcompare.views.candidates.view import REFERENCE, VIEW

NAMES = ("filters_512_128", *sorted(SAMPLE_RUNS.keys() - {"filters_512_128"}))


def section() -> None:
    import streamlit as st

    from tfcompare.compare.pairs import pairs_of
    from tfcompare.ui.widgets.renderer import Renderer
    from tfcompare.views.candidates.view import VIEW

    Renderer(pairs_of(st.session_state["comparison"])[0], {}).show_view(VIEW)


def of_runs(*runs: Run) -> Pair:
    return pairs_of(compare(*runs))[0]


def ranking(pair: Pair) -> Table:
    return shown(VIEW, pair, Table)[0]


def test_every_run_has_a_row_the_fastest_first_and_a_header_sorts_them() -> None:
    comparison = compare(*map(loaded_run, NAMES))
    app = AppTest.from_function(section, default_timeout=90)
    app.session_state["comparison"] = comparison
    app.query_params["more_of_all_runs"] = "true"
    app.run()
    assert not app.exception
    rows = table(app)
    expected = fastest_first(runs_table(comparison))
    letters, names = zip(*rows["name"].str.split(" · "), strict=True)
    assert list(names) == expected["name"].tolist()
    assert dict(zip(names, letters, strict=True)) == dict(zip(NAMES, "ABCD", strict=True)), "those of the charts"
    for of in ("mean", "median"):
        assert rows[f"step_time_ms_{of}"].tolist() == (expected[f"step_time_us_{of}"] / 1000).tolist()
    assert rows["ratio"].dropna().tolist() == expected["ratio"].dropna().tolist()
    baseline = rows[rows["verdict_text"] == REFERENCE]
    assert baseline["name"].tolist() == ["A · filters_512_128"]
    assert baseline[["ratio", "peak_bytes_delta"]].isna().all(axis=None)
    assert set(rows["verdict_text"].str[1:].str.strip(" =")) >= {"likely faster"}
    assert not rows["verdict_text"].str.startswith("'").any()
    assert len(list(charts(app).values())[1]["layout"]["xaxis"]["ticktext"]) == 3, "a column for each candidate"
    app.query_params["runs_sort"] = "-peak_bytes"
    app.segmented_control(key="changes_by").set_value("op_type").run()
    assert not app.exception
    assert "by op type" in list(charts(app))[1]
    peaks = table(app)["peak_bytes"].tolist()
    assert peaks == sorted(peaks, reverse=True) and len(set(peaks)) > 1


def test_one_candidate_alone_is_not_many_runs() -> None:
    assert "There is only one candidate" in str(compared_runs("filters_512_128", "filters_16_8").view("candidates"))


def test_copies_of_one_run_have_no_op_that_changed(tmp_path: Path) -> None:
    for name in "abc":
        shutil.copytree(SAMPLE_RUNS["filters_16_8"], tmp_path / name)
    pair = of_runs(*(load(tmp_path / name) for name in "abc"))
    assert "No op's self time differs between the baseline and any of these runs." in texts(VIEW, pair)
    assert set(ranking(pair).rows["verdict_text"]) == {REFERENCE, "\u2009= same"}


def test_what_keeps_a_verdict_from_being_one_on_the_program_is_said_below() -> None:
    pair = of_runs(*map(loaded_run, ("filters_512_128", "filters_16_8", *FILTERS)))
    rows = ranking(pair).rows
    rows = rows.set_index(rows["name"].str.partition(" · ")[2])
    for name in FILTERS:
        assert rows.loc[name, "verdict_text"].endswith(" *")
    assert any("device type" in text for text in texts(VIEW, pair))


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("jax_conv_legacy", "jax_conv_08", "jax_elementwise"), "jax.profiler.StepTraceAnnotation"),
        (("filters_16_8", "filters_16_8_again", "jax_conv_08"), "mark no steps"),
    ],
)
def test_runs_without_steps_are_shown_and_it_says_so(names: tuple[str, ...], sentence: str) -> None:
    pair = of_runs(*map(loaded_run, names))
    assert any(sentence in text for text in texts(VIEW, pair))
    found = ranking(pair)
    assert len(found.rows) == 3
    have_steps = names[0] == "filters_16_8"
    assert any(name.startswith("step_time_") for name in found.names) == have_steps
    figures = [figure for chart in shown(VIEW, pair, Chart) if (figure := chart.draw()) is not None]
    assert (figures[0].layout.title.text == "Step time of every run, oldest first") == have_steps
