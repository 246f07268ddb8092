"""Matches rows of the candidate to rows of the baseline.

Tiers are applied in order, each to the rows that earlier tiers left unmatched. A row is labelled with its tier:

- `exact`: equal keys;
- `canonical`: equal keys after undoing automatic renaming (`names.py`, `kernel_names.py`), or one node of the graph
  that runs as different op types on the two sides;
- `structural`: the same place in the program: a renamed layer with the same ops (`scopes.py`), an op's kernel
  launched with another grid, its memory in another shape, a tf.data iterator below an added one;
- `probable`: a guess (`guesses.py`), or an equal name that shapes, order or numbers make doubtful (`names.py`).

Steps, and the one row of `run_info`, match by position. Hosts match by name; remaining hosts match in order if both
sides have the same number of them. `pipelines.py` and `iterators.py` match tf.data pipelines and iterators,
`instruction_keys.py` matches XLA programs.

Manual choices (`manual.py`) take precedence over all tiers. Rows whose names are manually paired match only each other,
provided that they agree in the keys of `Naming.manual_keys`. Matches between separated names are removed; all other
matches are unaffected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.compare.matching.guesses import by_likeness, by_place, likely_rows
from tfcompare.compare.matching.instruction_keys import with_instruction_keys
from tfcompare.compare.matching.kernel_names import canonical_kernel
from tfcompare.compare.matching.manual import (
    LEVELS,
    ManualChoice,
    counterparts,
    effective,
    parted,
    with_manual_names,
    without_parted,
)
from tfcompare.compare.matching.moved_layers import by_layers_below
from tfcompare.compare.matching.name_tree import Ops, types_of_names
from tfcompare.compare.matching.names import Names, align_ops
from tfcompare.compare.matching.plain_names import plain_type
from tfcompare.compare.matching.tiers import (
    EXACT,
    HLO_TIERS,
    MANUAL,
    MANUAL_KERNELS,
    NAMINGS,
    POSITION,
    PROBABLE,
    Naming,
    Tier,
)
from tfcompare.compare.tf_data.iterator_tree import PREFIX
from tfcompare.compare.tf_data.iterators import align_iterators
from tfcompare.compare.tf_data.pipelines import pair_executions
from tfcompare.frames.grouping import combinations
from tfcompare.schema import SIDES, Table
from tfcompare.tables.frames import codes_of
from tfcompare.tables.op_evidence import OpEvidence
from tfcompare.text import by_number

Ints = npt.NDArray[np.intp]
Evidence = tuple[OpEvidence, OpEvidence]
"""Shapes and positions of the ops of baseline and candidate, which help to identify them beyond their names."""

NO_EVIDENCE: Evidence = (OpEvidence(), OpEvidence())


@dataclass(frozen=True)
class Pairing:
    """Matched row positions (-1 if a side has no such row) and the tier of each match (None if unmatched)."""

    baseline: npt.NDArray[np.intp]
    candidate: npt.NDArray[np.intp]
    match: npt.NDArray[np.object_]


def pair_hosts(baseline: Iterable[str], candidate: Iterable[str]) -> dict[str, str]:
    """Maps each matched host of the candidate to the baseline's host.

    Hosts match by name. Remaining hosts match in the order of their numbers if both sides have the same number of hosts
    or share no name at all.
    """
    ours, theirs = set(baseline), set(candidate)
    pairs = {host: host for host in ours & theirs}
    if len(ours) == len(theirs) or not pairs:
        left = zip(sorted(ours - theirs, key=by_number), sorted(theirs - ours, key=by_number), strict=False)
        pairs.update({their_host: our_host for our_host, their_host in left})
    return pairs


def host_counterparts(baseline: Iterable[str], candidate: Iterable[str]) -> dict[str, str]:
    """Maps each matched host of the baseline to the candidate's host: the inverse of `pair_hosts`."""
    return {ours: theirs for theirs, ours in pair_hosts(baseline, candidate).items()}


def with_hosts_of(baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """The candidate's rows with hosts renamed as in the baseline; an unmatched host keeps its name."""
    hosts = pair_hosts(baseline["host"].unique(), candidate["host"].unique())
    if all(ours == theirs for theirs, ours in hosts.items()):
        return candidate
    return candidate.assign(host=candidate["host"].map(lambda host: hosts.get(host, host)).astype("str"))


def pair_rows(
    table: Table,
    baseline: pd.DataFrame,
    candidate: pd.DataFrame,
    manual_pairs: Sequence[ManualChoice] = (),
    evidence: Evidence = NO_EVIDENCE,
) -> Pairing:
    """Matches the rows of a table's two frames; hosts must have the baseline's names in both.

    `manual_pairs` are the user's manual choices; of contradicting choices, the last one wins. Each row is in the result
    once, except that excluded steps (`included` is False) are left out.
    """
    baseline, candidate = baseline.reset_index(drop=True), candidate.reset_index(drop=True)
    if table.name == "run_info":
        return Pairing(np.array([0]), np.array([0]), np.array([POSITION], dtype=object))
    if table.name in ("steps", "hosts"):
        return _pair_steps(baseline[baseline["included"]], candidate[candidate["included"]])
    if table.name == "tf_data":
        return _with_the_rest([pair_executions(baseline, candidate)], baseline, candidate)
    naming = NAMINGS.get(table.name)
    if naming is not None:
        parts = _pair_named(naming, baseline, candidate, effective(manual_pairs), evidence)
    elif table.name in HLO_TIERS:
        parts = [_in_tiers(HLO_TIERS[table.name], *with_instruction_keys(baseline, candidate))]
    else:
        parts = [_in_tiers((Tier(EXACT, table.keys),), baseline, candidate)]
    return _with_the_rest(parts, baseline, candidate)


def _pair_named(
    naming: Naming, baseline: pd.DataFrame, candidate: pd.DataFrame, choices: Sequence[ManualChoice], evidence: Evidence
) -> list[pd.DataFrame]:
    """Matches rows of a table whose names a framework may change, manual pairs first."""
    ours, theirs = whole = _with_tier_keys(naming, baseline, candidate, _manual_ops(choices), evidence)
    levels = [columns for columns in LEVELS if set(columns) <= set(ours.columns)]
    parts: list[pd.DataFrame] = []
    for level, columns in enumerate(levels):
        if not (pairs := counterparts(choices, len(columns))):
            continue
        own = {name: name for name in pairs.values()}
        named = with_manual_names(ours, columns, own), with_manual_names(theirs, columns, pairs)
        keys = naming.manual_keys if len(columns) == 1 else MANUAL_KERNELS
        found = _in_tiers([Tier(MANUAL, by) for by in keys], *named)
        parts.append(without_parted(found, levels[:level], whole, choices))
        ours, theirs = ours.drop(index=named[0].index), theirs.drop(index=named[1].index)
    found = _in_tiers(naming.tiers, ours, theirs, guesses=whole if naming.guesses else None)
    return [*parts, without_parted(found, levels, whole, choices)]


def _in_tiers(
    tiers: Sequence[Tier],
    baseline: pd.DataFrame,
    candidate: pd.DataFrame,
    *,
    guesses: tuple[pd.DataFrame, pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """The matches of all tiers; with `guesses` (all rows of the two sides), a final tier matches by similarity."""
    codes = {
        key: codes_of(baseline[key], candidate[key]) for key in dict.fromkeys(key for t in tiers for key in t.keys)
    }
    rows = np.arange(len(baseline)), np.arange(len(candidate))  # not matched yet
    of_tiers: list[tuple[Ints, Ints]] = []
    for tier in tiers:
        rest = np.concatenate([rows[0], len(baseline) + rows[1]])
        found = _alone_alike([codes[key][rest] for key in tier.keys], len(rows[0]))
        of_tiers.append((rows[0][found[0]], rows[1][found[1]]))
        rows = np.delete(rows[0], found[0]), np.delete(rows[1], found[1])
        if not (rows[0].size and rows[1].size):
            break
    ours, theirs = (np.concatenate(of_side) for of_side in zip(*of_tiers, strict=True))
    match = np.repeat([tier.name for tier in tiers[: len(of_tiers)]], [len(one) for one, _ in of_tiers])
    labels = {"baseline": baseline.index[ours], "candidate": candidate.index[theirs]}
    pairs = pd.DataFrame(labels | {"match": match.astype(object)})
    if guesses is None:
        return pairs
    left = baseline.iloc[rows[0]], candidate.iloc[rows[1]]
    return pd.concat([pairs, likely_rows(*left, guesses, pairs).assign(match=PROBABLE)])


def _alone_alike(keys: Sequence[Ints], split: int) -> tuple[Ints, Ints]:
    """Pairs of rows with equal keys that no other row of their side has: of the rows before `split` and those from it,
    each counted from 0 and in the order of the first. `keys` holds the codes of all rows for each key."""
    number = combinations(*keys)[1]
    ours, theirs = number[:split], number[split:]
    kinds = number.max(initial=-1) + 1
    is_alone = (np.bincount(ours, minlength=kinds) == 1) & (np.bincount(theirs, minlength=kinds) == 1)
    place = np.zeros(kinds, np.intp)
    place[theirs] = np.arange(len(theirs))
    first = np.flatnonzero(is_alone[ours])
    return first, place[ours[first]]


def _with_the_rest(parts: list[pd.DataFrame], baseline: pd.DataFrame, candidate: pd.DataFrame) -> Pairing:
    """The matches of `parts`, followed by the unmatched rows of each side."""
    ours, theirs = (np.concatenate([part[side].to_numpy(np.intp) for part in parts]) for side in SIDES)
    match = np.concatenate([part["match"].to_numpy(object) for part in parts])
    gone, new = np.setdiff1d(baseline.index, ours), np.setdiff1d(candidate.index, theirs)
    return Pairing(
        np.concatenate([ours, gone, np.full(len(new), -1)]),
        np.concatenate([theirs, np.full(len(gone), -1), new]),
        np.concatenate([match, np.full(len(gone) + len(new), None)]),
    )


def op_counterparts(
    table: str,
    baseline: pd.DataFrame,
    candidate: pd.DataFrame,
    manual_pairs: Sequence[ManualChoice],
    evidence: Evidence = NO_EVIDENCE,
) -> Names:
    """Maps each matched op name of the candidate to the baseline's name, as used to match the rows of `table`.

    The frames hold the table's names and, if `Naming.weight` is set, that column. Manually separated ops are left out.
    """
    found: Names = {}
    for names in _found_names(NAMINGS[table], baseline, candidate, _manual_ops(manual_pairs), evidence):
        found |= names
    apart = parted(manual_pairs, 1)
    return {theirs: ours for theirs, ours in found.items() if ((ours,), (theirs,)) not in apart}


def _manual_ops(choices: Sequence[ManualChoice]) -> Names:
    return {theirs[0]: ours[0] for theirs, ours in counterparts(choices, 1).items()}


def _found_names(
    naming: Naming, baseline: pd.DataFrame, candidate: pd.DataFrame, manual_pairs: Names, evidence: Evidence
) -> list[Names]:
    """Maps names of the candidate to the baseline's: by name or manually, by place in the program, by similarity."""
    there = set(baseline[naming.name].tolist()), set(candidate[naming.name].tolist())
    chosen = {c: b for c, b in manual_pairs.items() if b in there[0] and c in there[1]}
    if naming.weight is None:
        aligned = align_iterators(_named(naming, baseline), _named(naming, candidate))
        return [_beside(manual_pairs, aligned) | chosen]
    of_iterators = ([op for op in _named(naming, s) if op[0].startswith(PREFIX)] for s in (baseline, candidate))
    iterators = _beside(manual_pairs, align_iterators(*of_iterators))
    found = align_ops(*_ops_of_sides(naming, (baseline, candidate), naming.weight, evidence))
    known, doubtful = _beside(manual_pairs, found.sure) | chosen, _beside(manual_pairs, found.doubtful)
    moved, perhaps_moved = (_beside(manual_pairs, names) for names in by_layers_below(found, known | doubtful))
    doubtful |= perhaps_moved
    placed = moved | by_place(*found.sides, known | doubtful | moved)
    guessed = doubtful | by_likeness(*found.sides, known | doubtful | placed)
    same = {name: counterpart for name, counterpart in iterators.items() if name == counterpart}
    return [known | same, placed | iterators, guessed]


def _beside(manual_pairs: Names, found: Names) -> Names:
    """The matches in `found` of names without a manual match."""
    partners = set(manual_pairs.values())
    return {c: b for c, b in found.items() if c not in manual_pairs and b not in partners}


def _with_tier_keys(
    naming: Naming, baseline: pd.DataFrame, candidate: pd.DataFrame, manual_pairs: Names, evidence: Evidence
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both sides with the columns listed in `Tier`; `manual_pairs` maps manually paired names to the baseline's."""
    names = _found_names(naming, baseline, candidate, manual_pairs, evidence)
    ours, theirs = (_with_keys_of_side(side, naming.name) for side in (baseline, candidate))
    own = candidate[naming.name].tolist()
    aligned = {
        column: pd.array([found.get(name, f"{name} has no counterpart\0") for name in own], dtype="str")
        for column, found in zip(("aligned", "placed", "guessed"), names, strict=False)
    }
    return ours.assign(**dict.fromkeys(aligned, baseline[naming.name])), theirs.assign(**aligned)


_NUMBER = re.compile(r"\d{1,18}")
_OF_OP = ["host", "memory_id", "op_name", "region_type", "data_type"]


def _with_keys_of_side(side: pd.DataFrame, name: str) -> pd.DataFrame:
    found = {"leaf": [op.rpartition("/")[2] for op in side[name].tolist()]}
    if "op_type" in side:
        found["plain_type"] = [plain_type(kind) for kind in side["op_type"].tolist()]
    if "kernel_name" in side:
        found["canonical"] = [canonical_kernel(kernel) for kernel in side["kernel_name"].tolist()]
    side = side.assign(**{column: pd.array(cells, dtype="str") for column, cells in found.items()})
    if "shape" in side:
        elements = side["shape"].map(lambda shape: float(math.prod(map(float, _NUMBER.findall(shape)))))
        of_op = side.assign(elements=elements).sort_values(["elements", "shape"], kind="stable").groupby(_OF_OP)
        side = side.assign(nth=of_op.cumcount().reindex(side.index), of=of_op["shape"].transform("size"))
    return side


def _ops_of_sides(
    naming: Naming, sides: tuple[pd.DataFrame, pd.DataFrame], weight: str, evidence: Evidence
) -> tuple[Ops, Ops]:
    """The ops of both sides, with those of other tables; shapes are those of launches where one has no others."""
    have_shapes = all(of_side.shapes for of_side in evidence)
    found = []
    for side, known in zip(sides, evidence, strict=True):
        named = ((name, plain_type(kind)) for name, kind in _named(naming, side) if not name.startswith(PREFIX))
        types = {name: {""} for name in known.names if not name.startswith(PREFIX)} | types_of_names(named)
        sums = side.groupby(naming.name)[weight].sum().astype("float64")
        weights = dict(zip(sums.index.tolist(), sums.tolist(), strict=True))
        shapes = known.shapes if have_shapes else known.launches
        found.append(Ops(types, weights, shapes=shapes, places=known.places))
    return found[0], found[1]


def _named(naming: Naming, side: pd.DataFrame) -> list[tuple[str, str]]:
    """The name and type of the op of each row."""
    types = side[naming.op_type].tolist() if naming.op_type is not None else [""] * len(side)
    return list(zip(side[naming.name].tolist(), types, strict=True))


def pair_devices(baseline: pd.DataFrame, candidate: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Maps the host and device of each matched device of the candidate to the baseline's device.

    Hosts must have the baseline's names in both frames, which have the columns `host` and `device`. Devices of a host
    match by the rule of `pair_hosts`.
    """
    ours, theirs = (side.groupby("host")["device"].unique() for side in (baseline, candidate))
    return {
        (host, device): counterpart
        for host in theirs.index.intersection(ours.index)
        for device, counterpart in pair_hosts(ours[host], theirs[host]).items()
    }


def _pair_steps(baseline: pd.DataFrame, candidate: pd.DataFrame) -> Pairing:
    """Matches steps by position: those of a host, or of each device, by its name in the baseline."""
    keys = ["host"]
    if "device" in baseline:
        keys += ["device"]
        found = pair_devices(baseline, candidate)
        pairs = zip(candidate["host"], candidate["device"], strict=True)
        devices = [found.get((host, device), device) for host, device in pairs]
        candidate = candidate.assign(device=pd.Series(devices, candidate.index, dtype="str"))
    sides = []
    for side in (baseline, candidate):
        rows = side.sort_values([*keys, "start_us", "step"])
        rows = rows[keys].assign(place=rows.groupby(keys).cumcount())
        sides.append(rows.rename_axis("row").reset_index())
    both = sides[0].merge(sides[1], on=[*keys, "place"], how="outer", suffixes=("_baseline", "_candidate"))
    positions = both[["row_baseline", "row_candidate"]].fillna(-1).to_numpy(np.intp)
    match = np.full(len(both), None, dtype=object)
    match[(positions >= 0).all(axis=1)] = POSITION
    return Pairing(positions[:, 0], positions[:, 1], match)
