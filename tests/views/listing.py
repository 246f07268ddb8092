"""The blocks of views in a row, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from tfcompare.charts.pair import Pair
from tfcompare.views.blocks import Beside, Block, Chart, Section, Text
from tfcompare.views.view import View

B = TypeVar("B")


def listed(view: View, pair: Pair, **options: object) -> list[Block]:
    """What the view shows of a pair with these options, in a row."""
    return list(_flat(view.blocks(pair, **options)))


def _flat(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Section | Beside):
            yield from _flat(block.blocks)
        else:
            yield block


def only(blocks: Iterable[Block], kind: type[B]) -> list[B]:
    """The blocks of one kind."""
    return [block for block in blocks if isinstance(block, kind)]


def texts(blocks: Iterable[Block], look: str | None = None) -> list[str]:
    """The texts among the blocks, by default of any look."""
    return [block.text for block in only(blocks, Text) if look in (None, block.look)]


def titles(blocks: Iterable[Block]) -> list[str]:
    """The titles of the charts among the blocks that have something to show."""
    figures = (chart.draw() for chart in only(blocks, Chart))
    return [figure.layout.title.text for figure in figures if figure is not None]
