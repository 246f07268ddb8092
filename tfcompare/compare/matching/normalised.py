"""Sentences that explain which parts of names are ignored in matching."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tfcompare.compare.matching.kernel_names import canonical_kernel
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.units import middle_ellipsis

if TYPE_CHECKING:
    from tfcompare.run import Run

_LONGEST = 60


def normalised_names(baseline: Run, candidate: Run) -> list[str]:
    """Up to two sentences, on ops and on kernels whose names differ only in parts that matching ignores."""
    found = (
        _sentence(
            "Op names without wrapping scopes, numbers of traced functions and what `jax.checkpoint` adds",
            _of(baseline, "op_stats", "op_name") | _of(baseline, "kernel_stats", "op_name"),
            _of(candidate, "op_stats", "op_name") | _of(candidate, "kernel_stats", "op_name"),
            plain_name,
        ),
        _sentence(
            "Kernel names without what compilers add",
            _of(baseline, "kernel_stats", "kernel_name"),
            _of(candidate, "kernel_stats", "kernel_name"),
            canonical_kernel,
        ),
    )
    return [sentence for sentence in found if sentence]


def _of(run: Run, table: str, column: str) -> set[str]:
    return set(run.table(table)[column])


def _sentence(what: str, ours: set[str], theirs: set[str], plain: Callable[[str], str]) -> str:
    """A sentence on names that differ between the sides but have the same plain form; empty if there are none."""
    sides = [{plain(name): name for name in sorted(side, reverse=True)} for side in (ours - theirs, theirs - ours)]
    both = sorted(sides[0].keys() & sides[1].keys(), key=lambda name: (len(sides[0][name]), name))
    if not both:
        return ""
    one, other = (middle_ellipsis(side[both[0]], _LONGEST) for side in sides)
    count = "" if len(both) == 1 else f" (and {len(both) - 1:,} more)"
    return f"{what} are compared: `{one}` of the baseline is `{other}` of the candidate{count}."
