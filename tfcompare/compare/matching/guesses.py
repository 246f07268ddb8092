"""Matches ops that their names leave unmatched: by the contents of their scopes, then by similarity.

Siblings below a pair of scopes, and then single ops of one type, are assigned so that the sum of their differences is
minimal. A pair is accepted if its difference is small and no alternative assignment of its members is nearly as good.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.matching.name_tree import (
    MeantDigits,
    Node,
    NodePair,
    Ops,
    kinds_below,
    mean_other_things,
    meant_digits,
    name_tree,
    weight_below,
)
from tfcompare.compare.matching.names import SiblingRule, walk, with_plain_paths
from tfcompare.compare.matching.scopes import UNTYPED, Siblings, pair_alike, without
from tfcompare.schema import SIDES

MOST_ASSIGNED = 300
"""Nothing is guessed if a side has more nodes or ops to assign than this."""

MARGIN = 0.05
"""The next best assignment must be worse by at least this much."""

LEAST_IN_COMMON = 0.8
"""The minimum share of ops, by type, that two paired scopes must have in common: a layer that gained or lost one op in
five is still itself, two kinds of layers share less."""

MOST_APART_SCOPES = 0.5
MOST_APART_OPS = 0.35
"""Of single ops less is known than of scopes, so they must be nearer: one word of a name and one figure may differ."""
_FORBIDDEN = 1e3
_ROUNDING = 1e-9
_TENFOLD = math.log(10)
_KEYS = ["host", "host_or_device", "op_type"]
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+d\b")

Differences = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Figures:
    """The figures by which ops of one type are compared: names, occurrences and time per occurrence.

    Counts and times are relative to the run's totals, so that the run's length and the machine's speed do not matter.
    `scopes` holds each op's innermost matched scope, under its name in the baseline; empty if none is matched.
    """

    names: Sequence[str]
    scopes: Sequence[str]
    occurrences: Differences
    times: Differences


def pair_likely(ours: list[Node], theirs: list[Node], totals: tuple[float, float]) -> list[NodePair]:
    """Likely pairs among sibling scopes; `totals` are the total weights of the two runs."""
    scopes, others = ([node for node in side if node.children] for side in (ours, theirs))
    if not scopes or not others or max(len(scopes), len(others)) > MOST_ASSIGNED:
        return []
    in_common = _in_common([kinds_below(n) for n in scopes], [kinds_below(n) for n in others])
    labels = [node.label for node in scopes], [node.label for node in others]
    weights = [np.array([weight_below(node) for node in side]) for side in (scopes, others)]
    of_times = _times_apart(weights[0] / (totals[0] or 1.0), weights[1] / (totals[1] or 1.0))
    apart = 0.5 * (1 - in_common) + 0.2 * names_apart(*labels) + 0.3 * of_times
    apart[(in_common < LEAST_IN_COMMON) | _are_other_things(*labels)] = _FORBIDDEN
    return [(scopes[i], others[j]) for i, j in assign(apart, labels, MOST_APART_SCOPES)]


def likely_ops(ours: Figures, theirs: Figures) -> list[tuple[int, int]]:
    """Likely pairs of ops of one type, as positions.

    No op is in two pairs. Two ops whose scopes are matched, but not with each other, never pair, nor do two whose
    digits mean something else.
    """
    if not ours.names or not theirs.names or max(len(ours.names), len(theirs.names)) > MOST_ASSIGNED:
        return []
    apart = (
        0.6 * names_apart(ours.names, theirs.names)
        + 0.2 * _times_apart(ours.occurrences, theirs.occurrences)
        + 0.2 * _times_apart(ours.times, theirs.times)
    )
    scopes, others = np.array(ours.scopes, np.object_)[:, None], np.array(theirs.scopes, np.object_)[None, :]
    apart[(scopes != others) & (scopes != "") & (others != "")] = _FORBIDDEN
    apart[_are_other_things(ours.names, theirs.names)] = _FORBIDDEN
    return assign(apart, (ours.names, theirs.names), MOST_APART_OPS)


def assign(apart: Differences, names: tuple[Sequence[str], Sequence[str]], most_apart: float) -> list[tuple[int, int]]:
    """The sufficiently certain pairs of the assignment with the least difference, independent of the order of sides."""
    from scipy.optimize import linear_sum_assignment

    if sorted(names[1]) < sorted(names[0]):
        return [(i, j) for j, i in assign(apart.T, names[::-1], most_apart)]
    rows, columns = (np.array(sorted(range(len(side)), key=lambda k: side[k]), dtype=np.intp) for side in names)
    apart = apart[np.ix_(rows, columns)]
    apart = np.where(apart <= most_apart, apart, _FORBIDDEN)
    i, j = linear_sum_assignment(apart)
    is_sure = (apart[i, j] <= most_apart) & (_next_best(apart, i, j) >= MARGIN - _ROUNDING)
    return [(int(rows[a]), int(columns[b])) for a, b in zip(i[is_sure], j[is_sure], strict=True)]


def _next_best(apart: Differences, i: npt.NDArray[np.intp], j: npt.NDArray[np.intp]) -> Differences:
    """The least increase of the total difference, for each assigned pair, if its two members are not paired.

    Separating a pair shifts partners along a cycle: the row of one pair takes the column of the next, and so on. The
    least increase is the shortest such cycle. The last node represents the unassigned rows or columns.
    """
    own, left = apart[i, j], len(i)
    growth = np.full((left + 1, left + 1), np.inf)
    growth[:left, :left] = apart[np.ix_(i, j)] - own[:, None]
    free_rows, free_columns = (np.setdiff1d(np.arange(n), used) for n, used in zip(apart.shape, (i, j), strict=True))
    if len(free_columns):
        growth[:left, left], growth[left, :left] = apart[np.ix_(i, free_columns)].min(axis=1) - own, 0.0
    if len(free_rows):
        growth[left, :left], growth[:left, left] = apart[np.ix_(free_rows, j)].min(axis=0), -own
    np.fill_diagonal(growth, np.inf)
    for k in range(left + 1):
        np.minimum(growth, growth[:, k, None] + growth[None, k, :], out=growth)
    return growth.diagonal()[:left].copy()


def names_apart(ours: Sequence[str], theirs: Sequence[str]) -> Differences:
    """The word difference of each two names, ignoring numbers: 0 if all words are shared, 1 if none are."""
    words = ([dict.fromkeys(map(str.lower, _WORDS.findall(name)), 1) for name in side] for side in (ours, theirs))
    return 1 - _in_common(*words)


def _are_other_things(ours: Sequence[str], theirs: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether the digits of each two names mean something else."""
    numbers: dict[MeantDigits, int] = {}
    codes = [[numbers.setdefault(meant_digits(name), len(numbers)) for name in side] for side in (ours, theirs)]
    kinds = np.array([[mean_other_things(one, other) for other in numbers] for one in numbers])
    return np.asarray(kinds[np.ix_(*codes)])


def _in_common(ours: Sequence[Mapping[Any, int]], theirs: Sequence[Mapping[Any, int]]) -> Differences:
    """The share of common items (0 to 1) of each two multisets."""
    numbers: dict[tuple[Any, int], int] = {}  # of each thing, its first, second, … occurrence in a multiset
    held = [
        [[numbers.setdefault((t, k), len(numbers)) for t, count in bag.items() for k in range(count)] for bag in side]
        for side in (ours, theirs)
    ]
    first, second = (_matrix(side, len(numbers)) for side in held)
    both = (first @ second.T).toarray()
    sizes = first.sum(axis=1)[:, None] + second.sum(axis=1)[None, :]
    return np.asarray(2 * both / np.maximum(sizes, 1))


def _matrix(held: Sequence[Sequence[int]], width: int) -> Any:
    """A sparse matrix of one row for each list, with 1 in the columns that it holds."""
    from scipy.sparse import csr_array

    columns, ends = np.array([number for row in held for number in row], np.intp), np.cumsum([0, *map(len, held)])
    return csr_array((np.ones(len(columns)), columns, ends), shape=(len(held), width))


def _times_apart(ours: Differences, theirs: Differences) -> Differences:
    """The logarithmic difference of each two positive values: 0 if equal, 1 if they differ tenfold or more."""
    first, second = (np.log(np.maximum(side, 1e-12)) for side in (ours, theirs))
    return np.asarray(np.minimum(np.abs(first[:, None] - second[None, :]) / _TENFOLD, 1.0))


def by_place(baseline: Ops, candidate: Ops, known: Mapping[str, str]) -> dict[str, str]:
    """Matches further names by the contents of their scopes; maps candidate names to baseline names.

    `known` holds the pairs of `align_names`. No name of `known` is matched again, and none is matched twice.
    """
    return _pairs_by(baseline, candidate, known, pair_alike)


def by_likeness(baseline: Ops, candidate: Ops, known: Mapping[str, str]) -> dict[str, str]:
    """Matches further names below scopes that are similar; maps candidate names to baseline names.

    `known` holds the pairs of `align_names` and `by_place`. No name of `known` is matched again, and none is matched
    twice.
    """
    totals = sum(baseline.weights.values()), sum(candidate.weights.values())

    def alike_or_likely(parent: NodePair, ours: list[Node], theirs: list[Node]) -> list[NodePair]:
        alike = pair_alike(parent, ours, theirs)
        rest = without(Siblings(ours, theirs), alike)
        return alike + pair_likely(rest.ours, rest.theirs, totals)

    return _pairs_by(baseline, candidate, known, alike_or_likely)


def _pairs_by(baseline: Ops, candidate: Ops, known: Mapping[str, str], rule: SiblingRule) -> dict[str, str]:
    taken = set(known.values())
    if len(taken) == len(baseline.types) or len(known) == len(candidate.types):
        return {}
    ours, theirs = (name_tree(side) for side in with_plain_paths(baseline, candidate))
    names = ((b.name, c.name) for b, c in walk(ours, theirs, rule) if not b.is_doubtful)
    return {c: b for b, c in names if b is not None and c is not None and b not in taken and c not in known}


def likely_rows(
    baseline: pd.DataFrame, candidate: pd.DataFrame, whole: tuple[pd.DataFrame, pd.DataFrame], pairs: pd.DataFrame
) -> pd.DataFrame:
    """Likely pairs among the unmatched rows of `op_stats`.

    Columns: `baseline` and `candidate`, the rows' labels. Only ops of the same host or device and type pair, and never
    if their scopes are matched with other scopes. `whole` holds all rows of the two sides, for relative counts and
    times; `pairs` are the pairs found before.
    """
    scopes = _paired_scopes(*(whole[k].loc[pairs[side], "op_name"] for k, side in enumerate(SIDES)))
    ours, theirs = (dict(iter(side[~side["op_type"].isin(UNTYPED)].groupby(_KEYS))) for side in (baseline, candidate))
    found: list[tuple[int, int]] = []
    for key in ours.keys() & theirs.keys():
        sides = ours[key], theirs[key]
        likely = likely_ops(*(_figures(*of_side) for of_side in zip(sides, whole, scopes, strict=True)))
        found += [(sides[0].index[i], sides[1].index[j]) for i, j in likely]
    return pd.DataFrame(sorted(found), columns=["baseline", "candidate"], dtype=np.intp)


def _paired_scopes(ours: Iterable[str], theirs: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The baseline names of the matched scopes of either side: those whose paired ops all lie in one scope."""
    pairs = {(_scope(b), _scope(c)) for b, c in zip(ours, theirs, strict=True)}
    counts, their_counts = (pd.Series([pair[k] for pair in pairs], dtype="str").value_counts() for k in (0, 1))
    sole = [(b, c) for b, c in pairs if b and c and counts[b] == 1 and their_counts[c] == 1]
    return {b: b for b, _ in sole}, {c: b for b, c in sole}


def _scope(name: str) -> str:
    return name.rpartition("/")[0]


def _innermost(name: str, scopes: Mapping[str, str]) -> str:
    """The baseline name of an op's innermost matched scope; empty if none is matched."""
    scope = _scope(name)
    while scope and scope not in scopes:
        scope = _scope(scope)
    return scopes.get(scope, "")


def _figures(rows: pd.DataFrame, whole: pd.DataFrame, scopes: Mapping[str, str]) -> Figures:
    busy = whole[~whole["op_type"].isin(UNTYPED)]
    count, time = busy["occurrences"].sum(), busy["self_time_us"].sum()
    occurrences = rows["occurrences"].to_numpy(np.float64)
    per_occurrence = rows["self_time_us"].to_numpy(np.float64) / np.maximum(occurrences, 1)
    return Figures(
        rows["op_name"].tolist(),
        [_innermost(name, scopes) for name in rows["op_name"]],
        occurrences / max(count, 1),
        per_occurrence / max(time / max(count, 1), 1e-9),
    )
