"""A report in a real Chromium without a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.browser.pages import TIMEOUT_MS


@contextmanager
def read_offline(browser: Browser, text: str, folder: Path, **options: Any) -> Iterator[Page]:
    """A page that shows the report; fails where it logs, throws or asks for anything beside the report itself."""
    usual = {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light", "accept_downloads": True}
    context = browser.new_context(offline=True, **(usual | options))
    context.set_default_timeout(TIMEOUT_MS)
    page, heard = context.new_page(), []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: None if request.is_navigation_request() else heard.append(request.url))
    file = folder / "read.html"
    file.write_text(text, encoding="utf-8")
    page.goto(file.as_uri())
    if options.get("java_script_enabled", True):
        page.wait_for_selector("html[data-ready=true]")
    yield page
    context.close()
    assert heard == []


def unfolded(page: Page) -> None:
    """Unfold everything and draw all of it."""
    page.get_by_role("button", name="Unfold all").click()
    for place in page.locator("[data-block]").all():
        place.scroll_into_view_if_needed()
    expect(page.locator(".chart:not(:has(.main-svg))")).to_have_count(0)
