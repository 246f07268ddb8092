"""Names cut to a length so that they stay distinct."""

from __future__ import annotations

from itertools import count

from tfcompare.text import middle_ellipsis

LABEL_LENGTH = 56


def shorten_distinct(names: list[str], length: int = LABEL_LENGTH) -> list[str]:
    """The names cut to `length` in their middle, so that different ones still read differently.

    The rule for names in charts; tables show names whole, the innermost part first. A single text, such as a title, is
    cut by `text.middle_ellipsis`.

    If any is longer, the path that all have in common goes first.

    Those that would read alike show where they begin to differ instead of how they begin; where even that is not enough
    they are numbered.
    """
    same = _common_scope(names) if any(len(name) > length for name in names) else 0
    labels = ["…" + _cut(name[same:], length - 1) if same else _cut(name, length) for name in names]
    for alike in _ambiguous(labels, names):
        start = _common_scope([names[i] for i in alike])
        for i in alike:
            labels[i] = "…" + _cut(names[i][start:], length - 1) if start else labels[i]
    taken = set(labels)
    for alike in _ambiguous(labels, names):
        label = labels[alike[0]]
        numbered = {names[alike[0]]: label}
        for i in alike:
            if names[i] not in numbered:
                ends = (f" ({number})" for number in count(len(numbered) + 1))
                apart = (_cut(label, length - len(end)) + end for end in ends)
                numbered[names[i]] = next(text for text in apart if text not in taken)
                taken.add(numbered[names[i]])
            labels[i] = numbered[names[i]]
    return labels


def _cut(name: str, length: int) -> str:
    return middle_ellipsis(name, max(length, 1))


def _common_scope(names: list[str]) -> int:
    """Length of the common prefix of different names, up to and including the last `/`; 0 if one is no more than it."""
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    end = first[:same].rfind("/") + 1
    return end if first != last and len(first) > end else 0


def _ambiguous(labels: list[str], names: list[str]) -> list[list[int]]:
    """The positions of each label that is shared by different names."""
    positions: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        positions.setdefault(label, []).append(i)
    return [same for same in positions.values() if len({names[i] for i in same}) > 1]
