"""What somebody may have meant who named something that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def near_names(wanted: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Those of `known` that are spelt most like `wanted`, the nearest first; upper and lower case count as equal."""
    by_folded = {name.casefold(): name for name in known}
    return [by_folded[near] for near in difflib.get_close_matches(wanted.casefold(), by_folded, most)]


def did_you_mean(names: Sequence[str]) -> str:
    """`; did you mean 'a', 'b' or 'c'?`, to end a sentence with; nothing without a name."""
    listed = " or ".join(filter(None, [", ".join(map(repr, names[:-1])), *map(repr, names[-1:])]))
    return f"; did you mean {listed}?" if listed else ""
