"""Reports of several kinds of runs in a real Chromium without a network: on a phone, on paper, without scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.pages import CPU_PAIR
from tests.browser.report_page import read_offline, unfolded
from tests.profiles import compared_runs
from tfcompare.render.report import report

pytestmark = pytest.mark.thorough

PAIRS = [
    ("h100_512_128", "h100_16_8"),
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


BEYOND = """async () => {
    const end = element => element.getBoundingClientRect().right
    const isCut = text => end(text) > end(text.closest(".chart")) + 1
    for (let frames = 600; ; frames--) {  // a chart that was widened is drawn again
        const cut = [...document.querySelectorAll(".chart text")].filter(isCut)
        if (!cut.length || !frames) return cut.map(text => text.textContent)
        await new Promise(requestAnimationFrame)
    }
}"""


def test_on_a_phone_no_text_of_a_chart_is_cut_off(browser: Browser, tmp_path: Path) -> None:
    phone = {"width": 390, "height": 844}
    with read_offline(browser, report(compared_runs(*CPU_PAIR)), tmp_path, viewport=phone) as page:
        unfolded(page)
        assert page.evaluate(BEYOND) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 390


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
        expect(page.locator(".facts th", has_text="Conv2DBackpropFilter").first).to_be_visible()
