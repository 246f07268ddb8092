"""Which op of the candidate is which of the baseline, in three degrees of certainty."""

from __future__ import annotations

from collections.abc import Mapping

from tfcompare.compare.matching.guesses import pair_likely
from tfcompare.compare.matching.name_tree import Node, Ops, Pair, name_tree
from tfcompare.compare.matching.names import SiblingRule, walk, with_plain_paths
from tfcompare.compare.matching.renamed_scopes import Siblings, pair_alike, without


def by_place(baseline: Ops, candidate: Ops, known: Mapping[str, str]) -> dict[str, str]:
    """Beyond `known`: the baseline's name for each of the candidate's that the scopes' contents tell.

    `known` is what `align_names` found. No name of either side is in both, or twice.
    """
    return _found(baseline, candidate, known, pair_alike)


def by_likeness(baseline: Ops, candidate: Ops, known: Mapping[str, str]) -> dict[str, str]:
    """Beyond `known`: the baseline's name for each of the candidate's that lies below a scope of a likely pair.

    `known` is what `align_names` and `by_place` found. No name of either side is in both, or twice.
    """
    totals = sum(baseline.weights.values()), sum(candidate.weights.values())

    def alike_or_likely(parent: Pair, ours: list[Node], theirs: list[Node]) -> list[Pair]:
        alike = pair_alike(parent, ours, theirs)
        rest = without(Siblings(ours, theirs), alike)
        return alike + pair_likely(rest.ours, rest.theirs, totals)

    return _found(baseline, candidate, known, alike_or_likely)


def _found(baseline: Ops, candidate: Ops, known: Mapping[str, str], rule: SiblingRule) -> dict[str, str]:
    taken = set(known.values())
    if len(taken) == len(baseline.types) or len(known) == len(candidate.types):
        return {}
    ours, theirs = (name_tree(side) for side in with_plain_paths(baseline, candidate))
    names = ((b.name, c.name) for b, c in walk(ours, theirs, rule) if not b.is_doubtful)
    return {c: b for b, c in names if b is not None and c is not None and b not in taken and c not in known}
