"""Clicking into the table of ops."""

from __future__ import annotations

import re

from playwright.sync_api import Page

from tests.browser.conftest import (
    ROW_PIXELS,
    settled,
)

HEADERS = 2
LEFT_END, OP, BASELINE = 18, 80, 590
CONVOLUTION = "autoencoder_1/image_1/convolution"


def click(page: Page, x: float, row: int, then: str | re.Pattern[str], *, nth: int | None = None) -> None:
    """Click into the page's only table, or its `nth` (row 0 is the first, -1 the header), and wait until `then` is in
    the address."""
    settled(page)
    tables = page.locator("[data-testid=stDataFrame]")
    table = tables if nth is None else tables.nth(nth)
    table.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + (HEADERS + row + 0.5) * ROW_PIXELS)
    page.wait_for_url(then)
    settled(page)
