"""What every page has: its end of drawing, its address, its tables on canvases and its downloads.

A click is followed by a wait for what it leads to; nothing waits for a time.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pandas as pd
import pytest
from playwright.sync_api import FloatRect, Locator, Page, ViewportSize, expect

from tests.profiles import GPU_RUNS, SAMPLES
from tfcompare.sources.logdir import find_runs

TIMEOUT_MS = 180_000
"""A machine that runs tests has other things to do as well; only a test that fails waits for so long."""
LOOK_AGAIN_MS = 100
expect.set_options(timeout=TIMEOUT_MS)

WIDE: ViewportSize = {"width": 1440, "height": 1000}
NARROW: ViewportSize = {"width": 900, "height": 1000}
PHONE: ViewportSize = {"width": 390, "height": 844}

IDS = {run.path.parents[2].name: run.id for run in find_runs(SAMPLES)}
IDS |= {path.parent.name: IDS[path.name] for path in GPU_RUNS.values()}
CPU_PAIR = ("filters_512_128", "filters_16_8")
XLA_PAIR = ("jax_filters_128_32", "jax_filters_16_8")
WORKERS = ("balanced", "slow_input")

ROW_PIXELS = 35
LEFT_END = 18
"""The x of the boxes that choose a row."""
ROWS_SHOWN = re.compile("CSV of (this|these) ")
"""The button whose file holds the rows of the table above it."""
EVERYTHING = "CSV: ungrouped, all columns"

COUNT_RUNS = """
new MutationObserver(changes => {
    window.runsDone = (window.runsDone ?? 0) + changes.filter(change => change.oldValue === "running").length
}).observe(document, {
    attributes: true, attributeFilter: ["data-test-script-state"], attributeOldValue: true, subtree: true,
})
"""
_SETTLED = """() => {
    const app = document.querySelector("[data-testid=stApp]")
    return app?.dataset.testScriptState === "notRunning" && app.dataset.testConnectionState === "CONNECTED"
        && !document.querySelector("[data-testid=stSkeleton], [data-stale=true]")
        && [...document.querySelectorAll(".stPlotlyChart")].every(chart => chart.querySelector(".main-svg"))
}"""

_CUT_OFF = """charts => charts.flatMap(chart => {
    const place = part => chart.querySelector(part)?.getBoundingClientRect()
    const [title, subtitle, legend, drawing] = [".gtitle", ".gtitle-subtitle", ".legend", ".main-svg"].map(place)
    const name = chart.querySelector(".gtitle")?.textContent, faults = []
    if (!(Math.abs(drawing?.width - chart.clientWidth) < 1)) faults.push(`${name}: is not as wide as its place`)
    if (!(title?.right <= chart.getBoundingClientRect().right + 1)) faults.push(`${name}: runs out of its chart`)
    if (subtitle && legend && subtitle.bottom > legend.top + 2) faults.push(`${name}: the legend lies over the title`)
    return faults
})"""

_CUT_IN_CHARTS = """charts => charts.flatMap(chart => {
    const place = chart.getBoundingClientRect(), name = chart.querySelector(".gtitle")?.textContent
    const texts = [...chart.querySelectorAll("text")].filter(text => {
        const { left, right, width } = text.getBoundingClientRect()
        return text.textContent.trim() && width && (left < place.left - 1 || right > place.right + 1)
            && getComputedStyle(text).visibility !== "hidden"
    })
    return texts.map(text => `${name}: ${text.textContent}`)
})"""


def address(url: str, page: str, baseline: str, *candidates: str, **view: str) -> str:
    """The link to a page on sample runs."""
    choice = {"baseline": IDS[baseline], "candidate": [IDS[name] for name in candidates], "repeat": ""}
    return f"{url}/{page}?{urlencode(choice | view, doseq=True)}"


def settled(page: Page) -> Page:
    """`page`, once its script has run to the end, and all charts are drawn; fails where it shows an exception."""
    page.wait_for_function(_SETTLED, polling=LOOK_AGAIN_MS)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    return page


@contextmanager
def redrawn(page: Page) -> Iterator[None]:
    """Waits until the script has run once more, for what is done in the block and has no other sign."""
    before = settled(page).evaluate("window.runsDone")
    yield
    page.wait_for_function("before => window.runsDone > before", arg=before, polling=LOOK_AGAIN_MS)
    settled(page)


def opened(page: Page, url: str) -> Page:
    """`page` at that address, once all is there."""
    page.goto(url)
    return titled(page)


def titled(page: Page, title: str | None = None) -> Page:
    """`page`, once it is the one of that title."""
    heading = page.get_by_test_id("stMain").locator("h1")
    expect(heading).to_be_visible()
    if title is not None:
        expect(heading).to_have_text(title)
    return settled(page)


def query(page: Page) -> dict[str, list[str]]:
    """The parameters in the address of the page."""
    return parse_qs(urlsplit(page.url).query)


def becomes(page: Page, found: Callable[[], object], expected: object = True) -> None:
    """Waits until `found` gives what is expected: screen readers hear of tables after they are drawn."""
    until = time.monotonic() + TIMEOUT_MS / 1000
    while (now := found()) != expected:
        if time.monotonic() > until:
            pytest.fail(f"expected {expected}, and in the end still found {now}")
        page.wait_for_timeout(LOOK_AGAIN_MS)


def box_of(part: Locator) -> FloatRect:
    box = part.bounding_box()
    assert box is not None, part
    return box


def cut_off(page: Page) -> list[str]:
    """What does not fit: charts and titles wider than their place, legends over titles, a page that scrolls aside."""
    faults = page.locator(".js-plotly-plot").evaluate_all(_CUT_OFF)
    return [*faults, *["the page scrolls sideways"] * scrolls_sideways(page)]


def scrolls_sideways(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


def cut_in_charts(page: Page) -> list[str]:
    """Names, numbers and subtitles that run out of their charts."""
    return page.locator(".js-plotly-plot").evaluate_all(_CUT_IN_CHARTS)  # type: ignore[no-any-return]


def chart(page: Page, title: str) -> Locator:
    return page.get_by_test_id("stPlotlyChart").filter(has=page.locator(".gtitle", has_text=title))


def add_runs(page: Page, way: str) -> Page:
    """`page` with one of the ways to add runs open: `Path or URL` (the first), `Upload` or `Capture`."""
    tab = settled(page).get_by_role("tab", name=way)
    if tab.count() == 0:
        page.get_by_role("button", name="Add runs").click()
        expect(tab).to_be_visible()
    if tab.get_attribute("aria-selected") != "true":
        with redrawn(page):
            tab.click()
    return page


def table_texts(page: Page, nth: int = 0) -> list[list[str]]:
    """The cells of a table that are in view, as screen readers hear them: tables are drawn on a canvas."""
    rows = page.get_by_test_id("stDataFrame").nth(nth).locator("canvas tbody tr")
    expect(rows.first).to_be_attached()
    script = "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent.trim()))"
    return rows.evaluate_all(script)  # type: ignore[no-any-return]


def click_table(page: Page, x: float, row: int, *, nth: int = 0, headers: int = 2) -> None:
    """Click into a row (-1: the last of its lines of headers), `x` pixels from the left edge, once nothing moves."""
    table = settled(page).get_by_test_id("stDataFrame").nth(nth)
    expect(table.locator("canvas tbody tr").first).to_be_attached()
    table.click(position={"x": x, "y": (headers + row + 0.5) * ROW_PIXELS})


def cells_in(page: Page, column: int = 0, nth: int = 0) -> list[str]:
    """The cells of one column of a table that are in view."""
    return [cells[column] for cells in table_texts(page, nth) if len(cells) > column]


def row_of(page: Page, name: str, column: int = 0, nth: int = 0) -> int:
    """The row that has this name in a column, once there is one."""
    rows: list[int] = []

    def look() -> bool:
        rows[:] = [row for row, cell in enumerate(cells_in(page, column, nth)) if cell == name]
        return bool(rows)

    becomes(settled(page), look)
    return rows[0]


def choose_row(page: Page, name: str) -> None:
    """Click on the box before the row of that name, and wait until the address has it."""
    click_table(page, LEFT_END, row_of(page, name))
    page.wait_for_url(re.compile("[?&]row="))
    settled(page)


def too_wide(page: Page, tables: int, scrolled: int = 0) -> list[str]:
    """Which of the page's tables must be scrolled sideways to see all columns that are shown first, except the first
    `scrolled`: shapes and work follow what was judged in them, and that is in view (`test_tables`)."""
    scrollers = page.locator("[data-testid=stDataFrame] .dvn-scroller")
    expect(scrollers).to_have_count(tables)
    sizes = scrollers.evaluate_all("all => all.map(e => [e.scrollWidth, e.clientWidth])")
    wide = [(nth, *both) for nth, both in enumerate(sizes, 1) if both[0] > both[1] and nth > scrolled]
    return [f"table {nth}: {needed} px in {there} px" for nth, needed, there in wide]


def saved(page: Page, button: str | re.Pattern[str] | Locator) -> Path:
    """The file that a button hands out."""
    found = button if isinstance(button, Locator) else page.get_by_role("button", name=button).first
    with settled(page).expect_download() as download:
        found.click()
    return Path(download.value.path())


def downloaded(page: Page, button: str | re.Pattern[str] | Locator, **options: Any) -> pd.DataFrame:
    """The CSV that a button hands out; `options` go to `pandas.read_csv`."""
    return pd.read_csv(io.BytesIO(saved(page, button).read_bytes()), encoding="utf-8-sig", **options)


def table_csv(page: Page, button: str | re.Pattern[str], nth: int = 0) -> pd.DataFrame:
    """The CSV that a button in the menu of files of the n-th table hands out."""
    settled(page).get_by_test_id("stPopoverButton").filter(has_text="CSV").nth(nth).click()
    rows = downloaded(page, page.get_by_test_id("stPopoverBody").get_by_role("button", name=button))
    page.keyboard.press("Escape")
    return rows
