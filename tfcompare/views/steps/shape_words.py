"""What changed in the sizes and types of the arrays that ops work on, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.work.changes import CONVOLUTIONS, MATMULS, changed_work
from tfcompare.compare.work.shapes import ARROW
from tfcompare.text import as_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfcompare.compare.pair import Pair
    from tfcompare.compare.work.changes import ChangedSize

_OF_CONVOLUTIONS = ("filters", "channels")


def shapes_clause(pair: Pair) -> str:
    """What changed in the candidate's arrays, after its name and a colon: `its convolutions have 512 → 16 and 128 → 8
    filters`, `its batch is 128 instead of 64`, `its matmuls went from f32 to bf16`. Empty where no change of sizes or
    types has most of the change in time."""
    work = changed_work(pair)
    of_convolutions = [size for size in work.sizes if size.name in _OF_CONVOLUTIONS]
    clauses = [f"its {CONVOLUTIONS} have {_and(_of_convolutions(of_convolutions))}"] if of_convolutions else []
    others = [size for size in work.sizes if size not in of_convolutions]
    for name in dict.fromkeys(size.name for size in others):
        clauses.append(_sizes_clause([size for size in others if size.name == name]))
    if work.type is not None:
        subject = f"its {work.type.kind} "
        is_subject = bool(clauses) and clauses[-1].startswith(subject)
        clauses.append(f"{'' if is_subject else subject}went from {work.type.before} to {work.type.after}")
    return _and(clauses)


def _of_convolutions(sizes: Sequence[ChangedSize]) -> list[str]:
    """`512 → 16 and 128 → 8 filters`, `3 → 4 channels`."""
    by_name = {name: [size for size in sizes if size.name == name] for name in _OF_CONVOLUTIONS}
    return [f"{_changes(found)} {name}" for name, found in by_name.items() if found]


def _sizes_clause(sizes: Sequence[ChangedSize]) -> str:
    """On sizes of dimensions of one name."""
    name, kind, first = sizes[0].name, sizes[0].kind, sizes[0]
    if len(sizes) == 1 and name == "batch":
        return f"its batch is {first.after:,} instead of {first.before:,}"
    if len(sizes) == 1 and name == "sequence":
        return f"its sequences are {first.after:,} instead of {first.before:,} long"
    if name == "features":
        return f"its {MATMULS} are {_changes(sizes)} wide"
    if name == "kernel":
        return f"its {kind} have kernels of size {_changes(sizes)}"
    if name:
        return f"its {kind} work on a {name} of {_changes(sizes)}"
    if kind == MATMULS and all(size.shape.count(",") == 1 for size in sizes):
        words = [f"{_changes([size])} {'columns' if size.position else 'rows'}" for size in sizes]
        return f"its {kind} have {_and(words)}"
    places = [f"dimension {size.position} of {as_code(_sizes_alone(size.shape))}" for size in sizes]
    return f"its {kind} have {_changes(sizes)} in {_and(dict.fromkeys(places))}"


def _changes(sizes: Sequence[ChangedSize]) -> str:
    """`512 → 16 and 128 → 8`, the largest first, whichever side has it."""
    largest_first = sorted(sizes, key=lambda size: (-max(size.before, size.after), -min(size.before, size.after)))
    return _and(f"{size.before:,}{ARROW}{size.after:,}" for size in largest_first)


def _and(texts: Iterable[str]) -> str:
    return " and ".join(texts)


def _sizes_alone(shape: str) -> str:
    return shape[shape.index("[") :]
