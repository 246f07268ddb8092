"""Text that comes from files, made safe to stand in Markdown."""

from __future__ import annotations

import re

_STEERING = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&])")


def as_markdown(text: object) -> str:
    """`text` as Markdown that reads exactly like it: no emphasis, links, HTML, formulas or icons come of it."""
    return _STEERING.sub(r"\\\1", " ".join(str(text).split()))


def as_code(text: str) -> str:
    """`text` as inline code, on one line: an empty one within would end it."""
    return f"`{' '.join(text.replace('`', chr(39)).split()) or ' '}`"
