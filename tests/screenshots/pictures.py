"""Makes the pictures of the documentation in Chromium: `python -m tests.screenshots.pictures` (`make pictures`)."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.browser import CHROMIUM, server
from tests.profiles import ROOT
from tests.screenshots.__main__ import wait_until_drawn
from tests.screenshots.scenes import Scene, scenes

WIDTH = 1440
COLOURS = 256
MOST_BYTES = 200_000
_LIMIT_MS = 120_000


@dataclass(frozen=True)
class Picture:
    """The first `height` pixels of a page of a scene, with or without the sidebar, or those from the text `top` on."""

    name: str
    scene: str
    page: str
    height: int = 760
    top: str = ""
    with_sidebar: bool = False
    address: str = ""


PICTURES = (
    Picture("overview", "gpu", "Overview", height=860, with_sidebar=True),
    Picture("steps", "gpu", "Overview", height=520, top="Show as", address="&more=true"),
    Picture("op_stats", "gpu", "Op_stats"),
    Picture("timeline", "gpu", "Timeline", height=860),
    Picture("kernel_stats", "gpu", "Kernel_stats", height=700),
    Picture("xla", "gpu", "XLA", height=840),
    Picture("hosts", "workers", "Hosts", height=840),
    Picture("memory", "gpu", "Memory", height=960),
    Picture("input_pipeline", "sample", "Input_pipeline", height=620),
    Picture("tf_data", "sample", "tf_data", height=900, top="One execution"),
    Picture("series", "series", "Series", height=960),
)


def take(browser: Browser, scene: Scene, wanted: list[Picture], out: Path) -> Iterator[Path]:
    """Take the pictures of one scene; gives the path of each."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        runs = Path(folder) / "runs"
        runs.mkdir()
        place = scene.write(runs)
        with server([place], home) as url:
            for picture in wanted:
                page = browser.new_page(viewport={"width": WIDTH, "height": picture.height}, color_scheme="light")
                page.set_default_timeout(_LIMIT_MS)
                page.goto(f"{url}/{picture.page}?{scene.query(place)}{picture.address}")
                yield _photograph(page, picture, out / f"{picture.name}.png")
                page.close()


def _photograph(page: Page, picture: Picture, path: Path) -> Path:
    wait_until_drawn(page)
    if picture.top:
        heading = page.get_by_test_id("stMain").get_by_text(picture.top).first
        heading.evaluate("element => element.scrollIntoView({block: 'start'})")
        wait_until_drawn(page)
    shown = page if picture.with_sidebar else page.get_by_test_id("stMain")
    shown.screenshot(path=path)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path


def main() -> None:
    """Read the command line and take the pictures."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.screenshots.pictures", description="Make the pictures of the documentation."
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[one.name for one in PICTURES])
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in PICTURES if args.only is None or one.name in args.only]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=CHROMIUM)
        for scene in scenes():
            wanted = [one for one in chosen if one.scene == scene.name]
            for path in take(browser, scene, wanted, args.out) if wanted else ():
                size = path.stat().st_size
                print(f"{path}: {size:,} bytes{', which is too many' if size > MOST_BYTES else ''}")  # noqa: T201
        browser.close()


if __name__ == "__main__":
    main()
