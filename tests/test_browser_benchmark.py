"""The benchmark in the browser: which pages it measures; never how long anything takes."""

from __future__ import annotations

from benchmarks.browser import PAGES
from tests.profiles import ROOT


def test_every_page_that_compares_is_measured() -> None:
    files = {path.stem.partition("_")[2] for path in (ROOT / "pages").glob("[0-9]*.py")}
    assert files - {"Capture", "Query", "Series"} == set(PAGES) - {""}
