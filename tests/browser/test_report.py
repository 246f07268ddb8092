"""Reports of several kinds of runs in a real Chromium without a network: on a phone, on paper, without scripts."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.pages import CPU_PAIR, box_of
from tests.browser.report_page import read_offline, unfolded
from tests.profiles import compared_runs
from tfcompare.render.html import as_html
from tfcompare.render.report import report
from tfcompare.views.blocks import FlameGraph, Report, Section

pytestmark = pytest.mark.thorough

BAR = 20
"""The height of a row of a flame graph, in pixels."""

PAIRS = [
    ("filters_512_128_simulated", "filters_16_8_simulated"),
    ("workers_balanced", "workers_slow_input"),
]


@pytest.mark.parametrize("names", PAIRS, ids=" ".join)
def test_all_of_a_report_is_drawn_offline_in_silence(names: tuple[str, str], browser: Browser, tmp_path: Path) -> None:
    with read_offline(browser, report(compared_runs(*names)), tmp_path) as page:
        expect(page.locator(".verdict")).to_be_visible()
        expect(page.locator(".chart .main-svg").first).to_be_visible()
        unfolded(page)
        assert page.locator(".timeline").get_attribute("data-spans") not in (None, "0")
        assert page.locator(".table tbody tr").count() > 20
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_function("document.documentElement.scrollWidth === 390")


def test_colours_follow_the_reader_and_paper_is_light(browser: Browser, tmp_path: Path) -> None:
    with read_offline(browser, report(compared_runs(*CPU_PAIR)), tmp_path, color_scheme="dark") as page:
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.get_by_role("button", name="Light").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        page.get_by_role("button", name="Dark").click()
        assert len(page.pdf(format="A4")) > 50_000
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_without_scripts_the_answer_can_be_read(browser: Browser, tmp_path: Path) -> None:
    text = report(compared_runs(*CPU_PAIR))
    with read_offline(browser, text, tmp_path, java_script_enabled=False) as page:
        expect(page.locator(".verdict")).to_contain_text("B is 20× faster than A")
        expect(page.locator(".facts").first).to_contain_text("Conv2DBackpropFilter")


def test_a_flame_graph_is_zoomed_by_clicks_and_keys(browser: Browser, tmp_path: Path) -> None:
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
