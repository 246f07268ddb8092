"""What is rendered: a report, and blocks without what only a page can do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tfcompare.views.blocks import (
    Beside,
    Block,
    Cards,
    Chart,
    Choose,
    Facts,
    FlameGraph,
    Judgements,
    Links,
    Live,
    Section,
    Table,
    Text,
    Timeline,
)


def without_interaction(block: Block) -> Block | None:
    """The block as something that needs no page: of links their text, nothing of what only acts."""
    if isinstance(block, Links):
        return Text(block.text) if block.text else None
    if isinstance(block, Live):
        return block.instead
    return None if isinstance(block, Choose) else block


def with_all_columns(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, and all columns of their tables."""
    for block in blocks:
        if isinstance(block, Table) and block.every:
            yield replace(block, names=block.every)
        elif isinstance(block, Section):
            yield replace(block, make=partial(lambda section: with_all_columns(section.blocks), block))
        elif isinstance(block, Beside):
            yield replace(block, parts=[list(with_all_columns(part)) for part in block.parts])
        else:
            yield block


def facts_of(block: Block) -> Facts | None:
    """What the block shows as rows of texts; None if it is something else."""
    if isinstance(block, Cards | Chart | FlameGraph | Judgements | Timeline):
        return block.facts
    return block if isinstance(block, Facts) else None


@dataclass(frozen=True)
class Report:
    """A report: its title, what is visible at once, and the details. `about` is a line on how it was made."""

    title: str
    sections: Sequence[Section]
    about: str
