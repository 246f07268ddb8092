"""Reports in a real Chromium without a network: no message, no request, charts, tables, timeline, paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode
from zipfile import ZipFile

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import opened, settled
from tests.profiles import SAMPLES, compared_runs
from tests.render.documents import hostile_comparison
from tfcompare.report.making import report
from tfcompare.sources.logdir import find_runs

IDS = {run.name: run.id for run in find_runs(SAMPLES / "autoencoder")}
PAIRS = {
    "cpu": ("filters_512_128", "filters_16_8"),
    "gpu": ("filters_512_128_simulated", "filters_16_8_simulated"),
    "workers": ("workers_balanced", "workers_slow_input"),
}


@pytest.fixture
def told(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page without a network, and what it logs, throws and asks for beside the report itself."""
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900}, color_scheme="light")
    page, heard = context.new_page(), []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: None if request.is_navigation_request() else heard.append(request.url))
    yield page, heard
    context.close()


def shown(page: Page, folder: Path, text: str) -> Page:
    file = folder / "report.html"
    file.write_text(text, encoding="utf-8")
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=true]")
    return page


def unfolded(page: Page) -> None:
    """Unfold everything and draw all of it."""
    page.get_by_role("button", name="Unfold all").click()
    for place in page.locator("[data-block]").all():
        place.scroll_into_view_if_needed()
    expect(page.locator(".chart:not(:has(.main-svg))")).to_have_count(0)


@pytest.mark.parametrize("kind", PAIRS)
def test_all_of_a_report_is_drawn_offline_in_silence(kind: str, told: tuple[Page, list[str]], tmp_path: Path) -> None:
    page, heard = told
    shown(page, tmp_path, report(compared_runs(*PAIRS[kind])))
    expect(page.locator(".verdict")).to_be_visible()
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    unfolded(page)
    assert page.locator(".timeline").get_attribute("data-spans") not in (None, "0")
    assert page.locator(".table tbody tr").count() > 20
    assert page.locator("html").evaluate("html => html.scrollWidth") == 1440
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth === 390")
    assert heard == []


def test_hostile_names_do_nothing(told: tuple[Page, list[str]], tmp_path: Path) -> None:
    page, heard = told
    page.on("dialog", lambda dialog: heard.append(dialog.message))
    shown(page, tmp_path, report(hostile_comparison(tmp_path)))
    unfolded(page)
    assert page.locator("main img").count() == 0
    expect(page.locator(".table td", has_text="<script>").first).to_be_attached()
    assert heard == []


def test_a_table_is_filtered_sorted_and_saved(told: tuple[Page, list[str]], tmp_path: Path) -> None:
    page, heard = told
    shown(page, tmp_path, report(compared_runs(*PAIRS["cpu"])))
    unfolded(page)
    table = page.locator(".table").first
    table.get_by_role("searchbox").fill("conv2dbackpropinput")
    expect(table.get_by_role("status")).to_have_text(re.compile(r"^\d+ of 345 rows$"))
    header = table.locator("th", has=page.get_by_role("button", name="Candidate")).first
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "descending")
    column = table.locator("thead tr").last.locator("th").all_inner_texts().index("Candidate ▼")
    texts = [row.locator("td").nth(column).inner_text() for row in table.locator("tbody tr").all()]
    values = [float(text.replace(",", "")) for text in texts if text]
    assert len(values) > 3
    assert values == sorted(values, reverse=True)
    with page.expect_download() as download:
        table.get_by_role("button", name="CSV").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[0].startswith("op_name,op_type,self_time_us_per_step_baseline,")
    assert len(lines) == len(texts) + 1
    assert heard == []


def test_a_span_of_the_timeline_and_its_partner_are_told(told: tuple[Page, list[str]], tmp_path: Path) -> None:
    page, heard = told
    shown(page, tmp_path, report(compared_runs(*PAIRS["cpu"])))
    page.get_by_role("heading", name="Timeline").scroll_into_view_if_needed()  # it is drawn once it is seen
    page.locator(".timeline").scroll_into_view_if_needed()
    page.locator(".timeline .jumps button").first.click()
    said = page.locator("[id^=span-]")
    expect(said).to_have_text(re.compile(r"^A: .*Conv2DBackpropFilter.* ms · B: .* (ms|µs)$"))
    assert heard == []


def test_colours_follow_the_reader_and_paper_is_light(told: tuple[Page, list[str]], tmp_path: Path) -> None:
    page, heard = told
    page.emulate_media(color_scheme="dark")
    shown(page, tmp_path, report(compared_runs(*PAIRS["cpu"])))
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Light").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Dark").click()
    assert len(page.pdf(format="A4")) > 50_000
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert heard == []


def test_without_scripts_the_answer_can_be_read(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    file = tmp_path / "report.html"
    file.write_text(report(compared_runs(*PAIRS["cpu"])), encoding="utf-8")
    page.goto(file.as_uri())
    expect(page.locator(".verdict")).to_contain_text(
        "B is 20× faster than A (15×–25×, one capture each): 10.9 ms vs 213 ms per step."
    )
    expect(page.locator(".facts").first).to_contain_text("Conv2DBackpropFilter")
    context.close()


def test_every_page_that_compares_has_the_report(page: Page, autoencoder_url: str) -> None:
    wanted = {"baseline": IDS["filters_16_8"], "candidate": IDS["filters_16_8_better_input"]}
    settled(opened(page, f"{autoencoder_url}/Memory?{urlencode(wanted)}"))
    page.get_by_role("button", name="Report").click()
    with page.expect_download(timeout=60_000) as download:
        page.get_by_role("button", name="Download the report").click()
    assert download.value.suggested_filename == "filters_16_8_better_input_vs_filters_16_8.html"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert "<strong><code>B</code> is 1.5× faster than <code>A</code>" in text
    page.get_by_role("radio", name="CSV").click()
    button = page.get_by_role("button", name="Download the report as CSV")
    expect(button).to_be_visible()
    settled(page)
    with page.expect_download(timeout=60_000) as download:
        button.click()
    assert download.value.suggested_filename == "filters_16_8_better_input_vs_filters_16_8.zip"
    assert "op_stats.csv" in ZipFile(download.value.path()).namelist()
