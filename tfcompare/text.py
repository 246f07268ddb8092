"""Names as text: from disks, buckets and profiles so that they can be shown, and those that somebody misspelt."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

URL = re.compile(r"([a-z][a-z0-9+.:-]*)://(.*)", re.IGNORECASE | re.DOTALL)


def text_of(name: str) -> str:
    r"""`name` as text that can be encoded and shown: `\xff` for a byte that is no UTF-8, `\n` for a line break."""
    return name if name.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in name)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # where os.fsdecode puts a byte that it cannot decode
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def near_names(wanted: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Those of `known` that are spelt most like `wanted`, the nearest first; upper and lower case count as equal."""
    by_folded = {name.casefold(): name for name in known}
    return [by_folded[near] for near in difflib.get_close_matches(wanted.casefold(), by_folded, most)]


def did_you_mean(names: Sequence[str]) -> str:
    """`; did you mean 'a', 'b' or 'c'?`, to end a sentence with; nothing without a name."""
    listed = " or ".join(filter(None, [", ".join(map(repr, names[:-1])), *map(repr, names[-1:])]))
    return f"; did you mean {listed}?" if listed else ""


def is_url(text: object) -> bool:
    """Whether that names something remote, or tries to, rather than a local path."""
    return not isinstance(text, PurePath) and URL.fullmatch(str(text)) is not None
