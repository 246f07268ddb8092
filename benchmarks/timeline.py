"""The timeline of two runs of a million events each: time to the first drawing, and from a pan or zoom to sharp data.

`python -m benchmarks.timeline` needs Chromium and playwright. Its section goes between its marks in `results.md`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

import tfcompare
from benchmarks.browser import CHROMIUM, opening, server, spread, window, with_section
from benchmarks.generate import generate
from benchmarks.machine import description

_HERE = Path(__file__).resolve().parent
MARKS = "<!-- timeline: written by python -m benchmarks.timeline -->", "<!-- end of timeline -->"

_WATCH = """
    window.timelineOf = root => {
        for (const element of root.querySelectorAll('*')) {
            if (element.classList?.contains('timeline')) return element;
            const found = element.shadowRoot && window.timelineOf(element.shadowRoot);
            if (found) return found;
        }
        return null;
    };
    window.later = test => new Promise(done => {
        const began = performance.now();
        const look = () => test() ? done(performance.now() - began) : setTimeout(look, 5);
        look();
    });
    // What is drawn is sharp if the data are those of the window that is shown.
    window.isSharp = () => {
        const {window: shown, sharp} = window.timelineOf(document)?.dataset ?? {};
        if (!shown || !sharp) return false;
        const [from, to] = shown.split(',').map(Number);
        const [first, last] = sharp.split(',').map(Number);
        return Math.abs((first + last) - (from + to)) < (to - from) / 500
            && Math.abs((last - first) / (to - from) - 2) < 0.01;
    };
    window.openTimeline = () => {
        [...document.querySelectorAll('[data-testid=stSidebar] a')].find(a => a.innerText.includes('Timeline')).click();
        return window.later(() => window.timelineOf(document)?.dataset.drawMs);
    };
    window.press = key => {
        const element = window.timelineOf(document), before = element.dataset.window;
        element.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        return window.later(() => element.dataset.window !== before && window.isSharp());
    };
"""


PAIRS = (("tf_cpu", "tf_cpu", 33.0), ("tf_gpu", "tf_gpu_slower", 67.0))
"""The kinds of both runs, and the megabytes of each: a million events."""


def measured(kinds: tuple[str, str], megabytes: float, rounds: int, chromium: str) -> list[str]:
    """The lines of the report on two generated runs of those kinds and that size."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        runs = [Path(folder) / "runs" / name for name in ("before", "after")]
        for kind, run, seed in zip(kinds, runs, (1, 2 if kinds[0] == kinds[1] else 1), strict=True):
            run.mkdir(parents=True)
            generate(run / "host.xplane.pb", megabytes, kind, seed)
        spans = sum(len(host.tables["timeline_spans"]) for run in runs for host in tfcompare.load(run).hosts)
        home = Path(folder) / "home"
        home.mkdir()
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        query = urlencode({"baseline": "runs/before", "candidate": "runs/after"})
        first, moves, drawing = [], [], []
        for _ in range(rounds):
            with server([Path(folder) / "runs"], home) as url:
                opening(browser, url, query)
                with window(browser) as page:
                    page.add_init_script(_WATCH)
                    page.goto(f"{url}/Op_stats?{query}", wait_until="commit")
                    page.evaluate("name => window.whenSettled(name, 0)", "Op_stats")
                    first.append(page.evaluate("window.openTimeline()") / 1000)
                    page.evaluate("window.later(window.isSharp)")
                    moves += _moved(page, drawing)
        browser.close()
    return [
        f"Runs of {megabytes:g} MB, of the kinds `{kinds[0]}` and `{kinds[1]}`, {spans:,} spans together.", "",
        "| | median (least–most) |", "| --- | ---: |",
        f"| first drawing after the click on the page, for a fresh server, s | {spread(first)} |",
        f"| from a pan or zoom to sharp data, s | {spread(moves)} |",
        f"| drawing in the browser, ms | {spread(drawing, 0)} |",
    ]  # fmt: skip


def _moved(page: Page, drawing: list[float]) -> list[float]:
    """Seconds from each of some keys until what is drawn is sharp."""
    times = []
    for key in "wdwdwasss":
        times.append(page.evaluate("key => window.press(key)", key) / 1000)
        drawing.append(float(page.evaluate("window.timelineOf(document).dataset.drawMs")))
        page.wait_for_timeout(300)
    return times


_HOW = """\
## The timeline

Written by `python -m benchmarks.timeline`, in Chromium; server and browser share the machine. Data are asked for once
the window has not changed for 0.08 s, which is part of the time to sharp data.
"""


def main() -> None:
    """Measure, print the section and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timeline", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path, default=_HERE / "results.md", help="the page that holds the section")
    args = parser.parse_args()
    lines = [_HOW, *(f"- {line}" for line in description())]
    for *kinds, megabytes in PAIRS:
        lines += ["", *measured((kinds[0], kinds[1]), megabytes, args.rounds, args.chromium)]
    section = "\n".join(lines)
    print(section)
    args.out.write_text(with_section(args.out.read_text(), section, MARKS))


if __name__ == "__main__":
    main()
