"""A report as Markdown, for a comment on a pull request: all that answers at once, and details folded."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from tfcompare.markdown import as_markdown
from tfcompare.views.blocks import Block, Cards, Code, Facts, Items, Report, Section, Text, Verdict


def as_text(report: Report) -> str:
    """The report without charts, timelines and long tables."""
    parts = [f"### {as_markdown(report.title)}"]
    for section in report.sections:
        lines = [line for block in section.blocks for line in _lines(block)]
        if lines:
            parts.append(_section(section, "\n\n".join(lines)))
    return "\n\n".join([*parts, f"<sub>{as_markdown(report.about)}</sub>"]) + "\n"


def _section(section: Section, text: str) -> str:
    if not section.title:
        return text
    if section.is_open:
        return f"#### {as_markdown(section.title)}\n\n{text}"
    return f"<details><summary>{html.escape(section.title)}</summary>\n\n{text}\n\n</details>"


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Verdict):
        yield f"**{block.badge} · {block.headline}**" if block.badge else f"**{block.headline}**"
        yield " ".join(block.basis)
    elif isinstance(block, Text):
        yield block.text
    elif isinstance(block, Items):
        yield "\n".join(f"- {line}{f'<br>{more}' if more else ''}" for line, more in block.items)
    elif isinstance(block, Cards):
        yield _table(block.facts)
    elif isinstance(block, Facts):
        yield _table(block)
        if block.note:
            yield block.note
    elif isinstance(block, Code):
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
        yield f"{fence}\n{block.text}\n{fence}"


def _table(facts: Facts) -> str:
    marks = ["---:" if i in facts.numbers else ":---" for i in range(len(facts.header))]
    lines = [[as_markdown(cell) for cell in row] for row in (facts.header, *facts.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], marks, *lines[1:]))
