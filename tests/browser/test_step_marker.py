"""Runs that mark no steps, and the host event that begins each of them, chosen in a browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Serve, opened, query, settled
from tests.profiles import run_path

MARKER = "PjitFunction(forward_3d_conv)"


def test_steps_are_had_by_choosing_an_event_and_the_link_keeps_it(page: Page, shared: Serve) -> None:
    url = shared(run_path("jax_conv_legacy"), run_path("jax_conv_08"))
    opened(page, f"{url}/Overview")
    expect(page.get_by_text("No verdict, since there are no step markers in A and B").first).to_be_visible()
    choice = page.get_by_role("combobox", name="Steps begin with")
    choice.click()
    page.get_by_role("option", name=MARKER).click()
    expect(page.get_by_text("; steps that begin with").first).to_be_visible()
    settled(page)
    assert query(page)["step_marker"] == [MARKER]
    expect(page.get_by_text("34.1 ms vs 3.39 ms per step").first).to_be_visible()

    page.get_by_role("link", name="Op stats").click()
    expect(page.locator("[data-testid=stMain] h1")).to_have_text("Op stats")
    settled(page)
    assert query(page)["step_marker"] == [MARKER]

    choice.click()
    choice.fill("train")
    choice.press("Enter")
    expect(page.get_by_text("cannot be shown with steps that begin with").first).to_be_visible()
    assert query(settled(page))["step_marker"] == ["train"]
