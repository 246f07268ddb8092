"""A flame graph is zoomed by clicks and keys, and the page follows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.pages import CPU_PAIR, address, becomes, box_of, cells_in, opened, query
from tests.browser.report_page import read_offline
from tfcompare.render.document import Report
from tfcompare.render.html import as_html
from tfcompare.views.blocks import FlameGraph, Section

pytestmark = pytest.mark.thorough

BAR = 20
"""The height of a row, in pixels."""


def test_clicks_and_keys_zoom_without_a_server(browser: Browser, tmp_path: Path) -> None:
    rows = [("all", "", 40.0, 20.0), ("wide", "all", 30.0, 10.0), ("narrow", "all", 10.0, 10.0)]
    tree = pd.DataFrame(rows, columns=["node", "parent", "us_baseline", "us_candidate"])
    tree = tree.assign(label=tree["node"], status="matched")
    graph = FlameGraph("ops", "Self time", lambda: tree, "us", ["before", "after"])
    text = as_html(Report("ops", [Section("", [graph], is_open=True)], ""))
    with read_offline(browser, text, tmp_path) as page:
        root, canvas = page.locator(".flame"), page.locator(".flame canvas")
        expect(root).to_have_attribute("data-bars", "3")
        width = box_of(canvas)["width"]
        second_row = 1.5 * BAR
        canvas.hover(position={"x": 0.9 * width, "y": second_row})
        expect(root.locator(".tip")).to_contain_text("all › narrow")
        canvas.click(position={"x": 0.9 * width, "y": second_row})
        expect(root).to_have_attribute("data-focus", "2")
        expect(root.locator(".path")).to_contain_text("all › narrow: before: 10.0 µs, after: 10.0 µs")
        canvas.click(position={"x": 9, "y": 0.5 * BAR})
        expect(root).to_have_attribute("data-focus", "0")
        root.focus()
        for key in ("Escape", "ArrowDown", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        expect(root).to_have_attribute("data-focus", "1")
        root.get_by_role("button", name="Show all (Esc)").click()
        expect(root).to_have_attribute("data-focus", "-1")


def test_a_click_is_in_the_address_and_the_table_follows(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url, "Op_stats", *CPU_PAIR))
    root = page.locator(".flame")
    before = cells_in(page)
    canvas = root.locator("canvas")
    canvas.scroll_into_view_if_needed()
    canvas.click(position={"x": 9, "y": 1.5 * BAR})  # the widest child of the host
    becomes(page, lambda: query(page).get("scope"), ["Host/gradient_tape"])
    becomes(page, lambda: cells_in(page) not in ([], before))
    expect(root.locator(".path")).to_contain_text("Host › gradient_tape")
    root.get_by_role("button", name="Show all (Esc)").click()
    becomes(page, lambda: "scope" in query(page), False)
    becomes(page, lambda: cells_in(page), before)
