"""A report as Markdown: all that is open at once, and details folded."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from tfcompare.render.document import Report, facts_of, without_interaction
from tfcompare.render.payload import first_rows
from tfcompare.text import as_markdown
from tfcompare.views.blocks import Beside, Block, Code, Facts, Items, Section, Table, Text, Verdict


def as_text(report: Report, rows: int = 0) -> str:
    """The report without charts and timelines, and with the first `rows` of tables."""
    parts = [f"### {as_markdown(report.title)}"]
    parts += filter(None, (_section(section, rows) for section in report.sections))
    return "\n\n".join([*parts, f"<sub>{as_markdown(report.about)}</sub>"]) + "\n"


def _section(section: Section, rows: int) -> str:
    text = "\n\n".join(line for block in section.blocks for line in _lines(block, rows))
    if not section.title or not text:
        return text
    if section.is_open:
        return f"#### {as_markdown(section.title)}\n\n{text}"
    return f"<details><summary>{html.escape(section.title)}</summary>\n\n{text}\n\n</details>"


def _lines(block: Block, rows: int) -> Iterator[str]:
    if isinstance(block, Section):
        yield from filter(None, [_section(block, rows)])
    elif (fixed := without_interaction(block)) is not block:
        yield from () if fixed is None else _lines(fixed, rows)
    elif isinstance(block, Beside):
        yield from (line for one in block.blocks for line in _lines(one, rows))
    elif isinstance(block, Verdict):
        yield f"**{block.badge} · {block.headline}**" if block.badge else f"**{block.headline}**"
        yield from filter(None, [" ".join(block.basis)])
    elif isinstance(block, Text):
        yield block.text
    elif isinstance(block, Items):
        yield "\n".join(f"- {line}{f'<br>{more}' if more else ''}" for line, more in block.items)
    elif (facts := facts_of(block)) is not None:
        yield from filter(None, [_table(facts), facts.note])
    elif isinstance(block, Table) and block.rows.empty:
        yield block.nothing
    elif isinstance(block, Table) and rows:
        yield f"**{as_markdown(block.title)}**"
        facts = first_rows(block, rows)
        yield from filter(None, [_table(facts), facts.note])
    elif isinstance(block, Code):
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
        yield f"{fence}{block.language}\n{block.text}\n{fence}"


def _table(facts: Facts) -> str:
    marks = ["---:" if i in facts.numbers else ":---" for i in range(len(facts.header))]
    lines = [[as_markdown(cell) for cell in row] for row in (facts.header, *facts.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], marks, *lines[1:]))
