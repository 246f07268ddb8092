"""The blocks within blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tfcompare.views.blocks import Beside, Block, Section


def flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, without those that only hold others."""
    for block in blocks:
        yield from flat(block.blocks) if isinstance(block, Section | Beside) else [block]
