"""What stands on the first screen of the Overview without scrolling, for each kind of pair."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.pages import CPU_PAIR, ROW_PIXELS, WORKERS, address, box_of, opened
from tfcompare.views.key_figures import MOST_FIRST

SCREEN: ViewportSize = {"width": 1440, "height": 900}
JAX_PAIR = ("h100_512_128_run-1", "h100_16_8_run-1")
TRADE_OFF = ("h100_store_activations_run-1", "h100_recompute_activations_run-1")
UNRELATED = ("h100_512_128_run-1", "h100_store_activations_run-1")

ANSWERED = ("Why", "What to try next")


@pytest.mark.parametrize(
    ("runs", "headings", "table"),
    [
        (JAX_PAIR, ANSWERED, "Largest changes"),
        (CPU_PAIR, ANSWERED, "Largest changes"),
        (TRADE_OFF, ANSWERED, "Largest changes"),
        (WORKERS, ANSWERED, "Largest changes"),
        (UNRELATED, ("What to try next", "What differs"), ""),
        (CPU_PAIR[:1], ("Where the time goes", "What to try next"), "Longest ops"),
    ],
    ids=["jax_gpu", "tf_cpu", "trade_off", "hosts", "unrelated", "single"],
)
def test_the_answer_is_on_the_first_screen(
    page: Page, samples_url: str, runs: tuple[str, ...], headings: tuple[str, ...], table: str
) -> None:
    """The verdict, one row of figures, why, what to try next, and the first row of what changed most."""
    page.set_viewport_size(SCREEN)
    main = opened(page, address(samples_url, "Overview", *runs)).get_by_test_id("stMain")
    cards = main.get_by_test_id("stMetric")
    expect(cards.first).to_contain_text("Step time")
    places = [box_of(card)["y"] for card in cards.all()]
    assert len(places) <= MOST_FIRST
    assert len(set(places)) == 1, "one row"
    assert box_of(main.locator("h3").first)["y"] < places[0]
    for heading in headings:
        box = box_of(main.get_by_role("heading", name=heading))
        assert box["y"] + box["height"] < SCREEN["height"]
    if table:
        title, rows = main.get_by_role("heading", name=table), main.get_by_test_id("stDataFrame").first
        top = box_of(rows)["y"]
        assert box_of(title)["y"] < top
        assert top + 2 * ROW_PIXELS <= SCREEN["height"], "the header and the first row"
