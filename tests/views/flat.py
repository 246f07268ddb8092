"""The blocks within blocks, and those of a view, for tests of what it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tfcompare.charts.pair import Pair
from tfcompare.views.blocks import Beside, Block, Link, Links, Section, Text
from tfcompare.views.view import View

B = TypeVar("B")


def flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, without those that only hold others."""
    for block in blocks:
        yield from flat(block.blocks) if isinstance(block, Section | Beside) else [block]


def shown(view: View, pair: Pair, kind: type[B], **options: Any) -> list[B]:
    """The blocks of that kind."""
    return [block for block in flat(view.blocks(pair, **options)) if isinstance(block, kind)]


def texts(view: View, pair: Pair, **options: Any) -> list[str]:
    """The paragraphs."""
    return [block.text for block in shown(view, pair, Text, **options)]


def links(view: View, pair: Pair, **options: Any) -> list[Link]:
    """The links in rows of links."""
    return [link for block in shown(view, pair, Links, **options) for link in block.links]
