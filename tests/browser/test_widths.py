"""What fits into windows of several widths: tables, figures, titles and legends."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.pages import (
    NARROW,
    PHONE,
    WIDE,
    XLA_PAIR,
    address,
    becomes,
    cut_off,
    opened,
    settled,
)

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("sizes", [(WIDE, NARROW), (NARROW, WIDE)], ids=["made narrow", "made wide"])
def test_nothing_of_the_overview_is_cut_off(page: Page, samples_url: str, sizes: tuple[ViewportSize, ...]) -> None:
    page.set_viewport_size(sizes[0])
    opened(page, f"{samples_url}/Overview")
    page.wait_for_function("window.runsDone > (innerWidth < 1000 ? 1 : 0)")  # a narrow page is drawn twice
    becomes(settled(page), lambda: cut_off(page), [])
    page.set_viewport_size(sizes[1])  # the page is drawn anew with other columns
    becomes(page, lambda: cut_off(page), [])


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
