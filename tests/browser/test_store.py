"""The app on a store of runs whose profiles are gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Serve, opened, query, settled, table_texts
from tests.store.runs_in_stores import copied, put

NAMES = ("filters_512_128", "filters_16_8")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for name in NAMES:
        copied(name, tmp_path / "logs")
    put([tmp_path / "logs"], tmp_path / "store")
    shutil.rmtree(tmp_path / "logs")
    return tmp_path / "store"


def test_stored_runs_are_listed_and_compared_without_their_profiles(page: Page, serve: Serve, store: Path) -> None:
    opened(page, serve("--store", store))
    expect(page.get_by_text("2 runs", exact=True)).to_be_visible()
    expect(page.get_by_text(str(store)).first).to_be_visible()
    expect(page.locator("[data-testid=stMain] h4")).to_contain_text("filters_16_8 is 20× faster")
    settled(page)
    expect(page.locator("[data-testid=stDataFrame] canvas tbody tr")).to_have_count(2)
    rows = table_texts(page)
    assert [cells[2] for cells in rows] == list(NAMES[::-1])
    assert all({"CPU", "22"} <= set(cells) for cells in rows)
    assert query(page)["baseline"] == ["logs/filters_512_128/plugins/profile/2026_11_20_11_13_10"]
    page.get_by_role("button", name="See what changed").click()
    page.wait_for_url("**/Overview?**")
    settled(page)
    expect(page.get_by_test_id("stMain")).to_contain_text("A filters_512_128")
    expect(page.get_by_test_id("stMain")).to_contain_text("B filters_16_8")
    for title in ("Op stats", "Memory", "tf.data"):
        page.get_by_role("link", name=title, exact=True).click()
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        settled(page)
    expect(page.get_by_text("no longer on disk")).to_have_count(0)
