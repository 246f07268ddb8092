"""Memory in a real browser: both runs over time, what they hold at their peaks, and the numbers to take home."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import (
    EVERYTHING,
    ROWS_SHOWN,
    downloaded,
    opened,
    query,
    settled,
    table_texts,
    too_wide,
)
from tests.profiles import loaded_run
from tfcompare import compare
from tfcompare.run import Run


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return [loaded_run(name) for name in ("filters_512_128", "filters_16_8")]


@pytest.fixture(scope="module")
def memory(tab: Page, autoencoder_url: str) -> Page:
    """The page on the sample runs, opened once for all tests that leave it as they found it."""
    return opened(tab, f"{autoencoder_url}/Memory?span=the+whole+run&parts=true")


def drawn(page: Page, nth: int = 0) -> dict[str, list[float]]:
    """The highest value of each line of a chart by its name and axis, as Plotly has it."""
    chart = page.locator(".js-plotly-plot").nth(nth)
    expect(chart).to_be_visible()
    highest = "t => [t.name + t.yaxis, Math.max(...t.y)]"
    script = f"e => Object.fromEntries(e._fullData.filter(t => t.mode == 'lines').map({highest}))"
    return chart.evaluate(script)  # type: ignore[no-any-return]


def test_every_chart_is_drawn(memory: Page) -> None:
    expect(memory.locator(".gtitle")).to_have_text(
        [
            "Memory in use over time",
            "Stack, heap and free memory: filters_512_128",
            "Stack, heap and free memory: filters_16_8",
            "The 15 largest changes of memory at the peak",
            "Live at the peak of each run, by name scope",
        ]
    )
    peaks = drawn(memory)
    assert sorted(peaks) == [
        "Baseline · filters_512_128, peak 169 MBy", "Baseline · filters_512_128y2",
        "Candidate · filters_16_8, peak 69.0 MBy", "Candidate · filters_16_8y2",
    ]  # fmt: skip
    assert peaks["Baseline · filters_512_128, peak 169 MBy"] == pytest.approx(168.858112)
    expect(memory.locator(".treemaplayer .slice").first).to_be_visible()


def test_the_controls_change_the_chart_and_the_address(page: Page, autoencoder_url: str) -> None:
    opened(page, f"{autoencoder_url}/Memory")
    expect(page.locator(".gtitle").first).to_have_text("Memory in use in one typical step")
    settled(page)
    page.get_by_role("radio", name="share of the step").click()
    expect(page.locator(".xtitle").first).to_have_text("Share of the step (%)")
    settled(page)
    page.get_by_role("radio", name="the whole run").click()
    expect(page.locator(".xtitle").first).to_have_text("Step, by position")
    settled(page)
    page.get_by_role("radio", name="by time").click()
    expect(page.locator(".xtitle").first).to_have_text("Time since the first event (s)")
    settled(page)
    page.get_by_role("radio", name="free", exact=True).click()
    expect(page.locator(".gtitle").first).to_have_text("Memory free over time")
    settled(page)
    page.get_by_role("radio", name="region").click()
    expect(page.locator(".treemaplayer text", has_text="persist/dynamic").first).to_be_visible()
    settled(page)
    assert {name: query(page)[name] for name in ("span", "align", "level", "parts_by")} == {
        "span": ["the whole run"], "align": ["by time"], "level": ["free"], "parts_by": ["region"],
    }  # fmt: skip
    page.reload()  # a link shows a colleague the same
    expect(page.locator(".gtitle").first).to_have_text("Memory free over time")
    expect(page.locator(".xtitle").first).to_have_text("Time since the first event (s)")


def test_hovering_tells_what_an_event_was(memory: Page) -> None:
    plot = memory.locator(".js-plotly-plot").first.locator(".nsewdrag").first
    plot.hover(position={"x": 300, "y": 100})
    texts = memory.locator(".hovertext")
    expect(texts).to_have_count(2)
    for role in ("Baseline", "Candidate"):
        fields = f"{role}: (de)?allocation of .*requested .*in use .*fragmentation .*step "
        expect(texts.filter(has_text=re.compile(fields))).to_have_count(1)


def test_the_csv_of_a_timeline_is_whole(memory: Page, runs: list[Run]) -> None:
    for run, role in zip(runs, ("baseline", "candidate"), strict=True):
        file = downloaded(memory, f"CSV of the {role}'s events", keep_default_na=False)
        whole = run.table("memory_timeline")
        assert list(file.columns) == list(whole.columns)
        for name in ("in_use_bytes", "heap_bytes", "free_bytes"):
            assert file[name].tolist() == whole[name].tolist()
        assert file["op_name"].tolist() == whole["op_name"].tolist()
        assert file["time_us"].tolist() == pytest.approx(whole["time_us"].tolist(), rel=1e-12)


def test_the_csvs_are_the_tables(memory: Page, runs: list[Run]) -> None:
    comparison = compare(*runs)
    for nth, name in enumerate(("memory_peak", "memory_summary")):
        diff = comparison.table(name)
        everything = downloaded(memory, EVERYTHING, nth, keep_default_na=False)
        assert list(everything.columns) == list(diff.columns)
        assert len(everything) == len(diff)
        shown = downloaded(memory, ROWS_SHOWN, nth, keep_default_na=False)
        metric = {"memory_peak": "allocation_bytes", "memory_summary": "heap_bytes"}[name]
        for frame in (everything, shown):
            bytes_of = pd.to_numeric(frame[f"{metric}_baseline"]).dropna().tolist()
            assert bytes_of == diff[f"{metric}_baseline"].dropna().tolist()
    assert table_texts(memory)[0][1:4] == ["temp", "float", "[2,1024,4608]"]


def test_the_columns_shown_first_need_no_sideways_scrolling(memory: Page) -> None:
    assert too_wide(memory, tables=2) == []
