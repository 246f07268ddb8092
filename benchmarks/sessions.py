"""Several browser sessions at one server: `python -m benchmarks.sessions`.

Each session switches runs and pages, asks queries, and uploads a profile or a hostile archive now and then; after every
switch it checks that the page shows the runs that were asked for. One of the runs is a generated file of 100 MB.
Reported are the views, errors, the time until the health check answers, and the server's memory over time; needs
Chromium and playwright.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import itertools
import os
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

from playwright.async_api import Browser, Page, async_playwright
from playwright.async_api import TimeoutError as NoAnswer

import tfcompare as tfc
from benchmarks.generate import generate
from tfcompare.commands.serve import command_line

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("Overview", "Op_stats", "Memory", "Input_pipeline", "tf_data", "Kernel_stats")
IS_DRAWN = """() => {
    const app = document.querySelector('[data-testid=stApp]');
    return app && app.getAttribute('data-test-script-state') === 'notRunning'
        && document.querySelector('[data-testid=stMain] h1');
}"""
_MB = 1e6
_LARGE_MEGABYTES = 100
_TIMEOUT_MS = 300_000
"""Ten browsers and the server share two cores."""
_QUERY_EVERY, _UPLOAD_EVERY = 7, 11
_SQL = (
    "SELECT op_type, sum(self_time_us) AS us FROM op_stats GROUP BY op_type ORDER BY us DESC",
    "SELECT count(*) FROM op_steps a CROSS JOIN op_steps b WHERE a.op_name < b.op_name",
)
"""A quick query, and one that takes all of its time."""


@dataclass
class Tally:
    """What the sessions saw."""

    views: int = 0
    wrong: list[str] = field(default_factory=list)
    view_s: list[float] = field(default_factory=list)
    health_s: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    views_at: list[int] = field(default_factory=list)


@contextmanager
def server(folder: Path, places: Sequence[Path]) -> Iterator[tuple[str, int]]:
    """(the address, the process) of the app on these places."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    environment = os.environ | {"HOME": str(folder), "STREAMLIT_SERVER_HEADLESS": "true"}
    command = command_line(places, port)
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                urlopen(f"http://localhost:{port}/_stcore/health", timeout=2).close()
                break
            except OSError:
                time.sleep(0.2)
        try:
            yield f"http://localhost:{port}", process.pid
        finally:
            process.kill()


def memory_mb(process: int) -> float:
    """The resident memory of a process, by /proc."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return float(line.split()[1]) * 1024 / _MB
    return float("nan")


async def session(browser: Browser, url: str, number: int, runs: Sequence[tfc.Run], until: float, tally: Tally) -> None:
    """One browser that goes from pair to pair and page to page."""
    page = await (await browser.new_context(viewport={"width": 1440, "height": 900})).new_page()
    page.set_default_timeout(_TIMEOUT_MS)
    pairs = list(itertools.permutations(runs, 2))
    for turn in itertools.count(number):
        if time.monotonic() > until:
            return
        if turn % _UPLOAD_EVERY == 0:
            await _upload(page, url, number, turn, tally)
        elif turn % _QUERY_EVERY == 0:
            await _view(page, f"{url}/Query?{urlencode({'sql': _SQL[turn // _QUERY_EVERY % 2]})}", tally)
        else:
            baseline, candidate = pairs[(turn * 5 + number) % len(pairs)]
            query = urlencode({"baseline": baseline.id, "candidate": candidate.id})
            await _view(page, f"{url}/{PAGES[turn % len(PAGES)]}?{query}", tally)
            await _check(page, number, (baseline.name, candidate.name), tally)


async def _view(page: Page, address: str, tally: Tally) -> None:
    began = time.monotonic()
    await page.goto(address)
    await page.wait_for_function(IS_DRAWN)
    tally.view_s.append(time.monotonic() - began)
    tally.views += 1
    if errors := await page.locator("[data-testid=stException]").all_inner_texts():
        tally.wrong.append(f"{address}: {errors[0][:200]}")


async def _upload(page: Page, url: str, number: int, turn: int, tally: Tally) -> None:
    """Upload a profile of this session, or an archive whose headers take long to read."""
    await _view(page, url, tally)
    is_hostile = turn // _UPLOAD_EVERY % 2 == 1
    name, data = (f"h{number}.tar", _slow_tar()) if is_hostile else (f"s{number}.zip", _zipped_profile(number))
    await page.get_by_role("button", name="Add runs").click()
    await page.get_by_role("tab", name="Upload").click()
    files = page.locator("input[type=file]").nth(1)
    await files.set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": data})
    expected = f"{name}: " if is_hostile else "was added|was uploaded before"
    answer = page.locator("[data-testid=stAlert]").filter(has_text=re.compile(expected))
    try:
        await answer.first.wait_for()
    except NoAnswer:
        tally.wrong.append(f"session {number}: no answer to the upload {name}")


def _zipped_profile(number: int) -> bytes:
    """A sample profile with a host name of its own, so that each session's is another one."""
    profile = next((ROOT / "sample_logs").rglob("*.xplane.pb")).read_bytes()
    host = f"session{number}".encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("plugins/profile/run/vm.xplane.pb", profile + b"\x22" + bytes([len(host)]) + host)
    return out.getvalue()


def _slow_tar() -> bytes:
    """A tar with an extended header that Python's `tarfile` reads in quadratic time."""
    info = tarfile.TarInfo("a.xplane.pb")
    content = b"1" * 120_000
    header = tarfile.TarInfo("PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, len(content)
    padding = b"\0" * (-len(content) % tarfile.BLOCKSIZE)
    return header.tobuf() + content + padding + info.tobuf() + b"\0" * 2 * tarfile.BLOCKSIZE


async def _watch(url: str, process: int, tally: Tally) -> None:
    """Measure the time of the health check and the memory of the server and its children, once a second."""
    while True:
        began = time.monotonic()
        await asyncio.to_thread(lambda: urlopen(f"{url}/_stcore/health", timeout=60).close())
        tally.health_s.append(time.monotonic() - began)
        tally.memory_mb.append(memory_mb(process))
        tally.views_at.append(tally.views)
        await asyncio.sleep(1)


async def _check(page: Page, number: int, names: tuple[str, str], tally: Tally) -> None:
    """The marks beside the title name both runs: `A before B after`."""
    text = await page.locator("[data-testid=stMain]").inner_text()
    baseline, candidate = (re.escape(name.rpartition("/")[2]) for name in names)  # uploads lengthen the names
    expected = rf"\bA\W+\S*{baseline}\W+B\W+\S*{candidate}\b"
    if re.search(expected, " ".join(text.split())) is None:
        tally.wrong.append(f"session {number}: expected {expected!r}, found {text[:200]!r}")


async def run(sessions: int, seconds: float, chromium: str) -> None:
    """Start a server and the sessions, and report."""
    tally = Tally()
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = folder / "large" / "plugins" / "profile" / "run" / "vm.xplane.pb"
        large.parent.mkdir(parents=True)
        generate(large, _LARGE_MEGABYTES)
        places = [ROOT / "sample_logs", folder / "large"]
        runs = [tfc.load(found) for found in tfc.find_runs(*places)]
        with server(folder, places) as (url, process):
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=chromium, args=arguments)
                until = time.monotonic() + seconds
                watching = asyncio.create_task(_watch(url, process, tally))
                await asyncio.gather(*(session(browser, url, i, runs, until, tally) for i in range(sessions)))
                watching.cancel()
                await browser.close()
    report(sessions, seconds, tally)


def report(sessions: int, seconds: float, tally: Tally) -> None:
    """Print what was measured; exits with status 1 if anything was wrong."""
    times, health = sorted(tally.view_s), sorted(tally.health_s)
    print(f"{sessions} sessions, {seconds:.0f} s: {tally.views} views, {len(tally.wrong)} wrong or with an error")
    print(f"a view: median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s")
    print(f"health check: median {health[len(health) // 2] * 1000:.0f} ms, longest {health[-1]:.2f} s")
    memory = list(zip(tally.views_at, tally.memory_mb, strict=True))
    shown = memory[:: max(len(memory) // 12, 1)]
    print("server memory: " + ", ".join(f"{mb:.0f} MB after {views} views" for views, mb in shown))
    for line in tally.wrong[:20]:
        print(line)
    if tally.wrong:
        sys.exit(1)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.sessions, arguments.seconds, arguments.chromium))


if __name__ == "__main__":
    main()
