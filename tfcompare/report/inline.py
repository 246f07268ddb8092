"""Sentences in Markdown as HTML: code, emphasis, escapes, on request links, and nothing else that Markdown can do."""

from __future__ import annotations

from markdown_it import MarkdownIt

from tfcompare.markdown import WORD_JOINER
from tfcompare.text import text_of

_PLAIN = MarkdownIt("zero").enable(["backticks", "emphasis", "escape"])
_LINKED = MarkdownIt("zero").enable(["backticks", "emphasis", "escape", "link"])


def inline(markdown: str, *, links: bool = False) -> str:
    """The sentence as HTML; HTML in it is shown as it is written. `links` is for texts of our own."""
    renderer = _LINKED if links else _PLAIN
    return str(renderer.renderInline(text_of(markdown.replace(WORD_JOINER, ""))))
