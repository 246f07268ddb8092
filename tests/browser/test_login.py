"""Logging in with a provider, in a real browser: what is seen before, after, and by somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.conftest import Start
from tests.browser.pages import COUNT_RUNS, add_runs, opened, query, settled
from tests.browser.provider import Provider, login_provider
from tests.profiles import SAMPLE_RUNS, SAMPLES
from tfcompare.sources.logdir import find_runs

IDS = {run.name: run.id for run in find_runs(SAMPLES / "autoencoder")}
PAIR = {"baseline": IDS["filters_512_128"], "candidate": IDS["filters_16_8_better_input"]}
(PROFILE,) = SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")

pytestmark = pytest.mark.thorough


@pytest.fixture
def provider() -> Iterator[Provider]:
    with login_provider() as running:
        yield running


@pytest.fixture
def people(browser: Browser) -> Iterator[list[BrowserContext]]:
    """Browsers of their own."""
    made = [browser.new_context() for _ in range(2)]
    for context in made:
        context.add_init_script(COUNT_RUNS)
    yield made
    for context in made:
        context.close()


def test_who_logs_in_gets_to_the_page_that_was_asked_for_and_sees_what_is_theirs(
    people: list[BrowserContext], start: Start, provider: Provider
) -> None:
    with start(SAMPLES / "autoencoder", secrets=provider.secrets, behind_proxy=True) as url:
        page = people[0].new_page()
        page.goto(f"{url}/Kernel_stats?{urlencode(PAIR)}")
        expect(page.get_by_text("This dashboard is for people who are logged in.")).to_be_visible()
        assert "filters" not in settled(page).locator("body").inner_text()

        provider.account = "ann"
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_test_id("stSidebar").get_by_text("ann@example.com")).to_be_visible()
        expect(page.get_by_role("heading", name="Kernel stats", exact=True)).to_be_visible()
        settled(page)
        assert {name: query(page)[name] for name in PAIR} == {name: [value] for name, value in PAIR.items()}

        opened(page, url)
        add_runs(page, "Upload").locator("input[type=file]").nth(1).set_input_files(PROFILE)
        expect(page.get_by_test_id("stAlert").filter(has_text=re.compile("was added"))).to_be_visible()
        expect(settled(page).get_by_role("button", name="Delete", exact=True)).to_have_count(1)

        # Behind a proxy, a browser is on another machine.
        opened(page, f"{url}/?dir={SAMPLES}")
        expect(page.get_by_text("Paths in a link are opened only for a browser on the machine")).to_be_visible()
        opened(page, f"{url}/Capture")
        expect(page.get_by_role("button", name="Capture", exact=True)).to_have_count(0)

        provider.account, other = "bob", people[1].new_page()
        other.goto(url)
        other.get_by_role("button", name="Log in").click()
        expect(other.get_by_test_id("stSidebar").get_by_text("bob@example.com")).to_be_visible()
        expect(add_runs(other, "Upload").locator("input[type=file]")).to_have_count(2)
        expect(settled(other).get_by_role("button", name="Delete", exact=True)).to_have_count(0)

        with page.expect_request(lambda asked: asked.url.startswith(f"{provider.url}/logout")):
            page.get_by_role("button", name="Log out").click()
        expect(page.get_by_text("This dashboard is for people who are logged in.")).to_be_visible()
        page.goto(f"{url}/Overview")
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        assert "filters" not in settled(page).locator("body").inner_text()
