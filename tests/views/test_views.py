"""Every view of every sample pair, in every format: the same answer on each surface."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

import pytest

from tests.profiles import loaded_run
from tests.render.documents import payload_of
from tests.views.golden import FOLDER, PAIRS, comparison_of, said
from tfcompare.charts.pair import pairs_of
from tfcompare.compare import Comparison, compare
from tfcompare.errors import Unknown
from tfcompare.render.inline import plain
from tfcompare.render.shown import ALL_ROWS, Shown
from tfcompare.report.making import report
from tfcompare.views import NAMES
from tfcompare.views.blocks import Block, Cards, Facts, Section, Table, Text, Verdict
from tfcompare.views.registry import views

EVERY = [(pair, view) for pair in PAIRS for view in NAMES]


def text_in(document: str) -> str:
    """The words of an HTML document in a row."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", document)).split())


def flat(blocks: Iterator[Block]) -> Iterator[Block]:
    for block in blocks:
        yield from flat(iter(block.blocks)) if isinstance(block, Section) else [block]


def shown_blocks(comparison: Comparison, view: str) -> list[Block]:
    (pair,) = pairs_of(comparison, by_name=True)
    (found,) = [one for one in views() if one.name == view]
    return list(flat(found.blocks(pair))) if not found.why_not(pair) else [Text(found.why_not(pair))]


@pytest.mark.parametrize("pair", PAIRS)
def test_every_view_says_what_is_stored(pair: str) -> None:
    """After a change: python -m tests.views.golden"""
    assert said(comparison_of(pair)) == (FOLDER / f"{pair}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("pair", "view"), EVERY)
def test_all_formats_have_the_same_sentences_and_figures(pair: str, view: str) -> None:
    comparison = comparison_of(pair)
    shown = Shown.of(comparison, view)
    blocks = shown_blocks(comparison, view)
    sentences = [plain(block.headline) for block in blocks if isinstance(block, Verdict)]
    sentences += [plain(block.text) for block in blocks if isinstance(block, Text)]
    rows = [row for block in blocks if isinstance(block, Cards) for row in block.facts.rows]
    rows += [row for block in blocks if isinstance(block, Facts) for row in block.rows]
    terminal = " ".join(str(shown).split())
    page = text_in(shown.to("html"))
    notebook = text_in(shown._repr_html_())
    markdown = re.sub(r"\\(.)", r"\1", shown.to("markdown"))
    for sentence in sentences:
        said = " ".join(sentence.split())
        assert said in terminal
        assert said in page
        assert said in notebook
    for row in rows:
        assert " ".join(row) in re.sub(" +", " ", terminal)
        assert f"| {' | '.join(row)} |" in markdown
    assert shown.to("table", rows=ALL_ROWS).count("more rows") == 0


@pytest.mark.parametrize(("pair", "view"), EVERY)
def test_json_has_the_findings_and_what_shows_more(pair: str, view: str) -> None:
    comparison = comparison_of(pair)
    text = Shown.of(comparison, view).to("json", words=["logs/a b", "logs/c"])
    content = json.loads(text)
    assert (content["view"], content["version"]) == (view, 1)
    (candidate,) = content["candidates"]
    found = list(findings(candidate["blocks"]))
    for one in found:
        assert one["id"] and one["label"]
        is_of_one = comparison.is_single or one["id"].startswith("advice:") or one["label"] == "Time with a counterpart"
        assert ("value" in one) == is_of_one
        if "more" in one:
            assert re.fullmatch(r"tfcompare view \w+ 'logs/a b' logs/c", one["more"])
    if view == "overview":
        step = found[0]
        assert step["id"] == "step_time"
        if not comparison.is_single:
            verdict = comparison.verdict[comparison.candidates[0].id]
            assert step["verdict"] == verdict.text
            assert step["interval"] == [verdict.low, verdict.high]
            assert step["ratio"] == pytest.approx(verdict.ratio)
        assert len(text) < 16_000
    assert len([one["id"] for one in found]) == len({one["id"] for one in found})


def findings(blocks: list[dict]) -> Iterator[dict]:
    for block in blocks:
        yield from block.get("findings", [])
        yield from findings(block.get("blocks", []))


@pytest.mark.parametrize("pair", PAIRS)
def test_the_report_has_every_view_with_something_to_show(pair: str) -> None:
    comparison = comparison_of(pair)
    document = report(comparison)
    titles = re.findall(r"<summary><h2>(.*?)</h2>", document)
    (of_pair,) = pairs_of(comparison)
    assert [view.title for view in views()[1:] if not view.why_not(of_pair)] == [
        title for title in titles if title in {view.title for view in views()}
    ]
    tables = {one["name"] for one in payload_of(document) if one["kind"] == "table"}
    assert {
        block.name for view in views() for block in flat(view.blocks(of_pair)) if isinstance(block, Table)
    } == tables


def test_several_candidates_each_have_their_part() -> None:
    comparison = comparison_of("cpu")
    run = comparison.candidates[0]
    both = compare(comparison.baseline, run, loaded_run("filters_16_8_again"))
    text = Shown.of(both, "overview").to("table")
    assert text.count("Largest changes") == 2
    assert "\nfilters_16_8_again\n" in text
    assert len(json.loads(Shown.of(both, "memory").to("json"))["candidates"]) == 2


def test_an_unknown_view_or_format_is_refused() -> None:
    comparison = comparison_of("cpu")
    with pytest.raises(Unknown, match="unknown view 'pie'; must be one of: 'overview', "):
        comparison.view("pie")
    with pytest.raises(Unknown, match="unknown format 'pdf'"):
        comparison.view("memory").to("pdf")
