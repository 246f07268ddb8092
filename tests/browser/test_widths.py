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
    box_of,
    drawn_at_their_width,
    opened,
    redrawn,
    settled,
)

pytestmark = pytest.mark.thorough


def cut_off(page: Page) -> list[str]:
    """What does not fit: titles that run out of their charts, legends over titles, a page that scrolls sideways."""
    drawn_at_their_width(page)
    faults = []
    for figure in page.locator(".js-plotly-plot").all():
        box, title = box_of(figure), box_of(figure.locator(".gtitle"))
        name = figure.locator(".gtitle").inner_text()
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


@pytest.mark.parametrize("sizes", [(WIDE, NARROW), (NARROW, WIDE)], ids=["made narrow", "made wide"])
def test_nothing_of_the_overview_is_cut_off(page: Page, samples_url: str, sizes: tuple[ViewportSize, ...]) -> None:
    page.set_viewport_size(sizes[0])
    opened(page, f"{samples_url}/Overview")
    page.wait_for_function("window.runsDone > (innerWidth < 1000 ? 1 : 0)")  # a narrow page is drawn twice
    assert cut_off(settled(page)) == []
    with redrawn(page):
        page.set_viewport_size(sizes[1])
    assert cut_off(page) == []


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
