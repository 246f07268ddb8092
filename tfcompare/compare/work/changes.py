"""Which sizes and types of arrays changed between two sides, and the share of the change in time of ops with them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.comparability import BATCH_SIZE
from tfcompare.compare.diff import MATCHED, change
from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.matching.tiers import PROBABLE
from tfcompare.compare.work.shapes import arrays, differing_arrays
from tfcompare.schema import DEVICE, HOST, IDLE, SIDES
from tfcompare.tables.op_shapes import sizes_of

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair

FAIR_SHARE = 0.5
"""Of the change in time: changed sizes, and types, are named only if the ops with them account for half of it, as no
other change of the work can account for more then."""
_LEAST_SHARE = 0.1
"""What ops with a size must account for, to be named beside another: less is not worth reading about."""
_MOST_NAMED = 2
"""Sizes: a reader remembers two, and those of most networks follow from their widths and the batch."""
_PADDED_TO = (4, 8, 32)
"""What XLA pads features to a multiple of for the matrix units of GPUs, in its passes for cuDNN and cuBLAS."""
_SIZES = r"\[.*"  # of an array, after its type
_DIGITS = 9
"""Of shares: sums in another order differ by less."""
_SPATIAL = ("width", "height", "depth")
_NAMES = ("batch", "filters", "channels", "sequence", "features", "kernel", *_SPATIAL)
"""Names of dimensions; one that ops tell under several has the first of these: the filters of a convolution are the
channels of the next one."""
CONVOLUTIONS, MATMULS, OPS = "convolutions", "matmuls", "ops"
_KINDS = {
    CONVOLUTIONS: re.compile(r"conv(?!ert)", re.I),
    MATMULS: re.compile(r"matmul|dot_general|einsum|gemm|^dot$", re.I),
}
_KIND_OF_NAME = {"filters": CONVOLUTIONS, "channels": CONVOLUTIONS, "kernel": CONVOLUTIONS, "features": MATMULS}
_PAIR_OF_ARRAYS = ["shape_baseline", "shape_candidate", "dimensions_baseline", "dimensions_candidate"]
_PairOfArrays = tuple[str, str, str, str]

Sizes = tuple[int, int]
"""A size before and after."""


@dataclass(frozen=True)
class ChangedSize:
    """A dimension whose size changed: what it is (`filters`; empty where no op tells), its size on both sides, the kind
    of the ops that have it (`convolutions`, `matmuls` or `ops`), and the share of the change in time of all ops that
    these account for. `position` (from 0) and `shape` say where it is in the op that changed most."""

    name: str
    before: int
    after: int
    kind: str
    share: float
    position: int
    shape: str


@dataclass(frozen=True)
class ChangedType:
    """An element type of arrays that changed, such as `f32` to `bf16`; `kind` and `share` as of `ChangedSize`."""

    before: str
    after: str
    kind: str
    share: float


@dataclass(frozen=True)
class WorkChange:
    """The changed sizes that most of the change in time is in ops of, most of it first, and the changed type."""

    sizes: tuple[ChangedSize, ...] = ()
    type: ChangedType | None = None


def changed_work(pair: Pair) -> WorkChange:
    """What changed in the sizes and types of arrays between both sides; nothing where no op's arrays are known, or
    where other ops account for most of the change in time."""
    return pair.cached("changed work", partial(_changed_work, pair))


def _changed_work(pair: Pair) -> WorkChange:
    if pair.is_single or pair.is_identical:
        return WorkChange()
    diff = pair.diff()
    is_sure = (diff["status"] == MATCHED) & (diff["match"] != PROBABLE)
    differing = differing_arrays(arrays(pair))
    moved = _moved(diff, is_sure)
    differing = differing[differing["row"].isin(moved.index[is_sure[moved.index]])]
    whole = float(moved["us"].sum())
    if differing.empty or whole <= 0:
        return WorkChange()
    groups = differing.groupby(_PAIR_OF_ARRAYS, sort=True)
    distinct = list(groups.size().index)
    ops = pd.DataFrame({"row": differing["row"], "which": groups.ngroup()}).drop_duplicates()
    ops = ops.assign(us=ops["row"].map(moved["us"]), kind=ops["row"].map(moved["kind"]))
    return WorkChange(_sizes(pair, distinct, ops, whole), _type(distinct, ops, whole))


def _moved(diff: pd.DataFrame, is_sure: pd.Series) -> pd.DataFrame:
    """How much the time of each op changed, `us`, and its `kind`, by its row in the diff: on devices where both sides
    have ops there, else on hosts. It is wall time where the steps of both sides tell it."""
    ops = without_idle(diff)
    place = DEVICE if (is_sure & (diff["host_or_device"] == DEVICE) & (diff["op_type"] != IDLE)).any() else HOST
    here = ops[ops["host_or_device"] == place]
    is_known = here[[f"wall_time_us_{side}" for side in SIDES]].notna().any().all()
    metric = "wall_time_us" if is_known else "self_time_us"
    changes = change(*(here[f"{metric}_{side}"] for side in SIDES)).abs()
    kinds = {op_type: kind_of(str(op_type)) for op_type in here["op_type"].unique()}
    return pd.DataFrame({"us": changes, "kind": here["op_type"].map(kinds)})


def kind_of(op_type: str) -> str:
    """`convolutions`, `matmuls` or `ops`: what sentences call ops of that type."""
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(op_type)), OPS)


def _sizes(pair: Pair, distinct: Sequence[_PairOfArrays], ops: pd.DataFrame, whole: float) -> tuple[ChangedSize, ...]:
    """The sizes to name, of the distinct pairs of arrays; `ops` (`row`, `us`, `kind`) say which op has `which` pair."""
    found = [(which, *one) for which, texts in enumerate(distinct) for one in _size_changes(*texts)]
    if not found:
        return ()
    changes = pd.DataFrame(found, columns=["which", "before", "after", "name", "place"])
    changes = changes[~_are_padding(pair, changes)]
    names = _names(pair, changes)
    part_of, number = _parts(names), {sizes: i for i, sizes in enumerate(names)}
    parts = [number[part_of[sizes]] for sizes in _pairs_of(changes)]
    changes = changes.assign(part=parts, own=[number[sizes] for sizes in _pairs_of(changes)])
    every = ops.merge(changes, on="which").sort_values("us", ascending=False, kind="stable")
    once = every.drop_duplicates(["part", "row"])
    sums = (once.groupby("part")["us"].sum() / whole).round(_DIGITS).to_numpy()
    shares = dict(zip([sizes for sizes in names if part_of[sizes] == sizes], sums.tolist(), strict=True))
    chosen: list[Sizes] = []
    for sizes in sorted(shares, key=lambda one: (-shares[one], -max(one), -min(one))):
        is_alike = not chosen or bool(names[sizes]) or not names[chosen[0]]
        if len(chosen) < _MOST_NAMED and shares[sizes] >= _LEAST_SHARE and is_alike:
            chosen.append(sizes)
    with_any = once[once["part"].isin([number[sizes] for sizes in chosen])].drop_duplicates("row")
    if with_any["us"].sum() < FAIR_SHARE * whole:
        return ()
    out = []
    for sizes in chosen:
        own = every[every["own"] == number[sizes]]
        kind = _KIND_OF_NAME.get(names[sizes]) or _most(own, "kind")
        which, place = own[["which", "place"]].iloc[0].tolist()
        out.append(ChangedSize(names[sizes], *sizes, kind, shares[sizes], place, distinct[which][0]))
    return tuple(out)


def _pairs_of(changes: pd.DataFrame) -> list[Sizes]:
    return list(zip(changes["before"].tolist(), changes["after"].tolist(), strict=True))


def _most(ops: pd.DataFrame, by: str) -> str:
    """The kind, say, with most of the change in time."""
    return str(ops.groupby(by)["us"].sum().idxmax())


def _size_changes(before: str, after: str, ours: str, theirs: str) -> Iterator[tuple[int, int, str, int]]:
    """The changed sizes of a pair of arrays with these dimensions: before, after, name, and position in the baseline's.

    An array of as many elements was only transposed or reshaped. In another layout, sizes that one side alone has are
    paired by their order; not if there are more of them on one side, as dimensions were split or joined.
    """
    sizes, others = sizes_of(before), sizes_of(after)
    if math.prod(sizes) == math.prod(others):
        return
    gone, come = Counter(sizes) - Counter(others), Counter(others) - Counter(sizes)
    places = [(i, i) for i, (one, other) in enumerate(zip(sizes, others, strict=False)) if one != other]
    if len(sizes) != len(others) or len(places) != gone.total():  # another layout
        if gone.total() != come.total():
            return
        pairs = zip(sorted(gone.elements()), sorted(come.elements()), strict=True)
        places = [(sizes.index(one), others.index(other)) for one, other in pairs]
    names, other_names = ours.split(","), theirs.split(",")
    is_kernel = "filters" in names and "batch" not in names
    for place, other_place in places:
        name = names[place] if place < len(names) else ""
        other_name = other_names[other_place] if other_place < len(other_names) else ""
        is_told = name == other_name and not name.isdecimal()
        name = "kernel" if is_kernel and name in _SPATIAL else name
        yield sizes[place], others[other_place], name if is_told else "", place


def _names(pair: Pair, changes: pd.DataFrame) -> dict[Sizes, str]:
    """What the dimension of each pair of sizes is called."""
    batches = [(one.baseline, one.candidate) for one in pair.mismatches if one.label == BATCH_SIZE]
    out: dict[Sizes, str] = {}
    for sizes, name in zip(_pairs_of(changes), changes["name"].tolist(), strict=True):
        before, after = sizes
        told = "batch" if (f"{before:,}", f"{after:,}") in batches else name
        known = [one for one in (told, out.get(sizes, "")) if one]
        out[sizes] = min(known, key=_NAMES.index) if known else ""
    return out


def _parts(names: Mapping[Sizes, str]) -> dict[Sizes, Sizes]:
    """For each change of a size, that which explains it: a size without a name that is a multiple of another one, and
    changed by the same factor, has that as a part, as `batch × sequence` has the batch."""
    smallest: dict[Sizes, Sizes] = {}
    for sizes in sorted(names):
        smallest.setdefault(_reduced(sizes), sizes)
    out = {}
    for sizes, name in names.items():
        part = smallest[_reduced(sizes)]
        out[sizes] = part if not name and part[0] > 0 and sizes[0] % part[0] == 0 else sizes
    return out


def _reduced(sizes: Sizes) -> Sizes:
    """The factor by which a size changed, as a fraction."""
    divisor = math.gcd(*sizes) or 1
    return sizes[0] // divisor, sizes[1] // divisor


def _are_padding(pair: Pair, changes: pd.DataFrame) -> pd.Series:
    """Which changes of sizes may be a compiler's padding: the larger is the next multiple of what it pads to, and the
    parameters of the programs are the same on both sides."""
    small, large = changes[["before", "after"]].min(axis=1), changes[["before", "after"]].max(axis=1)
    is_next = pd.Series(False, changes.index)
    for multiple in _PADDED_TO:
        is_next |= large == -(-small // multiple) * multiple
    return is_next & _have_equal_parameters(pair) if is_next.any() else is_next


def _have_equal_parameters(pair: Pair) -> bool:
    counts = []
    for side in pair.sides:
        buffers = side.run.table("hlo_memory", host=side.host)
        counts.append(buffers.loc[buffers["kind"] == "parameter", "shape"].value_counts().to_dict())
    return bool(counts[0]) and counts[0] == counts[1]


def _type(distinct: Sequence[_PairOfArrays], ops: pd.DataFrame, whole: float) -> ChangedType | None:
    types = pd.DataFrame(distinct).iloc[:, :2].replace(_SIZES, "", regex=True).set_axis(["before", "after"], axis=1)
    every = ops.merge(types[types["before"] != types["after"]], left_on="which", right_index=True)
    every = every.drop_duplicates(["row", "before", "after"])
    sums = (every.groupby(["before", "after"])["us"].sum() / whole).round(_DIGITS)
    if sums.empty or sums.max() < FAIR_SHARE:
        return None
    before, after = sums.index[int(sums.argmax())]
    own = every[(every["before"] == before) & (every["after"] == after)]
    return ChangedType(before, after, _most(own, "kind"), float(sums.max()))
