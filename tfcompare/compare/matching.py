"""Which row of the candidate stands beside which row of the baseline.

Tiers are applied in order, each to what the ones before it left unpaired; a row is labelled with the tier that paired
it. `exact` asks for equal keys; `canonical` for equal keys after the renaming that `names.py` finds, or for one node of
the graph that runs as another op type on either side. Steps, and the one row of `run_info`, pair by position. Hosts
pair by name, and those left over by their order where both sides have equally many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.names import Aligner, align_names
from tfcompare.schema import Table

EXACT = "exact"
CANONICAL = "canonical"
POSITION = "position"
"""The `match` of rows that pair by their place, not by a key."""


@dataclass(frozen=True)
class NameKey:
    """The key of a table that holds an op's name, the one that holds its type, and how such names are aligned."""

    name: str
    op_type: str
    align: Aligner = align_names


NAME_KEYS = {"op_stats": NameKey("op_name", "op_type")}
"""Tables that are not named here pair by equal keys, the host aside."""


@dataclass(frozen=True)
class Pairing:
    """Row positions side by side, -1 where a side has no such row, and the tier of each pair (None without one)."""

    baseline: npt.NDArray[np.intp]
    candidate: npt.NDArray[np.intp]
    match: npt.NDArray[np.object_]


Pairer = Callable[[pd.DataFrame, pd.DataFrame, list[str]], pd.DataFrame]


@dataclass(frozen=True)
class Tier:
    """One way to pair rows.

    `pair` is given the unpaired rows of both sides, indexed by their position, and the keys that must be equal. The
    rows have the table's columns, `aligned` (the baseline's name for the op, unlike any name where it has none) and
    `leaf` (the last component of the op's own name). It returns the pairs as columns `baseline` and `candidate`.
    """

    name: str
    pair: Pairer


def pair_hosts(baseline: Iterable[str], candidate: Iterable[str]) -> dict[str, str]:
    """The baseline's host for each of the candidate's hosts that has a counterpart."""
    ours, theirs = set(baseline), set(candidate)
    pairs = {host: host for host in ours & theirs}
    if len(ours) == len(theirs):
        left = zip(sorted(ours - theirs, key=_by_number), sorted(theirs - ours, key=_by_number), strict=True)
        pairs.update({their_host: our_host for our_host, their_host in left})
    return pairs


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
    key = NAME_KEYS.get(table.name)
    if key is None:
        return _in_tiers((Tier(EXACT, _pair_by_keys),), baseline, candidate, list(table.keys))
    baseline, candidate = _with_aligned_names(key, baseline, candidate)
    context = [k for k in table.keys if k not in (key.name, key.op_type)]
    return _in_tiers(_tiers(key), baseline, candidate, context)


def _tiers(key: NameKey) -> tuple[Tier, ...]:
    """The tiers for a table whose rows are named, from the surest to the boldest."""
    return (
        Tier(EXACT, lambda b, c, keys: _pair_by_keys(b, c, [*keys, key.op_type, key.name, "aligned"])),
        Tier(CANONICAL, lambda b, c, keys: _pair_by_keys(b, c, [*keys, key.op_type, "aligned"])),
        Tier(CANONICAL, lambda b, c, keys: _pair_by_keys(b, c, [*keys, "aligned", "leaf"])),
    )


def _in_tiers(tiers: tuple[Tier, ...], baseline: pd.DataFrame, candidate: pd.DataFrame, keys: list[str]) -> Pairing:
    parts: list[pd.DataFrame] = []
    for tier in tiers:
        pairs = tier.pair(baseline, candidate, keys)
        parts.append(pairs.assign(match=tier.name))
        baseline, candidate = _without(baseline, pairs["baseline"]), _without(candidate, pairs["candidate"])
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
    key: NameKey, baseline: pd.DataFrame, candidate: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both sides with the columns `aligned` and `leaf` of `Tier`."""
    counterparts = key.align(
        zip(baseline[key.name], baseline[key.op_type], strict=True),
        zip(candidate[key.name], candidate[key.op_type], strict=True),
    )
    ours = baseline.assign(aligned=baseline[key.name], leaf=_leaf(baseline[key.name]))
    aligned = candidate[key.name].map(lambda name: counterparts.get(name, f"{name} has no counterpart\0"))
    return ours, candidate.assign(aligned=aligned.astype("str"), leaf=_leaf(candidate[key.name]))


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
