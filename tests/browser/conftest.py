"""A server on a free port and a real Chromium that reaches nothing but it."""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pandas as pd
import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, ViewportSize, expect, sync_playwright

from tests.browser.proxy import in_front_of
from tests.profiles import SAMPLES
from tfcompare.commands.serve import command_line

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost", "--process-per-site",
]  # fmt: skip
WIDE: ViewportSize = {"width": 1440, "height": 1000}
NARROW: ViewportSize = {"width": 900, "height": 1000}
TIMEOUT_MS = 60_000
TABLE_S = 15
expect.set_options(timeout=TIMEOUT_MS)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

Serve = Callable[..., str]
Start = Callable[..., AbstractContextManager[str]]
Secrets = Callable[[str], str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The Chromium to drive; skips where there is none."""
    named = os.environ.get("TFCOMPARE_CHROMIUM")
    path = named or next((p for p in map(shutil.which, NAMES) if p), None)
    if not path or not Path(path).exists():
        pytest.skip("BROWSER TESTS SKIPPED: no Chromium here; install one, or name it in TFCOMPARE_CHROMIUM")
    return path


@pytest.fixture(scope="session")
def browser(chromium_path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Starts a server on the given places (none: the sample runs); `secrets` makes its secrets of its address.

    With `behind_proxy`, its address is that of a proxy, so that browsers are on another machine as far as it knows.
    """
    request.getfixturevalue("chromium_path")  # nothing is started in vain

    def start(
        *places: str | Path, secrets: Secrets | None = None, behind_proxy: bool = False
    ) -> AbstractContextManager[str]:
        return _server(places, tmp_path_factory.mktemp("server"), secrets, behind_proxy=behind_proxy)

    return start


@pytest.fixture
def serve(start: Start) -> Iterator[Serve]:
    """Starts a fresh server and returns its address. That takes seconds: where it need not be fresh, use `shared`."""
    with ExitStack() as servers:
        yield lambda *places: servers.enter_context(start(*places))


@pytest.fixture(scope="session")
def shared(start: Start) -> Iterator[Serve]:
    """The address of the one server on the given places that all tests share."""
    with ExitStack() as servers:
        yield cache(lambda *places: servers.enter_context(start(*places)))


@pytest.fixture(scope="session")
def samples_url(shared: Serve) -> str:
    """A server on the sample runs that all tests share."""
    return shared()


@pytest.fixture(scope="session")
def autoencoder_url(shared: Serve) -> str:
    """A server on the recorded samples alone, whatever other samples there are."""
    return shared(SAMPLES / "autoencoder")


@contextmanager
def _server(
    places: tuple[str | Path, ...], folder: Path, secrets: Secrets | None, *, behind_proxy: bool
) -> Iterator[str]:
    """The app as a user starts it, from another folder and with an empty home."""
    port = _free_port()
    with (
        in_front_of(port) if behind_proxy else nullcontext(port) as public_port,
        _served(places, folder, port, f"http://localhost:{public_port}", secrets) as url,
    ):
        yield url


@contextmanager
def _served(
    places: tuple[str | Path, ...], folder: Path, port: int, url: str, secrets: Secrets | None
) -> Iterator[str]:
    store, places = (str(places[1]), places[2:]) if places[:1] == ("--store",) else (None, places)
    if secrets is not None:
        (folder / ".streamlit").mkdir()
        (folder / ".streamlit" / "secrets.toml").write_text(secrets(url), encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("STREAMLIT_", "TFCOMPARE_", "XDG_"))}
    environment |= {"HOME": str(folder), "STREAMLIT_SERVER_HEADLESS": "true"}
    log = folder / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command_line(places, port, store=store), cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        _wait_until_up(f"http://localhost:{port}/_stcore/health", process, log)
        yield url
    finally:
        process.kill()  # it has nothing to lose, and takes seconds to close politely
        process.wait()
    assert "Traceback" not in log.read_text(errors="replace"), log.read_text(errors="replace")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            with urlopen(url, timeout=2):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError(f"the server did not come up in a minute:\n{log.read_text()}")


@pytest.fixture(scope="session")
def asked_elsewhere() -> list[str]:
    """What pages asked of any other machine so far, in vain: Chromium knows the address of none."""
    return []


@pytest.fixture(autouse=True)
def everything_works_offline(asked_elsewhere: list[str]) -> Iterator[None]:
    yield
    asked = asked_elsewhere.copy()
    asked_elsewhere.clear()
    assert asked == [], "everything works offline"


@pytest.fixture(scope="session")
def context(browser: Browser, samples_url: str, asked_elsewhere: list[str]) -> Iterator[BrowserContext]:
    """The one window whose tabs the tests are."""
    made = browser.new_context(
        viewport=WIDE, timezone_id="Europe/Vienna", accept_downloads=True, reduced_motion="reduce"
    )  # nothing fades in: painting that took a tenth of all of Chromium's time
    made.set_default_timeout(TIMEOUT_MS)

    def note(url: str) -> None:
        if urlsplit(url.removeprefix("blob:")).hostname != "localhost":
            asked_elsewhere.append(url)

    made.on("request", lambda request: note(request.url))
    made.on("page", lambda page: page.on("websocket", lambda socket: note(socket.url)))
    # Tabs of a site share a process and what it has compiled: half of the work of opening a page. This one keeps it.
    made.new_page().goto(f"{samples_url}/_stcore/health")
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab of the test's own. It is closed with those that the test opens beside it."""
    before = context.pages
    yield context.new_page()
    for made in context.pages:
        if made not in before:
            made.close()


@pytest.fixture(scope="module")
def tab(context: BrowserContext) -> Iterator[Page]:
    """A tab that tests of one file share: for those that leave the page as they found it."""
    made = context.new_page()
    yield made
    made.close()


def settled(page: Page) -> Page:
    """`page`, once its script has run to the end and all its code is there; fails where that showed an exception."""
    app = page.locator("[data-testid=stApp]")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
    expect(page.locator("[data-testid=stSkeleton]")).to_have_count(0)
    try:
        exceptions = page.locator("[data-testid=stException]").all_inner_texts()
    except Error as error:
        if "Execution context was destroyed" not in str(error):
            raise
        return settled(page)  # it went elsewhere, as after a login
    assert exceptions == []
    return page


def opened(page: Page, url: str) -> Page:
    """`page` at that address, once all is there."""
    page.goto(url)
    expect(page.locator("[data-testid=stMain] h1")).to_be_visible()
    return settled(page)


def query(page: Page) -> dict[str, list[str]]:
    """The parameters in the address of the page."""
    return parse_qs(urlsplit(page.url).query)


def add_runs(page: Page, way: str) -> Page:
    """`page` with one of the ways to add runs open: `Path or URL`, `Upload` or `Capture`."""
    tab = settled(page).get_by_role("tab", name=way)
    if tab.count() == 0:
        page.get_by_role("button", name="Add runs").click()
    tab.click()
    page.wait_for_timeout(300)  # the page is about to be drawn once more, and what is sent meanwhile may get lost
    settled(page)
    expect(tab).to_have_attribute("aria-selected", "true")
    return page


HEADER_PIXELS = ROW_PIXELS = 35


def table_texts(page: Page, nth: int = 0) -> list[list[str]]:
    """The cells of a table that are in view, as told to screen readers: tables are drawn on a canvas."""
    rows = page.locator("[data-testid=stDataFrame]").nth(nth).locator("canvas tbody tr")
    expect(rows.first).to_be_attached()
    return [[cell.strip() for cell in row.locator("td").all_text_contents()] for row in rows.all()]


def becomes(page: Page, told: Callable[[], object], expected: object) -> bool:
    """Whether `told` gives what is expected within some seconds: what screen readers are told follows what is drawn."""
    until = time.monotonic() + TABLE_S
    while (now := told()) != expected:
        if time.monotonic() > until:
            pytest.fail(f"expected {expected}, and after {TABLE_S} s still found {now}")
        page.wait_for_timeout(100)
    return True


def too_wide(page: Page, tables: int) -> list[str]:
    """Which of the page's tables must be scrolled sideways to see all columns that are shown first."""
    scrollers = page.locator("[data-testid=stDataFrame] .dvn-scroller")
    expect(scrollers).to_have_count(tables)
    sizes = scrollers.evaluate_all("all => all.map(e => [e.scrollWidth, e.clientWidth])")
    return [f"table {nth}: {needed} px in {there} px" for nth, (needed, there) in enumerate(sizes, 1) if needed > there]


def click_table(page: Page, x: float, row: int, nth: int = 0) -> None:
    """Click into a row of a table (-1: its header), `x` pixels from its left edge."""
    table = page.locator("[data-testid=stDataFrame]").nth(nth)
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    y = HEADER_PIXELS / 2 if row < 0 else HEADER_PIXELS + (row + 0.5) * ROW_PIXELS
    page.mouse.click(box["x"] + x, box["y"] + y)


ROWS_SHOWN = re.compile("CSV of (this|these) ")
"""The button whose file holds the rows of the table above it."""
EVERYTHING = "CSV: ungrouped, all columns"


def downloaded(page: Page, button: str | re.Pattern[str], nth: int = 0, **options: Any) -> pd.DataFrame:
    """The CSV that a button hands out; `options` go to `pandas.read_csv`."""
    settled(page)
    page.wait_for_timeout(300)  # a widget may just be about to have the page drawn once more
    settled(page)
    with page.expect_download() as download:
        page.get_by_role("button", name=button).nth(nth).click()
    return pd.read_csv(io.BytesIO(Path(download.value.path()).read_bytes()), encoding="utf-8-sig", **options)
