"""Photographs every page in a real Chromium, for reviewers: `python -m tests.screenshots --out build/screenshots`.

Each picture is taken twice: the first screen as a user sees it, and the page in full length. `index.html` shows all.
"""

from __future__ import annotations

import argparse
import html
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.browser import CHROMIUM, server
from tests.screenshots.scenes import Scene, scenes

PAGES = (
    "",
    "Overview",
    "Op_stats",
    "Kernel_stats",
    "Memory",
    "Input_pipeline",
    "tf_data",
    "Timeline",
    "XLA",
    "Hosts",
    "Capture",
    "Query",
    "Series",
)
WIDTHS = (390, 1024, 1440, 2560)
THEMES = ("light", "dark")
FIRST_SCREEN = 900
LONGEST = 12_000
_LIMIT_MS = 120_000
LOOK_MS = 400
STAYS_DRAWN = 3
_IS_DRAWN = """() => {
    const app = document.querySelector('[data-testid=stApp]'), main = document.querySelector('[data-testid=stMain]')
    return app?.getAttribute('data-test-script-state') === 'notRunning' && main.querySelector('h1, h2')
        && !main.querySelector('[data-stale=true], [data-testid=stSkeleton]')
        && [...main.querySelectorAll('.stPlotlyChart')].every(chart => chart.querySelector('.main-svg'))
}"""
_HEIGHT = "() => document.querySelector('[data-testid=stMain]').scrollHeight"


def photograph(
    browser: Browser, scene: Scene, out: Path, pages: Sequence[str], widths: Sequence[int], themes: Sequence[str]
) -> Iterator[Path]:
    """Take the pictures of one scene; gives the path of each."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        runs = scene.write(Path(folder) / "runs")
        query = scene.query(runs)
        with server([runs], home) as url:
            for width, theme in product(widths, themes):
                context = browser.new_context(
                    viewport={"width": width, "height": FIRST_SCREEN},
                    color_scheme="dark" if theme == "dark" else "light",
                )
                context.set_default_timeout(_LIMIT_MS)
                page = context.new_page()
                for name in pages:
                    page.set_viewport_size({"width": width, "height": FIRST_SCREEN})
                    page.goto(f"{url}/{name}?{query}")
                    stem = f"{scene.name}-{name or 'Home'}-{width}-{theme}"
                    yield from _two_pictures(page, out, stem, width)
                context.close()


def _two_pictures(page: Page, out: Path, stem: str, width: int) -> Iterator[Path]:
    wait_until_drawn(page)
    first, whole = out / f"{stem}.png", out / f"{stem}-whole.png"
    page.screenshot(path=first)
    yield first
    height = min(page.evaluate(_HEIGHT), LONGEST)
    if height > FIRST_SCREEN:
        page.set_viewport_size({"width": width, "height": height})
        wait_until_drawn(page)
        page.screenshot(path=whole)
        yield whole


def wait_until_drawn(page: Page) -> None:
    """Wait until the page stays drawn: Home runs again whenever another profile has been read."""
    stays_drawn = 0
    while stays_drawn < STAYS_DRAWN:
        page.wait_for_timeout(LOOK_MS)
        page.wait_for_function(_IS_DRAWN)
        is_reading = "Reading run" in page.locator("[data-testid=stMain]").inner_text()
        stays_drawn = 0 if is_reading else stays_drawn + 1


def index(pictures: Sequence[Path]) -> str:
    """A page that shows all pictures, the first screens large enough to read."""
    rows = "".join(
        f'<figure><figcaption>{html.escape(one.stem)}</figcaption><a href="{one.name}">'
        f'<img loading="lazy" width="720" src="{one.name}" alt="{html.escape(one.stem)}"></a></figure>'
        for one in pictures
    )
    return f"<!doctype html><meta charset='utf-8'><title>Screenshots</title>{rows}\n"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> None:
    """Read the command line and take the pictures."""
    known = {scene.name: scene for scene in scenes()}
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/screenshots"))
    parser.add_argument("--scenes", nargs="+", choices=known, default=list(known))
    parser.add_argument("--pages", nargs="+", choices=["Home", *PAGES[1:]], default=["Home", *PAGES[1:]])
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS)
    parser.add_argument("--themes", nargs="+", choices=THEMES, default=THEMES)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    pages = ["" if name == "Home" else name for name in args.pages]
    pictures: list[Path] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=CHROMIUM)
        for scene in map(known.__getitem__, args.scenes):
            if not scene.is_available:
                _say(f"{scene.name}: left out, {scene.place} does not exist (set TFCOMPARE_CORPUS)")
                continue
            for picture in photograph(browser, scene, args.out, pages, args.widths, args.themes):
                pictures.append(picture)
                _say(str(picture))
        browser.close()
    (args.out / "index.html").write_text(index(pictures), encoding="utf-8")


if __name__ == "__main__":
    main()
