"""Two runs in a real Chromium: time to the first numbers, and to switch pages.

`python -m benchmarks.browser` needs Chromium and playwright. Its section goes between its marks in `results.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlencode
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.generate import KINDS, generate
from benchmarks.machine import description
from benchmarks.page import put
from tfcompare.commands import serve

_HERE = Path(__file__).resolve().parent
PAGES = {
    "": "Compare profile runs",
    "Overview": "Overview",
    "Op_stats": "Op stats",
    "Kernel_stats": "Kernel stats",
    "Memory": "Memory",
    "Input_pipeline": "Input pipeline",
    "tf_data": "tf.data",
    "Timeline": "Timeline",
    "XLA": "XLA",
    "Hosts": "Hosts",
}
"""The headings of the pages by their addresses; the home page has none of its own."""

CHROMIUM = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
_MB = 1e6
_LIMIT_MS = 120_000

_IS_SETTLED = (
    f"const titles = {json.dumps(PAGES)};"
    + """
    window.isSettled = page => {
        const app = document.querySelector('[data-testid=stApp]');
        const main = document.querySelector('[data-testid=stMain]');
        const charts = main ? [...main.querySelectorAll('.stPlotlyChart')] : [];
        const heading = main && main.querySelector('h1');
        return !!heading && location.pathname.split('/').pop() === page && heading.innerText.trim() === titles[page]
            && document.querySelectorAll('[data-testid=stSidebar] a').length > 1
            && app.getAttribute('data-test-script-state') === 'notRunning'
            && !main.querySelector('[data-stale=true], [data-testid=stSkeleton]')
            && charts.every(chart => chart.querySelector('.main-svg'));
    };
    const isLater = (test, began) => new Promise(done => {
        const look = () => test() ? done(performance.now() - began) : setTimeout(look, 20);
        look();
    });
    window.whenSettled = (page, began) => isLater(() => window.isSettled(page), began);
    window.whenThereAreNumbers = began => isLater(() => {
        const cards = [...document.querySelectorAll('[data-testid=stMetricValue]')];
        return cards.length && cards.every(card => /[0-9]/.test(card.innerText));
    }, began);
    window.afterClick = page => {
        const links = [...document.querySelectorAll('[data-testid=stSidebar] a')];
        const label = page === '' ? 'Home' : titles[page];
        const link = links.find(one => one.querySelector('p')?.innerText.trim() === label);
        const isDimmed = link.matches('[disabled], [aria-disabled=true]');
        if (isDimmed || getComputedStyle(link).pointerEvents === 'none') return null;
        const began = performance.now();
        link.click();
        // the script of the new page starts a moment after its address is there
        return new Promise(done => setTimeout(() => window.whenSettled(page, began).then(done), 30));
    };
"""
)


@dataclass(frozen=True)
class Opened:
    """How long it took from asking for the overview until its first key figures, and until all was drawn."""

    numbers_s: float
    all_s: float


@contextmanager
def server(places: Sequence[Path], home: Path) -> Iterator[str]:
    """The address of a fresh server on these places, whose user's home is `home`; what was cached there is used."""
    with started(places, home) as (url, _):
        yield url


@contextmanager
def started(places: Sequence[Path], home: Path) -> Iterator[tuple[str, int]]:
    """As `server`: (the address, the process)."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    own = {k: v for k, v in os.environ.items() if not k.startswith(("STREAMLIT_", "TFCOMPARE_", "XDG_"))}
    with subprocess.Popen(
        serve.command_line(places, port),
        cwd=home,
        env=own | {"HOME": str(home), "STREAMLIT_SERVER_HEADLESS": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_until_up(f"http://localhost:{port}/_stcore/health", process)
            yield f"http://localhost:{port}", process.pid
        finally:
            process.kill()


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        try:
            urlopen(url, timeout=2).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"no server at {url}")


@contextmanager
def window(browser: Browser) -> Iterator[Page]:
    """A tab with nothing in its cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    context.set_default_timeout(_LIMIT_MS)
    context.add_init_script(_IS_SETTLED)
    yield context.new_page()
    context.close()


def opening(browser: Browser, url: str, query: str) -> Opened:
    """Open the overview in an empty browser."""
    with window(browser) as page:
        began = time.perf_counter()
        page.goto(f"{url}/Overview?{query}", wait_until="commit")
        page.evaluate("() => window.whenThereAreNumbers(0)")
        numbers_s = time.perf_counter() - began
        page.evaluate("() => window.whenSettled('Overview', 0)")
        return Opened(numbers_s, time.perf_counter() - began)


def switches(browser: Browser, url: str, query: str, rounds: int) -> dict[str, list[float]]:
    """For each page the seconds from a click in the sidebar until it is drawn; the first round is not counted.

    Pages that are dimmed, since these runs have nothing to show there, have none.
    """
    times: dict[str, list[float]] = {name: [] for name in PAGES}
    with window(browser) as page:
        page.goto(f"{url}/?{query}")
        page.evaluate("name => window.whenSettled(name, 0)", "")
        for turn in range(rounds + 1):
            for name in (*list(PAGES)[1:], ""):
                took_ms = page.evaluate("name => window.afterClick(name)", name)
                page.wait_for_timeout(150)
                if turn and took_ms is not None:
                    times[name].append(took_ms / 1000)
    return times


def measured(kind: str, megabytes: float, rounds: int, browser: Browser) -> list[str]:
    """The lines of the report on two generated runs of that kind and size."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / "runs" / name for name in ("before", "after")]
        for seed, run in enumerate(runs, 1):
            run.mkdir(parents=True)
            generate(run / "host.xplane.pb", megabytes, kind, seed)
        _say(f"{kind}: generated")
        query = urlencode({"baseline": "runs/before", "candidate": "runs/after"})
        places = [Path(folder) / "runs"]
        cold = [_first(browser, places, query, _new_home(folder, f"cold{i}")) for i in range(rounds)]
        home = _new_home(folder, "warm")
        _first(browser, places, query, home)
        warm = [_first(browser, places, query, home) for _ in range(rounds)]
        _say(f"{kind}: cold {cold}, warm {warm}")
        with server(places, home) as url:
            opening(browser, url, query)
            again = [opening(browser, url, query) for _ in range(rounds)]
            times = switches(browser, url, query, rounds)
    _say(f"{kind}: again {again}, {times}")
    return [
        f"Two runs of {megabytes:g} MB, kind `{kind}`.",
        "",
        "| The overview is opened | first numbers, s | all drawn, s |",
        "| --- | ---: | ---: |",
        *(
            f"| {what} | {spread([o.numbers_s for o in found])} | {spread([o.all_s for o in found])} |"
            for what, found in (
                ("cold: a fresh server, nothing kept", cold),
                ("warm: a fresh server, these runs read before", warm),
                ("again: the same server, another browser", again),
            )
        ),
        "",
        "| Page | from the click until drawn, s |",
        "| --- | ---: |",
        *(
            f"| {PAGES[name] if name else 'Home'} | {spread(found) if found else '–'} |"
            for name, found in times.items()
        ),
        f"| median of all | {spread([t for found in times.values() for t in found])} |",
    ]


def _new_home(folder: str, name: str) -> Path:
    home = Path(folder) / name
    home.mkdir()
    return home


def _first(browser: Browser, places: Sequence[Path], query: str, home: Path) -> Opened:
    with server(places, home) as url:
        return opening(browser, url, query)


def spread(values: Sequence[float]) -> str:
    """`0.45 (0.40–0.50)`: the median, the least and the most."""
    return f"{median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


_HOW = """\
Written by `{command}`, in Chromium.
Each cell is the median (least–most) of {rounds} rounds. Opening counts from the request to a server that is up, in a
browser that has nothing of the app in its cache; the first numbers are the key figures of the overview. A page is drawn
once its script is done and every chart is there. Server and browser share the machine."""


def report_section(kinds: Sequence[str], megabytes: float, rounds: int, chromium: str) -> str:
    """Measure, and give the section as Markdown."""
    command = f"python -m benchmarks.browser --kinds {' '.join(kinds)} --megabytes {megabytes:g} --rounds {rounds}"
    how = _HOW.format(command=command, rounds=rounds)
    lines = ["## In the browser", "", how, "", *(f"- {line}" for line in description())]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        for kind in kinds:
            lines += ["", *measured(kind, megabytes, rounds, browser)]
        browser.close()
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Read the command line, measure, print the section and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.browser", description=__doc__.partition("\n")[0])
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=["tf_cpu"])
    parser.add_argument("--megabytes", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path, default=_HERE / "results.md", help="the page that holds the section")
    args = parser.parse_args()
    section = report_section(args.kinds, args.megabytes, args.rounds, args.chromium)
    print(section)
    put(args.out, "browser", section)


if __name__ == "__main__":
    main()
