"""A server on a free port and a real Chromium that reaches nothing but it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.browser.pages import COUNT_RUNS, TIMEOUT_MS, WIDE
from tests.browser.proxy import in_front_of
from tfcompare.commands.serve import command_line

ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost"),
    "--process-per-site",
]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

Start = Callable[..., AbstractContextManager[str]]
Secrets = Callable[[str], str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def chromium_path() -> str:
    """The Chromium to drive; skips where there is none."""
    named = os.environ.get("TFCOMPARE_CHROMIUM")
    path = named or next((p for p in map(shutil.which, NAMES) if p), None)
    if not path or not Path(path).exists():
        pytest.skip("BROWSER TESTS SKIPPED: no Chromium here; install one, or name it in TFCOMPARE_CHROMIUM")
    return path


@pytest.fixture(scope="package")
def browser(chromium_path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
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


@pytest.fixture(scope="package")
def samples_url(start: Start) -> Iterator[str]:
    """A server on the sample runs that all tests share."""
    with start() as url:
        yield url


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
    if secrets is not None:
        (folder / ".streamlit").mkdir()
        (folder / ".streamlit" / "secrets.toml").write_text(secrets(url), encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("STREAMLIT_", "TFCOMPARE_", "XDG_"))}
    environment |= {"HOME": str(folder), "STREAMLIT_SERVER_HEADLESS": "true"}
    log = folder / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command_line(places, port), cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT
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
    until = time.monotonic() + TIMEOUT_MS / 1000
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            with urlopen(url, timeout=2):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError(f"the server did not come up:\n{log.read_text()}")


@pytest.fixture(scope="package")
def faults() -> list[str]:
    """What pages report as errors, and what they ask of another machine, in vain: Chromium knows none."""
    return []


@pytest.fixture(autouse=True)
def nothing_fails_offline(faults: list[str]) -> Iterator[None]:
    yield
    found = faults.copy()
    faults.clear()
    assert found == [], "no script fails, and nothing is asked of another machine"


@pytest.fixture(scope="package")
def context(browser: Browser, samples_url: str, faults: list[str]) -> Iterator[BrowserContext]:
    """The one window whose tabs the tests are."""
    made = browser.new_context(
        viewport=WIDE, timezone_id="Europe/Vienna", accept_downloads=True, reduced_motion="reduce"
    )  # nothing fades in: painting that took a tenth of all of Chromium's time
    made.set_default_timeout(TIMEOUT_MS)
    made.add_init_script(COUNT_RUNS)

    def note_address(url: str) -> None:
        if urlsplit(url.removeprefix("blob:")).hostname != "localhost":
            faults.append(url)

    def note_message(message: ConsoleMessage) -> None:
        # Streamlit itself asks in vain for some files.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            faults.append(message.text)

    def note_page(page: Page) -> None:
        page.on("websocket", lambda socket: note_address(socket.url))
        page.on("pageerror", lambda error: faults.append(str(error)))

    made.on("request", lambda request: note_address(request.url))
    made.on("console", note_message)
    made.on("page", note_page)
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
