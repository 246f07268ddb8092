"""What fits into windows of several widths: tables, figures, titles and legends."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.pages import (
    NARROW,
    PHONE,
    WIDE,
    XLA_PAIR,
    address,
    becomes,
    cut_in_charts,
    cut_off,
    opened,
    scrolls_sideways,
    settled,
)
from tests.browser.report_page import read_offline, unfolded
from tests.profiles import ROOT, compared_runs
from tests.views.timeline.cases import GPU_PAIR
from tfcompare.render.report import report

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("sizes", [(WIDE, NARROW), (NARROW, WIDE)], ids=["made narrow", "made wide"])
def test_nothing_of_the_overview_is_cut_off(page: Page, samples_url: str, sizes: tuple[ViewportSize, ...]) -> None:
    page.set_viewport_size(sizes[0])
    opened(page, f"{samples_url}/Overview")
    page.wait_for_function("window.runsDone > (innerWidth < 1000 ? 1 : 0)")  # a narrow page is drawn twice
    becomes(settled(page), lambda: cut_off(page), [])
    page.set_viewport_size(sizes[1])  # the page is drawn anew with other columns
    becomes(page, lambda: cut_off(page), [])


def test_no_page_and_no_report_is_cut_or_scrolls_sideways_on_a_phone(
    page: Page, samples_url: str, browser: Browser, tmp_path: Path
) -> None:
    page.set_viewport_size(PHONE)
    for name in ["", *(file.stem.partition("_")[2] for file in (ROOT / "pages").glob("*.py"))]:
        opened(page, address(samples_url, name, *GPU_PAIR))
        becomes(page, lambda: [*cut_off(page), *cut_in_charts(page)], [])  # once its width is known, it is drawn anew
    with read_offline(browser, report(compared_runs(*GPU_PAIR)), tmp_path, viewport=PHONE) as read:
        unfolded(read)
        becomes(read, lambda: [*cut_in_charts(read), *["the report scrolls sideways"] * scrolls_sideways(read)], [])


def test_no_figure_of_a_card_is_cut(page: Page, samples_url: str) -> None:
    cut = "all => all.filter(e => e.scrollWidth > e.clientWidth && e.clientWidth > 0).map(e => e.textContent)"
    page.set_viewport_size(NARROW)
    opened(page, f"{samples_url}/Memory")
    texts = page.locator("[data-testid=stMetricDeltaDescription] [data-testid=stCaptionContainer]")
    expect(texts.nth(3)).to_be_visible()
    assert texts.evaluate_all(cut) == []
    page.set_viewport_size(PHONE)
    opened(page, address(samples_url, "XLA", *XLA_PAIR))
    values = page.locator("[data-testid=stMetricValue] *")
    expect(values.filter(has_text="4.55 ms").first).to_be_visible()
    assert values.evaluate_all(cut) == []
