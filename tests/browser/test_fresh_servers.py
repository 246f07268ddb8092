"""A link to a page on a server that has served nothing yet."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Serve, opened


def test_a_deep_link_on_a_fresh_server_shows_the_page(page: Page, serve: Serve) -> None:
    """The timeline's, since its component has to be there, too."""
    opened(page, f"{serve()}/Timeline")
    expect(page.get_by_role("heading", name="Timeline", exact=True, level=1)).to_be_visible()
    expect(page.get_by_text("Page not found")).to_have_count(0)
