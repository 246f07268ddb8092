"""The overview in a real browser: what a newcomer sees of the guiding example."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Serve, opened, settled, table_texts
from tests.profiles import CORPUS, SAMPLES, run_path
from tfcompare import compare, load
from tfcompare.logdir import find_runs
from tfcompare.units import format_ms

RUNS = {run.path.parents[2].name: run for run in find_runs(SAMPLES)}
IDS = {name: run.id for name, run in RUNS.items()}
NAMES = {name: run.name for name, run in RUNS.items()}
FIGURES = ".js-plotly-plot"
MAIN = "[data-testid=stMain]"
TITLES = [
    "How sure the change of the step time is",
    "Average step: from 213 ms to 10.9 ms, part by part",
    "Average step by part, as shares of each run's step",
    "Host compute: from 204 ms to 3.74 ms, op by op",
    "Step time of every step",
    "Distribution of step times",
    f"Top 10 ops on host: {NAMES['filters_512_128']}",
    f"Top 10 ops on host: {NAMES['filters_16_8']}",
    "The 10 largest changes of self time",
]


def metric(page: Page, label: str) -> str:
    return page.locator("[data-testid=stMetric]").filter(has_text=label).inner_text()


def test_the_headline_and_the_figures_read_right(page: Page, samples_url: str) -> None:
    opened(page, f"{samples_url}/Overview")
    slow, fast = load(RUNS["filters_512_128"]), load(RUNS["filters_16_8"])
    expected = compare(slow, fast).headline().replace("`", "")
    assert " ".join(page.locator(f"{MAIN} h2").first.inner_text().split()) == expected
    step_time = metric(page, "Step time (median)")
    assert format_ms(fast.info.step_time_ms_median) in step_time
    assert f"from {format_ms(slow.info.step_time_ms_median)}" in step_time
    assert "−9" in step_time


def test_every_part_is_drawn_and_names_what_it_compares(page: Page, samples_url: str) -> None:
    opened(page, f"{samples_url}/Overview")
    expect(page.locator(FIGURES)).to_have_count(len(TITLES))
    expect(page.locator(f"{FIGURES} .gtitle")).to_have_text(TITLES)
    legend = page.locator(FIGURES).nth(TITLES.index("Step time of every step")).locator(".legendtext")
    expect(legend).to_have_text([f"Baseline · {NAMES['filters_512_128']}", f"Candidate · {NAMES['filters_16_8']}"])
    facts = {row[0]: row[1:] for row in table_texts(page)}
    assert facts["Device type"] == ["CPU", "CPU", ""]
    assert facts["Recorded"][0].endswith(("CET", "CEST")), "in the time zone of the browser"


def test_a_deep_link_on_a_fresh_server_shows_that_pair(page: Page, serve: Serve) -> None:
    query = urlencode({"baseline": IDS["filters_16_8"], "candidate": IDS["filters_512_128"], "per": "run"})
    opened(page, f"{serve()}/Overview?{query}")
    expect(page.locator(f"{MAIN} h2").first).to_contain_text("times as long")
    assert "per run" in metric(page, "Host op time")


def test_back_after_swapping_leads_to_the_pair_before(page: Page, samples_url: str) -> None:
    query = urlencode({"baseline": IDS["filters_512_128"], "candidate": IDS["filters_16_8"]})
    opened(page, f"{samples_url}/Overview?{query}")
    expect(page.locator(f"{MAIN} h2").first).to_contain_text("times as fast")
    page.get_by_role("button", name="Swap").click()
    expect(page.locator(f"{MAIN} h2").first).to_contain_text("times as long")
    page.go_back()
    expect(page.locator(f"{MAIN} h2").first).to_contain_text("times as fast")


def test_the_candidate_in_detail_is_chosen_and_linked(page: Page, samples_url: str) -> None:
    query = [("baseline", IDS["filters_512_128"])]
    query += [("candidate", IDS[name]) for name in ("filters_16_8", "filters_16_8_better_input")]
    opened(page, f"{samples_url}/Overview?{urlencode(query)}")
    expect(page.locator(f"{MAIN} h2")).to_have_count(2)
    page.get_by_role("radio", name=NAMES["filters_16_8_better_input"]).click()
    expect(page.locator(".gtitle", has_text="_better_input")).to_be_visible()
    settled(page)
    assert "detail=" in page.url
    page.reload()
    expect(page.locator(".gtitle", has_text="_better_input")).to_be_visible()


@pytest.mark.parametrize("width", [1440, 900])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off(browser: Browser, samples_url: str, width: int, scheme: str) -> None:
    """No title runs out of its chart, no legend over its title, and the page does not scroll sideways."""
    context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    page = opened(context.new_page(), f"{samples_url}/Overview")
    expect(page.locator(FIGURES)).to_have_count(len(TITLES))
    for figure in page.locator(FIGURES).all():
        box, title = figure.bounding_box(), figure.locator(".gtitle").bounding_box()
        assert box is not None
        assert title is not None
        assert title["x"] + title["width"] <= box["x"] + box["width"] + 1
        subtitle, legend = figure.locator(".gtitle-subtitle"), figure.locator(".legend")
        if subtitle.count() and legend.count():
            above, below = subtitle.bounding_box(), legend.bounding_box()
            assert above is not None
            assert below is not None
            assert above["y"] + above["height"] <= below["y"] + 2
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    context.close()


@pytest.mark.parametrize("pair", [("tf_gpu", "tf_cpu_base"), ("jax_conv_legacy", "jax_conv_08"), ("jax_tpu", "tf_gpu")])
def test_other_profiles_are_shown_without_an_error(page: Page, serve: Serve, pair: tuple[str, str]) -> None:
    ids = [f"corpus/{run_path(name).relative_to(CORPUS)}" for name in pair]
    opened(page, f"{serve(CORPUS)}/Overview?{urlencode({'baseline': ids[0], 'candidate': ids[1]})}")
    expect(page.get_by_role("heading", name="How they were recorded")).to_be_visible()
    assert page.locator("[data-testid=stAlert]").count() >= 1
