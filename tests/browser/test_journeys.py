"""One journey for each page: what a user does there and what only a browser can show, step by step.

All of them go to one server with one Chromium; a file is run by one worker, so these are in one file.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen
from zipfile import ZipFile

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from tests.browser.pages import (
    CPU_PAIR,
    EVERYTHING,
    IDS,
    NARROW,
    ROWS_SHOWN,
    WORKERS,
    XLA_PAIR,
    add_runs,
    address,
    becomes,
    box_of,
    cells_in,
    chart,
    choose_row,
    click_table,
    cut_off,
    downloaded,
    opened,
    query,
    redrawn,
    row_of,
    saved,
    settled,
    table_csv,
    table_texts,
    titled,
    too_wide,
)
from tests.browser.report_page import read_offline, unfolded
from tests.browser.timeline_page import (
    LABELS,
    LANE_GAP,
    ROW,
    RULER_Y,
    SIDE_GAP,
    UNCHANGED,
    drag,
    linked,
    longest_kernel,
    near,
    opened_timeline,
    press,
    shows,
    timeline,
    window,
    x_of,
)
from tests.profiles import ROOT, SAMPLE_RUNS, SAMPLES
from tests.render.documents import hostile_comparison
from tests.render.test_html import LARGEST
from tests.ui.hostile_profile import hostile
from tests.views.flat import only_pair
from tests.views.series.series_runs import FACTOR, nights
from tests.views.timeline.cases import GPU_PAIR, aligned_pair
from tfcompare.compare.matching.kernel_names import kernel_label
from tfcompare.render.document import Report
from tfcompare.render.html import as_html
from tfcompare.sources.logdir import find_runs
from tfcompare.views.blocks import Section
from tfcompare.views.registry import view
from tfcompare.views.timeline.aligned import align
from tfcompare.views.timeline.drawing import Viewport, default_window_us, drawing
from tfcompare.views.timeline.losses import losses, window_of
from tfcompare.views.timeline.selection import drawn_selection

MOST_BYTES = 2_000_000
"""What a page may send to a browser."""
CONVOLUTION = "autoencoder_1/image_1/convolution"
NAME = 2
"""The column of the names in the table of runs."""


def test_timeline_moves_selects_and_measures(page: Page, samples_url: str) -> None:
    """The first page that the server shows: a link to a component works on a fresh one."""
    root = opened_timeline(page, samples_url)
    aligned = aligned_pair(*GPU_PAIR)
    home = default_window_us(aligned, Viewport())
    assert near(window(root), home)
    assert "window" not in query(page), "the first window needs no parameter"
    expect(page.get_by_text("Click a span to see its times")).to_be_visible()

    middle, half = sum(home) / 2, (home[1] - home[0]) / 2
    zoomed = (middle - 0.6 * half, middle + 0.6 * half)
    press(root, "w", zoomed)
    sharp = (middle - 1.2 * half, middle + 1.2 * half)
    becomes(page, lambda: near(window(root, "data-sharp"), sharp))
    moved = (zoomed[0] + 0.3 * half, zoomed[1] + 0.3 * half)
    press(root, "d", moved)
    becomes(page, lambda: "window" in query(page) and near(linked(page, "window"), moved))
    press(root, "ArrowLeft", zoomed)
    press(root, "s", home)
    lanes = root.locator(".lanes canvas")
    by = 100 / (x_of(root, 1.0) - x_of(root, 0.0))
    shows(root, (home[0] + by, home[1] + by), lambda: drag(page, lanes, (700, 600), 60))
    press(root, "Home", home)
    page.wait_for_url(lambda url: "window=" not in url)
    inner = (middle - half / 2, middle + half / 2)
    shows(root, inner, root.get_by_role("button", name="Zoom in (W)").click)
    becomes(page, lambda: near(window(root, "data-sharp"), (middle - half, middle + half)))
    shows(root, home, root.get_by_role("button", name="The compared step (Home)").click)

    # the spans of this window, not those of one before, are what "n" looks among
    becomes(page, lambda: near(window(root, "data-sharp"), (middle - 2 * half, middle + 2 * half)))
    settled(page)
    root.press("n")  # the first kernel of the compared step that differs
    page.wait_for_url("**span=**")
    side, span = map(int, query(page)["span"][0].split(":"))
    sharp = tuple(window(root, "data-sharp"))
    drawn = drawing(aligned, Viewport(window_us=sharp, width_px=2 * round(x_of(root, home[1]) - LABELS)))["spans"]
    differ = drawn[(drawn["lane"] == 0) & (drawn["partner"] >= 0) & (drawn["duration"] > 0) & (drawn["start"] >= 0)]
    first = differ.loc[differ["change"].abs() >= UNCHANGED, "start"].min()
    assert drawn.loc[(drawn["side"] == side) & (drawn["id"] == span), "start"].tolist() == [first]

    name, span, middle, y = longest_kernel()
    heading, status = root.locator(".dock h5"), root.get_by_role("status")
    press(root, "Home", home)
    root.locator(".lanes canvas").click(position={"x": x_of(root, middle), "y": y})
    page.wait_for_url(f"**span=0%3A{span}**")
    expect(heading).to_have_text(name)
    expect(root.locator(".dock table")).to_contain_text("Starts after its launch")
    expect(status).to_contain_text(f"A: {name}")
    selected = status.inner_text()
    tip = root.locator(".tip")
    kernel = aligned.timelines.sides[0].timeline.spans["name"].iloc[span]
    root.locator(".lanes canvas").hover(position={"x": x_of(root, middle), "y": y})
    expect(tip).to_have_text(re.compile(rf"^{re.escape(name)}\n{re.escape(kernel_label(kernel))}\n"))
    root.locator("canvas.head").hover(position={"x": 30, "y": 45})
    expect(tip).to_contain_text("counted from the begin of the step of each.\nDrawn at the times of A")
    root.press("n")
    expect(status).not_to_have_text(selected)
    page.wait_for_url(lambda url: f"span=0%3A{span}" not in url and "span=0%3A" in url)
    root.press("p")
    expect(status).to_have_text(selected)
    page.wait_for_url(f"**span=0%3A{span}**")
    places = drawn_selection(aligned, Viewport(), 0, span)
    low, high = min(one["start"] for one in places), max(one["start"] + one["duration"] for one in places)
    press(root, "f", (low - (high - low) / 2, high + (high - low) / 2))
    root.press("Escape")
    page.wait_for_url(lambda url: "span=" not in url)
    expect(page.get_by_text("Click a span to see its times")).to_be_visible()

    place = losses(aligned)[0]
    jumps = root.locator(".jumps button")
    expect(jumps).to_have_count(len(losses(aligned)))
    expect(jumps.first).to_have_attribute("title", re.compile(re.escape(place.op_name)))
    low, high = window_of(aligned, Viewport(), place)
    shows(root, (low - (high - low) / 2, high + (high - low) / 2), jumps.first.click)
    page.wait_for_url(f"**span=0%3A{place.span}**")
    expect(heading).to_have_text(place.op_name)


def test_timeline_ranges_gaps_steps_and_links(page: Page, samples_url: str) -> None:
    root = opened_timeline(page, samples_url)
    aligned = aligned_pair(*GPU_PAIR)
    home = default_window_us(aligned, Viewport())
    begin, end = 7_500, 11_500  # what the device computes begins within it
    pixels_per_us = x_of(root, 1.0) - x_of(root, 0.0)
    drag(page, root.locator("canvas.head"), (x_of(root, begin), x_of(root, end)), RULER_Y)
    page.wait_for_url("**range=**")
    low, high = linked(page, "range")
    assert (abs(low - begin) + abs(high - end)) * pixels_per_us < 4
    expect(page.get_by_text("Ops cover")).to_be_visible()
    settled(page)
    rows = table_texts(page)
    assert len(rows) > 3
    file = downloaded(page, page.get_by_role("button", name="CSV", exact=True))
    assert list(file.columns[:4]) == ["host_or_device", "op_type", "op_name", "wall_time_us_baseline"]
    assert rows[0][0] in file.iloc[0].tolist()
    root.press("Escape")
    page.wait_for_url(lambda url: "range=" not in url)
    expect(page.get_by_text("Ops cover")).to_have_count(0)

    drawn = drawing(aligned, Viewport())
    above, spans = drawn["lanes"][0]["rows"], drawn["spans"]
    ours, theirs = (spans[(spans["lane"] == 1) & (spans["side"] == side) & (spans["row"] == 0)] for side in (0, 1))
    begins, ends = ours["start"] + ours["duration"], ours["start"].shift(-1)
    widest = (ends - begins).idxmax()
    before, after = (theirs.set_index("id").loc[ours.loc[row, "partner"]] for row in (widest, widest + 1))
    apart = after["start"] - before["start"] - before["duration"]
    begin, end = begins[widest], ends[widest]
    times = (begin, end, before["start"], after["start"])
    root = opened_timeline(page, samples_url, window=f"{min(times) - 100}:{max(times) + 100}")
    gap = {"x": x_of(root, (begin + end) / 2), "y": 2 * LANE_GAP + (sum(above) + 0.5) * ROW + SIDE_GAP}
    root.locator(".lanes canvas").hover(position=gap)
    expect(root.locator(".tip")).to_have_text(re.compile(r"Nothing for .* µs\nin B, .* µs between the same spans"))
    told = re.findall(r"[\d.]+(?= µs)", root.locator(".tip").inner_text())
    assert list(map(float, told)) == pytest.approx([end - begin, apart], abs=0.1)
    root.locator(".lanes canvas").click(position=gap)
    page.wait_for_url("**range=**")
    assert near(linked(page, "range"), (begin, end))
    expect(root.locator(".dock h5")).to_have_text(re.compile(rf"^{end - begin:.0f}\.\d µs from "))

    legend = root.locator(".legend span")
    expect(legend.first).to_have_text("slower")
    root.get_by_role("button", name="Colour by type of op").click()
    kinds = [types for types in drawing(aligned, Viewport())["kinds"] if types]
    expect(legend.first).to_contain_text(kinds[0][0])
    expect(legend.nth(len(kinds))).to_have_text("no op")
    expect(legend.last).to_have_text("several, with gaps")

    settled(page)
    page.get_by_role("textbox", name="Find").fill("conv_general")
    page.get_by_role("textbox", name="Find").press("Enter")
    count = root.locator(".found")
    expect(count).to_have_text(re.compile(r"^[1-9]\d* found$"))
    found = count.inner_text().split()[0]
    page.wait_for_url("**find=conv_general**")
    settled(page)
    for key, position in (("Enter", "1"), ("Enter", "2"), ("Shift+Enter", "1"), ("Shift+Enter", found)):
        root.press(key)
        expect(count).to_have_text(f"{position} of {found}")
    page.wait_for_url("**span=**")
    settled(page)
    root.press("w")
    page.wait_for_url("**window=**")
    settled(page)
    page.get_by_role("button", name="Longest").click()
    page.wait_for_url(lambda url: "step_a=" in url and "window=" not in url)
    timelines = aligned.timelines
    longest = tuple(int(side.steps["step"].iloc[side.steps["duration_ps"].argmax()]) for side in timelines.sides)
    assert (query(page)["step_a"], query(page)["step_b"]) == ([str(longest[0])], [str(longest[1])])
    of_longest = default_window_us(align(timelines, longest), Viewport())
    becomes(page, lambda: near(window(root), of_longest))

    name, span, *_ = longest_kernel()
    view = {"window": "500:1500", "range": "700:900", "span": f"0:{span}", "step_a": "12", "step_b": "17"}
    root = opened_timeline(page, samples_url, **view, find="conv")  # a link shows a colleague the same
    assert window(root) == (500, 1500)
    expect(root.locator(".dock h5")).to_have_text([re.compile("200 µs from 700 µs to 900 µs"), name])
    expect(page.get_by_role("textbox", name="Find")).to_have_value("conv")
    assert {key: query(page)[key][0] for key in view} == view
    page.get_by_role("button", name="chevron_right").click()
    page.wait_for_url("**step_a=13**")
    assert query(page)["step_b"] == ["18"]

    opened(page, address(samples_url, "Timeline", *GPU_PAIR, window="900000000000000:900000000000000.2"))
    root = page.locator(".timeline")
    expect(root).to_have_attribute("data-window", re.compile(r"^9000\d+,9000\d+"))
    press(root, "Home", home)


def test_hosts_and_two_of_them_in_the_timeline(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url, "Hosts", *WORKERS, more="true"))
    headline = page.locator("[data-testid=stMain] h3").first
    heat_maps = page.locator(".js-plotly-plot:has(.heatmaplayer .hm)")
    expect(headline).to_have_text(re.compile("^Slowest host: worker1 in 19 of 19 steps, "))
    expect(page.get_by_role("heading", name="Time without collectives and waits of each step")).to_be_visible()
    expect(heat_maps).to_have_count(3)
    values = "all => all.map(e => Array.from(e.calcdata[0][0].z, row => [...row]))"
    busy = heat_maps.evaluate_all(values)
    assert [len(rows) for rows in busy] == [3, 3, 3]

    expect(page.get_by_text("Average step by part")).to_be_visible()
    plot = heat_maps.nth(1).locator(".nsewdrag")
    place = box_of(plot)
    seventh = place["width"] * 6.5 / len(busy[1][0])  # the steps that count begin with the second
    plot.click(position={"x": seventh, "y": place["height"] / 2})
    expect(page.get_by_text("Step 8 by part")).to_be_visible()
    expect(page.get_by_text("worker1 takes longest without collectives and waits")).to_be_visible()
    page.wait_for_url("**at_step=8**")
    settled(page).go_back()
    expect(page.get_by_text("Average step by part")).to_be_visible()

    settled(page).get_by_role("combobox", name="Show").click()
    page.get_by_role("option", name="Input", exact=True).click()
    expect(page.get_by_role("heading", name="Input of each step")).to_be_visible()
    page.wait_for_url("**metric=Input**")
    becomes(settled(page), lambda: heat_maps.evaluate_all(values) != busy)
    page.get_by_role("button", name="Swap").click()
    expect(headline).to_contain_text("in the baseline worker1 was the slowest, ")
    becomes(page, lambda: query(page)["baseline"], [IDS["slow_input"]])
    settled(page).go_back()
    expect(headline).to_have_text(re.compile("^Slowest host: worker1 in 19 of 19 steps, "))

    settled(page).get_by_role("link", name=re.compile("Show worker1 beside worker. in timeline")).click()
    root = timeline(page)
    sentence = page.get_by_test_id("stMain").get_by_text(re.compile("^In step "))
    expect(sentence).to_contain_text(re.compile(r"worker1 reaches CollectiveReduceV2 \d[\d.]* ms after worker"))
    assert query(page)["timeline_beside"] == ["worker1 (B)"]
    said = sentence.inner_text()
    root.get_by_role("button", name="the collective").click()
    expect(root.locator(".said")).to_contain_text("CollectiveReduceV2")
    expect(page.get_by_role("heading", name="CollectiveReduceV2")).to_be_visible()
    page.wait_for_url(re.compile("window=.*span=|span=.*window="))
    settled(page).get_by_role("button", name="chevron_right").click()
    following = int(re.findall(r"^In step (\d+), ", said)[0]) + 1
    expect(sentence).to_have_text(re.compile(f"^In step {following}, "))


def test_overview(page: Page, samples_url: str) -> None:
    received: list[int] = []

    def count(socket: WebSocket) -> None:
        socket.on("framereceived", lambda payload: received.append(len(payload)))

    page.on("websocket", count)
    opened(page, f"{samples_url}/Overview")
    assert 50_000 < sum(received) < MOST_BYTES
    headline = page.locator("[data-testid=stMain] h3").first
    expect(headline).to_contain_text("B is 20× faster than A")
    step_time = page.get_by_test_id("stMetric").filter(has_text="Step time")
    expect(step_time).to_contain_text("10.9 ms")
    page.get_by_test_id("stExpander").filter(has_text=re.compile("^\\S*More$")).locator("summary").click()
    figures = page.locator(".js-plotly-plot")
    expect(figures.locator(".gtitle")).to_have_text(
        ["Average step by part: 213 ms → 10.9 ms", "Step time of every step"]
    )
    expect(figures.last.locator(".legendtext")).to_have_text(["Baseline · filters_512_128", "Candidate · filters_16_8"])
    page.get_by_role("button", name="Details").click()
    rows = page.locator("[data-testid=stTable] tr")
    expect(rows.filter(has_text="Device type")).to_have_text(["Device typeCPUCPU"])
    expect(rows.filter(has_text="Recorded")).to_contain_text(re.compile("CES?T"))  # as the browser's clock
    page.keyboard.press("Escape")
    expect(rows.filter(has_text="Device type")).to_have_count(0)

    page.get_by_role("button", name="Add filters_16_8_again as a replicate").click()
    expect(page.get_by_text("B filters_16_8 (2 captures)").first).to_be_visible()
    becomes(page, lambda: query(page).get("repeat"), [f"1:{IDS['filters_16_8_again']}"])
    settled(page).go_back()
    expect(page.get_by_text("B filters_16_8 (2 captures)")).to_have_count(0)
    assert "repeat" not in query(settled(page))
    page.get_by_role("button", name="Swap").click()
    expect(headline).to_contain_text("× slower than")
    becomes(page, lambda: query(page).get("baseline"), [IDS["filters_16_8"]])
    settled(page).go_back()
    expect(headline).to_contain_text("× faster than")

    page.set_viewport_size(NARROW)  # the page is drawn anew with other columns
    becomes(page, lambda: cut_off(page), [])
    themes = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        red, green, blue = bytes.fromhex(themes[scheme]["backgroundColor"].lstrip("#"))
        background = figures.locator(".main-svg").first
        expect(background).to_have_css("background-color", f"rgb({red}, {green}, {blue})")


def test_op_stats(page: Page, samples_url: str) -> None:
    opened(page, f"{samples_url}/Op_stats")
    assert too_wide(page, tables=1) == []
    page.get_by_role("radio", name="op type").click()
    expect(page.get_by_role("heading", name="Every op type")).to_be_visible()
    becomes(page, lambda: cells_in(page)[:1], ["Conv2DBackpropFilter"])
    assert query(settled(page))["by"] == ["op type"]

    opened(page, f"{samples_url}/Op_stats")
    page.get_by_role("textbox", name="Filter").fill("conv2d backprop")
    page.get_by_role("textbox", name="Filter").press("Enter")
    page.wait_for_url("**filter=**")
    becomes(page, lambda: {"conv" in name for name in cells_in(page)}, {True})  # types are in the CSV
    baseline = 410  # the x of that column, left of the menu that its header has
    time = "self_time_us_per_step_baseline"
    for order in (f"-{time}", time):
        click_table(page, baseline, -1)
        page.wait_for_url(f"**sort={order}**")
    settled(page)
    rows = table_csv(page, ROWS_SHOWN)
    assert rows[time].is_monotonic_increasing
    becomes(page, lambda: list(map(float, cells_in(page, 1)[:1])), [rows[time].iloc[0]])
    everything = table_csv(page, EVERYTHING)
    found = everything[(everything["op_name"] + everything["op_type"]).str.contains("Conv2DBackprop")]
    assert len(everything) > 300 and set(rows["op_name"]) == set(found["op_name"])


def test_an_op_is_chosen_separated_and_paired(page: Page, samples_url: str, tmp_path: Path) -> None:
    opened(page, f"{samples_url}/Op_stats?filter=image_1/convolution")
    choose_row(page, CONVOLUTION)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(CONVOLUTION).first).to_be_visible()
    expect(dialog.locator(".gtitle").first).to_have_text("Self time in every step")
    assert query(page)["row"] == [f"Host:Conv2D:{CONVOLUTION}"]

    def verdicts() -> list[str]:
        return sorted(cells[5] for cells in table_texts(page) if cells[:1] == [CONVOLUTION] and len(cells) > 5)

    def button(name: str) -> None:
        settled(page).get_by_role("button", name=name, exact=True).click()

    before = verdicts()
    button("Separate")
    page.wait_for_url("**by_hand=**")
    becomes(page, verdicts, ["added", "removed"])
    (choices,) = query(page)["by_hand"]
    assert json.loads(choices)[2:] == [["!", CONVOLUTION, CONVOLUTION]]
    settled(page).reload()  # a link shows a colleague the same
    expect(page.get_by_role("button", name="Pair", exact=True)).to_be_visible()
    expect(page.get_by_text("Manual pairs (1)")).to_be_visible()
    button("Pair")  # what is most alike is offered first: the op that it was parted from
    page.wait_for_url(lambda url: "%21" not in url and "by_hand" in url)
    becomes(page, verdicts, before)
    expect(page.get_by_text("✎ manual")).to_be_visible()
    settled(page).keyboard.press("Escape")  # closing it gives the choice up
    page.wait_for_url(lambda url: "row=" not in url)
    expect(dialog).to_have_count(0)

    file = saved(page, "Save as a file")
    assert [one["choice"] for one in json.loads(file.read_text())["choices"]] == ["pair"]
    button("Undo all")
    page.wait_for_url(lambda url: "by_hand=" not in url)
    settled(page).get_by_test_id("stPopoverButton").filter(has_text="⋮").first.click()
    kept = tmp_path / "pairs.json"
    kept.write_bytes(file.read_bytes())
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(kept)
    button("Use this pair")
    page.wait_for_url("**by_hand=**")
    expect(page.get_by_text("Manual pairs (1)")).to_be_visible()
    settled(page)
    click_table(page, 80, -1)
    page.wait_for_url("**sort=op_name**")
    expect(settled(page).get_by_role("dialog")).to_have_count(0)


def test_kernel_stats(page: Page, samples_url: str) -> None:
    opened(page, address(samples_url, "Kernel_stats", *GPU_PAIR, by="kernel", more="true"))
    titles = ("The 15 largest changes of kernel time", "Kernel time by kernel", "Kernel time by use of tensor cores")
    for title in titles:
        expect(chart(page, title).locator(".bars path").first).to_be_attached()
    becomes(page, lambda: len(cells_in(page)) > 3)
    name = cells_in(page)[2]
    choose_row(page, name)
    expect(page.get_by_test_id("stCode")).to_have_text(name)
    assert len(query(page)["row"][0]) < 20
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "row=" not in url)
    settled(page).get_by_role("radio", name="launches").click()
    page.wait_for_url("**movers=launches**")
    expect(chart(page, "largest changes of kernel launches").locator(".bars path").first).to_be_attached()
    settled(page).get_by_role("radio", name="kernel and op").click()
    expect(page.get_by_role("heading", name="Every kernel and op")).to_be_visible()
    assert query(settled(page))["by"] == ["kernel and op"]
    assert too_wide(page, tables=2) == []
    shown, everything = table_csv(page, ROWS_SHOWN), table_csv(page, EVERYTHING)
    assert set(shown["kernel_name"]) == set(everything["kernel_name"])
    copies = table_csv(page, EVERYTHING, 1)
    assert set(copies["kind"]) == {"host to device", "memory set"}


def test_memory(page: Page, samples_url: str) -> None:
    opened(page, f"{samples_url}/Memory?more=true")
    title, axis = page.locator(".gtitle").first, page.locator(".xtitle").first
    expect(title).to_have_text("Memory in use in one typical step")
    for choice, told, text in (
        ("share of the step", axis, "Share of the step (%)"),
        ("the whole run", axis, "Step, by position"),
        ("by time", axis, "Time since the first event (s)"),
        ("free", title, "Memory free over time"),
    ):
        settled(page).get_by_role("radio", name=choice, exact=True).click()
        expect(told).to_have_text(text)
    settled(page).get_by_role("radio", name="region").click()
    expect(page.locator(".treemaplayer text", has_text="persist/dynamic").first).to_be_visible()
    view = {"span": "the whole run", "align": "by time", "level": "free", "parts_by": "region"}
    assert {name: query(settled(page))[name] for name in view} == {name: [value] for name, value in view.items()}
    page.reload()  # a link shows a colleague the same
    expect(title).to_have_text("Memory free over time")
    expect(axis).to_have_text("Time since the first event (s)")
    peaks = (
        settled(page)
        .locator(".js-plotly-plot")
        .first.evaluate("e => e._fullData.filter(t => t.mode == 'lines' && t.yaxis == 'y').map(t => t.name)")
    )
    assert len(peaks) == 2
    page.locator(".js-plotly-plot").first.locator(".nsewdrag").first.hover(position={"x": 300, "y": 100})
    texts = page.locator(".hovertext")
    for role in ("Baseline", "Candidate"):
        fields = f"{role}: (de)?allocation of .*requested .*in use .*fragmentation .*step "
        expect(texts.filter(has_text=re.compile(fields))).to_have_count(1)
    events = downloaded(page, "CSV of the baseline's events", keep_default_na=False)
    assert events["in_use_bytes"].max() == 168_858_112
    assert too_wide(page, tables=2) == []


def test_input_pipeline(page: Page, samples_url: str) -> None:
    opened(page, f"{samples_url}/Input_pipeline?more=true")
    bars = ".barlayer .point path"
    expect(chart(page, "Step time and input wait").locator(bars)).to_have_count(2 * (22 + 22))
    for title in ("Self time of input ops by category", "largest changes of self time"):
        expect(chart(page, title).locator(bars).first).to_be_attached()
    page.get_by_role("textbox", name="Filter").fill("tfrecord")
    page.get_by_role("textbox", name="Filter").press("Enter")
    page.wait_for_url("**filter=tfrecord**")
    becomes(page, lambda: {"TFRecord" in cell for cell in cells_in(page)}, {True})
    name = cells_in(settled(page))[0]
    choose_row(page, name)
    expect(page.get_by_role("dialog").get_by_text(name[:30]).first).to_be_visible()


def test_tf_data(page: Page, samples_url: str) -> None:
    names = ("filters_16_8", "filters_16_8_better_input")
    opened(page, address(samples_url, "tf_data", *names, more="true"))
    graphs = page.locator(".js-plotly-plot:has-text('xecution')")
    expect(graphs.locator(".gtitle")).to_have_text(
        [f"Slowest execution: baseline {names[0]}", f"Slowest execution: candidate {names[1]}"]
    )
    expect(page.locator("h3").first).to_contain_text("B is not input-bound, A is (bottleneck: Map)")
    before, after = (graphs.nth(nth).locator(".textpoint text") for nth in (0, 1))
    expect(before.filter(has_text="Map▲ slowest · ≠ Map → ParallelMap")).to_have_count(1)
    expect(after.filter(has_text="Prefetch+ added")).to_have_count(1)

    def height(nth: int, name: str) -> float:
        text = graphs.nth(nth).locator(".textpoint text", has_text=name).first
        text.scroll_into_view_if_needed()
        return box_of(text)["y"] + box_of(text)["height"] / 2 - box_of(graphs.nth(nth))["y"]

    for name in ("Batch", "Root"):
        assert height(0, name) == pytest.approx(height(1, name), abs=2), "paired iterators are side by side"
    after.filter(has_text="ParallelMap▲").hover(force=True)
    hover = graphs.nth(1).locator(".hoverlayer")
    expect(hover).to_contain_text("Iterator::Root::Prefetch::BatchV2::ParallelMapV2")
    expect(hover).to_contain_text("parallelism: 2")
    shown = table_csv(page, ROWS_SHOWN, 1)
    assert shown["iterator"].iloc[0] == "Map"


def test_xla(page: Page, samples_url: str) -> None:
    instructions, buffers, groups = range(3)
    opened(page, address(samples_url, "XLA", *XLA_PAIR))
    assert too_wide(page, tables=1) == []
    page.get_by_role("radio", name="category").click()
    settled(page).get_by_test_id("stExpander").get_by_text("More", exact=True).click()
    page.wait_for_url("**more=true**")
    expect(page.get_by_text("By category", exact=True)).to_be_visible()
    every = len(table_texts(page, instructions))
    click_table(page, 15, 0, nth=groups)
    page.wait_for_url("**tree_row=**")
    expect(page.get_by_test_id("stButton").filter(has_text="In ")).to_be_visible()
    becomes(page, lambda: len(table_texts(page, instructions)) < every)
    click_table(page, 15, 0, nth=buffers)
    page.wait_for_url("**memory_row=**")
    expect(page.locator(".legendtext", has_text=re.compile(", candidate$"))).to_have_count(1)
    click_table(page, 15, 0, nth=instructions)
    page.wait_for_url("**&row=**")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Inputs come from")).to_be_visible()
    (first,) = query(settled(page))["row"]
    dialog.locator("[data-testid=stButtonGroup] button").first.click()
    becomes(page, lambda: query(page).get("row", [first]) != [first])
    expect(dialog.get_by_text("Inputs come from")).to_be_visible()


def test_series(page: Page, samples_url: str, tmp_path: Path) -> None:
    nights(tmp_path / "logs", 4, before=2)  # each is read in a process of its own
    opened(page, f"{samples_url}/Series?{urlencode({'dir': tmp_path / 'logs'})}")
    answer = page.get_by_text("4 runs with a value: at least 8 are needed to find changes.")
    points = page.locator(".js-plotly-plot .scatterlayer .point")
    expect(answer).to_be_visible()
    expect(points).to_have_count(4)
    settled(page).get_by_test_id("stSelectbox").filter(has_text="Metric").get_by_role("combobox").click()
    page.get_by_role("option", name="Op", exact=True).click()
    page.wait_for_url("**metric=Op**")
    name = settled(page).get_by_label("Name", exact=True)
    name.fill("*matmul")
    name.press("Enter")
    becomes(page, lambda: query(page).get("pattern"), ["*matmul"])
    expect(settled(page).locator(".gtitle")).to_contain_text("*matmul")
    expect(points).to_have_count(4)
    values = downloaded(page, ROWS_SHOWN)["value"]
    assert values[:2].mean() / values[2:].mean() == pytest.approx(FACTOR, rel=0.03), "the last run is the first row"


def test_query(page: Page, samples_url: str) -> None:
    sql = "SELECT run, '=1+1' AS text, count(*) AS steps\nFROM steps GROUP BY run ORDER BY run DESC"
    opened(page, f"{samples_url}/Query")
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("30 rows in ")
    editor = main.get_by_label("SQL", exact=True)
    settled(page)
    editor.fill(sql)
    editor.press("Control+Enter")
    expect(main).to_contain_text("2 rows in ")
    becomes(page, lambda: query(page)["sql"], [sql])
    becomes(page, lambda: [row[-2:] for row in table_texts(page, -1)], [["'=1+1", "22"]] * 2)
    rows = downloaded(page, ROWS_SHOWN)
    assert rows["text"].tolist() == ["'=1+1"] * 2
    assert rows["run"].str.contains("/plugins/profile/").all(), "the whole id, which the table shows as a name"
    editor.fill("SELECT *\nFROM nowhere")
    main.get_by_role("button", name="Run", exact=True).click()
    expect(main.get_by_test_id("stCode")).to_contain_text("Table with name nowhere does not exist!")


def test_capture(page: Page, samples_url: str) -> None:
    """Two programs are captured in `test_capture.py`, for which they train."""
    opened(page, f"{samples_url}/Capture?duration=1200")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_label("Duration (ms)", exact=True)).to_have_value("1200")
    main.get_by_label("Addresses", exact=True).fill("worker")
    main.get_by_label("Addresses", exact=True).press("Enter")
    page.wait_for_url("**address=worker**")
    settled(page)
    main.get_by_role("button", name="Capture", exact=True).click()
    expect(main.get_by_test_id("stAlert")).to_contain_text("worker: has no port; expected host:port")


def test_report(page: Page, browser: Browser, samples_url: str) -> None:
    opened(page, address(samples_url, "Overview", *CPU_PAIR))
    page.get_by_role("button", name="Report").click()
    button = page.get_by_role("button", name="Download the report")
    expect(button).to_be_visible()
    file = saved(page, button)
    assert file.stat().st_size <= LARGEST
    page.get_by_role("radio", name="CSV").click()
    button = page.get_by_role("button", name="Download the report as CSV")
    expect(button).to_be_visible()
    assert "op_stats.csv" in ZipFile(saved(page, button)).namelist()

    with read_offline(browser, file.read_text(encoding="utf-8"), file.parent) as read:
        expect(read.locator(".verdict")).to_contain_text(
            "B is 20× faster than A (14×–26×, one capture each): 10.9 ms vs 213 ms per step; its convolutions have"
        )
        unfolded(read)
        assert read.locator(".timeline").get_attribute("data-spans") not in (None, "0")
        table = read.locator(".table").first
        table.get_by_role("searchbox").fill("conv2dbackprop")
        expect(table.get_by_role("status")).to_have_text(re.compile(r"^\d+ of 345 rows$"))
        header = table.locator("th", has=read.get_by_role("button", name="Candidate")).first
        header.get_by_role("button").click()
        expect(header).to_have_attribute("aria-sort", "descending")
        column = table.locator("thead tr").last.locator("th").all_inner_texts().index("Candidate ▼")
        texts = table.locator(f"tbody tr td:nth-child({column + 1})").all_inner_texts()
        values = [float(text.replace(",", "")) for text in texts if text]
        assert len(values) > 3 and values == sorted(values, reverse=True)
        with read.expect_download() as download:
            table.get_by_role("button", name="CSV").click()
        lines = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
        assert lines[0].startswith("op_name,self_time_us_per_step_baseline,")
        assert len(lines) == len(texts) + 1
        read.locator(".timeline .jumps button").first.click()
        expect(read.locator("[id^=span-]")).to_have_text(
            re.compile(r"^A: .*Conv2DBackpropFilter.* ms · B: .* (ms|µs)$")
        )
        read.get_by_role("button", name="Dark").click()
        expect(read.locator("html")).to_have_attribute("data-theme", "dark")
        assert read.evaluate("document.documentElement.scrollWidth") == 1440


def test_hostile_names_do_nothing(page: Page, browser: Browser, samples_url: str, tmp_path: Path) -> None:
    """In the timeline, in the code of a kernel, in what a chart says, and in a report."""
    for name, scale in (("a", 1), ("b", 2)):
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(hostile(scale))
    ids = {run.name: run.id for run in find_runs(tmp_path / "logs")}
    link = urlencode({"dir": tmp_path / "logs", "baseline": ids["a"], "candidate": ids["b"]})
    live = page.locator("[data-testid=stMain] img[src=x], [data-testid=stMain] script")
    opened(page, f"{samples_url}/Timeline?{link}&span=0:2")
    root = timeline(page)
    root.locator(".lanes canvas").hover(position={"x": x_of(root, 735), "y": LANE_GAP + ROW / 2})
    tip = root.locator(".tip")
    expect(tip).to_contain_text("<img src=x>")
    expect(tip).to_contain_text("<script>alert(1)</script>")
    expect(root.locator("img, script, a, code")).to_have_count(0)
    expect(live).to_have_count(0)

    opened(page, f"{samples_url}/Kernel_stats?{link}&by=kernel&more=true")
    page.locator(".js-plotly-plot .bars path").first.hover(force=True)
    expect(page.locator(".js-plotly-plot .hovertext").first).to_be_visible()
    becomes(page, lambda: len(cells_in(page)) > 0)
    choose_row(page, cells_in(page)[0])
    expect(page.get_by_test_id("stCode").first).to_contain_text("<")
    expect(live).to_have_count(0)

    pair = only_pair(hostile_comparison(tmp_path / "reported"))
    parts = [Section(one.title, list(one.blocks(pair))) for one in map(view, ("op_stats", "timeline"))]
    with read_offline(browser, as_html(Report(pair.baseline.name, parts, pair.candidate.name)), tmp_path) as read:
        unfolded(read)
        expect(read.locator("main img")).to_have_count(0)
        expect(read.locator(".table td", has_text="<script>").first).to_be_attached()


def test_home(page: Page, samples_url: str, tmp_path: Path) -> None:
    with urlopen(samples_url) as answer:
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'", "no other origin frames the app"
    opened(page, f"{samples_url}/?{urlencode({'dir': tmp_path})}")
    expect(page.get_by_text("no profile run here")).to_be_visible()
    field = settled(page).get_by_role("textbox", name="Path on this machine, or URL")
    field.fill(str(SAMPLES / "autoencoder"))
    field.press("Enter")
    page.wait_for_url("**dir=*dir=**")
    headline = page.locator("[data-testid=stMain] h4")
    expect(headline).to_contain_text("× faster than filters_512_128")
    ids = {run.name: run.id for run in find_runs(tmp_path, SAMPLES / "autoencoder")}
    assert query(settled(page))["candidate"] == [ids["filters_16_8"]]

    def click(x: float, name: str) -> None:
        click_table(page, x, row_of(page, name, NAME), headers=1)

    baseline, candidate = 34, 102  # the x of their buttons
    top = box_of(page.get_by_test_id("stDataFrame"))["y"]
    click(candidate, "filters_16_8_better_input")
    expect(headline).to_have_count(2)
    assert query(settled(page))["candidate"] == [ids["filters_16_8"], ids["filters_16_8_better_input"]]
    assert box_of(page.get_by_test_id("stDataFrame"))["y"] == top, "the table stays where it is"
    page.go_back()
    expect(headline).to_have_count(1)
    assert query(settled(page))["candidate"] == [ids["filters_16_8"]]
    click_table(page, 230, -1, headers=1)  # sorts by name
    becomes(page, lambda: cells_in(page, NAME)[:2], [f"⚠ {tmp_path.name}", "filters_16_8"])
    click(baseline, "filters_16_8")
    expect(headline).to_contain_text("than filters_16_8 (")
    assert query(settled(page))["baseline"] == [ids["filters_16_8"]]

    page.get_by_test_id("stSidebar").get_by_role("radio", name="run", exact=True).click()
    page.wait_for_url("**per=run**")
    settled(page).reload()
    expect(headline).to_contain_text("than filters_16_8 (")
    assert query(settled(page))["per"] == ["run"]
    choice = {name: query(page)[name] for name in ("baseline", "candidate", "per")}
    link = page.get_by_test_id("stSidebar").get_by_role("link", name="Overview").get_attribute("href")
    assert choice.items() <= parse_qs(urlsplit(str(link)).query).items(), "it can be copied"
    page.get_by_role("button", name="See what changed").click()
    page.wait_for_url("**/Overview?**")
    titled(page, "Overview")
    assert choice.items() <= query(page).items()
    page.get_by_test_id("stSidebar").get_by_role("link", name="Home").click()
    titled(page, "Compare profile runs")
    expect(headline).to_contain_text("than filters_16_8 (")
    assert choice.items() <= query(settled(page)).items()


def test_a_run_is_uploaded_renamed_hidden_and_deleted(page: Page, samples_url: str, tmp_path: Path) -> None:
    """The last one, since a page without a place lists what was uploaded in place of the samples."""
    profile = next(SAMPLE_RUNS["filters_16_8_better_input"].rglob("*.xplane.pb")).read_bytes()
    file = tmp_path / "mine.xplane.pb"
    file.write_bytes(profile + b"\x22\x05other")  # names belong to what a profile contains
    opened(page, f"{samples_url}/?{urlencode({'dir': SAMPLE_RUNS['filters_16_8']})}")
    add_runs(page, "Upload").locator("input[type=file]").nth(1).set_input_files(file)
    said = page.get_by_test_id("stAlert")
    expect(said.filter(has_text="mine was added")).to_be_visible()
    headline = page.locator("[data-testid=stMain] h4")
    expect(headline).to_contain_text("mine: ")

    becomes(page, lambda: cells_in(page, NAME), ["mine", "filters_16_8"])
    add_runs(page, "Upload").locator("input[type=file]").nth(1).set_input_files(file)
    expect(said.filter(has_text="mine was uploaded before")).to_be_visible()
    settled(page).keyboard.press("Escape")
    expect(said.filter(has_text="mine was uploaded before")).to_have_count(0)

    edit = 803  # the x of its button
    click_table(page, edit, 0, headers=1)
    dialog = page.get_by_role("dialog")
    name = dialog.get_by_label("Name", exact=True)
    with redrawn(page):  # what is written while the page is drawn may be lost
        name.fill("Large model")
        name.press("Enter")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(headline).to_contain_text("Large model: ")
    becomes(page, lambda: cells_in(page, NAME), ["Large model", "filters_16_8"])
    click_table(page, edit, 0, headers=1)
    with redrawn(page):
        dialog.get_by_text("Hidden", exact=True).click()
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("1 of 2 runs, 1 hidden")).to_be_visible()
    settled(page).get_by_text("Show hidden").click()
    expect(page.get_by_text("2 runs", exact=True)).to_be_visible()

    add_runs(page, "Upload")
    delete = page.get_by_role("button", name="Delete", exact=True)
    with redrawn(page):
        delete.click()
    with redrawn(page):
        page.get_by_role("button", name="Keep").click()
    expect(page.get_by_text("Delete it for good?")).to_have_count(0)
    with redrawn(page):
        delete.click()
    page.get_by_role("button", name="Delete for good").click()
    expect(said.filter(has_text="was deleted")).to_be_visible()
    becomes(page, lambda: cells_in(page, NAME), ["filters_16_8"])
