"""The overview page, run by Streamlit without a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from tests.frames.async_cpu import AsyncCpuProgram
from tests.profiles import CORPUS, ROOT, SAMPLES, run_path
from tests.ui.page_texts import texts
from tfcompare import compare, load, settings
from tfcompare.charts.verdicts import word_of
from tfcompare.compare.slow_step_words import sentences
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.units import format_bytes, format_time_us

RUNS = {run.path.parents[2].name: run for run in find_runs(SAMPLES)}
GUIDING = [RUNS["filters_512_128"], RUNS["filters_16_8"]]
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


def test_the_demo_says_what_to_look_at_until_it_is_hidden(page):
    def guidance() -> list[str]:
        return [caption.value for caption in shown(page).caption if settings.DEMO_GUIDANCE[0] in caption.value]

    assert guidance() == []
    with settings.override(Settings(places=(SAMPLES,), is_demo=True)):
        (text,) = guidance()
        assert all(sentence in text for sentence in settings.DEMO_GUIDANCE)
        next(button for button in page.button if button.label == "Hide").click()
        assert guidance() == []


def test_the_demo_goes_from_the_home_page_to_the_overview_once() -> None:
    home = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    with settings.override(Settings(places=(SAMPLES,), is_demo=True)):
        shown(home)
        assert f"### {compare(*map(load, GUIDING)).headline(names=('A', 'B'))}" in [m.value for m in home.markdown]
        home.switch_page("app.py")
        assert "Compare profile runs" in [title.value for title in shown(home).title]


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


def test_the_verdict_and_the_figures_are_those_of_the_frames(page):
    shown(page)
    slow, fast = load(RUNS["filters_512_128"]), load(RUNS["filters_16_8"])
    comparison = compare(slow, fast)
    assert f"### {comparison.headline(names=('A', 'B'))}" in [element.value for element in page.markdown]
    (verdict,) = comparison.verdict.values()
    badge = f":blue-badge[{word_of(verdict)}]"
    assert badge in [element.value for element in page.markdown]
    assert any(caption.value.startswith("95 % confidence interval ") for caption in page.caption)
    found = metrics(page)
    assert list(found) == ["Step time", "Throughput", "Host compute", "Input wait", "Peak memory"]
    assert found["Step time"][0] == format_time_us(comparison.step_time_us(fast))
    assert found["Step time"][1].startswith("−9")
    peak = max(fast.table("memory_summary")["peak_bytes"])
    assert found["Peak memory"][0] == format_bytes(peak)


@pytest.mark.parametrize(
    ("names", "letters"),
    [
        (("filters_512_128", "filters_16_8"), ""),
        (("jax_filters_128_32", "tensorflow_filters_16_8"), "AB"),
        (("balanced", "slow_input"), "B"),
    ],
)
def test_slow_steps_and_strays_are_told_of_the_runs_that_have_them(page, names, letters):
    page.query_params |= dict(zip(("baseline", "candidate"), (IDS[name] for name in names), strict=True))
    shown(page)
    said = texts(page).replace("`", "")
    found = {letter: sentences(load(RUNS[name]), None, f"`{letter}`") for name, letter in zip(names, "AB", strict=True)}
    assert "".join(letter for letter, texts in found.items() if texts) == letters
    assert all(text.replace("`", "") in said for of_run in found.values() for text in of_run)
    links = [element.value for element in page.markdown if element.value.startswith("Show step ")]
    assert len(links) == len(letters)


def test_the_first_screen_answers_and_each_thing_is_said_once(page):
    changes = "Largest changes, self time per step"
    assert headings(shown(page)) == ["Why", "What to try next", changes, "Typical step", "Steps", "Largest idle gap"]
    assert not page.warning, "nothing to warn of between two recordings on one machine"
    labels = [expander.label for expander in page.main.expander]
    assert labels[0].startswith("The steps wait for input")
    table = page.dataframe[0].value
    assert table["Change"].tolist()[:2] == ["−130 ms", "−46.3 ms"]
    assert table["Verdict"].tolist() == ["▼ likely faster"] * 5
    assert table[["A", "B", "Ratio"]].iloc[0].tolist() == ["131 ms", "1.28 ms", "0.00977×"]


def test_a_selected_change_opens_the_op(page):
    page.query_params["change_row"] = "op:Host:Conv2D:autoencoder_1/image_1/convolution"
    assert "**`Conv2D` on host**" in [element.value for element in shown(page).markdown]


def test_one_run_alone_has_its_figures_ops_and_advice(page):
    page.query_params["baseline"] = IDS["filters_512_128"]
    shown(page)
    assert headings(page) == [
        "Where the time goes", "What to try next", "Longest ops on the host, self time per step", "Typical step",
        "Steps", "Largest idle gap",
    ]  # fmt: skip
    run = load(RUNS["filters_512_128"])
    time = format_time_us(compare(run, run).step_time_us(run))
    assert f"### {time} per step" in [element.value for element in page.markdown]
    assert metrics(page)["Step time"] == (time, "")
    assert page.dataframe[0].value["Time"].iloc[0] == "131 ms"
    text = " ".join(element.value for element in (*page.markdown, *page.caption)).lower()
    assert "baseline" not in text
    assert "candidate" not in text


def test_the_captures_are_described_behind_the_caveats(page):
    facts = shown(page).table[0].value
    assert list(facts.columns) == ["A filters_512_128", "B filters_16_8", "Differs"]
    assert facts.loc["Device type"].tolist() == ["CPU", "CPU", ""]


def test_several_candidates_have_a_headline_each_and_one_is_shown_in_detail(page):
    page.query_params["baseline"] = IDS["filters_512_128"]
    page.query_params["candidate"] = [IDS["filters_16_8"], IDS["filters_16_8_better_input"]]
    shown(page)
    assert [element.value for element in page.markdown if element.value.startswith("### `B` ")]
    first = metrics(page)
    page.segmented_control(key="detail").set_value(IDS["filters_16_8_better_input"])
    assert metrics(shown(page)) != first
    assert [element.value for element in page.markdown if element.value.startswith("### `C` ")]


def test_a_run_against_itself_changes_nothing(page, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(run_path("filters_16_8"), tmp_path / name)
    with settings.override(Settings(places=(tmp_path,))):
        shown(page)
    assert any("byte for byte" in element.value for element in page.markdown)
    assert metrics(page)["Step time"][1] == "unchanged"
    assert "No op changed its self time." in [element.value for element in page.markdown]


def test_runs_without_steps_say_so_and_what_to_do(page):
    of_corpus(page, "jax_conv_legacy", "jax_conv_08")
    assert any("jax.profiler.StepTraceAnnotation" in caption.value for caption in page.caption)
    assert "Step time" not in metrics(page)
    assert "Device op time per device" in metrics(page)
    assert "– not tested" in page.dataframe[0].value["Verdict"].tolist()


def test_runs_whose_steps_end_before_their_work_say_so(page, tmp_path):
    times = (2_000.0,) * 12
    programs = {"a": AsyncCpuProgram(times, blocks=True), "b": AsyncCpuProgram(times, lost=2)}
    for name, program in programs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "host.xplane.pb").write_bytes(program.profile())
    page.query_params["baseline"], page.query_params["candidate"] = f"{tmp_path.name}/a", f"{tmp_path.name}/b"
    with settings.override(Settings(places=(tmp_path,))):
        shown(page)
    assert "### Step times cannot be compared" in [element.value for element in page.markdown]
    assert any(caption.value.startswith("Steps end before their work: ") for caption in page.caption)
    assert not any("StepTraceAnnotation" in caption.value for caption in page.caption)


def test_what_makes_runs_hard_to_compare_is_a_caveat(page):
    of_corpus(page, "tf_gpu", "tf_cpu_base")
    (caveats,) = [element.value.replace("\\", "") for element in page.markdown if element.value.startswith("- ")]
    assert "one capture is counted 2 times" in caveats
    assert caveats.startswith("- **Device type**: GPU vs CPU; another kind of device")


@pytest.mark.parametrize("name", ["tf_cpu_base", "tf_cpu_zoo", "tf_cpu_sleepy", "jax_elementwise", "jax_tpu", "tf_gpu"])
def test_every_kind_of_profile_is_shown(page, name):
    of_corpus(page, name, "jax_conv_08")
    assert metrics(page)


def test_two_recordings_of_one_program_are_not_called_different(page):
    query = {"baseline": IDS["filters_16_8"], "candidate": IDS["filters_16_8_again"]}
    for name, value in query.items():
        page.query_params[name] = value
    shown(page)
    said = " ".join(text.value for text in page.markdown)
    assert ":gray-badge[? inconclusive]" in said
    assert "### Inconclusive: `B` vs `A`" in said
    assert "captures per side would measure how much they vary" in " ".join(caption.value for caption in page.caption)
    assert "The step time has no conclusive change, so the following may be chance. " in said


def test_advice_has_its_evidence(page):
    shown(page)
    unfolded = next(e for e in page.main.expander if e.label.startswith("The steps wait for input"))
    assert "Share of the step time: A 3.65 %, B 62.2 %." in unfolded.markdown[0].value
