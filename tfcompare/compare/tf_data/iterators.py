"""Matches the iterators of two tf.data pipelines by their position in the graph.

The pairs result from the minimum-cost edit that turns one tree into the other. Iterators may be added or removed
anywhere, also in the middle of a chain. An iterator may become a variant of itself (`Map` a `ParallelMapV2`), but never
another transformation. Iterators in different branches of one tree match iterators in different branches of the other
(the constrained edit distance of Zhang, 1996), so a branch is added or removed as a whole. Siblings stay in order.

Among several such edits, the one with the most similar pairs is chosen: first by output, then by input of a Zip, then
by calls. For example, a FlatMap creates one reader per file. The reader with the most calls is matched before one that
only reported the end of its file.

The rules are symmetric: swapping the sides yields the same pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tfcompare.compare.matching.name_tree import NameAndType
from tfcompare.compare.matching.names import align_names
from tfcompare.compare.tf_data.iterator_tree import PREFIX, Iterator, Tree, parent_name, transformation, tree_of

EXACT = "exact"
STRUCTURAL = "structural"

MOST_CELLS = 200_000
"""The largest product of two tree sizes for which the minimum-cost edit is computed (about a second).

Larger trees are matched from the top: siblings pair in order by transformation, those with the fewest calls stay
unmatched, and nothing is matched below an added or removed iterator.
"""

_ADDED = 1_000_000
_VARIANT = 300_000
_OTHER_ELEMENT = 1_000
_OTHER_INPUT = 1
_NEVER = 10**15

_UNPAIRED_CALLS = 2
"""The cost of a call of an unmatched iterator, relative to a call that a matched one has more than its counterpart.

It is above 1 so that the iterator with the most calls is matched even if the other side has far fewer calls.
"""

_MATCH, _BELOW_OURS, _BELOW_THEIRS = 0, 1, 2


@dataclass(frozen=True)
class IteratorPair:
    """The indices of two matched iterators and the tier: `exact` if their types and all their parents are equal."""

    baseline: int
    candidate: int
    tier: str


def pair_iterators(baseline: Sequence[Iterator], candidate: Sequence[Iterator]) -> list[IteratorPair]:
    """Matches the iterators of two pipelines, in the order of the baseline's tree. Ids must be unique on each side."""
    ours, theirs = tree_of(baseline), tree_of(candidate)
    partner = _partners(ours, theirs)
    exact = [False] * len(ours)
    pairs = []
    for i, j in enumerate(partner):
        if j < 0:
            continue
        above, above_theirs = ours.parent[i], theirs.parent[j]
        same_above = above_theirs < 0 if above < 0 else exact[above] and partner[above] == above_theirs
        exact[i] = same_above and ours.iterators[i].iterator == theirs.iterators[j].iterator
        pairs.append(IteratorPair(ours.place[i], theirs.place[j], EXACT if exact[i] else STRUCTURAL))
    return pairs


def likeness(baseline: Sequence[Iterator], candidate: Sequence[Iterator]) -> float:
    """The share of the iterators of two pipelines that match, from 0 to 1."""
    size = len(baseline) + len(candidate)
    return 2 * len(pair_iterators(baseline, candidate)) / size if size else 0.0


def align_iterators(baseline: Iterable[NameAndType], candidate: Iterable[NameAndType]) -> dict[str, str]:
    """Maps each matched long name of the candidate to a name of the baseline, by the position that long names encode.

    Names that are not long names of iterators are matched by `align_names`.
    """
    ours, theirs = list(baseline), list(candidate)
    sides = {name for name, _ in ours}, {name for name, _ in theirs}
    if sides[0] == sides[1]:
        return {name: name for name in sides[1]}
    aligned = align_names(*([pair for pair in side if not pair[0].startswith(PREFIX)] for side in (ours, theirs)))
    trees = [_of_long_names({name for name in side if name.startswith(PREFIX)}) for side in sides]
    for pair in pair_iterators(*trees):
        name, counterpart = trees[1][pair.candidate].id, trees[0][pair.baseline].id
        if name in sides[1] and counterpart in sides[0]:
            aligned[name] = counterpart
    return aligned


def _of_long_names(names: set[str]) -> list[Iterator]:
    """An iterator for each long name and for each parent that is missing among the names."""
    known: set[str] = set()
    for name in names:
        while name and name not in known:
            known.add(name)
            name = parent_name(name)
    return [Iterator(name, parent_name(name), name.rpartition("::")[2], name) for name in sorted(known)]


def _partners(ours: Tree, theirs: Tree) -> list[int]:
    """For each of our iterators its counterpart, −1 for none."""
    signatures = ours.signature, theirs.signature
    if signatures[0] == signatures[1]:
        return list(range(len(ours)))
    if signatures[0] > signatures[1]:  # a fixed direction, so that ties are resolved symmetrically
        partner = [-1] * len(ours)
        for j, i in enumerate(_partners(theirs, ours)):
            if i >= 0:
                partner[i] = j
        return partner
    if len(ours) * len(theirs) > MOST_CELLS:
        return _from_the_top(ours, theirs)
    return _Edit(ours, theirs).partners()


def _from_the_top(ours: Tree, theirs: Tree) -> list[int]:
    partner = [-1] * len(ours)
    waiting = [(ours.tops, theirs.tops)]
    while waiting:
        tops, their_tops = waiting.pop()
        of_kind, their_of_kind = _by_kind(ours, tops), _by_kind(theirs, their_tops)
        for kind in of_kind.keys() & their_of_kind.keys():
            alike, their_alike = of_kind[kind], their_of_kind[kind]
            count = min(len(alike), len(their_alike))
            for i, j in zip(_busiest(ours, alike, count), _busiest(theirs, their_alike, count), strict=True):
                partner[i] = j
                waiting.append((ours.children[i], theirs.children[j]))
    return partner


def _by_kind(tree: Tree, places: Iterable[int]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for place in places:
        out.setdefault(transformation(tree.iterators[place].iterator), []).append(place)
    return out


def _busiest(tree: Tree, places: list[int], count: int) -> list[int]:
    """The `count` places with the most calls, in their original order; the first ones among equals."""
    return sorted(sorted(places, key=lambda place: -tree.iterators[place].calls)[:count])


class _Edit:
    """The minimum-cost edit between two trees, computed bottom-up. Row and column −1 (the last) are whole forests."""

    def __init__(self, ours: Tree, theirs: Tree) -> None:
        self.ours, self.theirs = ours, theirs
        self.below = (*ours.children, ours.tops)
        self.below_theirs = (*theirs.children, theirs.tops)
        calls = [[it.calls for it in side.iterators] for side in (ours, theirs)]
        self.unit = 1 + _UNPAIRED_CALLS * (sum(calls[0]) + sum(calls[1]))  # exceeds the total cost of all calls
        self.own, self.own_theirs = ([_ADDED * self.unit + _UNPAIRED_CALLS * n for n in side] for side in calls)
        self.cost, self.cost_theirs = _of_subtrees(self.own, ours), _of_subtrees(self.own_theirs, theirs)
        columns = len(theirs) + 1
        self.tree = [[0] * columns for _ in self.below]
        self.forest = [[0] * columns for _ in self.below]
        self.tree_choice = [[(_MATCH, -1)] * columns for _ in self.below]
        self.forest_choice = [[(_MATCH, -1)] * columns for _ in self.below]
        self._kinds = [transformation(it.iterator) for it in ours.iterators]
        self._their_kinds = [transformation(it.iterator) for it in theirs.iterators]

    def partners(self) -> list[int]:
        """For each of our iterators its counterpart, −1 for none."""
        for i in range(len(self.ours) - 1, -1, -1):
            for j in range(len(self.theirs) - 1, -1, -1):
                self._forest(i, j)
                self._tree(i, j)
        for j in range(len(self.theirs) - 1, -1, -1):
            self._forest(-1, j)
        for i in range(len(self.ours) - 1, -1, -1):
            self._forest(i, -1)
        self._forest(-1, -1)
        return self._read_back()

    def _without_forest(self, i: int, their: bool) -> int:
        costs, below = (self.cost_theirs, self.below_theirs) if their else (self.cost, self.below)
        own = self.own_theirs if their else self.own
        return costs[i] - own[i] if i >= 0 else sum(costs[child] for child in below[-1])

    def _forest(self, i: int, j: int) -> None:
        """Computes the cost of turning the descendants of i into those of j."""
        ours, theirs = self.below[i], self.below_theirs[j]
        if len(ours) == len(theirs) == 1:
            best = min(self.tree[ours[0]][theirs[0]], self.cost[ours[0]] + self.cost_theirs[theirs[0]])
        else:
            best = self._in_order(ours, theirs)[0][0]
        choice = (_MATCH, -1)
        without, without_theirs = self._without_forest(i, False), self._without_forest(j, True)
        for child in ours:
            cost = without + self.forest[child][j] - (self.cost[child] - self.own[child])
            if cost < best:
                best, choice = cost, (_BELOW_OURS, child)
        for child in theirs:
            cost = without_theirs + self.forest[i][child] - (self.cost_theirs[child] - self.own_theirs[child])
            if cost < best:
                best, choice = cost, (_BELOW_THEIRS, child)
        self.forest[i][j], self.forest_choice[i][j] = best, choice

    def _tree(self, i: int, j: int) -> None:
        """Computes the cost of turning the subtree of i into the subtree of j."""
        best, choice = self.forest[i][j] + self._change(i, j), (_MATCH, -1)
        for child in self.below[i]:
            cost = self.cost[i] + self.tree[child][j] - self.cost[child]
            if cost < best:
                best, choice = cost, (_BELOW_OURS, child)
        for child in self.below_theirs[j]:
            cost = self.cost_theirs[j] + self.tree[i][child] - self.cost_theirs[child]
            if cost < best:
                best, choice = cost, (_BELOW_THEIRS, child)
        neither = self.cost[i] + self.cost_theirs[j]
        if neither < best:
            best, choice = neither, (_MATCH, -2)
        self.tree[i][j], self.tree_choice[i][j] = best, choice

    def _change(self, i: int, j: int) -> int:
        if self._kinds[i] != self._their_kinds[j]:
            return _NEVER * self.unit
        mine, other = self.ours.iterators[i], self.theirs.iterators[j]
        cost = 0 if mine.iterator == other.iterator else _VARIANT
        cost += _OTHER_ELEMENT if mine.element != other.element else 0
        cost += _OTHER_INPUT if self.ours.inputs[i] != self.theirs.inputs[j] else 0
        return cost * self.unit + abs(mine.calls - other.calls)

    def _in_order(self, ours: Sequence[int], theirs: Sequence[int]) -> list[list[int]]:
        """The cost of turning each suffix of our siblings into each suffix of theirs."""
        rows = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
        for b in range(len(theirs) - 1, -1, -1):
            rows[-1][b] = rows[-1][b + 1] + self.cost_theirs[theirs[b]]
        for a in range(len(ours) - 1, -1, -1):
            row, after, costs = rows[a], rows[a + 1], self.tree[ours[a]]
            row[-1] = after[-1] + self.cost[ours[a]]
            for b in range(len(theirs) - 1, -1, -1):
                row[b] = min(
                    after[b + 1] + costs[theirs[b]],
                    after[b] + self.cost[ours[a]],
                    row[b + 1] + self.cost_theirs[theirs[b]],
                )
        return rows

    def _read_back(self) -> list[int]:
        partner = [-1] * len(self.ours)
        forests = [(-1, -1)]
        trees: list[tuple[int, int]] = []
        while forests or trees:
            if trees:
                i, j = trees.pop()
                step, child = self.tree_choice[i][j]
                if step == _MATCH and child == -1:
                    partner[i] = j
                    forests.append((i, j))
                elif step == _BELOW_OURS:
                    trees.append((child, j))
                elif step == _BELOW_THEIRS:
                    trees.append((i, child))
                continue
            i, j = forests.pop()
            step, child = self.forest_choice[i][j]
            if step == _BELOW_OURS:
                forests.append((child, j))
            elif step == _BELOW_THEIRS:
                forests.append((i, child))
            else:
                trees += self._pairs_in_order(self.below[i], self.below_theirs[j])
        return partner

    def _pairs_in_order(self, ours: Sequence[int], theirs: Sequence[int]) -> list[tuple[int, int]]:
        """The matched siblings; among equally cheap solutions, the one that pairs the first siblings."""
        rows = self._in_order(ours, theirs)
        pairs: list[tuple[int, int]] = []
        a = b = 0
        while a < len(ours) and b < len(theirs):
            here = rows[a][b]
            if here == rows[a + 1][b + 1] + self.tree[ours[a]][theirs[b]]:
                pairs.append((ours[a], theirs[b]))
                a, b = a + 1, b + 1
            elif here == rows[a + 1][b] + self.cost[ours[a]]:
                a += 1
            else:
                b += 1
        return pairs


def _of_subtrees(own: list[int], tree: Tree) -> list[int]:
    """The total cost of each iterator's subtree."""
    until = [0, *accumulate(own)]
    return [until[last] - until[first] for first, last in enumerate(tree.last)]
