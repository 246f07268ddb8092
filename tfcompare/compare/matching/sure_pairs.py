"""Which matched ops are surely one op of the program, so that a verdict on their times makes sense."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.matching.fused import fused_product, implemented_type
from tfcompare.compare.matching.name_tree import MAX_DEPTH, PathNumbers, family
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.compare.matching.tiers import FUSED, MANUAL, PROBABLE
from tfcompare.frames.ops.op_names import UNKNOWN
from tfcompare.tables.op_evidence import OpEvidence

Shapes = Mapping[str, str]
"""The shapes of the ops of one side by op name."""


def are_sure(rows: pd.DataFrame, evidence: tuple[OpEvidence, OpEvidence]) -> npt.NDArray[np.bool_]:
    """Whether each matched row of a diff of ops or kernels is surely a pair.

    It is not if the match is `probable`, if the op types differ by more than the implementation (unless fused ops were
    found to be the same work), or if the name has a
    numbered part (`dense_2`) whose siblings are not as many on both sides and the ops' shapes do not tell them apart:
    the number may then belong to another layer. Nor is it if only one side ran the op as a fusion of XLA, which may
    do the work of other ops as well. Manual pairs always are. `evidence` is that of all ops of either side.
    """
    names, shapes, fusions = ([getattr(side, of) for side in evidence] for of in ("names", "shapes", "fusions"))
    changed = _Renumbered((names[0], names[1]), (shapes[0], shapes[1]))
    by_name = [
        changed.is_sure(ours, theirs) and (ours in fusions[0]) == (theirs in fusions[1])
        for ours, theirs in zip(rows["op_name"], rows["op_name_candidate"], strict=True)
    ]
    sure = np.array(by_name, np.bool_) & (rows["match"] != PROBABLE).to_numpy(np.bool_)
    if "op_type" in rows:
        pairs = zip(rows["op_type"], rows["op_type_candidate"], strict=True)
        are_one = np.array([_is_one_type(*pair) for pair in pairs], np.bool_)
        sure &= are_one | (rows["match"] == FUSED).to_numpy(np.bool_)
    manual: npt.NDArray[np.bool_] = (rows["match"] == MANUAL).to_numpy(np.bool_)
    return sure | manual


def _is_one_type(baseline: str, candidate: str) -> bool:
    """Whether the types are one op's, perhaps in two implementations; two fused ops of one name have the same parts."""
    if UNKNOWN in (baseline, candidate) or implemented_type(baseline) == implemented_type(candidate):
        return True
    return fused_product(baseline) == fused_product(candidate) != ""


class _Renumbered:
    """The families of numbered siblings that have other numbers of members on the two sides."""

    def __init__(self, names: tuple[Iterable[str], Iterable[str]], shapes: tuple[Shapes, Shapes]) -> None:
        self._paths = PathNumbers()
        self._known: dict[str, list[tuple[int, str, int]]] = {}
        members = [self._members(side) for side in names]
        self._shapes = shapes
        common = members[0].keys() & members[1].keys()
        self._changed = {key for key in common if len(members[0][key]) != len(members[1][key])}
        self._alike = [
            Counter((key, rest, of_side[name]) for name in of_side for key, _, rest in self._parts(name))
            for of_side in shapes
        ]

    def is_sure(self, baseline: str, candidate: str) -> bool:
        """Whether the names, or the shapes of the ops, tell which member of each family they belong to."""
        changed = [(key, rest) for key, _, rest in self._parts(baseline) if key in self._changed]
        ours, theirs = self._shapes[0].get(baseline), self._shapes[1].get(candidate)
        return not changed or (
            ours is not None
            and ours == theirs
            and all(alike[key, rest, ours] == 1 for key, rest in changed for alike in self._alike)
        )

    def _members(self, names: Iterable[str]) -> dict[int, set[str]]:
        """The labels of the members of each family of siblings."""
        found: defaultdict[int, set[str]] = defaultdict(set)
        for name in names:
            for key, label, _ in self._parts(name):
                found[key].add(label)
        return found

    def _parts(self, name: str) -> list[tuple[int, str, int]]:
        """(number of the path with the label's stem, label, number of the stems that follow) of each part of a name."""
        if name not in self._known:
            labels = plain_name(name).split("/", MAX_DEPTH)
            stems = [family(label)[0] for label in labels]
            families = map(self._paths.below, self._paths.along(labels), stems)
            rests = self._paths.along(reversed(stems))[-2::-1]
            self._known[name] = list(zip(families, labels, rests, strict=True))
        return self._known[name]
