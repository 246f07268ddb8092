"""The timeline in a real browser: move, zoom, select, measure, find, and links that restore the view."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, ViewportSize, expect

from tests.browser.conftest import WIDE, Serve, becomes, opened, query, settled, table_texts
from tests.profiles import SAMPLES
from tests.tools.timeline.cases import GPU_PAIR, aligned_pair
from tests.ui.hostile_profile import hostile
from tfcompare.sources.logdir import find_runs
from tfcompare.tools.timeline.aligned import align
from tfcompare.tools.timeline.drawing import Viewport, default_window_us, drawing
from tfcompare.tools.timeline.losses import losses, window_of
from tfcompare.tools.timeline.selected import drawn_selection
from tfcompare.xspace.space import PS_PER_US

IDS = {run.path.parents[2].name: run.id for run in find_runs(SAMPLES)}
PHONE: ViewportSize = {"width": 390, "height": 844}
LABELS, LANE_GAP, SIDE_GAP, ROW = 172, 9, 3, 15
"""Pixels: the width of the lanes' names, the space above a lane and between its sides, and the height of a row."""
UNCHANGED = 0.07
"""log2 of a ratio: smaller changes are not coloured."""
RULER_Y = 10


@pytest.fixture(autouse=True)
def no_errors(context: BrowserContext) -> Iterator[list[str]]:
    """What scripts of the test's pages report as errors: nothing. Streamlit itself asks in vain for some files."""
    errors: list[str] = []

    def note_message(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            errors.append(message.text)

    def note(page: Page) -> None:
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", note_message)

    context.on("page", note)
    yield errors
    context.remove_listener("page", note)
    assert errors == []


def address(base: str, **view: str) -> str:
    pair = {"baseline": IDS[GPU_PAIR[0]], "candidate": IDS[GPU_PAIR[1]]}
    return f"{base}/Timeline?{urlencode({**pair, **view})}"


def timeline(page: Page) -> Locator:
    """The timeline, once it is drawn."""
    root = page.locator(".timeline")
    expect(root).to_have_attribute("data-spans", re.compile("[1-9]"))
    settled(page)
    return root


def window(root: Locator) -> tuple[float, float]:
    """What is drawn, in µs."""
    low, high = (root.get_attribute("data-window") or "").split(",")
    return float(low), float(high)


def linked(page: Page, name: str) -> tuple[float, float]:
    """A pair of times in the address."""
    low, high = query(page)[name][0].split(":")
    return float(low), float(high)


def near(found: tuple[float, float], expected: tuple[float, float]) -> bool:
    """Whether two windows are the same but for a thousandth of their length."""
    slack = (expected[1] - expected[0]) / 1000
    return all(abs(one - other) <= slack for one, other in zip(found, expected, strict=True))


def press(root: Locator, key: str, expected: tuple[float, float]) -> None:
    """Press a key, and wait until the window is as expected."""
    root.press(key)
    becomes(root.page, lambda: near(window(root), expected), True)


def x_of(root: Locator, time: float) -> float:
    """Where a time is, in pixels from the left edge."""
    low, high = window(root)
    width = float(root.evaluate("root => root.clientWidth")) - LABELS
    return LABELS + (time - low) / (high - low) * width


def drag(page: Page, canvas: Locator, x: tuple[float, float], y: float) -> None:
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + x[0], box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + sum(x) / 2, box["y"] + y)
    page.mouse.move(box["x"] + x[1], box["y"] + y)
    page.mouse.up()


def longest_kernel() -> tuple[str, int, float, float]:
    """(its op, position, the middle of its time and y on the canvas) of the longest kernel of the first lane of A."""
    drawn = drawing(aligned_pair(*GPU_PAIR), Viewport())
    assert not drawn["lanes"][0]["idle"]
    spans = drawn["spans"]
    shown = spans[(spans["side"] == 0) & (spans["lane"] == 0) & (spans["count"] == 1) & (spans["status"] == 1)]
    one = shown[shown["start"] >= 0].sort_values("duration").iloc[-1]
    middle = one["start"] + one["duration"] / 2
    return drawn["names"][int(one["op"])], int(one["id"]), middle, LANE_GAP + (one["row"] + 0.5) * ROW


def test_keys_the_pointer_and_buttons_move_and_zoom(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    home = default_window_us(aligned_pair(*GPU_PAIR), Viewport())
    assert near(window(root), home)
    assert "window" not in query(page), "the first window needs no parameter"

    middle, half = sum(home) / 2, (home[1] - home[0]) / 2
    zoomed = (middle - 0.6 * half, middle + 0.6 * half)
    press(root, "w", zoomed)
    quarter = 0.25 * 1.2 * half
    moved = (zoomed[0] + quarter, zoomed[1] + quarter)
    press(root, "d", moved)
    becomes(page, lambda: "window" in query(page) and near(linked(page, "window"), moved), True)
    press(root, "ArrowLeft", zoomed)
    press(root, "s", home)

    lanes = root.locator(".lanes canvas")
    drag(page, lanes, (700, 600), 60)
    by = 100 / (x_of(root, 1.0) - x_of(root, 0.0))
    becomes(page, lambda: near(window(root), (home[0] + by, home[1] + by)), True)
    press(root, "Home", home)
    page.wait_for_url(lambda url: "window=" not in url)
    root.get_by_role("button", name="Zoom in (W)").click()
    becomes(page, lambda: near(window(root), (middle - half / 2, middle + half / 2)), True)
    root.get_by_role("button", name="The compared step (Home)").click()
    becomes(page, lambda: near(window(root), home), True)


def test_zooming_brings_sharp_spans_in_time(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    low, high = window(root)
    root.press("w")
    root.press("w")
    inner = (low + high) / 2 - 0.18 * (high - low), (low + high) / 2 + 0.18 * (high - low)
    becomes(page, lambda: near(window(root), inner), True)
    margin = 0.5 * (inner[1] - inner[0])
    sharp = inner[0] - margin, inner[1] + margin
    becomes(page, lambda: near(sharp_window(root), sharp), True)


def sharp_window(root: Locator) -> tuple[float, float]:
    """The window that the spans at hand were cut for."""
    low, high = (root.get_attribute("data-sharp") or "").split(",")
    return float(low), float(high)


def test_a_click_selects_a_span_and_n_and_p_walk_to_the_next_pairs(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    expect(page.get_by_text("Click a span to see its times")).to_be_visible()
    name, span, middle, y = longest_kernel()
    root.locator(".lanes canvas").click(position={"x": x_of(root, middle), "y": y})
    page.wait_for_url(f"**span=0%3A{span}**")
    heading = page.locator("[data-testid=stMain] h5")
    expect(heading).to_have_text(name)
    expect(page.locator("[data-testid=stTable]").last).to_contain_text("Starts after its launch")
    status = root.get_by_role("status")
    expect(status).to_contain_text(f"A: {name}")
    selected = status.inner_text()
    expect(page.get_by_text("Click a span to see its times")).to_have_count(0)
    settled(page)

    root.press("n")
    expect(status).not_to_have_text(selected)
    page.wait_for_url(lambda url: f"span=0%3A{span}" not in url and "span=0%3A" in url)
    settled(page)
    root.press("p")
    expect(status).to_have_text(selected)
    page.wait_for_url(f"**span=0%3A{span}**")
    expect(heading).to_have_text(name)
    settled(page)
    places = drawn_selection(aligned_pair(*GPU_PAIR), Viewport(), 0, span)
    low, high = min(one["start"] for one in places), max(one["start"] + one["duration"] for one in places)
    press(root, "f", (low - (high - low) / 2, high + (high - low) / 2))
    root.press("Escape")
    page.wait_for_url(lambda url: "span=" not in url)
    expect(page.get_by_text("Click a span to see its times")).to_be_visible()


def test_a_range_dragged_on_the_ruler_has_a_table_of_its_ops(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    head = root.locator("canvas.head")
    drag(page, head, (x_of(root, 1_000), x_of(root, 2_000)), RULER_Y)
    page.wait_for_url("**range=**")
    low, high = linked(page, "range")
    assert abs(low - 1_000) + abs(high - 2_000) < 40, "within some pixels"
    expect(page.locator("[data-testid=stMain] h5")).to_contain_text("from")
    expect(page.get_by_text("Ops cover")).to_be_visible()
    settled(page)
    rows = table_texts(page)
    assert len(rows) > 3
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    lines = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[0].startswith("host_or_device,op_type,op_name,wall_time_us_baseline,")
    assert any(rows[0][0] in line for line in lines[1:2])
    root.press("Escape")
    page.wait_for_url(lambda url: "range=" not in url)
    expect(page.get_by_text("Ops cover")).to_have_count(0)


def test_spans_are_found_by_words_and_the_next_step_is_chosen(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    expect(page.get_by_text("Step 11 of B takes")).to_be_visible()
    box = page.get_by_role("textbox", name="Find")
    box.fill("conv2d")
    box.press("Enter")
    expect(page.get_by_text(re.compile(r"conv2d in the compared step: \d+ in A"))).to_be_visible()
    page.wait_for_url("**find=conv2d**")
    settled(page)
    drawn = int(root.get_attribute("data-drawn") or 0)
    page.get_by_role("button", name="chevron_right").click()
    expect(page.get_by_text("Step 12 of B takes")).to_be_visible()
    settled(page)
    assert (query(page)["step_a"], query(page)["step_b"]) == (["104"], ["111"])
    becomes(page, lambda: int(root.get_attribute("data-drawn") or 0) > drawn, True)


def test_a_link_shows_the_same_in_a_fresh_browser(browser: Browser, samples_url: str) -> None:
    name, span, *_ = longest_kernel()
    view = {
        "window": "500:1500",
        "range": "700:900",
        "span": f"0:{span}",
        "step_a": "102",
        "step_b": "107",
        "find": "conv",
    }
    fresh = browser.new_context(viewport=WIDE)
    try:
        page = opened(fresh.new_page(), address(samples_url, **view))
        root = timeline(page)
        assert window(root) == (500, 1500)
        headings = page.locator("[data-testid=stMain] h5")
        expect(headings).to_have_count(2)
        expect(headings.first).to_have_text(name)
        expect(headings.last).to_contain_text("200 µs from 700 µs to 900 µs")
        expect(page.get_by_role("textbox", name="Find")).to_have_value("conv")
        assert {key: query(page)[key][0] for key in view} == view
    finally:
        fresh.close()


def test_n_begins_at_the_first_kernel_of_the_compared_step_that_differs(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    timeline(page).press("n")
    page.wait_for_url("**span=**")
    side, span = map(int, query(page)["span"][0].split(":"))
    drawn = drawing(aligned_pair(*GPU_PAIR), Viewport())["spans"]
    (one,) = drawn[(drawn["side"] == side) & (drawn["id"] == span)].to_dict("records")
    aligned = aligned_pair(*GPU_PAIR)
    lengths_us = [length / PS_PER_US for length in aligned.lengths_ps]
    candidates = drawn[(drawn["lane"] == 0) & (drawn["partner"] >= 0) & (drawn["duration"] > 0)]
    candidates = candidates[(candidates["change"].abs() >= UNCHANGED) & (candidates["start"] >= 0)]
    assert one["start"] == candidates["start"].min()
    assert one["start"] + one["duration"] <= lengths_us[side]


def test_the_lane_and_row_of_the_span_of_a_link_are_scrolled_into_sight(page: Page, samples_url: str) -> None:
    aligned = aligned_pair(*GPU_PAIR)
    look = Viewport(opened=frozenset(range(len(aligned.timelines.lanes))))
    drawn = drawing(aligned, look)
    spans = drawn["spans"][(drawn["spans"]["count"] == 1) & (drawn["spans"]["side"] == 0)]
    lanes = drawn["lanes"]
    shown = [position for position, lane in enumerate(lanes) if not lane["idle"]]
    deepest = spans[spans["row"] > Viewport().rows].sort_values("row").iloc[-1]
    last = spans[spans["lane"] == shown[-1]].iloc[0]
    for one, is_cut in ((last, False), (deepest, True)):
        opened(page, address(samples_url, span=f"0:{one['id']}"))
        root = timeline(page)
        top = LANE_GAP + one["row"] * ROW
        for position in shown[: shown.index(one["lane"])]:
            rows = [max(min(rows, Viewport().rows), 1) for rows in lanes[position]["rows"]]
            top += sum(rows) * ROW + SIDE_GAP + LANE_GAP
        scroll = root.locator(".lanes")
        visible = scroll.evaluate("lanes => [lanes.scrollTop, lanes.scrollTop + lanes.clientHeight]")
        assert visible[0] > 0 or not is_cut
        assert visible[0] <= top <= visible[1] - ROW


def test_another_step_is_shown_whole(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    root.press("w")
    page.wait_for_url("**window=**")
    settled(page)
    page.get_by_role("button", name="Longest").click()
    page.wait_for_url("**step_a=**")
    page.wait_for_url(lambda url: "window=" not in url)
    timelines = aligned_pair(*GPU_PAIR).timelines
    longest = tuple(int(side.steps["step"].iloc[side.steps["duration_ps"].argmax()]) for side in timelines.sides)
    assert (query(page)["step_a"], query(page)["step_b"]) == ([str(longest[0])], [str(longest[1])])
    becomes(page, lambda: near(window(root), default_window_us(align(timelines, longest), Viewport())), True)


def test_buttons_lead_to_the_places_that_the_sentence_names(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    aligned = aligned_pair(*GPU_PAIR)
    first = losses(aligned)[0]
    buttons = root.locator(".jumps button")
    expect(buttons).to_have_count(len(losses(aligned)))
    expect(buttons.first).to_have_attribute("title", re.compile(re.escape(first.op_name)))
    buttons.first.click()
    page.wait_for_url(f"**span=0%3A{first.span}**")
    low, high = window_of(aligned, Viewport(), first)
    margin = (high - low) / 2
    becomes(page, lambda: near(window(root), (low - margin, high + margin)), True)
    expect(page.locator("[data-testid=stMain] h5")).to_have_text(first.op_name)


def test_a_gap_between_two_spans_is_measured(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    spans = drawing(aligned_pair(*GPU_PAIR), Viewport())["spans"]
    rows = [spans[(spans["lane"] == 1) & (spans["side"] == side) & (spans["row"] == 0)] for side in (0, 1)]
    begin, end = rows[0]["start"] + rows[0]["duration"], rows[0]["start"].shift(-1)
    widest = (end - begin).idxmax()
    canvas = root.locator(".lanes canvas")
    y = LANE_GAP + 2 * ROW + SIDE_GAP + LANE_GAP + ROW / 2
    middle = {"x": x_of(root, (begin[widest] + end[widest]) / 2), "y": y}
    canvas.hover(position=middle)
    partners = rows[1].set_index("id")
    before, after = (partners.loc[row["partner"]] for row in (rows[0].loc[widest], rows[0].loc[widest + 1]))
    apart = (after["start"] - before["start"] - before["duration"]) / 1000
    expect(root.locator(".tip")).to_have_text(
        f"Nothing for {(end[widest] - begin[widest]) / 1000:.2f} ms\nin B, {apart:.2f} ms between the same spans"
    )
    canvas.click(position=middle)
    page.wait_for_url("**range=**")
    assert near(linked(page, "range"), (begin[widest], end[widest]))
    expect(page.get_by_text("Ops cover")).to_be_visible()


def test_tips_name_the_op_first_and_say_what_the_curve_counts(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    op, span, middle, y = longest_kernel()
    root.locator(".lanes canvas").hover(position={"x": x_of(root, middle), "y": y})
    tip = root.locator(".tip")
    kernel = aligned_pair(*GPU_PAIR).timelines.sides[0].timeline.spans["name"].iloc[span]
    expect(tip).to_have_text(re.compile(rf"^{re.escape(op)}\n{re.escape(kernel[:20])}"))
    assert len(tip.inner_text().splitlines()[1]) <= 60 < len(kernel), "its label"
    root.locator("canvas.head").hover(position={"x": 30, "y": 45})
    expect(tip).to_contain_text("counted from the begin of the step of each.\nDrawn at the times of A")


def test_colours_by_op_type_have_a_legend(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url))
    root = timeline(page)
    legend = root.locator(".legend span")
    expect(legend.first).to_have_text("slower")
    root.get_by_role("button", name="Colour by type of op").click()
    kinds = [types for types in drawing(aligned_pair(*GPU_PAIR), Viewport())["kinds"] if types]
    expect(legend.first).to_contain_text(kinds[0][0])
    expect(legend.nth(len(kinds))).to_have_text("no op")
    expect(legend.last).to_have_text("several, with gaps")


def test_a_link_with_a_window_beyond_all_numbers_is_drawn(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url, window="900000000000000:900000000000000.2"))
    root = page.locator(".timeline")
    expect(root).to_have_attribute("data-window", re.compile(r"^9000\d+,9000\d+"))
    root.press("Home")
    home = default_window_us(aligned_pair(*GPU_PAIR), Viewport())
    becomes(page, lambda: near(window(root), home), True)


def test_a_phone_and_the_dark_theme_have_room_and_colours(page: Page, samples_url: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    opened(page, address(samples_url))
    root = timeline(page)
    root.scroll_into_view_if_needed()
    box = root.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("main => main.scrollWidth <= main.clientWidth"), "nothing to scroll sideways"
    arrows = [page.get_by_role("button", name=f"chevron_{side}").bounding_box() for side in ("left", "right")]
    assert len({one["y"] for one in arrows if one}) == 1, "in one line"
    colour = root.evaluate("root => getComputedStyle(root).backgroundColor")
    assert max(map(int, re.findall(r"\d+", colour)[:3])) < 64
    before = window(root)
    root.get_by_role("button", name="Zoom in (W)").click()
    becomes(page, lambda: window(root)[1] - window(root)[0] < 0.6 * (before[1] - before[0]), True)


def test_names_of_a_profile_are_drawn_as_text(page: Page, shared: Serve, tmp_path: Path) -> None:
    for name, scale in (("a", 1), ("b", 2)):
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(hostile(scale))
    pair = {f"{role}": f"logs/plugins/profile/{name}" for role, name in (("baseline", "a"), ("candidate", "b"))}
    opened(page, f"{shared(tmp_path / 'logs')}/Timeline?{urlencode({**pair, 'span': '0:2'})}")
    root = timeline(page)
    middle_of_a_kernel = {"x": x_of(root, 735), "y": LANE_GAP + ROW / 2}
    root.locator(".lanes canvas").hover(position=middle_of_a_kernel)
    tip = root.locator(".tip")
    expect(tip).to_contain_text("<img src=x>")
    expect(tip).to_contain_text("<script>alert(1)</script>")
    for tag in ("img", "script", "a", "code"):
        assert root.locator(tag).count() == 0, tag
    assert page.locator("[data-testid=stMain] img[src=x], [data-testid=stMain] script").count() == 0
