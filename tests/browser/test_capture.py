"""Recording two programs that really train from the page, and comparing the result, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Start
from tests.browser.pages import becomes, opened, query, settled, table_texts, titled
from tests.profiles import SAMPLES
from tfcompare.sources.logdir import find_runs

AUTOENCODER = SAMPLES / "autoencoder"
IDS = {run.name: run.id for run in find_runs(AUTOENCODER)}

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def url(start: Start) -> Iterator[str]:
    """A server of its own, since what is recorded stays."""
    with start(AUTOENCODER) as address:
        yield address


def test_two_workers_are_recorded_and_compared_with_the_baseline(
    page: Page, url: str, workers: tuple[str, str]
) -> None:
    choice = [("baseline", IDS["filters_512_128"]), ("candidate", IDS["filters_16_8"])]
    opened(page, f"{url}/Capture?{urlencode(choice)}")
    main = page.get_by_test_id("stMain")
    main.get_by_label("Addresses", exact=True).fill(", ".join(workers))
    main.get_by_label("Duration (ms)", exact=True).fill("1200")
    main.get_by_label("Run name", exact=True).fill("live")
    main.get_by_role("button", name="Capture", exact=True).click()
    expect(main.get_by_test_id("stAlert")).to_contain_text("live was captured: 2 hosts (")
    for worker in workers:
        expect(main.get_by_test_id("stTable").get_by_role("row", name=worker)).to_contain_text("captured: ")
    settled(page)
    asked = query(page)
    assert asked["candidate"][0] == IDS["filters_16_8"]
    assert asked["candidate"][1].startswith("captures/live/"), "it is selected"
    assert (asked["address"], asked["duration"]) == ([", ".join(workers)], ["1200"])
    main.get_by_role("button", name="Compare with filters_512_128").click()

    titled(page, "Overview")
    expect(main).to_contain_text("A filters_512_128")
    expect(main).to_contain_text("B live")
    settled(page)
    assert query(page)["baseline"] == [IDS["filters_512_128"]]
    (recorded,) = query(page)["candidate"]
    assert Path(recorded).parts[:-1] == ("captures", "live", "plugins", "profile")
    expect(page.get_by_test_id("stSidebar").get_by_label("Host", exact=True)).to_be_visible()

    page.get_by_test_id("stSidebar").get_by_role("link", name="Home").click()
    titled(page, "Compare profile runs")
    becomes(page, lambda: any("live" in cells for cells in table_texts(page)))  # it is listed among the runs


def test_it_can_become_the_baseline_or_be_stopped(page: Page, url: str, workers: tuple[str, str]) -> None:
    opened(page, f"{url}/Capture?{urlencode([('address', workers[0]), ('duration', '300')])}")
    main = page.get_by_test_id("stMain")
    main.get_by_role("button", name="Capture", exact=True).click()
    main.get_by_role("button", name="Use as baseline").click()
    expect(main.get_by_text("It is the baseline.")).to_be_visible()
    settled(page)
    assert query(page)["baseline"][0].startswith("captures/capture/")

    main.get_by_label("Duration (ms)", exact=True).fill("60000")
    main.get_by_role("button", name="Capture", exact=True).click()
    expect(main.get_by_text(f"Recording {workers[0]}: ")).to_be_visible()
    expect(main.get_by_role("button", name="Capture", exact=True)).to_be_disabled()
    main.get_by_role("button", name="Stop", exact=True).click()
    expect(main.get_by_text("the capture was stopped, and nothing was saved")).to_be_visible()
    settled(page)
