"""Op stats in a real browser: filter, sort, choose a row, and take the numbers home."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import (
    EVERYTHING,
    NARROW,
    ROWS_SHOWN,
    WIDE,
    downloaded,
    opened,
    query,
    settled,
    table_texts,
    too_wide,
)
from tests.browser.op_stats_page import BASELINE, CONVOLUTION, LEFT_END, OP, click
from tests.profiles import loaded_run
from tfcompare import compare
from tfcompare.ui.frame.narrow import NARROW_PIXELS


@pytest.fixture(scope="module")
def diff() -> pd.DataFrame:
    runs = [loaded_run(name) for name in ("filters_512_128", "filters_16_8")]
    frame = compare(*runs).table("op_stats")
    return frame[frame["op_type"] != "IDLE"].reset_index(drop=True)


def search(page: Page, words: str) -> None:
    page.get_by_role("textbox", name="Filter").fill(words)
    page.get_by_role("textbox", name="Filter").press("Enter")
    page.wait_for_url("**filter=**")
    settled(page)


def test_filter_sort_choose_and_download(page: Page, samples_url: str, diff: pd.DataFrame) -> None:
    opened(page, f"{samples_url}/Op_stats")
    assert len(table_texts(page)) >= 10
    expect(page.locator(".gtitle").first).to_have_text("The 15 largest changes of self time")

    search(page, "conv2d backprop")
    found = diff[diff["op_name"].str.contains("Conv2DBackprop") | diff["op_type"].str.contains("Conv2DBackprop")]
    expect(page.get_by_role("button", name=f"CSV of these {len(found)} rows")).to_be_visible()

    click(page, BASELINE, -1, "**sort=-self_time_us_per_step_baseline**")
    click(page, BASELINE, -1, "**sort=self_time_us_per_step_baseline**")
    expected = found.sort_values("self_time_us_per_step_baseline", kind="stable")
    assert float(table_texts(page)[0][2]) == expected["self_time_us_per_step_baseline"].iloc[0]

    shown = downloaded(page, ROWS_SHOWN)
    assert shown["op_name"].tolist() == expected["op_name"].tolist()
    for column in shown.columns[2:6]:
        assert shown[column].tolist() == pytest.approx(expected[column].tolist(), rel=1e-12)


def test_the_csv_of_everything_is_the_whole_diff(page: Page, samples_url: str, diff: pd.DataFrame) -> None:
    opened(page, f"{samples_url}/Op_stats?filter=relu")
    everything = downloaded(page, EVERYTHING)
    busy = everything[everything["op_type"] != "IDLE"].reset_index(drop=True)
    assert set(diff.columns) < set(busy.columns)
    assert busy["op_name"].tolist() == diff["op_name"].tolist()
    assert busy["self_time_us_per_step_candidate"].tolist() == pytest.approx(
        diff["self_time_us_per_step_candidate"].tolist(), rel=1e-12
    )


def test_a_chosen_row_opens_the_view_of_its_op(page: Page, samples_url: str) -> None:
    opened(page, f"{samples_url}/Op_stats")
    names = [cells[0] for cells in table_texts(page)]
    click(page, LEFT_END, names.index(CONVOLUTION), "**row=**")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(CONVOLUTION).first).to_be_visible()
    expect(dialog.locator(".gtitle").first).to_have_text("Self time in every step")
    assert query(page)["row"] == [f"Host:Conv2D:{CONVOLUTION}"]

    page.reload()  # a link shows a colleague the same
    expect(dialog.get_by_text(CONVOLUTION).first).to_be_visible()
    settled(page)

    page.keyboard.press("Escape")  # closing it gives the choice up
    page.wait_for_url(re.compile("^(?!.*row=)"))
    expect(dialog).to_have_count(0)
    settled(page)
    click(page, OP, -1, "**sort=op_name**")
    expect(dialog).to_have_count(0)


def test_groups_are_linked_and_their_first_columns_need_no_sideways_scrolling(page: Page, samples_url: str) -> None:
    opened(page, f"{samples_url}/Op_stats?idle=true")
    faults = too_wide(page, tables=1)
    first = {}
    for by in ("op type", "name scope"):
        page.get_by_role("radio", name=by).click()
        expect(page.get_by_role("heading", name=f"Every {by}")).to_be_visible()
        settled(page)
        assert query(page)["by"] == [by]
        first[by] = next(cells[0] for cells in table_texts(page) if cells[0] != "IDLE")
        faults += [f"by {by}: {fault}" for fault in too_wide(page, tables=1)]
    assert faults == []
    assert first["op type"] == "Conv2DBackpropFilter"


def test_a_narrow_page_shows_each_op_with_what_changed(page: Page, samples_url: str) -> None:
    """In a window of 900 beside the sidebar the figures are in view; a wider one has the types before them."""
    page.set_viewport_size(NARROW)
    opened(page, f"{samples_url}/Op_stats")
    expect(page.locator("canvas thead").first).to_contain_text(re.compile(r"Op\s*Baseline\s*Candidate\s*Change"))
    scroller = page.locator("[data-testid=stDataFrame] .dvn-scroller").first
    assert len(table_texts(page)[0]) >= 5, "a box to choose the row, its name and three figures"
    table_pixels = scroller.evaluate("e => e.clientWidth")
    assert table_pixels < NARROW_PIXELS
    page.set_viewport_size(WIDE)
    expect(page.locator("canvas thead").first).to_contain_text(re.compile(r"Op\s*Op type\s*Baseline"))


def test_no_figure_of_a_narrow_card_is_cut(page: Page, samples_url: str) -> None:
    page.set_viewport_size(NARROW)
    opened(page, f"{samples_url}/Memory")
    texts = page.locator("[data-testid=stMetricDeltaDescription] [data-testid=stCaptionContainer]")
    expect(texts.first).to_be_visible()
    assert texts.count() >= 4
    sizes = texts.evaluate_all("all => all.map(e => [e.scrollWidth, e.clientWidth, e.textContent])")
    assert [text for needed, there, text in sizes if needed > there] == []
