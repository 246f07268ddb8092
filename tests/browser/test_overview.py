"""The overview in a real browser: what a newcomer sees of the guiding example."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

import pytest
from playwright.sync_api import FloatRect, Locator, Page, ViewportSize, expect

from tests.browser.conftest import NARROW, WIDE, Serve, becomes, opened, query, settled
from tests.profiles import CORPUS, SAMPLES, run_path
from tfcompare import compare, load
from tfcompare.sources.logdir import find_runs
from tfcompare.units import format_time_us

RUNS = {run.path.parents[2].name: run for run in find_runs(SAMPLES)}
IDS = {name: run.id for name, run in RUNS.items()}
NAMES = {name: run.name for name, run in RUNS.items()}
ROOT = Path(__file__).parents[2]
FIGURES = ".js-plotly-plot"
MAIN = "[data-testid=stMain]"
Scheme = Literal["light", "dark"]
SIZE_REPORTED_MS = 1_500
"""How long after a window changed its size the page may begin to draw anew."""
DRAWN_AT_THEIR_WIDTH = """() => [...document.querySelectorAll(".js-plotly-plot")].every(
    chart => Math.abs(chart.clientWidth - chart.querySelector(".main-svg").clientWidth) < 1
)"""
TITLES = [
    "Average step by part: 213 ms → 10.9 ms",
    "Step time of every step",
]
HEADLINE = f"{MAIN} h3"


@pytest.fixture(scope="module")
def overview(tab: Page, samples_url: str) -> Page:
    """The sample runs' overview, opened once for all tests that leave it as they found it."""
    return opened(tab, f"{samples_url}/Overview")


def metric(page: Page, label: str) -> str:
    return page.locator("[data-testid=stMetric]").filter(has_text=label).inner_text()


def test_the_first_screen_answers(overview: Page) -> None:
    comparison = compare(load(RUNS["filters_512_128"]), load(RUNS["filters_16_8"]))
    headline = comparison.headline(names=("A", "B")).replace("`", "")
    assert " ".join(overview.locator(HEADLINE).first.inner_text().split()) == headline
    before, after = (comparison.step_time_us(run) for run in (comparison.baseline, *comparison.candidates))
    step_time = metric(overview, "Step time")
    assert format_time_us(after) in step_time
    assert f"from {format_time_us(before).removesuffix(' ms')}" in step_time
    assert "−9" in step_time
    assert WIDE["height"] == 1000
    for part in ("Why", "What to try next", "Largest changes"):
        assert box_of(overview.get_by_role("heading", name=part))["y"] < 800
    advice = overview.locator("[data-testid=stExpander]").filter(has_text="input").first
    assert box_of(advice)["y"] < 800


def test_every_part_is_drawn_and_names_what_it_compares(overview: Page) -> None:
    expect(overview.locator(FIGURES)).to_have_count(len(TITLES))
    expect(overview.locator(f"{FIGURES} .gtitle")).to_have_text(TITLES)
    legend = overview.locator(FIGURES).nth(TITLES.index("Step time of every step")).locator(".legendtext")
    expect(legend).to_have_text([f"Baseline · {NAMES['filters_512_128']}", f"Candidate · {NAMES['filters_16_8']}"])


def test_the_captures_are_described_behind_a_button(overview: Page) -> None:
    overview.get_by_role("button", name="Details").click()
    rows = overview.locator("[data-testid=stTable] tr")
    expect(rows.filter(has_text="Device type")).to_have_text(["Device typeCPUCPU"])
    recorded = rows.filter(has_text="Recorded").inner_text().split("\t")[1].strip()
    assert recorded.endswith(("CET", "CEST")), "in the time zone of the browser"
    overview.keyboard.press("Escape")
    expect(rows.filter(has_text="Device type")).to_have_count(0)


def test_a_deep_link_on_a_fresh_server_shows_those_runs(page: Page, serve: Serve) -> None:
    baseline, *candidates = ("filters_16_8", "filters_512_128", "filters_16_8_again")
    wanted = [("baseline", IDS[baseline]), *(("candidate", IDS[name]) for name in candidates), ("per", "run")]
    opened(page, f"{serve()}/Overview?{urlencode(wanted)}")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    for letter, name in zip("ABC", (baseline, *candidates), strict=True):
        expect(page.locator(MAIN)).to_contain_text(f"{letter} {NAMES[name]}")
    expect(page.locator(MAIN)).to_contain_text("per run")
    expect(page.locator(HEADLINE).filter(has_text="slower than").first).to_contain_text("× slower than")
    assert query(page)["candidate"] == [IDS[name] for name in candidates]


def test_back_after_swapping_leads_to_the_pair_before(page: Page, samples_url: str) -> None:
    """On a page of its own: a key that is pressed while a popover of the test before still closes is lost."""
    opened(page, f"{samples_url}/Overview")
    headline = page.locator(HEADLINE).first
    expect(headline).to_contain_text("× faster than")
    page.keyboard.press("x")
    expect(headline).to_contain_text("× slower than")
    assert becomes(page, lambda: query(page).get("baseline"), [IDS["filters_16_8"]])
    settled(page).go_back()
    expect(headline).to_contain_text("× faster than")
    settled(page)


def cut_off(page: Page) -> list[str]:
    """What does not fit: titles that run out of their charts, legends over titles, a page that scrolls sideways."""
    page.wait_for_timeout(SIZE_REPORTED_MS)
    expect(settled(page).locator(FIGURES)).to_have_count(len(TITLES))
    page.wait_for_function(DRAWN_AT_THEIR_WIDTH)
    faults = []
    for name, figure in zip(TITLES, page.locator(FIGURES).all(), strict=True):
        box, title = box_of(figure), box_of(figure.locator(".gtitle"))
        if title["x"] + title["width"] > box["x"] + box["width"] + 1:
            faults.append(f"{name}: the title runs out of its chart")
        subtitle, legend = figure.locator(".gtitle-subtitle"), figure.locator(".legend")
        if subtitle.count() and legend.count():
            above, below = box_of(subtitle), box_of(legend)
            if above["y"] + above["height"] > below["y"] + 2:
                faults.append(f"{name}: the legend lies over the title")
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        faults.append("the page scrolls sideways")
    return faults


def box_of(part: Locator) -> FloatRect:
    box = part.bounding_box()
    assert box is not None, part
    return box


@pytest.mark.parametrize(("scheme", "sizes"), [("light", (WIDE, NARROW)), ("dark", (NARROW, WIDE))])
def test_nothing_is_cut_off(page: Page, samples_url: str, scheme: Scheme, sizes: tuple[ViewportSize, ...]) -> None:
    """Opened wide and made narrow, and the other way round."""
    page.emulate_media(color_scheme=scheme)
    faults = []
    for size in sizes:
        page.set_viewport_size(size)
        if page.url == "about:blank":
            opened(page, f"{samples_url}/Overview")
        faults += [f"{scheme}, {size['width']} px: {fault}" for fault in cut_off(page)]
    assert faults == []


@pytest.mark.parametrize("pair", [("jax_tpu", "tf_gpu")])
def test_other_profiles_are_shown_without_an_error(page: Page, shared: Serve, pair: tuple[str, str]) -> None:
    ids = [f"corpus/{run_path(name).relative_to(CORPUS)}" for name in pair]
    opened(page, f"{shared(CORPUS)}/Overview?{urlencode({'baseline': ids[0], 'candidate': ids[1]})}")
    expect(page.get_by_role("button", name="Caveats")).to_be_visible()
    expect(page.get_by_role("heading", name="Largest changes, self time")).to_be_visible()
    assert page.locator("[data-testid=stException]").count() == 0


def test_charts_follow_a_page_that_turns_dark_and_light_again(page: Page, samples_url: str) -> None:
    opened(page, f"{samples_url}/Overview")
    background = page.locator(f"{FIGURES} .main-svg").first
    themes = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
    schemes: tuple[Scheme, ...] = ("dark", "light")
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        red, green, blue = bytes.fromhex(themes[scheme]["backgroundColor"].lstrip("#"))
        expect(background).to_have_css("background-color", f"rgb({red}, {green}, {blue})")
