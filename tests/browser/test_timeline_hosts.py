"""From the Hosts page to two hosts in the timeline, by click and by link, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import opened, query, settled
from tests.profiles import SAMPLES, loaded_run
from tfcompare.sources.logdir import find_runs

IDS = {run.path.parents[2].name: run.id for run in find_runs(SAMPLES)}
PAIR = {"baseline": IDS["balanced"], "candidate": IDS["slow_input"]}


@pytest.fixture(autouse=True)
def no_errors(context: BrowserContext) -> Iterator[None]:
    """What scripts of the test's pages report as errors: nothing."""
    errors: list[str] = []

    def note(page: Page) -> None:
        page.on("pageerror", lambda error: errors.append(str(error)))

    context.on("page", note)
    yield
    context.remove_listener("page", note)
    assert errors == []


def timeline(page: Page) -> Locator:
    """The timeline, once it is drawn."""
    root = page.locator(".timeline")
    expect(root).to_have_attribute("data-spans", re.compile("[1-9]"))
    settled(page)
    return root


def sentence(page: Page) -> Locator:
    return page.locator("[data-testid=stMain]").get_by_text(re.compile("^In step "))


def test_the_slow_host_is_shown_beside_another_by_click_and_by_link(
    page: Page, samples_url: str, context: BrowserContext
) -> None:
    opened(page, f"{samples_url}/Hosts?{urlencode(PAIR)}")
    page.get_by_role("link", name=re.compile("Show worker1 beside worker. in timeline")).click()
    root = timeline(page)
    expect(sentence(page)).to_contain_text(re.compile(r"worker1 reaches CollectiveReduceV2 \d[\d.]* ms after worker"))
    (beside,), (step,) = query(page)["timeline_beside"], query(page)["step_a"]
    assert beside == "worker1 (B)"
    said = sentence(page).inner_text()
    position = 1 + loaded_run("workers_slow_input").steps["step"].to_list().index(int(step))
    assert said.startswith(f"In step {position}, ")

    root.get_by_role("button", name="the collective").click()
    expect(root.locator(".said")).to_contain_text("CollectiveReduceV2")
    expect(page.get_by_role("heading", name="CollectiveReduceV2")).to_be_visible()
    page.wait_for_url(re.compile("window=.*span=|span=.*window="))
    (window,) = query(page)["window"]

    other = context.new_page()
    opened(other, page.url)
    restored = timeline(other)
    expect(sentence(other)).to_have_text(said)
    drawn = (restored.get_attribute("data-window") or "").split(",")
    assert [float(time) for time in drawn] == pytest.approx([float(time) for time in window.split(":")])
    expect(other.get_by_role("heading", name="CollectiveReduceV2")).to_be_visible()

    other.get_by_role("button", name="chevron_right").click()
    expect(sentence(other)).to_contain_text(f"In step {position + 1}, ")
    assert query(other)["timeline_beside"] == [beside]
