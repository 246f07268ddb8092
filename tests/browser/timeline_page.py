"""The timeline on its page: its window, its spans in pixels, and what moves it."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import address, becomes, box_of, opened, query, settled
from tests.views.timeline.cases import GPU_PAIR, aligned_pair
from tfcompare.views.timeline.drawing import Viewport, drawing

LABELS, LANE_GAP, SIDE_GAP, ROW = 172, 9, 3, 15
"""Pixels: the width of the lanes' names, the space above a lane and between its sides, and the height of a row."""
UNCHANGED = 0.07
"""log2 of a ratio: smaller changes are not coloured."""
RULER_Y = 10

Window = tuple[float, float]


def opened_timeline(page: Page, url: str, **view: str) -> Locator:
    """The timeline of the GPU pair."""
    opened(page, address(url, "Timeline", *GPU_PAIR, **view))
    return timeline(page)


def timeline(page: Page) -> Locator:
    """The timeline, once it is drawn."""
    root = page.locator(".timeline")
    expect(root).to_have_attribute("data-spans", re.compile("[1-9]"))
    settled(page)
    return root


def window(root: Locator, name: str = "data-window") -> Window:
    """What is drawn, in µs; `data-sharp` is what the spans at hand were cut for."""
    low, high = (root.get_attribute(name) or "").split(",")
    return float(low), float(high)


def linked(page: Page, name: str) -> Window:
    """A pair of times in the address."""
    low, high = query(page)[name][0].split(":")
    return float(low), float(high)


def near(found: Window, expected: Window) -> bool:
    """Whether two windows are the same but for a thousandth of their length."""
    slack = (expected[1] - expected[0]) / 1000
    return all(abs(one - other) <= slack for one, other in zip(found, expected, strict=True))


def shows(root: Locator, expected: Window, act: Callable[[], None], name: str = "data-window") -> None:
    """Do it, and wait until the window is as expected."""
    act()
    becomes(root.page, lambda: near(window(root, name), expected))


def press(root: Locator, key: str, expected: Window) -> None:
    """Press a key, and wait until the window is as expected."""
    shows(root, expected, lambda: root.press(key))


def x_of(root: Locator, time: float) -> float:
    """Where a time is, in pixels from the left edge."""
    low, high = window(root)
    width = float(root.locator(".main").evaluate("main => main.clientWidth")) - LABELS
    return LABELS + (time - low) / (high - low) * width


def drag(page: Page, canvas: Locator, x: Window, y: float) -> None:
    box = box_of(canvas)
    page.mouse.move(box["x"] + x[0], box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + sum(x) / 2, box["y"] + y)
    page.mouse.move(box["x"] + x[1], box["y"] + y)
    page.mouse.up()


def longest_kernel() -> tuple[str, int, float, float]:
    """(its op, position, the middle of its time and y on the canvas) of the longest paired kernel of A's first lane."""
    drawn = drawing(aligned_pair(*GPU_PAIR), Viewport())
    assert not drawn["lanes"][0]["idle"]
    spans = drawn["spans"]
    shown = spans[(spans["side"] == 0) & (spans["lane"] == 0) & (spans["count"] == 1) & (spans["partner"] >= 0)]
    one = shown[shown["start"] >= 0].sort_values("duration").iloc[-1]
    middle = one["start"] + one["duration"] / 2
    return drawn["names"][int(one["op"])], int(one["id"]), middle, LANE_GAP + (one["row"] + 0.5) * ROW
