"""What a page sends to the browser, of runs as large as people have them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, WebSocket

from benchmarks.generate import generate
from tests.browser.pages import opened

MOST_BYTES = 2_000_000

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def large_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of over a hundred steps, a thousand ops and ten thousand events of memory."""
    folder = tmp_path_factory.mktemp("large")
    for seed, name in enumerate(("before", "after"), 1):
        (folder / name).mkdir()
        generate(folder / name / "host.xplane.pb", 10, seed=seed)
    return folder


@pytest.mark.parametrize("name", ["Overview", "Memory", "Op_stats"])
def test_a_page_sends_less_than_two_megabytes(page: Page, samples_url: str, large_runs: Path, name: str) -> None:
    received: list[int] = []

    def count(socket: WebSocket) -> None:
        socket.on("framereceived", lambda payload: received.append(len(payload)))

    page.on("websocket", count)
    opened(page, f"{samples_url}/{name}?{urlencode({'all_columns': 'true', 'more': 'true', 'dir': large_runs})}")
    assert page.locator(".stPlotlyChart").count() >= 2
    assert 50_000 < sum(received) < MOST_BYTES
