"""Kernel stats in a real browser: group, filter, sort, choose, take home, and names that try to be markup."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pandas as pd
import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.browser.conftest import (
    EVERYTHING,
    ROW_PIXELS,
    ROWS_SHOWN,
    downloaded,
    opened,
    query,
    settled,
    table_texts,
    too_wide,
)
from tests.profiles import SAMPLES, SIMULATED_RUNS
from tests.xspace_builder import event, line, plane, space
from tfcompare import compare, load
from tfcompare.compare.groups.kernel_groups import group_kernels
from tfcompare.sources.logdir import find_runs
from tfcompare.tools.columns import changes_of

HEADERS = 2
LEFT_END, BASELINE = 18, 360
NAMES = ("filters_512_128_simulated", "filters_16_8_simulated")
IDS = {run.path.parents[2].name: run.id for run in find_runs(SAMPLES)}
PAIR = {"baseline": IDS[NAMES[0]], "candidate": IDS[NAMES[1]]}
TIME = "total_duration_us_per_step"
HOSTILE = "void <img src=x onerror=document.title='owned'>::f<**b**, $y$>(<script>float*)"


@pytest.fixture(scope="module")
def diff() -> pd.DataFrame:
    return compare(*(load(SIMULATED_RUNS[name]) for name in NAMES)).table("kernel_stats")


def address(base: str, **view: str) -> str:
    return f"{base}/Kernel_stats?{urlencode({**PAIR, **view})}"


def chart(page: Page, title: str) -> Locator:
    return page.locator("[data-testid=stPlotlyChart]").filter(has=page.locator(".gtitle", has_text=title))


def click(page: Page, x: float, row: int, then: str | re.Pattern[str]) -> None:
    """Click into the first table (row 0 is the first, -1 the header), and wait until `then` is in the address."""
    settled(page)
    box = resting_place(page, page.locator("[data-testid=stDataFrame]").first)
    page.mouse.click(box["x"] + x, box["y"] + (HEADERS + row + 0.5) * ROW_PIXELS)
    page.wait_for_url(then)
    settled(page)


def resting_place(page: Page, table: Locator) -> FloatRect:
    """Where the table is once the charts above it are drawn and nothing moves any more."""
    expect(page.locator("[data-testid=stPlotlyChart] .gtitle").first).to_be_attached()
    table_texts(page)
    before: FloatRect | None = None
    for _ in range(50):
        table.scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        box = table.bounding_box()
        if box is not None and box == before:
            return box
        before = box
    raise AssertionError(f"the table does not come to rest: {before}")


def test_charts_are_drawn_and_the_switches_work(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    movers = chart(page, "The 15 largest changes of kernel time")
    expect(movers.locator(".bars path").first).to_be_attached()
    for title in ("Kernel time by kernel", "Kernel time by op", "Kernel time by use of tensor cores"):
        expect(chart(page, title).locator(".bars path").first).to_be_attached()

    page.get_by_role("radio", name="launches").click()
    page.wait_for_url("**movers=launches**")
    settled(page)
    expect(chart(page, "largest changes of kernel launches").locator(".bars path").first).to_be_attached()

    page.get_by_role("radio", name="kernel and op").click()
    expect(page.get_by_role("heading", name="Every kernel and op")).to_be_visible()
    settled(page)
    assert query(page)["by"] == ["kernel and op"]


def test_filter_sort_and_download(page: Page, samples_url: str, diff: pd.DataFrame) -> None:
    opened(page, address(samples_url))
    page.get_by_role("textbox", name="Filter").fill("gpu_dt kernel")
    page.get_by_role("textbox", name="Filter").press("Enter")
    page.wait_for_url("**filter=**")
    groups = group_kernels(diff, "kernel_name")
    found = groups[groups["kernel_name"].str.contains("GPU_DT.*kernel")]
    expect(page.get_by_role("button", name=f"CSV of these {len(found)} rows")).to_be_visible()

    click(page, BASELINE, -1, f"**sort=-{TIME}_baseline**")
    expected = found.sort_values(f"{TIME}_baseline", ascending=False, kind="stable")
    assert [cells[0] for cells in table_texts(page)] == expected["kernel_name"].tolist()[: len(table_texts(page))]
    shown = downloaded(page, ROWS_SHOWN)
    assert shown["kernel_name"].tolist() == expected["kernel_name"].tolist()
    for column in shown.columns[1:].drop("verdict"):
        assert shown[column].tolist() == pytest.approx(changes_of(expected, column).tolist(), rel=1e-12, nan_ok=True)
    assert set(shown["verdict"]) <= {"likely faster", "likely slower", "inconclusive", "not tested", "added", "removed"}
    assert "likely faster" in set(shown["verdict"])


def test_the_csv_has_whole_names_and_everything(page: Page, samples_url: str, diff: pd.DataFrame) -> None:
    opened(page, address(samples_url, filter="eigen"))
    found = group_kernels(diff, "kernel_name")["kernel_name"].str.contains("eigen", case=False).sum()
    shown = downloaded(page, f"CSV of these {found} rows")
    assert len(shown) == found
    assert shown["kernel_name"].str.len().max() == diff["kernel_name"].str.len().max()
    everything = downloaded(page, EVERYTHING)
    assert set(diff.columns) < set(everything.columns)
    assert everything["kernel_name"].tolist() == diff["kernel_name"].tolist()
    copies = downloaded(page, EVERYTHING, nth=1)
    assert set(copies["kind"]) == {"host to device", "device to host"}


def test_a_chosen_row_shows_the_whole_name_and_is_linked(page: Page, samples_url: str, diff: pd.DataFrame) -> None:
    opened(page, address(samples_url))
    names = group_kernels(diff, "kernel_name")["kernel_name"].tolist()
    row = next(i for i, name in enumerate(names) if "SwapDimension" in name)
    click(page, LEFT_END, row, "**row=**")
    expect(page.locator("[data-testid=stCode]")).to_have_text(names[row])

    page.reload()  # a link shows a colleague the same
    expect(page.locator("[data-testid=stCode]")).to_have_text(names[row])
    settled(page)
    assert len(query(page)["row"][0]) < 20


def test_the_columns_shown_first_need_no_sideways_scrolling(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    faults = []
    for by in ("kernel", "op", "kernel and op", "every launch"):
        page.get_by_role("radio", name=by, exact=True).click()
        heading = f"Every {by.removeprefix('every ')}"
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        settled(page)
        faults += [f"by {by}: {fault}" for fault in too_wide(page, tables=2)]
    assert faults == []


def write_run(folder: Path, us: float) -> None:
    details = {"kernel_details": "regs:16 grid:1,1,1 block:64,1,1", "tf_op": "<b>net</b>/MatMul:MatMul"}
    stream = line("Stream #7(Compute)", event(HOSTILE, 0, us, **details), event("plain", 50, 2 * us, **details), id=7)
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(space(plane("/device:GPU:0", stream)))


def test_a_kernel_name_is_never_markup(page: Page, samples_url: str, tmp_path: Path) -> None:
    for name, us in (("one", 10.0), ("two", 20.0)):
        write_run(tmp_path / "logs" / name / "plugins" / "profile" / "run", us)
    ids = [run.id for run in find_runs(tmp_path / "logs")]
    link = {"dir": tmp_path / "logs", "baseline": ids[0], "candidate": ids[1], "by": "every launch"}
    opened(page, f"{samples_url}/Kernel_stats?{urlencode(link)}")
    click(page, LEFT_END, 1, "**row=**")
    expect(page.locator("[data-testid=stCode]")).to_have_text(HOSTILE)
    assert page.locator("[data-testid=stMain] img[src=x], [data-testid=stMain] script").count() == 0
    assert "owned" not in page.title()
    hover = chart(page, "largest changes").locator(".bars path").first
    hover.hover(force=True)
    assert page.locator("[data-testid=stMain] img[src=x]").count() == 0
