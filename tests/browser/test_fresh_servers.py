"""Links to pages on a server that has served nothing yet."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Serve, opened


@pytest.mark.parametrize(("page_name", "title"), [("Timeline", "Timeline"), ("Capture", "Capture"), ("Query", "Query")])
def test_a_deep_link_on_a_fresh_server_shows_the_page(page: Page, serve: Serve, page_name: str, title: str) -> None:
    opened(page, f"{serve()}/{page_name}")
    expect(page.get_by_role("heading", name=title, exact=True, level=1)).to_be_visible()
    expect(page.get_by_text("Page not found")).to_have_count(0)
