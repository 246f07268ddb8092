"""The overview page, run by Streamlit without a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, run_path
from tfcompare import compare, load, settings
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.tools.outliers import in_words, outlying
from tfcompare.ui.pages.overview import first_sentence
from tfcompare.units import format_time_us

RUNS = {run.path.parents[2].name: run for run in find_runs(SAMPLES)}
IDS = {name: run.id for name, run in RUNS.items()}
NAMES = {name: run.name for name, run in RUNS.items()}


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings()):
        yield AppTest.from_file(str(ROOT / "pages" / "1_Overview.py"), default_timeout=90)


def shown(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def headings(page: AppTest) -> list[str]:
    return [heading.value for heading in page.subheader]


def metrics(page: AppTest) -> dict[str, tuple[str, str]]:
    return {metric.label: (metric.value, metric.delta) for metric in page.metric}


def of_corpus(page: AppTest, baseline: str, *candidates: str) -> AppTest:
    """The page on two runs of the corpus."""
    ids = [f"corpus/{run_path(name).relative_to(CORPUS)}" for name in (baseline, *candidates)]
    page.query_params["baseline"] = ids[0]
    page.query_params["candidate"] = ids[1:]
    with settings.override(Settings(places=(CORPUS,))):
        return shown(page)


def test_the_headline_and_the_key_figures_are_those_of_the_frames(page):
    shown(page)
    slow, fast = load(RUNS["filters_512_128"]), load(RUNS["filters_16_8"])
    headline = compare(slow, fast).headline()
    assert "× faster than" in headline
    assert f"## {headline}" in [element.value for element in page.markdown]
    value, delta = metrics(page)["Step time (typical)"]
    assert value == format_time_us(compare(slow, fast).typical_step_us(fast))
    assert delta.startswith("−9")
    assert metrics(page)["Time matched"][0] == "100 %"


def test_outlying_steps_are_counted_and_told_apart_from_the_average(page):
    shown(page)
    captions = [caption.value for caption in page.caption]
    for name, whose in (("filters_512_128", "the baseline"), ("filters_16_8", "the candidate")):
        said = in_words(outlying(load(RUNS[name])), f"{whose}, `{NAMES[name]}`,")
        assert said == "" or said in captions
    assert any("steps of the candidate" in caption and "outlying" in caption for caption in captions)
    assert any(caption.startswith("The average step counts outlying steps in full") for caption in captions)
    assert "16-bit compute" not in metrics(page), "a CPU tells no width of numbers"


def test_the_width_of_numbers_is_a_figure_where_the_profile_tells_it(page):
    of_corpus(page, "jax_tpu", "tf_gpu")
    assert metrics(page)["16-bit compute"] == ("30.6 %", "+30.6 points")


def test_the_parts_come_in_the_order_of_their_weight(page):
    assert headings(shown(page)) == [
        "What made the difference",
        "What to try next",
        "Step times",
        "Where the time goes",
        "What changed the most",
        "How they were recorded",
    ]
    assert not page.warning, "nothing to warn of between two recordings on one machine"


def test_the_environments_stand_side_by_side(page):
    facts = shown(page).dataframe[0].value.set_index("")
    assert list(facts.columns) == [
        f"Baseline: {NAMES['filters_512_128']}",
        f"Candidate: {NAMES['filters_16_8']}",
        "Differs",
    ]
    assert facts.loc["Device type"].tolist() == ["CPU", "CPU", ""]


def test_several_candidates_have_a_headline_each_and_one_is_shown_in_detail(page):
    page.query_params["baseline"] = IDS["filters_512_128"]
    page.query_params["candidate"] = [IDS["filters_16_8"], IDS["filters_16_8_better_input"]]
    shown(page)
    assert sum(element.value.startswith("## ") for element in page.markdown) == 2
    first = metrics(page)
    page.segmented_control(key="detail").set_value(IDS["filters_16_8_better_input"])
    assert metrics(shown(page)) != first


def test_a_run_against_itself_changes_nothing(page, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(run_path("filters_16_8"), tmp_path / name)
    with settings.override(Settings(places=(tmp_path,))):
        shown(page)
    assert any("byte for byte" in element.value for element in page.markdown)
    assert metrics(page)["Step time (typical)"][1] == "unchanged"
    assert "No op's self time differs between these runs." in [info.value for info in page.info]


def test_runs_without_steps_say_so_and_what_to_do(page):
    of_corpus(page, "jax_conv_legacy", "jax_conv_08")
    assert any("jax.profiler.StepTraceAnnotation" in info.value for info in page.info)
    assert "Step time (typical)" not in metrics(page)
    assert "Device op time per run" in metrics(page)


def test_what_makes_runs_hard_to_compare_comes_first(page):
    of_corpus(page, "tf_gpu", "tf_cpu_base")
    warnings = [warning.value.replace("\\", "") for warning in page.warning]
    assert any("one recording is counted 2 times" in text for text in warnings)
    assert any("Device type**: GPU and CPU; another kind of device" in text for text in warnings)
    assert metrics(page)["Device op time per step"][0] == "–"


@pytest.mark.parametrize("name", ["tf_cpu_base", "tf_cpu_zoo", "tf_cpu_sleepy", "jax_elementwise", "jax_tpu", "tf_gpu"])
def test_every_kind_of_profile_is_shown(page, name):
    of_corpus(page, name, "jax_conv_08")
    assert metrics(page)


def test_one_run_has_nothing_to_compare(page):
    with settings.override(Settings(places=(Path(run_path("filters_16_8")),))):
        shown(page)
    assert any("nothing to compare" in info.value for info in page.info)
    assert not page.metric


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("`a` is fast.", ("`a` is fast.", "")),
        ("`a. b` is fast. The rest. More.", ("`a. b` is fast.", "The rest. More.")),
        ("1.5× faster. Rest", ("1.5× faster.", "Rest")),
        ("no stop", ("no stop", "")),
    ],
)
def test_the_first_sentence_is_the_heading(text, parts):
    assert first_sentence(text) == parts


def test_the_verdict_stands_with_what_it_rests_on(page):
    shown(page)
    assert any("**▼ likely faster** – 95 % confidence interval " in text.value for text in page.markdown)


def test_two_recordings_of_one_program_are_not_called_different(page):
    query = {"baseline": IDS["filters_16_8"], "candidate": IDS["filters_16_8_again"]}
    for name, value in query.items():
        page.query_params[name] = value
    shown(page)
    said = " ".join(text.value for text in page.markdown)
    assert "**? inconclusive**" in said
    assert "## Inconclusive: `filters_16_8_again` vs `filters_16_8`" in said
    assert "captures of 20 steps per side" in said
    assert "The step time has no conclusive change, so the following may be chance. " in said


def test_advice_has_its_evidence_and_changes_are_told(page):
    shown(page)
    titles = [expander.label for expander in page.expander]
    assert titles[0].startswith("The steps wait for input")
    assert any("The average step fell from 213 ms to 10.9 ms" in text.value for text in page.markdown)
