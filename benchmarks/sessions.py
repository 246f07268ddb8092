"""Several browser sessions at one server, each switching runs and pages: `python -m benchmarks.sessions`.

Each session keeps to a choice of its own and checks after every switch that the page shows that one. Reported are the
views, errors, and the server's memory over time; needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

from playwright.async_api import Browser, Page, async_playwright

import tfcompare as tfc

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("Overview", "Op_stats", "Memory", "Input_pipeline", "tf_data", "Kernel_stats")
IS_DRAWN = """() => {
    const app = document.querySelector('[data-testid=stApp]');
    return app && app.getAttribute('data-test-script-state') === 'notRunning'
        && document.querySelector('[data-testid=stMain] h1');
}"""
_MB = 1e6


@dataclass
class Tally:
    """What the sessions saw."""

    views: int = 0
    wrong: list[str] = field(default_factory=list)
    view_s: list[float] = field(default_factory=list)


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, int]]:
    """(the address, the process) of the app on the sample runs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    words = ["-m", "streamlit", "run", str(ROOT / "app.py"), "--server.port", str(port), "--server.headless", "true"]
    environment = os.environ | {"HOME": str(folder), "TFCOMPARE_DATA": str(folder)}
    with subprocess.Popen([sys.executable, *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
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
    pairs = list(itertools.permutations(runs, 2))
    for turn in itertools.count(number):
        if time.monotonic() > until:
            return
        baseline, candidate = pairs[(turn * 5 + number) % len(pairs)]
        query = urlencode({"baseline": baseline.id, "candidate": candidate.id})
        began = time.monotonic()
        await page.goto(f"{url}/{PAGES[turn % len(PAGES)]}?{query}")
        await page.wait_for_function(IS_DRAWN, timeout=90_000)
        tally.view_s.append(time.monotonic() - began)
        tally.views += 1
        await _check(page, number, (baseline.name, candidate.name), tally)


async def _check(page: Page, number: int, names: tuple[str, str], tally: Tally) -> None:
    text = await page.locator("[data-testid=stMain]").inner_text()
    expected = f"{names[1]} against the baseline {names[0]}"
    if expected not in " ".join(text.split()):
        tally.wrong.append(f"session {number}: expected {expected!r}, found {text[:200]!r}")
    if errors := await page.locator("[data-testid=stException]").all_inner_texts():
        tally.wrong.append(f"session {number}: {errors[0][:200]}")


async def run(sessions: int, seconds: float, chromium: str) -> None:
    """Start a server and the sessions, and report."""
    runs = [tfc.load(found) for found in tfc.find_runs(ROOT / "sample_logs")]
    tally = Tally()
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (url, process):
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=arguments)
            until = time.monotonic() + seconds
            work = [asyncio.create_task(session(browser, url, i, runs, until, tally)) for i in range(sessions)]
            began, memory = time.monotonic(), []
            while not all(task.done() for task in work):
                memory.append((time.monotonic() - began, memory_mb(process)))
                await asyncio.sleep(5)
            await asyncio.gather(*work)
            await browser.close()
    times = sorted(tally.view_s)
    print(f"{sessions} sessions, {seconds:.0f} s: {tally.views} views, {len(tally.wrong)} wrong or with an error")
    print(f"a view: median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s")
    print("server memory: " + ", ".join(f"{mb:.0f} MB at {at:.0f} s" for at, mb in memory[:: max(len(memory) // 8, 1)]))
    for line in tally.wrong[:20]:
        print(line)
    if tally.wrong:
        sys.exit(1)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.sessions, arguments.seconds, arguments.chromium))


if __name__ == "__main__":
    main()
