"""The hosts of runs in a real browser: who is slowest and why, on the page, in its address and in its files."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import EVERYTHING, WIDE, becomes, downloaded, opened, query, settled
from tests.profiles import SAMPLES
from tfcompare import compare, load
from tfcompare.sources.logdir import find_runs
from tfcompare.tools.hosts.host_words import verdict_sentence
from tfcompare.tools.hosts.slowest_host import slowest_host

RUNS = {run.path.parents[2].name: run for run in find_runs(SAMPLES)}
BALANCED, SLOW = RUNS["balanced"].id, RUNS["slow_input"].id
HEADLINE = "[data-testid=stMain] h3"
HEAT_MAPS = ".js-plotly-plot .heatmaplayer .hm"
FIRST_SCREEN = 900


def address(url: str, page: str = "Hosts", **parameters: str) -> str:
    return f"{url}/{page}?{urlencode(parameters)}"


def headline(page: Page) -> str:
    return " ".join(page.locator(HEADLINE).first.inner_text().split())


def test_the_verdict_comes_first_and_follows_the_swapped_sides(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url, baseline=BALANCED, candidate=SLOW))
    ours, theirs = load(RUNS["balanced"]), load(RUNS["slow_input"])
    slow = slowest_host(ours), slowest_host(theirs)
    expected = verdict_sentence(slow[1], slow[0]).replace("`", "")
    assert expected.startswith("Slowest host: worker1 in 19 of 19 steps, ")
    assert headline(page) == expected
    expect(page.locator(HEAT_MAPS)).to_have_count(3)

    page.get_by_role("button", name="Swap").click()
    mirrored = verdict_sentence(*slow).replace("`", "")
    assert "in the baseline worker1 was the slowest, " in mirrored
    assert becomes(page, lambda: headline(page), mirrored)
    settled(page)
    assert (query(page)["baseline"], query(page)["candidate"]) == ([SLOW], [BALANCED])


def test_a_run_alone_has_one_heat_map_and_no_baseline(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url, baseline=SLOW))
    assert headline(page).startswith("Slowest host: worker1 in 19 of 19 steps, ")
    assert "baseline" not in headline(page)
    expect(page.locator(HEAT_MAPS)).to_have_count(1)


def test_the_part_that_is_chosen_is_drawn_and_kept_in_the_address(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url, baseline=BALANCED, candidate=SLOW))
    expect(page.get_by_role("heading", name="Busy time of each step")).to_be_visible()
    before = drawn(page)
    page.get_by_role("combobox", name="Show").click()
    page.get_by_role("option", name="Input", exact=True).click()
    expect(page.get_by_role("heading", name="Input of each step")).to_be_visible()
    settled(page)
    assert query(page)["metric"] == ["Input"]
    chosen = drawn(page)
    assert chosen != before

    colleague = opened(page.context.new_page(), page.url)
    expect(colleague.get_by_role("heading", name="Input of each step")).to_be_visible()
    assert drawn(colleague) == chosen


def drawn(page: Page) -> list[list[list[float]]]:
    """The values of the heat maps, in the order of the page."""
    expect(page.locator(HEAT_MAPS)).to_have_count(3)
    values: list[list[list[float]]] = page.locator(".js-plotly-plot:has(.heatmaplayer .hm)").evaluate_all(
        "all => all.map(e => Array.from(e.calcdata[0][0].z, row => [...row]))"
    )
    assert [len(rows) for rows in values] == [3, 3, 3]
    return values


def test_the_csv_has_every_step_of_every_host(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url, baseline=BALANCED, candidate=SLOW))
    found = downloaded(page, EVERYTHING)
    expected = compare(load(RUNS["balanced"]), load(RUNS["slow_input"])).table("hosts")
    assert len(found) == len(expected)
    for column in ("busy_us_baseline", "busy_us_candidate", "busy_skew_us_candidate"):
        assert sorted(found[column].dropna()) == pytest.approx(sorted(expected[column].dropna()), rel=1e-9)


def test_a_host_that_stands_out_is_on_the_first_screen_of_the_overview(page: Page, samples_url: str) -> None:
    page.set_viewport_size({"width": WIDE["width"], "height": FIRST_SCREEN})
    opened(page, address(samples_url, "Overview", baseline=BALANCED, candidate=SLOW))
    sentence = page.get_by_text("Slowest host: worker1 in ")
    expect(sentence).to_contain_text("spent in Map of its input pipeline (read); the others wait for it")
    box = sentence.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < FIRST_SCREEN
    assert box["height"] < 80, "two lines"
    page.get_by_test_id("stMain").get_by_role("link", name="Hosts", exact=True).click()
    expect(page.get_by_role("heading", name="Busy time of each step")).to_be_visible()
    settled(page)
    assert query(page)["candidate"] == [SLOW]


def test_a_click_on_a_heat_map_shows_that_step_and_back_the_average(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url, baseline=BALANCED, candidate=SLOW))
    expect(page.get_by_text("Average step by part")).to_be_visible()
    plot = page.locator(".js-plotly-plot:has(.heatmaplayer .hm) .nsewdrag").nth(1)
    box = plot.bounding_box()
    assert box is not None
    steps = drawn(page)[1][0]
    seventh = box["width"] * (6.5 / len(steps))  # the steps that count begin with the second
    plot.hover(position={"x": seventh, "y": box["height"] / 2})
    plot.click(position={"x": seventh, "y": box["height"] / 2})
    expect(page.get_by_text("Step 8 by part")).to_be_visible()
    expect(page.get_by_text("worker1 is busy longest")).to_be_visible()
    settled(page)
    assert query(page)["at_step"] == ["8"]
    page.go_back()
    expect(page.get_by_text("Average step by part")).to_be_visible()
