"""The input pipeline in a real browser: charts, filter, sort, choose a row, and take the numbers home."""

from __future__ import annotations

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from tests.browser import op_stats_page
from tests.browser.conftest import (
    EVERYTHING,
    ROWS_SHOWN,
    downloaded,
    opened,
    query,
    too_wide,
)
from tests.profiles import loaded_run
from tfcompare import compare
from tfcompare.tools.input import input_ops

LEFT_END = 18


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    runs = [loaded_run(name) for name in ("filters_512_128", "filters_16_8")]
    return input_ops.with_shares(compare(*runs).table("input_pipeline"))


@pytest.fixture(scope="module")
def input_pipeline(tab: Page, autoencoder_url: str) -> Page:
    """The page on the sample runs, opened once for all tests that leave it as they found it."""
    return opened(tab, f"{autoencoder_url}/Input_pipeline")


def click(page: Page, x: float, row: int, then: str) -> None:
    """Click into the table of ops."""
    op_stats_page.click(page, x, row, then)


def bars(page: Page, title: str) -> int:
    """How many bars the chart of that title shows."""
    chart = page.locator(".js-plotly-plot", has=page.locator(".gtitle", has_text=title))
    expect(chart.locator(".barlayer .point path").first).to_be_attached()
    return chart.locator(".barlayer .point path").count()


def test_the_charts_are_drawn(input_pipeline: Page) -> None:
    steps = [len(loaded_run(name).steps) for name in ("filters_512_128", "filters_16_8")]
    assert bars(input_pipeline, "Step time and input wait") == 2 * sum(steps)
    assert bars(input_pipeline, "Self time of input ops by category") > 0
    assert bars(input_pipeline, "largest changes of self time") > 0


def test_filter_sort_choose_and_download(page: Page, autoencoder_url: str, rows: pd.DataFrame) -> None:
    opened(page, f"{autoencoder_url}/Input_pipeline")
    page.get_by_role("textbox", name="Filter").fill("tfrecord")
    page.get_by_role("textbox", name="Filter").press("Enter")
    page.wait_for_url("**filter=tfrecord**")
    found = rows[rows["op_name"].str.contains("TFRecord")]
    expect(page.get_by_role("button", name=f"CSV of these {len(found)} rows")).to_be_visible()

    click(page, 80, -1, "**sort=op_name**")
    expected = found.sort_values("op_name", kind="stable")
    shown = downloaded(page, ROWS_SHOWN)
    assert shown["op_name"].tolist() == expected["op_name"].tolist()
    for column in shown.columns[2:7]:
        assert shown[column].tolist() == pytest.approx(expected[column].tolist(), rel=1e-12)
    everything = downloaded(page, EVERYTHING)
    assert set(rows.columns) == set(everything.columns)
    assert everything["op_name"].tolist() == rows["op_name"].tolist()

    click(page, LEFT_END, 0, "**row=**")
    name = expected["op_name"].iloc[0]
    expect(page.get_by_role("dialog").get_by_text(name[:30]).first).to_be_visible()

    page.reload()  # a link shows a colleague the same
    expect(page.get_by_role("dialog").get_by_text(name[:30]).first).to_be_visible()
    assert query(page)["filter"] == ["tfrecord"]


def test_the_columns_shown_first_need_no_sideways_scrolling(input_pipeline: Page) -> None:
    assert too_wide(input_pipeline, tables=1) == []
