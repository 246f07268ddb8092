"""The capture time in a run's folder name, and short names that distinguish runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_STAMP = re.compile(r"(?<!\d)\d{4}([_-]?)\d\d\1\d\d[_T -]?\d\d[_:.-]?\d\d[_:.-]?\d\d(?!\d)")
_FRACTION = re.compile(r"(?:[._]\d+)?$")
_WEAK = ("train", "fit")
"""Folders created by Keras' and TensorFlow's tutorials, which do not identify a run."""


def stamp_time(name: str) -> datetime | None:
    """The time (UTC) of a stamp such as `2026_11_20_10_17_24`, which is assumed to be in this machine's time zone."""
    match = _STAMP.search(name)
    if match is None:
        return None
    digits = re.sub(r"\D", "", match.group())
    try:
        return datetime.strptime(digits, "%Y%m%d%H%M%S").astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _is_stamp(name: str) -> bool:
    match = _STAMP.match(name)
    return match is not None and _FRACTION.fullmatch(name, match.end()) is not None


def without_stamp(name: str) -> str:
    """`name` without a trailing capture time and its separator; empty if nothing is left."""
    stamps = (m for m in _STAMP.finditer(name) if _FRACTION.fullmatch(name, m.end()))
    return next((name[: m.start()].rstrip(" _.-") for m in stamps), name)


@dataclass(frozen=True)
class Address:
    """Where a run is: its identity, all parts of its path, and how many of the last ones belong to its identity.

    `in_run_folder`: it is a single given file in a run's folder, so that its own name says little.
    """

    id: str
    parts: tuple[str, ...]
    own: int
    in_run_folder: bool = False


@dataclass(frozen=True)
class _Word:
    text: str
    kind: str  # "strong", "weak" or "stamp"


def display_names(runs: Sequence[Address]) -> list[str]:
    """A short, unique name for each run: parts common to all runs are left out, and time stamps if possible.

    Only runs whose short names clash get longer names.
    """
    words = [_words(run) for run in runs]
    choices = [
        list(_choices(run, own, rest)) for run, own, rest in zip(runs, words, _without_common(words), strict=True)
    ]
    if all(last := _distinctive_last_words(words)):
        choices = [[word, *longer] for word, longer in zip(last, choices, strict=True)]
    picked = [0] * len(runs)
    while True:
        names = [choice[i] for choice, i in zip(choices, picked, strict=True)]
        count = Counter(names)
        clashes = [i for i, name in enumerate(names) if count[name] > 1 and picked[i] + 1 < len(choices[i])]
        if not clashes:
            return names
        for i in clashes:
            picked[i] += 1


def _words(run: Address) -> list[_Word]:
    """The parts of a run's identity without `plugins/profile`; if all are stamps or generic, also those above it."""
    words: list[_Word] = []
    parts = run.parts
    for i in reversed(range(len(parts))):
        is_own = len(parts) - i <= run.own
        if not is_own and any(w.kind == "strong" for w in words):
            break
        if parts[i : i + 2] == ("plugins", "profile") or parts[max(0, i - 1) : i + 1] == ("plugins", "profile"):
            continue
        is_weak = parts[i] in _WEAK or (run.in_run_folder and i == len(parts) - 1)
        words.append(_Word(parts[i], "stamp" if _is_stamp(parts[i]) else "weak" if is_weak else "strong"))
    return words[::-1]


def _distinctive_last_words(lists: list[list[_Word]]) -> list[str]:
    """The last folder of each run that is not a stamp or generic; empty if another run has it in its path."""
    strong = [[w.text for w in words if w.kind == "strong"] for words in lists]
    holders = Counter(text for words in strong for text in set(words))
    return [words[-1] if words and holders[words[-1]] == 1 else "" for words in strong]


def _without_common(lists: list[list[_Word]]) -> list[list[_Word]]:
    """The lists without their common beginning, and then without their common end."""
    for _ in range(2):
        same = 0
        for column in zip(*lists, strict=False):
            if len(set(column)) > 1:
                break
            same += 1
        lists = [words[same:][::-1] for words in lists]
    return lists


def _choices(run: Address, words: list[_Word], distinctive: list[_Word]) -> Iterator[str]:
    """Names for a run, from the shortest to its identity; `distinctive` are the words that not all runs have."""
    strong = [w for w in distinctive if w.kind == "strong"]
    without_stamps = [w for w in distinctive if w.kind != "stamp"]
    with_one_stamp = strong + [w for w in distinctive if w.kind == "stamp"][-1:]
    last = [w for w in words if w.kind == "strong"][-1:]
    for choice in (strong or without_stamps or last, without_stamps, with_one_stamp, distinctive, words):
        if choice:
            yield "/".join(w.text for w in choice)
    yield run.id
