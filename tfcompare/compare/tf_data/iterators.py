"""Which iterator of one tf.data pipeline is which of another: by their place in the graph.

The pairs are those of the cheapest edit that turns one tree into the other, where an iterator may be added or removed
anywhere, in the middle of a chain too, and may become a variant of itself (`Map` a `ParallelMapV2`) but never another
transformation. What lies in different branches of one tree stays in different branches of the other (the constrained
edit distance of Zhang, 1996), so a branch is added or removed as a whole. Siblings keep their order.

Of several such edits the one counts whose pairs are alike: in what they make, then in which input of a Zip they are,
then in their calls. So of the readers that a FlatMap makes, one for each file, the one that read most has a counterpart
before one that was only asked for its end.

The rules know no direction: with the sides swapped, the pairs are the same.
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
"""The largest product of the sizes of two trees that is worth the cheapest edit (about a second). Larger trees are
walked from the top, siblings paired in order by what they do, the least called left over, and nothing is paired across
an added or removed one."""

_ADDED = 1_000_000
_VARIANT = 300_000
_OTHER_ELEMENT = 1_000
_OTHER_INPUT = 1
_NEVER = 10**15

_UNPAIRED_CALLS = 2
"""A call of an iterator without a counterpart counts more than one that a counterpart has too many, so that the busiest
one finds its counterpart also where the other side's batches are smaller than any share of it."""

_MATCH, _BELOW_OURS, _BELOW_THEIRS = 0, 1, 2


@dataclass(frozen=True)
class Pair:
    """Two iterators by their places among those given, and the tier: `exact` where type and all above are the same."""

    baseline: int
    candidate: int
    tier: str


def pair_iterators(baseline: Sequence[Iterator], candidate: Sequence[Iterator]) -> list[Pair]:
    """The pairs among the iterators of two pipelines, in the order of the baseline's tree. Ids are unique on a side."""
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
        pairs.append(Pair(ours.place[i], theirs.place[j], EXACT if exact[i] else STRUCTURAL))
    return pairs


def likeness(baseline: Sequence[Iterator], candidate: Sequence[Iterator]) -> float:
    """The share of two pipelines' iterators that have a counterpart, from 0 to 1."""
    size = len(baseline) + len(candidate)
    return 2 * len(pair_iterators(baseline, candidate)) / size if size else 0.0


def align_iterators(baseline: Iterable[NameAndType], candidate: Iterable[NameAndType]) -> dict[str, str]:
    """The baseline's name for each name of the candidate that has a counterpart, by the place that long names tell.

    As `align_names`, which pairs the names that are no long names of iterators.
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
    """An iterator for each long name and for those above that are not named."""
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
    if signatures[0] > signatures[1]:  # one direction for both, so that a draw ends the same way
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
    """So many of the places, in their order: those with the most calls, the first of as many."""
    return sorted(sorted(places, key=lambda place: -tree.iterators[place].calls)[:count])


class _Edit:
    """The cheapest edit between two trees, from the leaves up. Row and column −1 (the last) are the whole forests."""

    def __init__(self, ours: Tree, theirs: Tree) -> None:
        self.ours, self.theirs = ours, theirs
        self.below = (*ours.children, ours.tops)
        self.below_theirs = (*theirs.children, theirs.tops)
        calls = [[it.calls for it in side.iterators] for side in (ours, theirs)]
        self.unit = 1 + _UNPAIRED_CALLS * (sum(calls[0]) + sum(calls[1]))  # what calls come to is less than one of them
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

    def _without_tree(self, i: int, their: bool) -> int:
        return (self.cost_theirs if their else self.cost)[i]

    def _without_forest(self, i: int, their: bool) -> int:
        costs, below = (self.cost_theirs, self.below_theirs) if their else (self.cost, self.below)
        own = self.own_theirs if their else self.own
        return costs[i] - own[i] if i >= 0 else sum(costs[child] for child in below[-1])

    def _forest(self, i: int, j: int) -> None:
        """What it costs to turn what is below i into what is below j."""
        best, choice = self._in_order_cost(self.below[i], self.below_theirs[j]), (_MATCH, -1)
        without, without_theirs = self._without_forest(i, False), self._without_forest(j, True)
        for child in self.below[i]:
            cost = without + self.forest[child][j] - (self.cost[child] - self.own[child])
            if cost < best:
                best, choice = cost, (_BELOW_OURS, child)
        for child in self.below_theirs[j]:
            cost = without_theirs + self.forest[i][child] - (self.cost_theirs[child] - self.own_theirs[child])
            if cost < best:
                best, choice = cost, (_BELOW_THEIRS, child)
        self.forest[i][j], self.forest_choice[i][j] = best, choice

    def _tree(self, i: int, j: int) -> None:
        """What it costs to turn i and all below it into j and all below it."""
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

    def _in_order_cost(self, ours: Sequence[int], theirs: Sequence[int]) -> int:
        if len(ours) == 1 and len(theirs) == 1:
            return min(self.tree[ours[0]][theirs[0]], self.cost[ours[0]] + self.cost_theirs[theirs[0]])
        return self._in_order(ours, theirs)[0][0]

    def _in_order(self, ours: Sequence[int], theirs: Sequence[int]) -> list[list[int]]:
        """What it costs to turn the last of our siblings, from each on, into the last of theirs, from each on."""
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
        """The siblings that stand beside each other; of equally cheap ways the one that pairs the first ones."""
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
    """For each iterator the sum of what it and all below it cost."""
    until = [0, *accumulate(own)]
    return [until[last] - until[first] for first, last in enumerate(tree.last)]
