"""The benchmark in the browser: where its section goes; never how long anything takes."""

from __future__ import annotations

from benchmarks.browser import BEGIN, END, PAGES, with_section
from tests.profiles import ROOT


def test_a_section_goes_to_the_end_and_then_in_place_of_itself() -> None:
    page = "# Title\n\nfirst\n"
    once = with_section(page, "one")
    assert once == f"# Title\n\nfirst\n\n{BEGIN}\n\none\n\n{END}\n"
    assert with_section(f"{once}\nafter\n", "two") == f"# Title\n\nfirst\n\n{BEGIN}\n\ntwo\n\n{END}\n\nafter\n"


def test_every_page_that_compares_is_measured() -> None:
    files = {path.stem.partition("_")[2] for path in (ROOT / "pages").glob("[0-9]*.py")}
    assert files - {"Capture", "Query", "Series"} == set(PAGES) - {""}
