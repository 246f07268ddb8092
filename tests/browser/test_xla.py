"""The XLA page in a real browser: what fits, and what a selected row does."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import WIDE, click_table, opened, query, settled, too_wide
from tests.profiles import SAMPLES
from tfcompare.sources.logdir import find_runs

PHONE: ViewportSize = {"width": 390, "height": 1000}
INSTRUCTIONS, GROUPS, BUFFERS = range(3)
LEFT_END = 15
ALL_ROWS = "CSV of these 53 rows"


@pytest.fixture(scope="module")
def address(samples_url: str) -> str:
    ids = {run.name: run.id for run in find_runs(SAMPLES)}
    runs = {"baseline": ids["jax_filters_128_32"], "candidate": ids["jax_filters_16_8"]}
    return f"{samples_url}/XLA?{urlencode(runs)}"


def test_tables_fit_and_no_figure_is_cut(page: Page, address: str) -> None:
    opened(page, address)
    assert too_wide(page, tables=4) == []
    page.set_viewport_size(PHONE)
    values = page.locator("[data-testid=stMetricValue] *")
    expect(values.filter(has_text="4.55 ms").first).to_be_visible()
    settled(page)
    sizes = values.evaluate_all("all => all.map(e => [e.scrollWidth, e.clientWidth, e.textContent])")
    assert [text for needed, there, text in sizes if needed > there > 0] == []
    page.set_viewport_size(WIDE)


def test_selected_rows_filter_instructions_show_a_buffer_and_open_neighbours(page: Page, address: str) -> None:
    opened(page, address)
    expect(page.get_by_role("button", name=ALL_ROWS)).to_be_visible()
    page.get_by_role("radio", name="name scope").click()
    expect(page.locator(".gtitle", has_text="by name scope")).to_be_visible()
    settled(page)
    click_table(page, LEFT_END, 1, nth=GROUPS)  # below its two lines of headers
    page.wait_for_url("**tree_row=**")
    expect(page.get_by_text("Only instructions of")).to_be_visible()
    expect(page.get_by_role("button", name=ALL_ROWS)).to_have_count(0)
    settled(page)

    click_table(page, LEFT_END, 1, nth=BUFFERS)
    page.wait_for_url("**memory_row=**")
    expect(page.locator(".legendtext", has_text=re.compile(", candidate$"))).to_have_count(1)
    settled(page)

    click_table(page, LEFT_END, 1, nth=INSTRUCTIONS)
    page.wait_for_url("**&row=**")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Inputs come from")).to_be_visible()
    first = query(page)["row"]
    dialog.locator("[data-testid=stButtonGroup] button").first.click()
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query)["row"] != first)
    expect(dialog.get_by_text("Inputs come from")).to_be_visible()
