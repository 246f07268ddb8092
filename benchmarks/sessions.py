"""Several browser sessions at one server: `python -m benchmarks.sessions`.

Each session switches runs and pages; after every switch the chips in the header of the page must be those of the runs
that were asked for, and nothing may have failed. One of the runs is a generated file of 100 MB. Reported are the views,
what was wrong, the time until the health check answers, and the server's memory; needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.parse import urlencode
from urllib.request import urlopen

from playwright.async_api import Browser, async_playwright

import tfcompare as tfc
from benchmarks.browser import CHROMIUM, started
from benchmarks.generate import generate
from tfcompare.settings import sample_runs

PAGES = ("Overview", "Op_stats", "Memory", "Input_pipeline", "tf_data", "Timeline")
_IS_DRAWN = """() => document.querySelector('[data-testid=stMain] h1')
    && document.querySelector('[data-testid=stApp]').getAttribute('data-test-script-state') === 'notRunning'"""
_TIMEOUT_MS = 300_000
"""Ten browsers and the server share two cores."""


@dataclass
class Tally:
    """What the sessions saw."""

    view_s: list[float] = field(default_factory=list)
    health_s: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


async def session(browser: Browser, url: str, number: int, runs: Sequence[tfc.Run], until: float, tally: Tally) -> None:
    """One browser that goes from pair to pair and page to page."""
    page = await (await browser.new_context(viewport={"width": 1440, "height": 900})).new_page()
    page.set_default_timeout(_TIMEOUT_MS)
    pairs = list(itertools.permutations(runs, 2))
    for turn in itertools.count(number):
        if time.monotonic() > until:
            return
        pair = pairs[(turn * 5 + number) % len(pairs)]
        query = urlencode({"baseline": pair[0].id, "candidate": pair[1].id})
        began = time.monotonic()
        await page.goto(f"{url}/{PAGES[turn % len(PAGES)]}?{query}")
        await page.wait_for_function(_IS_DRAWN)
        tally.view_s.append(time.monotonic() - began)
        text = " ".join((await page.locator("[data-testid=stMain]").inner_text()).split())
        errors = await page.locator("[data-testid=stException]").all_inner_texts()
        chips = [f"{letter} {run.name}" for letter, run in zip("AB", pair, strict=True)]
        if errors or not all(re.search(rf"\b{re.escape(chip)}(?!\S)", text) for chip in chips):
            tally.wrong.append(f"session {number}, {page.url}: {(errors or [text])[0][:200]}")


async def _watch(url: str, process: int, tally: Tally) -> None:
    """Measure the time of the health check and the memory of the server, once a second."""
    pages = os.sysconf("SC_PAGE_SIZE")
    while True:
        began = time.monotonic()
        await asyncio.to_thread(lambda: urlopen(f"{url}/_stcore/health", timeout=60).close())
        tally.health_s.append(time.monotonic() - began)
        tally.memory_mb.append(int(Path(f"/proc/{process}/statm").read_text().split()[1]) * pages / 1e6)
        await asyncio.sleep(1)


async def run(sessions: int, seconds: float, megabytes: float, chromium: str) -> Tally:
    """Start a server and the sessions, and count."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = folder / "large" / "plugins" / "profile" / "run" / "vm.xplane.pb"
        large.parent.mkdir(parents=True)
        generate(large, megabytes)
        places = [sample_runs() / "autoencoder", folder / "large"]
        runs = [tfc.load(found) for found in tfc.find_runs(*places)]
        with started(places, folder) as (url, process):
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
                until = time.monotonic() + seconds
                watching = asyncio.create_task(_watch(url, process, tally))
                await asyncio.gather(*(session(browser, url, i, runs, until, tally) for i in range(sessions)))
                watching.cancel()
                await browser.close()
    return tally


def main() -> None:
    """Print what was measured; exits with status 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--megabytes", type=float, default=100, help="of the generated run")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    tally = asyncio.run(run(args.sessions, args.seconds, args.megabytes, args.chromium))
    print(f"{args.sessions} sessions, {args.seconds:.0f} s: {len(tally.view_s)} views, {len(tally.wrong)} wrong")
    print(f"a view: median {median(tally.view_s):.2f} s, longest {max(tally.view_s):.2f} s")
    print(f"health check: median {median(tally.health_s) * 1000:.0f} ms, longest {max(tally.health_s):.2f} s")
    print(f"server memory: {tally.memory_mb[0]:.0f} MB at first, {max(tally.memory_mb):.0f} MB at most")
    if tally.wrong:
        sys.exit("\n".join(tally.wrong[:20]))


if __name__ == "__main__":
    main()
