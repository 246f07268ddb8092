"""Escapes text from files so that it is safe in Markdown."""

from __future__ import annotations

import re

from tfcompare.text import middle_ellipsis, text_of

_AUTOLINKS = re.compile(r"(?<=https:)(?=//)|(?<=http:)(?=//)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
"""Where to break what GitHub's Markdown makes a link of by itself, escaped or not."""

END_OF_LINE = "  \n"
WORD_JOINER = "\u2060"  # has no width, and no line ends there
_STEERING = re.compile(
    r"([\\`*{}\[\]<>#|~$^&]"  # anywhere
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis: not within a word
    r"|:(?=[\w+\-])"  # an icon or a colour of Streamlit
    r"|^[-+=](?=[-+=\s]|$))"  # a list, a rule, or what makes a heading of the line above
)
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")


def as_markdown(text: object) -> str:
    """`text` escaped to be shown literally: without emphasis, links, HTML, formulas or icons.

    Only an invisible character keeps a URL or mail address from becoming a link.
    """
    plain = text_of(" ".join(str(text).split()))
    return _NUMBERED.sub(r"\1\\\2", _STEERING.sub(r"\\\1", _AUTOLINKS.sub(WORD_JOINER, plain)))


def as_code(text: object, letters: int | None = None) -> str:
    """`text` as inline code on one line, since an empty line would end it; a long one is cut in its middle."""
    line = " ".join(str(text).replace("`", "'").split())
    return f"`{text_of(line if letters is None else middle_ellipsis(line, letters)) or ' '}`"
