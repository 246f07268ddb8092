"""Where the timeline scrolls to, and that it has room and colours on a phone and in the dark."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.browser.pages import PHONE, becomes, box_of
from tests.browser.timeline_page import LANE_GAP, ROW, SIDE_GAP, opened_timeline, window
from tests.views.timeline.cases import GPU_PAIR, aligned_pair
from tfcompare.views.timeline.drawing import Viewport, drawing

LOW = {"width": 1_280, "height": 600}
"""A window in which the lanes have to be scrolled."""

pytestmark = pytest.mark.thorough


def test_the_lane_and_row_of_the_span_of_a_link_are_scrolled_into_sight(page: Page, samples_url: str) -> None:
    aligned = aligned_pair(*GPU_PAIR)
    look = Viewport(opened=frozenset(range(len(aligned.timelines.lanes))))
    drawn = drawing(aligned, look)
    spans = drawn["spans"][(drawn["spans"]["count"] == 1) & (drawn["spans"]["side"] == 0)]
    lanes = drawn["lanes"]
    shown = [position for position, lane in enumerate(lanes) if not lane["idle"]]
    deepest = spans[spans["row"] > Viewport().rows].sort_values("row").iloc[-1]
    last = spans[spans["lane"] == shown[-1]].iloc[0]
    page.set_viewport_size(LOW)
    for one, is_cut in ((last, False), (deepest, True)):
        root = opened_timeline(page, samples_url, span=f"0:{one['id']}")
        top = LANE_GAP + one["row"] * ROW
        for position in shown[: shown.index(one["lane"])]:
            rows = [max(min(rows, Viewport().rows), 1) for rows in lanes[position]["rows"]]
            top += sum(rows) * ROW + SIDE_GAP + LANE_GAP
        scroll = root.locator(".lanes")
        visible = scroll.evaluate("lanes => [lanes.scrollTop, lanes.scrollTop + lanes.clientHeight]")
        assert visible[0] > 0 or not is_cut
        assert visible[0] <= top <= visible[1] - ROW


def test_a_phone_and_the_dark_theme_have_room_and_colours(page: Page, samples_url: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    root = opened_timeline(page, samples_url)
    root.scroll_into_view_if_needed()
    assert box_of(root)["x"] >= 0
    assert box_of(root)["x"] + box_of(root)["width"] <= PHONE["width"]
    main = page.get_by_test_id("stMain")
    assert main.evaluate("main => main.scrollWidth <= main.clientWidth"), "nothing to scroll sideways"
    left, right = (box_of(page.get_by_role("button", name=f"chevron_{side}")) for side in ("left", "right"))
    assert left["y"] == right["y"], "in one line"
    colour = root.evaluate("root => getComputedStyle(root).backgroundColor")
    assert max(map(int, re.findall(r"\d+", colour)[:3])) < 64
    low, high = window(root)
    root.get_by_role("button", name="Zoom in (W)").click()
    becomes(page, lambda: window(root)[1] - window(root)[0] < 0.6 * (high - low))
