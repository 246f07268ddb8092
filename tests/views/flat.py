"""Pairs of runs, the blocks within blocks and those of a view, for tests of what it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests.profiles import compared_runs, loaded_run
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import Comparison, compare
from tfcompare.views.blocks import Beside, Block, Chart, Details, Facts, Link, Links, Section, Table, Text
from tfcompare.views.steps import view as overview
from tfcompare.views.view import View

B = TypeVar("B")
KNOWN_TRUTH = Path(__file__).parents[1] / "known_truth"


def pair_of(*names: str) -> Pair:
    """The pair of the runs of these names, or the run alone."""
    return only_pair(compared_runs(*names) if names[1:] else compare(*[loaded_run(names[0])] * 2))


def only_pair(comparison: Comparison) -> Pair:
    """The pair of a comparison with one candidate."""
    (found,) = pairs_of(comparison)
    return found


def flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, without those that only hold others."""
    for block in blocks:
        yield from flat(block.blocks) if isinstance(block, Section | Beside) else [block]


def sections_below(blocks: Iterable[Block]) -> Iterator[Section]:
    """All sections, each before those within it."""
    for block in blocks:
        if isinstance(block, Section):
            yield block
        if isinstance(block, Section | Beside):
            yield from sections_below(block.blocks)


def listed(view: View, pair: Pair, **options: Any) -> list[Block]:
    """What the view shows of a pair with these options, in a row."""
    return list(flat(view.blocks(pair, **options)))


def of_kind(blocks: Iterable[Block], kind: type[B]) -> list[B]:
    """The blocks of that kind."""
    return [block for block in blocks if isinstance(block, kind)]


def words(blocks: Iterable[Block], look: str | None = None) -> list[str]:
    """The texts among the blocks, by default of any look."""
    return [block.text for block in of_kind(blocks, Text) if look in (None, block.look)]


def titles(blocks: Iterable[Block]) -> list[str]:
    """The titles of the charts among the blocks that have something to show."""
    figures = (chart.draw() for chart in of_kind(blocks, Chart))
    return [figure.layout.title.text for figure in figures if figure is not None]


def shown(view: View, pair: Pair, kind: type[B], **options: Any) -> list[B]:
    """The blocks of that kind that the view shows."""
    return of_kind(listed(view, pair, **options), kind)


def texts(view: View, pair: Pair, **options: Any) -> list[str]:
    """The paragraphs."""
    return words(listed(view, pair, **options))


def drawn(view: View, pair: Pair, **options: Any) -> dict[str, Any]:
    """The figures by their titles."""
    figures = (chart.draw() for chart in shown(view, pair, Chart, **options))
    return {figure.layout.title.text: figure for figure in figures if figure is not None}


def links(view: View, pair: Pair, **options: Any) -> list[Link]:
    """The links in rows of links."""
    return [link for block in shown(view, pair, Links, **options) for link in block.links]


def step_links(pair: Pair) -> list[Link]:
    """The links below the steps on the Overview, without the rest of it."""
    *_, more = of_kind(overview.VIEW.blocks(pair), Section)
    (section,) = [one for one in of_kind(more.blocks, Section) if one.title == "Steps"]
    return [link for block in of_kind(section.blocks, Links) for link in block.links]


def opened(table: Table | Facts, key: str) -> Details | None:
    """What opens for the row of that key."""
    assert table.opens is not None and table.opens.details is not None
    return table.opens.details(key)
