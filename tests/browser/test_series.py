"""The Series page on a store of the nights of two programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import ROWS_SHOWN, WIDE, Serve, downloaded, opened, query, settled
from tests.store.runs_in_stores import put
from tests.tools.series_runs import BEFORE, FACTOR, nights

ANSWER = "[data-testid=stMain] h3"
POINTS = ".js-plotly-plot .scatterlayer .point"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    nights(tmp_path / "logs" / "resnet")
    nights(tmp_path / "logs" / "bert", 8, before=8)
    put([tmp_path / "logs"], tmp_path / "store")
    return tmp_path / "store"


def chosen(page: Page, label: str, option: str) -> None:
    page.get_by_test_id("stSelectbox").filter(has_text=label).get_by_role("combobox").click()
    page.get_by_role("option", name=option, exact=True).click()
    settled(page)


def test_a_series_is_shown_linked_and_downloaded(page: Page, browser: Browser, serve: Serve, store: Path) -> None:
    opened(page, f"{serve('--store', store)}/Series")
    expect(page.locator(ANSWER).first).to_contain_text(f"Step time rose by 17.7 % (16.4–19.1 %) at c0ffee{BEFORE}")
    expect(page.locator(POINTS)).to_have_count(20)
    expect(page.get_by_text("8 runs of other programs or devices not shown")).to_be_visible()
    assert len(downloaded(page, ROWS_SHOWN)) == 20

    chosen(page, "Metric", "Op")
    name = page.get_by_label("Name", exact=True)
    name.fill("*matmul")
    name.press("Enter")
    expect(page.locator(ANSWER).first).to_contain_text("Op time of *matmul rose by")
    rows = downloaded(page, ROWS_SHOWN)
    assert rows["value"][BEFORE:].mean() / rows["value"][:BEFORE].mean() == pytest.approx(FACTOR, rel=0.03)
    assert {key: query(page)[key] for key in ("metric", "pattern")} == {"metric": ["Op"], "pattern": ["*matmul"]}

    chosen(page, "Program", "bert/night · CPU")
    expect(page.locator(ANSWER).first).to_contain_text("No change of op time of *matmul in the last 8 runs.")
    expect(page.locator(POINTS)).to_have_count(8)

    context = browser.new_context(viewport=WIDE)
    fresh = opened(context.new_page(), page.url)
    expect(fresh.locator(ANSWER).first).to_contain_text("No change of op time of *matmul in the last 8 runs.")
    expect(fresh.locator(POINTS)).to_have_count(8)
    expect(fresh.get_by_label("Name", exact=True)).to_have_value("*matmul")
    context.close()
