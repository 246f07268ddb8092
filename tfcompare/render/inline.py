"""Sentences in Markdown as HTML or plain text: code, emphasis, escapes, links, and nothing else of Markdown."""

from __future__ import annotations

from markdown_it import MarkdownIt

from tfcompare.text import END_OF_LINE, WORD_JOINER, text_of

_PLAIN = MarkdownIt("zero").enable(["backticks", "emphasis", "escape"])
_LINKED = MarkdownIt("zero").enable(["backticks", "emphasis", "escape", "link"])


def inline(markdown: str, *, links: bool = False) -> str:
    """The sentences as HTML; HTML in them is shown as it is written. `links` is for texts of our own."""
    renderer = _LINKED if links else _PLAIN
    lines = markdown.replace(WORD_JOINER, "").split(END_OF_LINE)
    return "<br>".join(str(renderer.renderInline(text_of(line))) for line in lines)


def plain(markdown: str) -> str:
    """The sentences as plain text: without marks, with the address of a link after its text."""
    return "\n".join(map(_plain_line, markdown.replace(WORD_JOINER, "").split(END_OF_LINE)))


def plain_with_code(markdown: str) -> str:
    """The sentences as plain text on one line, in which backticks stand around code and nowhere else."""
    return " ".join(_plain_line(line, "`") for line in markdown.replace(WORD_JOINER, "").split(END_OF_LINE))


def _plain_line(markdown: str, mark: str = "") -> str:
    """`mark` is written around code, and nowhere else."""
    parts, address = [], ""
    for token in _LINKED.parseInline(markdown)[0].children or []:
        if token.type in ("text", "code_inline", "text_special"):
            content = token.content.replace(mark, "'") if mark else token.content
            parts.append(f"{mark}{content}{mark}" if token.type == "code_inline" else content)
        elif token.type == "link_open":
            address = str(token.attrs["href"])
        elif token.type == "link_close":
            parts.append(f" ({address})")
    return text_of("".join(parts))
