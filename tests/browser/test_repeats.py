"""Repeats in a real browser: grouped with a click, in the address, and there again for a colleague with the link."""

from __future__ import annotations

from urllib.parse import urlencode

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import opened, query, settled
from tests.profiles import SAMPLES
from tfcompare.sources.logdir import find_runs

IDS = {run.name: run.id for run in find_runs(SAMPLES / "autoencoder")}
LARGE, SMALL, AGAIN = (IDS[f"filters_{name}"] for name in ("512_128", "16_8", "16_8_again"))
GROUPED = "B filters_16_8 (+1 replicate)"
BOTH = "from 20 and 40 steps"


def test_grouped_with_a_click_and_shared_by_a_link(page: Page, context: BrowserContext, autoencoder_url: str) -> None:
    opened(page, f"{autoencoder_url}/Overview?{urlencode({'baseline': LARGE, 'candidate': SMALL})}")
    expect(page.get_by_text("from 20 steps per run")).to_be_visible()
    page.get_by_role("button", name="Add filters_16_8_again as a replicate").click()
    expect(page.get_by_text(BOTH)).to_be_visible()
    expect(page.get_by_text(GROUPED).first).to_be_visible()
    settled(page)
    assert query(page)["repeat"] == [f"1:{AGAIN}"]
    colleague = opened(context.new_page(), page.url)
    expect(colleague.get_by_text(GROUPED).first).to_be_visible()
    expect(colleague.get_by_text(BOTH)).to_be_visible()
    colleague.get_by_role("link", name="Op stats").click()
    expect(colleague.get_by_role("heading", name="Op stats", exact=True)).to_be_visible()
    expect(colleague.get_by_text(GROUPED).first).to_be_visible()
    assert query(settled(colleague))["repeat"] == [f"1:{AGAIN}"]


def test_back_leads_to_the_runs_without_their_repeats(page: Page, autoencoder_url: str) -> None:
    opened(page, f"{autoencoder_url}/Overview?{urlencode({'baseline': LARGE, 'candidate': SMALL})}")
    page.get_by_role("button", name="Add filters_16_8_again as a replicate").click()
    expect(page.get_by_text(GROUPED).first).to_be_visible()
    settled(page)
    page.go_back()
    expect(page.get_by_text("from 20 steps per run")).to_be_visible()
    assert "repeat" not in query(settled(page))
