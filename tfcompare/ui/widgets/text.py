"""Escapes text from files so that it is safe in Markdown."""

from __future__ import annotations

import re

_STEERING = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&])")


def as_markdown(text: object) -> str:
    """`text` escaped to be shown literally: without emphasis, links, HTML, formulas or icons."""
    return _STEERING.sub(r"\\\1", " ".join(str(text).split()))


def as_code(text: str) -> str:
    """`text` as inline code on one line, since an empty line would end it."""
    return f"`{' '.join(text.replace('`', chr(39)).split()) or ' '}`"
