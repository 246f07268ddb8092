"""Pairing by hand in a real browser: part, pair, undo; the choice is in the address, on all pages, and swaps along."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import becomes, opened, query, settled, table_texts
from tests.browser.op_stats_page import CONVOLUTION, LEFT_END, click

VERDICT = 6


def row_of(page: Page, name: str) -> list[str]:
    return next((cells for cells in table_texts(page) if cells[0].endswith(name)), [])


def status_of(page: Page, name: str) -> list[str]:
    return sorted(cells[VERDICT] for cells in table_texts(page) if cells[0] == name)


def button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    settled(page)


def close_dialog(page: Page) -> None:
    page.keyboard.press("Escape")
    page.wait_for_url(re.compile("^(?!.*row=)"))
    settled(page)


def said(page: Page) -> list[str]:
    """The choices in the address."""
    return [json.dumps(choice) for value in query(page).get("by_hand", []) for choice in json.loads(value)[2:]]


def test_part_pair_and_undo(page: Page, autoencoder_url: str) -> None:
    opened(page, f"{autoencoder_url}/Op_stats?filter=image_1/convolution")
    names = [cells[0] for cells in table_texts(page)]
    click(page, LEFT_END, names.index(CONVOLUTION), "**row=**")
    before = row_of(page, CONVOLUTION)

    button(page, "Separate")
    page.wait_for_url("**by_hand=**")
    settled(page)
    assert becomes(page, lambda: status_of(page, CONVOLUTION), ["added", "removed"])
    assert said(page) == [json.dumps(["!", CONVOLUTION, CONVOLUTION])]
    expect(page.get_by_text("Manual pairs (1)")).to_be_visible()

    page.reload()  # a link shows a colleague the same
    expect(page.get_by_role("button", name="Pair", exact=True)).to_be_visible()
    settled(page)
    button(page, "Pair")  # what is most alike is offered first: the op that it was parted from
    page.wait_for_url(lambda url: "%21" not in url and "by_hand" in url)
    settled(page)
    assert becomes(page, lambda: row_of(page, CONVOLUTION), before)
    expect(page.get_by_text("✎ manual")).to_be_visible()

    close_dialog(page)
    button(page, "Undo")
    page.wait_for_url(re.compile("^(?!.*by_hand=)"))
    settled(page)
    assert becomes(page, lambda: row_of(page, CONVOLUTION), before)


def test_choices_are_kept_on_other_pages_and_swap_along(page: Page, autoencoder_url: str, tmp_path: Path) -> None:
    opened(page, f"{autoencoder_url}/Op_stats?filter=convolution")
    names = [cells[0] for cells in table_texts(page)]
    click(page, LEFT_END, names.index(CONVOLUTION), "**row=**")
    button(page, "Separate")
    page.wait_for_url("**by_hand=**")
    settled(page)
    close_dialog(page)

    page.get_by_role("link", name="Memory").click()
    expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()
    settled(page)
    assert len(said(page)) == 1
    page.get_by_role("link", name="Op stats").click()
    expect(page.get_by_role("heading", name="Op stats", exact=True)).to_be_visible()
    settled(page)
    expect(page.get_by_text("Manual pairs (1)")).to_be_visible()

    candidate = query(page)["candidate"]
    page.keyboard.press("x")  # swaps baseline and candidate
    assert becomes(page, lambda: query(page)["baseline"], candidate)
    settled(page)
    expect(page.get_by_text("Manual pairs (1)")).to_be_visible()
    assert becomes(page, lambda: status_of(page, CONVOLUTION), ["added", "removed"])

    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a file").click()
    file = tmp_path / "pairs.json"
    download.value.save_as(file)
    assert json.loads(file.read_text())["choices"][0]["choice"] == "part"

    button(page, "Undo all")
    page.wait_for_url(re.compile("^(?!.*by_hand=)"))
    settled(page)
    button(page, "Load manual pairs")
    page.locator("[data-testid=stFileUploaderDropzoneInput]").set_input_files(file)
    expect(page.get_by_role("button", name="Use this pair")).to_be_visible()
    button(page, "Use this pair")
    page.wait_for_url("**by_hand=**")
    expect(page.get_by_text("Manual pairs (1)")).to_be_visible()
