"""Groups of hosts whose names begin, or end, alike: a rack, a slice, the workers of one machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9]+")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")


def groups_of(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The positions of the hosts of each group, by what their names have in common: `rack3-…`, `….rack3.dc1`.

    A group has at least two hosts and at most half of them. Names are cut between letters, digits and separators at the
    front, and at separators at the end, where domains are. Of the texts that the same hosts share, the longest counts.
    """
    found: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        for text in (*_beginnings(name), *_ends(name)):
            found.setdefault(text, []).append(position)
    by_hosts: dict[tuple[int, ...], str] = {}
    for text, positions in found.items():
        if 2 <= len(positions) <= len(names) / 2:
            hosts = tuple(positions)
            by_hosts[hosts] = max(by_hosts.get(hosts, ""), text, key=len)
    return {text: hosts for hosts, text in by_hosts.items()}


def _beginnings(name: str) -> list[str]:
    return [f"{name[: match.end()]}…" for match in _WORD.finditer(name)][:-1]


def _ends(name: str) -> list[str]:
    return [f"…{name[match.start() :]}" for match in _SEPARATOR.finditer(name)]
