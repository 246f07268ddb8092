"""The XLA page on files of 100 MB with 200 programs: from the click in the sidebar until it is drawn.

`python -m benchmarks.xla` needs Chromium and playwright. Its section goes between its marks in `results.md`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

import tfcompare
from benchmarks.browser import CHROMIUM, opening, server, spread, window, with_section
from benchmarks.generate import generate
from benchmarks.machine import description

_HERE = Path(__file__).resolve().parent
MARKS = "<!-- xla: written by python -m benchmarks.xla -->", "<!-- end of xla -->"
_KIND = "jax_gpu"


def measured(megabytes: float, rounds: int, chromium: str) -> list[str]:
    """The lines of the report on two generated runs of that size."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        runs = [Path(folder) / "runs" / name for name in ("before", "after")]
        reading = []
        for seed, run in enumerate(runs, 1):
            run.mkdir(parents=True)
            generate(run / "host.xplane.pb", megabytes, _KIND, seed)
            began = time.perf_counter()
            loaded = tfcompare.load(run)
            reading.append(time.perf_counter() - began)
        rows = loaded.table("hlo_ops")
        home = Path(folder) / "home"
        home.mkdir()
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        query = urlencode({"baseline": "runs/before", "candidate": "runs/after"})
        first: list[float] = []
        again: list[float] = []
        for _ in range(rounds):
            with server([Path(folder) / "runs"], home) as url:
                opening(browser, url, query)
                with window(browser) as page:
                    page.goto(f"{url}/Op_stats?{query}", wait_until="commit")
                    page.evaluate("name => window.whenSettled(name, 0)", "Op_stats")
                    for times in (first, again):
                        times.append(page.evaluate("window.afterClick('XLA')") / 1000)
                        page.evaluate("window.afterClick('Op_stats')")
        browser.close()
    return [
        f"Runs of {megabytes:g} MB, of the kind `{_KIND}`: {rows['program'].nunique():,} programs, {len(rows):,} "
        "instructions that ran.", "",
        "| | median (least–most) |", "| --- | ---: |",
        f"| first reading of a profile, s | {spread(reading)} |",
        f"| the page from the click until drawn, for a fresh server that has read both profiles, s | {spread(first)} |",
        f"| the same again, s | {spread(again)} |",
    ]  # fmt: skip


_HOW = """\
## Compiled programs

Written by `python -m benchmarks.xla`, in Chromium; server and browser share the machine.
"""


def main() -> None:
    """Measure, print the section and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.xla", description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path, default=_HERE / "results.md", help="the page that holds the section")
    args = parser.parse_args()
    lines = [_HOW, *(f"- {line}" for line in description()), ""]
    lines += measured(args.megabytes, args.rounds, args.chromium)
    section = "\n".join(lines)
    print(section)
    args.out.write_text(with_section(args.out.read_text(), section, MARKS))


if __name__ == "__main__":
    main()
