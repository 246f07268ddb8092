"""The capture time in a run's folder name, and short names that distinguish runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

_STAMP = re.compile(r"(?<!\d)\d{4}([_-]?)\d\d\1\d\d[_T -]?\d\d[_:.-]?\d\d[_:.-]?\d\d(?!\d)")
_FRACTION = re.compile(r"(?:[._]\d+)?$")
_WEAK = ("train", "validation", "fit")
"""Folders created by Keras and TensorFlow's tutorials, which do not identify a run."""
CONTAINERS = ("log", "logs", "logdir", "tb", "tensorboard")
"""Folders that hold runs. They name a run only if nothing else in its path does."""


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


Kind = Literal["strong", "container", "weak", "stamp", "profile stamp"]


@dataclass(frozen=True)
class _Word:
    """A part of a path. A `stamp` was named by the user's program, a `profile stamp` by the profiler."""

    text: str
    kind: Kind


def display_names(runs: Sequence[Address]) -> list[str]:
    """A short, unique name for each run: parts common to all runs are left out, and time stamps if possible.

    Only runs whose short names clash get longer names.
    """
    words = [_words(run) for run in runs]
    distinctive = _without_common(words)
    strong = _without_common([_of_kinds(each, "strong") for each in distinctive])
    choices = [list(_choices(*parts)) for parts in zip(runs, words, distinctive, strong, strict=True)]
    folders = [[word.text for word in _of_kinds(each, "strong")] for each in words]
    count = Counter(text for texts in folders for text in set(texts))
    if all(texts and count[texts[-1]] == 1 for texts in folders):  # no other run has that folder in its path
        choices = [[texts[-1], *longer] for texts, longer in zip(folders, choices, strict=True)]
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
    """The parts of a run's identity without `plugins/profile`; if none of them names it, also those above."""
    words: list[_Word] = []
    parts = run.parts
    for i in reversed(range(len(parts))):
        is_own = len(parts) - i <= run.own
        if not is_own and any(w.kind in ("strong", "container") for w in words):
            break
        if parts[i : i + 2] == ("plugins", "profile") or parts[max(0, i - 1) : i + 1] == ("plugins", "profile"):
            continue
        is_host = run.in_run_folder and i == len(parts) - 1
        words.append(_Word(parts[i], "weak" if is_host and not _is_stamp(parts[i]) else _kind(parts, i)))
    return words[::-1]


def _kind(parts: tuple[str, ...], i: int) -> Kind:
    if _is_stamp(parts[i]):
        return "profile stamp" if parts[max(0, i - 2) : i] == ("plugins", "profile") else "stamp"
    if parts[i] in _WEAK:
        return "weak"
    return "container" if parts[i] in CONTAINERS else "strong"


def _of_kinds(words: Sequence[_Word], *kinds: Kind) -> list[_Word]:
    return [word for word in words if word.kind in kinds]


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


def _choices(
    run: Address, words: list[_Word], distinctive: list[_Word], distinctive_strong: list[_Word]
) -> Iterator[str]:
    """Names for a run, from the shortest to its identity; `distinctive` are the words that not all runs have."""
    strong = distinctive_strong or _of_kinds(distinctive, "strong")
    stamps, profile_stamps = (_of_kinds(distinctive, kind)[-1:] for kind in ("stamp", "profile stamp"))
    last = next((own[-1:] for kind in ("strong", "stamp", "container") if (own := _of_kinds(words, kind))), [])
    named = _of_kinds(distinctive, "strong", "container", "weak")
    chosen = [word for word in distinctive if word.kind != "profile stamp"]
    choices = (strong or named or stamps or last, named, strong + stamps, chosen, strong + profile_stamps, distinctive)
    for choice in (*choices, words):
        if choice:
            yield "/".join(word.text for word in choice)
    yield run.id
