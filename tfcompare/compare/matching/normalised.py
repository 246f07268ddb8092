"""Sentences that explain which parts of names are ignored in matching."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.compare.matching.kernel_names import canonical_kernel
from tfcompare.compare.matching.matching import pair_rows, with_hosts_of
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.text import middle_ellipsis

if TYPE_CHECKING:
    from tfcompare.run import Run

_LONGEST = 60


def normalised_names(baseline: Run, candidate: Run) -> list[str]:
    """Up to two sentences, on ops and on kernels that are matched though their names differ in parts that matching
    ignores."""
    ops = _pairs(baseline, candidate, "op_stats", {"op_name": plain_name})
    kernels = _pairs(baseline, candidate, "kernel_stats", {"op_name": plain_name, "kernel_name": canonical_kernel})
    found = (
        _sentence(
            "Op names without wrapping scopes, numbers of traced functions and what jax.checkpoint adds",
            ops["op_name"] | kernels["op_name"],
        ),
        _sentence("Kernel names without what compilers add", kernels["kernel_name"]),
    )
    return [sentence for sentence in found if sentence]


def _pairs(
    baseline: Run, candidate: Run, table: str, columns: Mapping[str, Callable[[str], str]]
) -> dict[str, set[tuple[str, str]]]:
    """For each column of names, given what makes them plain, the names of matched rows that differ only in that."""
    ours, theirs = baseline.table(table), candidate.table(table)
    names = {column: {*ours[column], *theirs[column]} for column in columns}
    if all(len({plain(name) for name in names[column]}) == len(names[column]) for column, plain in columns.items()):
        return {column: set() for column in columns}  # no names can differ so, and matching takes longer
    evidence = baseline.tables.op_evidence(), candidate.tables.op_evidence()
    rows = pair_rows(schema.table(table), ours, with_hosts_of(ours, theirs), evidence=evidence)
    both = (rows.baseline >= 0) & (rows.candidate >= 0)
    at, to = rows.baseline[both], rows.candidate[both]
    pairs = {column: set(zip(ours[column].iloc[at], theirs[column].iloc[to], strict=True)) for column in columns}
    return {
        column: {(one, other) for one, other in pairs[column] if one != other and plain(one) == plain(other)}
        for column, plain in columns.items()
    }


def _sentence(what: str, pairs: set[tuple[str, str]]) -> str:
    """A sentence on names that differ, with the shortest pair as the example; empty if there are none."""
    if not pairs:
        return ""
    one, other = (middle_ellipsis(name, _LONGEST) for name in min(pairs, key=lambda pair: (sum(map(len, pair)), pair)))
    count = "" if len(pairs) == 1 else f" (and {len(pairs) - 1:,} more)"
    return f"{what} are compared: “{one}” of the baseline is “{other}” of the candidate{count}."
