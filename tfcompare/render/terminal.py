"""Blocks as text for a terminal: sentences in lines that fit, tables aligned; what can only be drawn as its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tfcompare.render.colour import Tone, paint
from tfcompare.render.inline import plain
from tfcompare.render.text_table import TextColumn, fitting, paragraph, render
from tfcompare.text import text_of
from tfcompare.views.blocks import Block, Code, Facts, Items, Section, Text, Verdict, facts_of

MOST_ITEMS = 5
"""Items of a list on a screen."""


def as_lines(blocks: Iterable[Block | Section], width: int | None) -> str:
    """The blocks as text, with an empty line between them; `width` is that of the terminal, None for no limit."""
    return "\n\n".join(text for block in blocks if (text := _text(block, width)))


def _text(block: Block | Section, width: int | None) -> str:
    if not isinstance(block, Section):
        return "\n".join(filter(None, _lines(block, width)))
    text = as_lines(block.blocks, width)
    return f"{paint(text_of(block.title), 'bold')}\n{text}" if text else ""


def _lines(block: Block, width: int | None) -> Iterator[str]:
    if isinstance(block, Verdict):
        yield _sentence(block.headline, width, "bold" if block.tone == "neutral" else block.tone)
        yield from (_sentence(one, width) for one in block.sentences)
    elif isinstance(block, Text):
        yield _sentence(block.text, width)
    elif isinstance(block, Items):
        for number, (line, _) in enumerate(block.items[:MOST_ITEMS], start=1):
            yield _sentence(f"{number}. {line}", width)
        if len(block.items) > MOST_ITEMS:
            yield f"and {len(block.items) - MOST_ITEMS} more"
    elif isinstance(block, Code):
        yield text_of(block.text)
    elif (facts := facts_of(block)) is not None:
        yield from _table(facts, width)


def _sentence(markdown: str, width: int | None, tone: Tone = "") -> str:
    """A sentence in Markdown as lines that fit the terminal."""
    text = paragraph(plain(markdown), width)
    return "\n".join(paint(line, tone) for line in text.splitlines())


def _table(facts: Facts, width: int | None) -> Iterator[str]:
    """Where the terminal is narrow, optional columns are left out and names are abbreviated."""
    ranks = {position: rank for rank, position in enumerate(reversed(facts.optional), start=1)}
    columns = [
        TextColumn(
            header, [row[i] for row in facts.rows], is_number=i in facts.numbers, rank=ranks.get(i, 0),
            tones=facts.tones if i else (),
        )
        for i, header in enumerate(facts.header)
    ]  # fmt: skip
    shown, dropped = fitting(columns, width)
    yield render(shown, width)
    if dropped:
        yield _sentence(
            f"Columns left out to fit {width} characters: {', '.join(dropped)} (--all-columns shows them).", width
        )
    yield _sentence(facts.note, width)
