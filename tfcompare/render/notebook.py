"""What a notebook shows of a comparison: HTML without scripts, requests or colours of its own."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tfcompare.compare.pairs import pairs_of
from tfcompare.render.document import facts_of, without_interaction
from tfcompare.render.inline import inline
from tfcompare.render.payload import first_rows
from tfcompare.text import as_markdown, text_of
from tfcompare.views.answer import answer
from tfcompare.views.blocks import Beside, Block, Facts, Items, Section, Table, Text, Verdict
from tfcompare.views.caveats import beside_the_answer
from tfcompare.views.run_listing import device_text
from tfcompare.views.short_names import shorten_distinct

if TYPE_CHECKING:
    from tfcompare.compare.pairs import Pairs
    from tfcompare.run import Run

MOST_CANDIDATES = 10
MOST_ROWS = 20
_UNFOLDED = 3
_NAME_LENGTH = 50

_STYLE = """<style>
.tfcompare {overflow-x: auto}
.tfcompare table {border-collapse: collapse; margin: 0.6em 0}
.tfcompare th, .tfcompare td {text-align: right; padding: 0.15em 0.8em; white-space: nowrap}
.tfcompare td {font-variant-numeric: tabular-nums}
.tfcompare tr > .text {text-align: left}
.tfcompare tr > :first-child {padding-left: 0}
.tfcompare thead th {border-bottom: 1px solid}
.tfcompare p, .tfcompare ul {margin: 0.3em 0; max-width: 60em}
.tfcompare summary {cursor: pointer}
.tfcompare code {unicode-bidi: isolate; overflow-wrap: anywhere}
</style>"""


def comparison_html(comparison: Pairs) -> str:
    """The answer on each candidate, and caveats; of a run alone, that run."""
    pairs = pairs_of(comparison, by_name=True)
    parts = []
    for pair in pairs[:MOST_CANDIDATES]:
        first, *others = answer(pair)
        if pair.is_single:
            parts.append(_about(pair.baseline))
        if len(pairs) > 1:
            assert isinstance(first, Verdict)
            parts.append(f"<details><summary>{inline(first.headline)}</summary>")
            first = replace(first, headline="")
        parts += (text for block in (first, *others) for text in _block(block))
        parts += ["</details>"] * (len(pairs) > 1)
    if more := len(pairs) - MOST_CANDIDATES:
        parts += [f"<p>{more} more candidates are not shown.</p>"] * (more > 0)
    if comparison.is_single:
        parts.append(_fold("Remarks", map(as_markdown, comparison.baseline.remarks)))
    else:
        parts.append(_fold("Caveats", beside_the_answer(comparison)))
    return f'<div class="tfcompare">{_STYLE}{"".join(parts)}</div>'


def _about(run: Run) -> str:
    info = run.info
    hosts = f"{info.hosts} hosts" if info.hosts > 1 else ""
    facts = [device_text(info.device_type, info.device_count), info.device_name, info.framework, hosts]
    return f"<p><strong>{_name(run.name)}</strong><br>{_text(' · '.join(filter(None, facts)))}</p>"


def cell(blocks: Iterable[Block]) -> str:
    """What a notebook shows of these blocks."""
    return f'<div class="tfcompare">{_STYLE}{"".join(part for block in blocks for part in _block(block))}</div>'


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Beside) or (isinstance(block, Section) and not block.title):
        yield from (part for one in block.blocks for part in _block(one))
    elif (fixed := without_interaction(block)) is not block:
        yield from () if fixed is None else _block(fixed)
    elif isinstance(block, Section):
        inner = "".join(part for one in block.blocks for part in _block(one))
        yield f"<details{' open' * block.is_open}><summary>{_text(block.title)}</summary>{inner}</details>"
    elif isinstance(block, Items):
        yield f"<ul>{''.join(f'<li>{inline(text)}</li>' for text, _ in block.items)}</ul>"
    elif isinstance(block, Table):
        rows = first_rows(block, MOST_ROWS)
        if rows.rows:
            yield _table(rows)
        yield from _paragraphs(rows.note if rows.rows else block.nothing)
    elif isinstance(block, Verdict):
        yield from _paragraphs(block.headline, *block.sentences)
    elif isinstance(block, Text):
        yield from _paragraphs(block.text)
    elif (facts := facts_of(block)) is not None:
        yield _table(facts)
        yield from _paragraphs(facts.note)


def _paragraphs(*texts: str) -> Iterator[str]:
    return (f"<p>{inline(text)}</p>" for text in texts if text)


def _fold(title: str, sentences: Iterable[str]) -> str:
    """A list of Markdown sentences that folds, and is folded if it is long; empty without sentences."""
    items = [f"<li>{inline(sentence)}</li>" for sentence in sentences]
    if not items:
        return ""
    state = " open" if len(items) <= _UNFOLDED else ""
    return f"<details{state}><summary>{title} ({len(items)})</summary><ul>{''.join(items)}</ul></details>"


def _table(facts: Facts) -> str:
    """A table of plain texts. Names are shortened, and shown in full where the mouse points at them."""
    cells = [[text_of(cell) for cell in row] for row in facts.rows]
    names = shorten_distinct([name for name, *_ in cells], _NAME_LENGTH)
    body = [
        _row("td", [name, *others], facts.numbers, full) for name, (full, *others) in zip(names, cells, strict=True)
    ]
    header = _row("th", facts.header, facts.numbers)
    return f"<table><thead>{header}</thead><tbody>{''.join(body)}</tbody></table>"


def _row(tag: str, cells: Sequence[str], numbers: Sequence[int], title: str = "") -> str:
    shown = (
        f"<{tag}>{_text(cell)}</{tag}>" if i in numbers else f'<{tag} class="text">{_name(cell)}</{tag}>'
        for i, cell in enumerate(cells)
    )
    return f'<tr title="{_text(title)}">{"".join(shown)}</tr>'


def _name(name: str) -> str:
    """A name from a profile or disk; one that is written from right to left leaves the text around it in order."""
    return f"<bdi>{_text(name)}</bdi>"


def _text(text: str) -> str:
    return html.escape(text_of(text))
