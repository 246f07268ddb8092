"""Runs on an S3 server, from typing its URL to the overview."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Serve, add_runs, opened, query, settled, table_texts
from tests.profiles import SAMPLE_RUNS
from tests.sources.remote.servers import S3, s3_server

NAMES = ("filters_512_128", "filters_16_8", "filters_16_8_again")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """An S3 server with three runs, told to the app by the environment it starts in."""
    with s3_server() as server:
        server.reset()
        for name in NAMES:
            server.put_folder(SAMPLE_RUNS[name], f"team/logs/{name}")
        for variable, value in server.environment.items():
            monkeypatch.setenv(variable, value)
        yield server


@pytest.mark.usefixtures("s3")
def test_a_typed_url_leads_to_the_overview(page: Page, serve: Serve) -> None:
    opened(page, serve())
    field = add_runs(page, "Path or URL").get_by_role("textbox", name="Path on this machine, or URL")
    field.fill("s3://buckett/team/logs")
    field.press("Enter")
    expect(page.get_by_test_id("stAlert").first).to_contain_text("there is no bucket buckett; check its spelling")
    settled(page)
    field.fill("s3://bucket/team/logs")
    field.press("Enter")
    expect(page.get_by_text("3 runs")).to_be_visible()
    settled(page)
    assert query(page)["dir"] == ["s3://bucket/team/logs"]
    expect(page.locator("[data-testid=stMain] h4")).to_contain_text("filters_16_8 is 20× faster")
    settled(page)
    expect(page.locator("[data-testid=stDataFrame] canvas tbody tr")).to_have_count(len(NAMES))  # drawn a little later
    assert [cells[2] for cells in table_texts(page)] == list(NAMES[::-1])
    expect(
        page.get_by_text("This run is on another machine (1.58 MB) and will be downloaded when selected.")
    ).to_be_visible()
    assert query(page)["baseline"] == ["logs/filters_512_128/plugins/profile/2026_11_20_11_13_10"]
    page.get_by_role("button", name="See what changed").click()
    page.wait_for_url("**/Overview?**")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    settled(page)
    expect(page.get_by_test_id("stMain")).to_contain_text("A filters_512_128")
    expect(page.get_by_test_id("stMain")).to_contain_text("B filters_16_8")
