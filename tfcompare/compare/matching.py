"""Which row of the candidate stands beside which row of the baseline.

Tiers are applied in order, each to what the ones before it left unpaired; a row is labelled with the tier that paired
it. `exact` asks for equal keys; `canonical` for equal keys after the renaming that `names.py` and `kernel_names.py`
find, or for one node of the graph that runs as another op type on either side; `structural` for one place in the
program: a layer of another name that holds the same ops (`places.py`), an op's kernel launched with another grid, its
memory in another shape, an iterator of tf.data below one that was added; `probable` is a guess (`guesses.py`). Steps,
and the one row of `run_info`, pair by position. Hosts pair by name, and those left over by their order where both sides
have equally many; pipelines and iterators as `pipelines.py` and `iterators.py` have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.counterparts import Ops, by_likeness, by_place
from tfcompare.compare.iterators import align_iterators
from tfcompare.compare.kernel_names import canonical_kernel
from tfcompare.compare.likely_rows import likely_rows
from tfcompare.compare.name_tree import types_of_names
from tfcompare.compare.names import Aligner, align_names
from tfcompare.compare.pipelines import pair_executions
from tfcompare.schema import Table

EXACT = "exact"
CANONICAL = "canonical"
STRUCTURAL = "structural"
PROBABLE = "probable"
POSITION = "position"
"""The `match` of rows that pair by their place, not by a key."""


@dataclass(frozen=True)
class Tier:
    """One way to pair rows: those that agree in `keys`, where just one row a side has them.

    Beside the table's own keys there are `aligned` (the baseline's name for the op, unlike any name where it has none),
    `leaf` (the last component of the op's own name) and `canonical` (the kernel's name as `kernel_names` has it);
    `placed` and `guessed` are like `aligned`, by the contents of scopes and by likeness, for names that are left.
    """

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Naming:
    """How the rows of a table whose names a framework may change are paired.

    `name` is the key that holds an op's name, `op_type` the one that tells apart ops of one name, `align` how such
    names are aligned; `two_sided` are the keys that may differ between paired rows; `tiers` go from the surest to the
    boldest. `weight` is the metric that tells how much lies in an op, where renamed layers are looked for; `guesses` is
    whether single ops are paired by likeness in the end.
    """

    name: str
    op_type: str | None
    two_sided: tuple[str, ...]
    tiers: tuple[Tier, ...]
    align: Aligner = align_names
    weight: str | None = None
    guesses: bool = False


_LAUNCH = ("block_dim", "grid_dim", "registers_per_thread", "shared_memory_bytes")
_MEMORY = ("host", "memory_id", "aligned", "region_type", "data_type")


def _of_renamed_ops(tier: str, op: str) -> list[Tier]:
    """Kernels of renamed ops: of one name and launch, of one name but for its spelling, in another launch."""
    return [
        Tier(tier, ("host", kernel, op, *launch)) for launch in (_LAUNCH, ()) for kernel in ("kernel_name", "canonical")
    ]


def _memory_of(op: str) -> list[tuple[str, ...]]:
    keys = tuple(op if key == "aligned" else key for key in _MEMORY)
    return [(*keys, "shape"), keys]


NAMINGS = {
    "op_stats": Naming(
        "op_name",
        "op_type",
        two_sided=("op_type", "op_name"),
        tiers=(
            Tier(EXACT, ("host", "host_or_device", "op_type", "op_name", "aligned")),
            Tier(CANONICAL, ("host", "host_or_device", "op_type", "aligned")),
            Tier(CANONICAL, ("host", "host_or_device", "aligned", "leaf")),
            Tier(STRUCTURAL, ("host", "host_or_device", "op_type", "placed")),
            Tier(PROBABLE, ("host", "host_or_device", "op_type", "guessed")),
            Tier(PROBABLE, ("host", "host_or_device", "guessed", "leaf")),
        ),
        weight="self_time_us",
        guesses=True,
    ),
    "kernel_stats": Naming(
        "op_name",
        None,
        two_sided=("kernel_name", "op_name", *_LAUNCH),
        tiers=(
            Tier(EXACT, ("host", "kernel_name", "op_name", "aligned", *_LAUNCH)),
            Tier(CANONICAL, ("host", "canonical", "aligned", *_LAUNCH)),
            Tier(STRUCTURAL, ("host", "kernel_name", "aligned")),
            Tier(STRUCTURAL, ("host", "canonical", "aligned")),
            *_of_renamed_ops(STRUCTURAL, "placed"),
            *_of_renamed_ops(PROBABLE, "guessed"),
        ),
        weight="total_duration_us",
    ),
    "memory_peak": Naming(
        "op_name",
        None,
        two_sided=("op_name", "shape"),
        tiers=(
            Tier(EXACT, (*_MEMORY, "op_name", "shape")),
            Tier(CANONICAL, (*_MEMORY, "shape")),
            Tier(STRUCTURAL, _MEMORY),
            *(Tier(STRUCTURAL, keys) for keys in _memory_of("placed")),
            *(Tier(PROBABLE, keys) for keys in _memory_of("guessed")),
        ),
        weight="allocation_bytes",
    ),
    "input_pipeline": Naming(
        "op_name",
        "category",
        two_sided=("op_name", "category"),
        tiers=(
            Tier(EXACT, ("host", "op_name", "category", "aligned")),
            Tier(STRUCTURAL, ("host", "category", "aligned")),
            Tier(STRUCTURAL, ("host", "aligned")),
        ),
        align=align_iterators,
    ),
}
"""Tables that are not named here pair by equal keys."""


@dataclass(frozen=True)
class Pairing:
    """Row positions side by side, -1 where a side has no such row, and the tier of each pair (None without one)."""

    baseline: npt.NDArray[np.intp]
    candidate: npt.NDArray[np.intp]
    match: npt.NDArray[np.object_]


def pair_hosts(baseline: Iterable[str], candidate: Iterable[str]) -> dict[str, str]:
    """The baseline's host for each of the candidate's hosts that has a counterpart.

    By name; hosts left over by the order of their numbers, where both sides have equally many or share no name at all.
    """
    ours, theirs = set(baseline), set(candidate)
    pairs = {host: host for host in ours & theirs}
    if len(ours) == len(theirs) or not pairs:
        left = zip(sorted(ours - theirs, key=_by_number), sorted(theirs - ours, key=_by_number), strict=False)
        pairs.update({their_host: our_host for our_host, their_host in left})
    return pairs


def host_counterparts(baseline: Iterable[str], candidate: Iterable[str]) -> dict[str, str]:
    """The candidate's host for each of the baseline's that has a counterpart: `pair_hosts` the other way round."""
    return {ours: theirs for theirs, ours in pair_hosts(baseline, candidate).items()}


def with_hosts_of(baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """The candidate's rows under the baseline's names for their hosts; a host without counterpart keeps its own."""
    hosts = pair_hosts(baseline["host"].unique(), candidate["host"].unique())
    return candidate.assign(host=candidate["host"].map(lambda host: hosts.get(host, host)).astype("str"))


def pair_rows(table: Table, baseline: pd.DataFrame, candidate: pd.DataFrame) -> Pairing:
    """Pair the rows of a table's two frames, in both of which hosts have the baseline's names.

    Each row is in the result once, but for steps that are set aside (`included` is False), which are in it not at all.
    """
    baseline, candidate = baseline.reset_index(drop=True), candidate.reset_index(drop=True)
    if table.name == "run_info":
        return Pairing(np.array([0]), np.array([0]), np.array([POSITION], dtype=object))
    if table.name == "steps":
        return _pair_steps(baseline[baseline["included"]], candidate[candidate["included"]])
    if table.name == "tf_data":
        return _pair_iterators(baseline, candidate)
    naming = NAMINGS.get(table.name)
    if naming is None:
        return _in_tiers((Tier(EXACT, table.keys),), baseline, candidate)
    return _in_tiers(naming.tiers, *_with_aligned_names(naming, baseline, candidate), guesses=naming.guesses)


def _pair_iterators(baseline: pd.DataFrame, candidate: pd.DataFrame) -> Pairing:
    pairs = pair_executions(baseline, candidate)
    paired = pd.DataFrame({"baseline": pairs.baseline, "candidate": pairs.candidate, "match": pairs.match})
    return _with_the_rest([paired], _without(baseline, paired["baseline"]), _without(candidate, paired["candidate"]))


def _in_tiers(
    tiers: tuple[Tier, ...], baseline: pd.DataFrame, candidate: pd.DataFrame, *, guesses: bool = False
) -> Pairing:
    parts: list[pd.DataFrame] = []
    whole = baseline, candidate
    for tier in tiers:
        pairs = _pair_by_keys(baseline, candidate, list(tier.keys))
        parts.append(pairs.assign(match=tier.name))
        baseline, candidate = _without(baseline, pairs["baseline"]), _without(candidate, pairs["candidate"])
    if guesses:
        pairs = likely_rows(baseline, candidate, whole)
        parts.append(pairs.assign(match=PROBABLE))
        baseline, candidate = _without(baseline, pairs["baseline"]), _without(candidate, pairs["candidate"])
    return _with_the_rest(parts, baseline, candidate)


def _with_the_rest(parts: list[pd.DataFrame], baseline: pd.DataFrame, candidate: pd.DataFrame) -> Pairing:
    """The pairs of these parts, and what they left of either side without one."""
    parts = list(parts)
    parts.append(pd.DataFrame({"baseline": baseline.index, "candidate": -1, "match": None}))
    parts.append(pd.DataFrame({"baseline": -1, "candidate": candidate.index, "match": None}))
    return Pairing(
        np.concatenate([p["baseline"].to_numpy(np.intp) for p in parts]),
        np.concatenate([p["candidate"].to_numpy(np.intp) for p in parts]),
        np.concatenate([p["match"].to_numpy(object) for p in parts]),
    )


def _without(side: pd.DataFrame, paired: pd.Series) -> pd.DataFrame:
    return side.loc[side.index.difference(pd.Index(paired))]


def _pair_by_keys(baseline: pd.DataFrame, candidate: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Pairs of rows that agree in the keys, where just one row a side has them."""
    if baseline.empty or candidate.empty:
        return pd.DataFrame({"baseline": [], "candidate": []}, dtype=np.intp)
    ours, theirs = (
        side[keys].drop_duplicates(keep=False).rename_axis("row").reset_index() for side in (baseline, candidate)
    )
    both = ours.merge(theirs, on=keys, suffixes=("_baseline", "_candidate"))
    return pd.DataFrame({"baseline": both["row_baseline"], "candidate": both["row_candidate"]})


def _with_aligned_names(
    naming: Naming, baseline: pd.DataFrame, candidate: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both sides with the columns that `Tier` names."""
    known = naming.align(_named(naming, baseline), _named(naming, candidate))
    sides = [baseline.assign(aligned=baseline[naming.name]), _aligned(candidate, naming.name, "aligned", known)]
    if naming.weight is not None:
        ours, theirs = (_ops(naming, side, naming.weight) for side in (baseline, candidate))
        for column, find in (("placed", by_place), ("guessed", by_likeness)):
            found = find(ours, theirs, known)
            known = known | found
            sides = [sides[0].assign(**{column: baseline[naming.name]}), _aligned(sides[1], naming.name, column, found)]
    return _described(sides[0], naming.name), _described(sides[1], naming.name)


def _described(side: pd.DataFrame, name: str) -> pd.DataFrame:
    side = side.assign(leaf=_leaf(side[name]))
    if "kernel_name" not in side:
        return side
    return side.assign(canonical=side["kernel_name"].map(canonical_kernel).astype("str"))


def _aligned(candidate: pd.DataFrame, name: str, column: str, counterparts: dict[str, str]) -> pd.DataFrame:
    aligned = candidate[name].map(lambda own: counterparts.get(own, f"{own} has no counterpart\0"))
    return candidate.assign(**{column: aligned.astype("str")})


def _ops(naming: Naming, side: pd.DataFrame, weight: str) -> Ops:
    weights = side.groupby(naming.name)[weight].sum()
    return Ops(types_of_names(_named(naming, side)), dict(weights.astype("float64")))


def _named(naming: Naming, side: pd.DataFrame) -> list[tuple[str, str]]:
    """The name and type of the op of each row."""
    types = side[naming.op_type] if naming.op_type is not None else [""] * len(side)
    return list(zip(side[naming.name], types, strict=True))


def _leaf(names: pd.Series) -> pd.Series:
    return pd.Series([name.rpartition("/")[2] for name in names], index=names.index, dtype="str")


def _pair_steps(baseline: pd.DataFrame, candidate: pd.DataFrame) -> Pairing:
    ours, theirs = (
        side.sort_values(["host", "start_us", "step"])
        .assign(place=lambda rows: rows.groupby("host").cumcount())[["host", "place"]]
        .rename_axis("row")
        .reset_index()
        for side in (baseline, candidate)
    )
    both = ours.merge(theirs, on=["host", "place"], how="outer", suffixes=("_baseline", "_candidate"))
    positions = both[["row_baseline", "row_candidate"]].fillna(-1).to_numpy(np.intp)
    match = np.full(len(both), None, dtype=object)
    match[(positions >= 0).all(axis=1)] = POSITION
    return Pairing(positions[:, 0], positions[:, 1], match)


def _by_number(host: str) -> list[tuple[str, int]]:
    """A sort key by which `worker-10` comes after `worker-2`."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d{0,18})", host)]
