"""Choosing runs in a real browser: the table's buttons, the sidebar, the address, and links to what was chosen."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Serve, add_runs, becomes, click_table, opened, query, settled, table_texts
from tests.profiles import SAMPLE_RUNS, SAMPLES
from tfcompare.sources.logdir import find_runs

AUTOENCODER = SAMPLES / "autoencoder"
IDS = {run.name: run.id for run in find_runs(AUTOENCODER)}
BASELINE_X, CANDIDATE_X, EDIT_X = 34, 102, 353
HEADLINE = "[data-testid=stMain] h4"


def row_of(page: Page, name: str) -> int:
    return next(i for i, cells in enumerate(table_texts(page)) if name in cells)


def top(page: Page) -> float:
    """Where the table begins on the page, in pixels."""
    box = settled(page).locator("[data-testid=stDataFrame]").bounding_box()
    assert box is not None
    return box["y"]


def names(page: Page) -> list[str]:
    return [cells[2] for cells in table_texts(settled(page)) if len(cells) > 2]


def test_no_other_origin_can_show_the_app_in_a_frame(samples_url: str) -> None:
    for path in ("", "Overview", "_stcore/health"):
        with urlopen(f"{samples_url}/{path}") as answer:
            assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"


def test_the_choice_is_made_in_the_table_stands_in_the_address_and_can_be_gone_back_on(
    page: Page, autoencoder_url: str
) -> None:
    opened(page, autoencoder_url)
    assert query(page) == {"baseline": [IDS["filters_512_128"]], "candidate": [IDS["filters_16_8"]]}
    expect(page.locator(HEADLINE)).to_contain_text("× faster than")

    click_table(page, CANDIDATE_X, row_of(page, "filters_16_8_better_input"))
    expect(page.locator(HEADLINE)).to_have_count(2)
    settled(page)
    assert query(page)["candidate"] == [IDS["filters_16_8"], IDS["filters_16_8_better_input"]]

    page.go_back()  # brings the choice before
    expect(page.locator(HEADLINE)).to_have_count(1)
    settled(page)
    assert query(page)["candidate"] == [IDS["filters_16_8"]]

    click_table(page, BASELINE_X, row_of(page, "filters_16_8_again"))
    expect(page.locator(HEADLINE).first).to_contain_text("filters_16_8_again")
    settled(page)
    assert query(page)["baseline"] == [IDS["filters_16_8_again"]]


def test_the_table_stays_where_it_is_while_runs_are_selected(page: Page, autoencoder_url: str) -> None:
    opened(page, autoencoder_url)
    tops = [top(page)]
    for name, count in (
        ("filters_16_8_again", 2),
        ("filters_16_8_better_input", 3),
        ("filters_16_8", 2),
        ("filters_16_8_again", 1),
    ):
        click_table(page, CANDIDATE_X, row_of(page, name))
        expect(page.locator(HEADLINE)).to_have_count(count)  # a click that follows before it is handled replaces it
        tops.append(top(page))
    click_table(page, CANDIDATE_X, row_of(page, "filters_16_8_better_input"))
    expect(page.get_by_test_id("stMain").get_by_role("button", name="Open", exact=True)).to_be_visible()
    assert {*tops, top(page)} == {tops[0]}


def test_a_run_is_renamed_and_hidden_from_the_table(page: Page, serve: Serve) -> None:
    opened(page, serve(AUTOENCODER))
    click_table(page, EDIT_X, row_of(page, "filters_16_8"))
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Small model")
    dialog.get_by_label("Name", exact=True).press("Tab")  # leaves the field, so that the server knows before the click
    settled(page)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(page.locator(HEADLINE)).to_contain_text("Small model is")
    assert becomes(page, lambda: "Small model" in names(page), True)
    click_table(page, EDIT_X, row_of(page, "filters_16_8_again"))
    dialog.get_by_text("Hidden", exact=True).click()
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("3 of 4 runs, 1 hidden")).to_be_visible()
    settled(page).get_by_text("Show hidden").click()
    expect(page.get_by_text("4 runs", exact=True)).to_be_visible()


def test_clicks_hit_the_right_run_after_sorting(page: Page, autoencoder_url: str) -> None:
    opened(page, autoencoder_url)
    click_table(page, 230, -1)  # by name: filters_16_8 comes first, and shown last before
    page.wait_for_timeout(500)
    click_table(page, BASELINE_X, 0)
    expect(page.locator(HEADLINE).first).to_contain_text("than filters_16_8 (")
    settled(page)
    assert query(page)["baseline"] == [IDS["filters_16_8"]]


def test_the_choice_survives_reloading_and_going_to_another_page(page: Page, autoencoder_url: str) -> None:
    opened(page, autoencoder_url)
    page.get_by_test_id("stSidebar").get_by_role("radio", name="run", exact=True).click()
    page.wait_for_url("**per=run**")
    settled(page)
    page.reload()
    settled(page)
    assert query(page)["per"] == ["run"]
    page.get_by_role("button", name="See what changed").click()
    page.wait_for_url("**/Overview?**")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    settled(page)
    assert query(page)["per"] == ["run"]
    page.get_by_test_id("stSidebar").get_by_role("link", name="Home").click()
    expect(page.get_by_role("heading", name="Compare profile runs")).to_be_visible()
    settled(page)
    assert query(page)["candidate"] == [IDS["filters_16_8"]]


def test_links_in_the_sidebar_can_be_copied(page: Page, autoencoder_url: str) -> None:
    opened(page, autoencoder_url)
    chosen = query(page)
    address = page.get_by_test_id("stSidebar").get_by_role("link", name="Overview").get_attribute("href")
    assert address is not None
    assert query(opened(page, f"{autoencoder_url}/{address.lstrip('./')}")) == chosen


def test_a_typed_place_is_searched_and_linked_to(page: Page, context: BrowserContext, samples_url: str) -> None:
    opened(page, samples_url)
    place = str(SAMPLE_RUNS["filters_16_8"])
    field = add_runs(page, "Path or URL").get_by_role("textbox", name="Path on this machine, or URL")
    field.fill(place)
    field.press("Enter")
    page.wait_for_url("**dir=**")
    settled(page)
    assert query(page)["dir"] == [place]
    rows = page.locator("[data-testid=stDataFrame]").first.locator("canvas tbody tr")
    expect(rows, "the samples make room").to_have_count(1)
    other = opened(context.new_page(), page.url)
    assert [cells[2] for cells in table_texts(other)] == ["filters_16_8"]


def test_the_users_files_are_left_as_they_are(page: Page, serve: Serve, tmp_path: Path) -> None:
    folder = shutil.copytree(AUTOENCODER, tmp_path / "logs")
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(10**18, 10**18 + 1))
    before = [(path, path.stat().st_mtime_ns, path.stat().st_atime_ns) for path in sorted(folder.rglob("*"))]
    opened(page, serve(folder))
    page.get_by_role("button", name="See what changed").click()
    page.wait_for_url("**/Overview?**")
    settled(page)
    after = [(path, path.stat().st_mtime_ns, path.stat().st_atime_ns) for path in sorted(folder.rglob("*"))]
    files = [(now, then) for now, then in zip(after, before, strict=True) if now[0].is_file()]
    assert [path for (path, *now), (_, *then) in files if now != then] == []
    assert [now[:2] for now in after] == [then[:2] for then in before]
