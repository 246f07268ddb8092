"""Finds ops that TensorFlow fused on one side, and the ops that do the same work on the other.

Grappler's remapper and oneDNN replace a convolution, a matrix product or a batch normalization and what follows it by
one op, which has the name of one of them (`dense/Relu` of type `_FusedMatMul` stands for `dense/MatMul`,
`dense/BiasAdd` and `dense/Relu`). By name it would be compared with that one alone. An op belongs to a fused one if

- its type can be part of it, and it has no sure counterpart of its own;
- it starts between the product that the fused op's type names and the op that the fused one is named after, in the
  scope of either. The product is in the innermost scope around the namesake that has one: `Conv2D` and `ReLU` may be
  layers of their own. If the namesake is the product, what follows it is sought in the same way.

The rules are symmetric: swapping the sides yields the same groups.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tfcompare.compare.matching.name_tree import MAX_DEPTH, PathNumbers
from tfcompare.compare.matching.plain_names import plain_type
from tfcompare.compare.matching.tiers import MANUAL, PROBABLE
from tfcompare.schema import SIDES
from tfcompare.tables.op_evidence import Place

_VARIANTS = ("_MklNative", "_Mkl", "_Eager", "_")
"""Prefixes of op types that name another implementation of the same op."""

_PRODUCT = (
    "BatchMatMul|MatMul|DepthwiseConv2dNative|Conv[23]DBackpropFilter|Conv[23]D|FusedBatchNormGrad|FusedBatchNorm"
)
_PLAIN = re.compile(rf"({_PRODUCT})(?:V[23])?")
_FUSED = re.compile(
    rf"(?:PadWith)?Fused({_PRODUCT})(?:V[23])?|(?:PadWith)?({_PRODUCT})WithBias|PadWith({_PRODUCT})"
    r"|(FusedBatchNorm(?:Grad)?)Ex"
)
_JOINED = re.compile(
    "BiasAdd|BiasAddGrad|Add|AddV2|Sub|Mul|Maximum|Minimum|Pad|Square|Pow|Rsqrt|Erf|Erfc|Tanh|Sigmoid|Softplus|Relu6?"
    "|LeakyRelu|Elu|Selu|ReluGrad|FusedBatchNorm(?:V[23])?"
)
"""The types that Grappler's remapper and oneDNN add to a product: biases, activations and their parts, normalization.

https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/grappler/optimizers/remapper.cc
"""
_MADE_WITH = {
    "FusedBatchNorm": re.compile("Relu6?|LeakyRelu|Elu|Tanh|Sigmoid"),
    "FusedBatchNormGrad": re.compile("ReluGrad"),
    "Conv2DBackpropFilter": re.compile("BiasAddGrad"),
    "Conv3DBackpropFilter": re.compile("BiasAddGrad"),
}
"""What makes a fused op of a product that it is named after; for other products, any type in `_JOINED`."""
_IDENTITY = "Identity"
"""What an activation becomes that was fused into the batch normalization before it."""


@dataclass(frozen=True)
class FusedOps:
    """Rows of the two sides, as positions, in the order in which they start; at least one side has several.

    Together, those of a side do the same work as those of the other. `named` are the two that have the same name.
    """

    baseline: tuple[int, ...]
    candidate: tuple[int, ...]
    named: tuple[int, int]


def implemented_type(op_type: str) -> str:
    """The op type without what names an implementation: `MatMul` for `_MklMatMul`."""
    plain = plain_type(op_type)
    return next((plain.removeprefix(prefix) for prefix in _VARIANTS if plain.startswith(prefix)), plain)


def fused_product(op_type: str) -> str:
    """The product in a fused op type: `MatMul` for `_MklNativeFusedMatMul`; empty for other types."""
    found = _FUSED.fullmatch(implemented_type(op_type))
    return next(filter(None, found.groups()), "") if found else ""


def fused_ops(
    pairs: pd.DataFrame,
    sides: tuple[pd.DataFrame, pd.DataFrame],
    places: tuple[Mapping[str, Place], Mapping[str, Place]],
) -> list[FusedOps]:
    """The groups of rows of `op_stats` that are to be compared as one row.

    `pairs` has the columns `baseline` and `candidate` (positions, -1 for none) and `match`; guesses may be overruled.
    `places` are those of `OpEvidence`. Hosts must have the baseline's names on both sides.
    """
    groups = []
    for fused, others in ((0, 1), (1, 0)):
        seeds = _named_after_parts(pairs, sides, fused)
        if seeds:
            free = _Free(pairs, sides, others, places[others])
            for row, namesake in sorted(seeds, key=lambda seed: free.in_order(seed[1])):
                if parts := free.take(fused_product(str(sides[fused]["op_type"].iat[row])), namesake):
                    left = (free.left_behind[part] for part in parts if part in free.left_behind)
                    rows = {others: parts, fused: (row, *left)}
                    named = {others: namesake, fused: row}
                    groups.append(FusedOps(rows[0], rows[1], (named[0], named[1])))
    return _without_overlaps(groups)


def _without_overlaps(groups: list[FusedOps]) -> list[FusedOps]:
    """The groups that share no row with another: what each side fuses in its own way is left apart."""
    ours = Counter(row for group in groups for row in group.baseline)
    theirs = Counter(row for group in groups for row in group.candidate)
    uses = ([*map(ours.get, group.baseline), *map(theirs.get, group.candidate)] for group in groups)
    return [group for group, counts in zip(groups, uses, strict=True) if set(counts) == {1}]


def _named_after_parts(
    pairs: pd.DataFrame, sides: tuple[pd.DataFrame, pd.DataFrame], fused: int
) -> list[tuple[int, int]]:
    """(row of a fused op, row of its namesake on the other side, which is not fused) for a side: 0 or 1."""
    matched = pairs[(pairs["baseline"] >= 0) & (pairs["candidate"] >= 0) & ~pairs["match"].isin([MANUAL, PROBABLE])]
    own, other = (matched[SIDES[k]].to_numpy(np.intp) for k in (fused, 1 - fused))
    types = sides[fused]["op_type"].to_numpy()[own], sides[1 - fused]["op_type"].to_numpy()[other]
    return [
        (int(row), int(namesake))
        for row, namesake, op_type, its_type in zip(own, other, *types, strict=True)
        if fused_product(op_type) and not fused_product(its_type)
    ]


@dataclass(frozen=True)
class _Op:
    row: int
    name: str
    op_type: str
    start: int | None

    @cached_property
    def product(self) -> str:
        """The product that it computes, alone or fused; empty for none."""
        found = _PLAIN.fullmatch(self.op_type)
        return fused_product(self.op_type) or (found[1] if found else "")

    def starts_before(self, other: _Op) -> bool:
        """Whether it does, as far as is known."""
        return self.start is None or other.start is None or self.start <= other.start


class _Free:
    """The ops of one side that have no sure counterpart and may be parts of a fused op.

    `left_behind`: for some of its rows, that of the other side with its name, which does nothing there any more.
    """

    def __init__(
        self, pairs: pd.DataFrame, sides: tuple[pd.DataFrame, pd.DataFrame], side: int, places: Mapping[str, Place]
    ) -> None:
        frame, types_there = sides[side], sides[1 - side]["op_type"].to_numpy()
        self._ops = [
            _Op(row, name, implemented_type(op_type), places[name][0] if name in places else None)
            for row, (name, op_type) in enumerate(zip(frame["op_name"], frame["op_type"], strict=True))
        ]
        self._keys = list(zip(frame["host"], frame["host_or_device"], strict=True))
        self.left_behind: dict[int, int] = {}
        self._below: defaultdict[tuple[object, ...], dict[int, _Op]] = defaultdict(dict)
        self._paths = PathNumbers()
        for row, counterpart, match in zip(pairs[SIDES[side]], pairs[SIDES[1 - side]], pairs["match"], strict=True):
            if row < 0 or match == MANUAL:
                continue
            op = self._ops[row]
            if counterpart >= 0 and match != PROBABLE:
                if types_there[counterpart] != _IDENTITY or op.op_type == _IDENTITY:
                    continue
                self.left_behind[int(row)] = int(counterpart)
            if op.product or _JOINED.fullmatch(op.op_type):
                for scope in self._scopes(op):
                    self._below[*self._keys[row], scope][op.row] = op

    def in_order(self, row: int) -> tuple[int, str]:
        """A sort key: the order in which ops start, then their names."""
        return _order(self._ops[row])

    def take(self, product: str, namesake: int) -> tuple[int, ...]:
        """The rows of all parts of a fused op, which are not free any more; none if its product was not found."""
        named = self._ops[namesake]
        other = self._other_end(named, product)
        if other is None:
            return ()
        first, last = ends = sorted((named, other), key=_order)
        parts = {op.row: op for op in ends}
        for end in ends:
            for op in self._free_below(named, self._scopes(end)[0]):
                if not op.product and first.starts_before(op) and op.starts_before(last):
                    parts[op.row] = op
        for row in parts:
            for scope in self._scopes(self._ops[row]):
                self._below[*self._keys[row], scope].pop(row, None)
        return tuple(op.row for op in sorted(parts.values(), key=_order))

    def _scopes(self, op: _Op) -> list[int]:
        """The scopes that an op is in, innermost first; the last is that of everything."""
        return self._paths.along(op.name.split("/", MAX_DEPTH)[:-1])[::-1]

    def _free_below(self, like: _Op, scope: int) -> Collection[_Op]:
        """The free ops below a scope, on the host and the side of an op."""
        return self._below.get((*self._keys[like.row], scope), {}).values()

    def _other_end(self, named: _Op, product: str) -> _Op | None:
        """The product that starts last before its namesake, or what is nearest to a namesake that is the product.

        It is in the innermost scope around the namesake that has any; None if there are several and the order is not
        known.
        """
        kind = _MADE_WITH.get(product, _JOINED)
        for scope in self._scopes(named):
            free = self._free_below(named, scope)
            if named.product == product:
                found = [op for op in free if not op.product and kind.fullmatch(op.op_type)]
            else:
                found = [op for op in free if op.product == product and op.starts_before(named)]
            if len(found) == 1:
                return found[0]
            if found:
                start = named.start
                apart = [
                    (abs(op.start - start), op.name, op) for op in found if start is not None and op.start is not None
                ]
                return min(apart, key=lambda one: one[:2])[2] if len(apart) == len(found) else None
        return None


def _order(op: _Op) -> tuple[int, str]:
    return op.start or 0, op.name
