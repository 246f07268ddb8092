"""Blocks as text for a terminal: sentences in lines that fit, tables aligned; what can only be drawn as its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tfcompare.render.document import facts_of, without_interaction
from tfcompare.render.inline import plain
from tfcompare.render.payload import table_json
from tfcompare.render.text_table import TextColumn, Tone, fitting, paint, paragraph, render
from tfcompare.text import as_markdown, lines_of, more_rows, some_of, text_of
from tfcompare.units import MISSING
from tfcompare.views.blocks import Beside, Block, Code, Facts, Items, Section, Table, Text, Verdict

MOST_ITEMS = 5
"""Items of a list on a screen."""
MOST_ROWS = 20
"""Rows of a table on a screen."""
MOST_NAMED = 6
"""Columns that are named if they are left out."""


def as_lines(blocks: Iterable[Block], width: int | None, rows: int = MOST_ROWS) -> str:
    """The blocks as text, with an empty line between them, and the first `rows` of tables.

    `width` is that of the terminal, None for no limit.
    """
    return "\n\n".join(text for block in blocks if (text := "\n".join(filter(None, _lines(block, width, rows)))))


def _lines(block: Block, width: int | None, rows: int) -> Iterator[str]:
    if isinstance(block, Section | Beside):
        title = block.title if isinstance(block, Section) else ""
        if text := as_lines(block.blocks, width, rows):
            yield f"{paint(text_of(title), 'bold')}\n{text}" if title else text
    elif (fixed := without_interaction(block)) is not block:
        yield from () if fixed is None else _lines(fixed, width, rows)
    elif isinstance(block, Verdict):
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
        yield lines_of(block.text)
    elif isinstance(block, Table):
        yield from _rows(block, width, rows)
    elif (facts := facts_of(block)) is not None:
        yield from _table(facts, width)


def _rows(table: Table, width: int | None, most: int) -> Iterator[str]:
    """The first rows of a table of a diff."""
    if table.rows.empty:
        yield _sentence(table.nothing, width)
        return
    shown = table_json(replace(table, rows=table.rows.head(most)))["columns"]
    columns = []
    for position, one in enumerate(shown):
        texts, rank, tones = [text or MISSING for text in one["texts"]], _rank(position, table), one.get("tones", ())
        columns.append(TextColumn(one["label"], texts, one["kind"] == "number", one["heading"], rank, tones))
    yield paint(text_of(table.title), "bold")
    yield from _fit(columns, width)
    if len(table.rows) > most:
        yield f"{more_rows(len(table.rows) - most)} (--limit 0 shows all)"


def _rank(position: int, table: Table) -> int:
    """The name, the first figures and the verdict stay; others go from the last, those below one heading together."""
    columns = table.columns
    column = columns[position]
    first = next((one.heading for one in columns if one.heading), None)
    is_first = position == 0 or (column.heading and column.heading == first)
    if is_first or column.name in ("verdict", table.table.headline):
        return 0
    return next((i for i, one in enumerate(columns) if one.heading and one.heading == column.heading), position)


def _sentence(markdown: str, width: int | None, tone: Tone = "") -> str:
    """Sentences in Markdown as lines that fit the terminal."""
    lines = "\n".join(paragraph(line, width) for line in plain(markdown).split("\n")).splitlines()
    return "\n".join(paint(line, tone) for line in lines)


def _table(facts: Facts, width: int | None) -> Iterator[str]:
    """Where the terminal is narrow, optional columns are left out and names are abbreviated."""
    ranks = {position: rank for rank, position in enumerate(reversed(facts.optional), start=1)}
    columns = []
    for i, header in enumerate(facts.header):
        cells, tones = [row[i] for row in facts.rows], facts.tones if i else ()
        columns.append(TextColumn(header, cells, i in facts.numbers, rank=ranks.get(i, 0), tones=tones))
    yield from _fit(columns, width)
    yield _sentence(facts.note, width)


def _fit(columns: Sequence[TextColumn], width: int | None) -> Iterator[str]:
    shown, dropped = fitting(columns, width)
    yield render(shown, width)
    if dropped:
        names = as_markdown(some_of(dropped, MOST_NAMED))
        yield _sentence(f"Columns left out to fit {width} characters: {names} (--all-columns shows them).", width)
