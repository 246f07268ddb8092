"""Text for people: escaped, shortened, listed, and as Markdown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

NAMES_KEPT = 4_096
"""For how many names a function of names keeps its results: names are read up to 2 kB, so that is 16 MB at most."""

INDENT = "\u2003"
"""Says how deep a name lies in a tree."""

URL = re.compile(r"([a-z][a-z0-9+.:-]*)://(.*)", re.IGNORECASE | re.DOTALL)
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


def text_of(name: str) -> str:
    r"""`name` as printable text: `\xff` for a byte that is not UTF-8, `\n` for a line break."""
    return name if name.isprintable() else "".join(c if c.isprintable() or c == INDENT else _escape(c) for c in name)


def some_of(names: Iterable[str], most: int, count: int | None = None) -> str:
    """`a, b, c`; of more than `most`, `a, b and 3 more`. `count`: how many there are, if not all are in `names`."""
    every = list(names)
    shown = every[:most]
    rest = (len(every) if count is None else count) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest else "")


def capitalized(text: str) -> str:
    """`text` with a capital first letter; the others stay as they are."""
    return text[:1].upper() + text[1:]


def more_rows(count: int) -> str:
    """`1 more row`, `1,000 more rows`."""
    return f"{count:,} more row{'' if count == 1 else 's'}"


def lines_of(text: str) -> str:
    """As `text_of`, for a text of several lines: line breaks stay."""
    return "\n".join(map(text_of, text.split("\n")))


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how os.fsdecode represents a byte that it cannot decode
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def middle_ellipsis(name: str, width: int) -> str:
    """`name` shortened to `width` characters in its middle, since the end of an op's name is the most specific."""
    if len(name) <= width:
        return name
    head = max(width - 1, 0) // 3
    return f"{name[:head]}…{name[len(name) - max(width - 1 - head, 0) :]}"


def by_number(name: str) -> list[tuple[str, int]]:
    """A natural sort key: `worker-10` comes after `worker-2`."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d{0,18})", name)]


def close_matches(wanted: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The names in `known` closest to `wanted`, closest first, ignoring case."""
    by_folded = {name.casefold(): name for name in known}
    return [by_folded[near] for near in difflib.get_close_matches(wanted.casefold(), by_folded, most)]


def did_you_mean(names: Sequence[str]) -> str:
    """`; did you mean 'a', 'b' or 'c'?`, to append to a sentence; empty without names."""
    listed = " or ".join(filter(None, [", ".join(map(repr, names[:-1])), *map(repr, names[-1:])]))
    return f"; did you mean {listed}?" if listed else ""


def is_url(text: object) -> bool:
    """Whether `text` is a URL, even a malformed one, rather than a local path."""
    return not isinstance(text, PurePath) and URL.fullmatch(str(text)) is not None


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
