"""Instructions that the compiler grouped in another way: what several computed on one side, others do on the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.schema import SIDES

MOST_MEMBERS = 32
"""Of more instructions that hang together, a group says no more than the sums of the program do."""

SourceOps = Mapping[tuple[str, str], frozenset[str]]
"""The framework's ops that an instruction computes, by (program, instruction)."""


@dataclass(frozen=True)
class Regrouped:
    """Instructions of both sides that compute the same ops: `rows` is their index in the diff, `counts` how many each
    side has, `ops` the ops that they have in common, the most frequent first, without wrapping scopes."""

    rows: tuple[int, ...]
    counts: tuple[int, int]
    ops: tuple[str, ...]

    @property
    def is_too_large(self) -> bool:
        """Whether it has more than `MOST_MEMBERS` instructions on a side."""
        return max(self.counts) > MOST_MEMBERS


def source_ops(texts: pd.DataFrame) -> SourceOps:
    """Those of a run, from its `hlo_texts`; instructions whose ops are unknown are left out."""
    known = texts[texts["source_ops"] != ""]
    cells = zip(known["program"], known["hlo_op"], known["source_ops"], strict=True)
    return {(str(program), str(name)): frozenset(ops.split("\n")) for program, name, ops in cells}


def regrouped(rows: pd.DataFrame, baseline: SourceOps, candidate: SourceOps) -> list[Regrouped]:
    """The groups among `rows`, those of `executions.instructions`, the one with most time first.

    An instruction without a counterpart belongs together with instructions of the other side that compute one of its
    ops, whether these have one or not; a group is what hangs together so, if both sides have an instruction in it.
    Instructions of matched programs only. An op is compared without wrapping scopes.
    """
    ours, theirs = (_ops_of(rows, side, ops) for side, ops in zip(SIDES, (baseline, candidate), strict=True))
    is_unmatched = (rows["status"] != MATCHED).to_numpy()
    pairs = list(_edges(ours, theirs, is_unmatched.tolist()))
    if not pairs:
        return []
    at, to = np.array(pairs).T
    graph = coo_array((np.ones(len(at)), (at, to)), shape=(len(rows), len(rows)))
    _, component = connected_components(graph, directed=False)
    members: dict[int, list[int]] = defaultdict(list)
    for position in sorted({*at.tolist(), *to.tolist()}):
        members[int(component[position])].append(position)
    time = rows[[f"execution_time_us_{side}" for side in SIDES]].astype("float64").fillna(0.0).sum(axis=1).to_numpy()
    found = sorted(members.values(), key=lambda of_group: -float(time[of_group].sum()))
    return [_group(rows, of_group, ours, theirs) for of_group in found]


def _ops_of(rows: pd.DataFrame, side: str, ops: SourceOps) -> list[frozenset[str]]:
    """For each row the ops, with their program, that it computes on that side."""
    other = "" if side == SIDES[0] else "_candidate"
    is_there = rows["status"] != (ADDED if side == SIDES[0] else REMOVED)
    is_added = rows["status"] == ADDED
    programs = rows["program"].where(is_added, rows[f"program{other}"])
    names = rows["hlo_op"].where(is_added, rows[f"hlo_op{other}"])
    return [
        frozenset(f"{key}\n{plain_name(op)}" for op in ops.get((str(program), str(name)), ())) if there else frozenset()
        for there, key, program, name in zip(is_there, rows["program_key"], programs, names, strict=True)
    ]


def _edges(
    ours: Sequence[frozenset[str]], theirs: Sequence[frozenset[str]], is_unmatched: Sequence[bool]
) -> Iterable[tuple[int, int]]:
    """Pairs of rows that connect those of both sides which share an op, where one of them has no counterpart: each row
    with one such row of the other side is enough."""
    having: tuple[dict[str, list[int]], dict[str, list[int]]] = defaultdict(list), defaultdict(list)
    for rows_of, side in zip(having, (ours, theirs), strict=True):
        for row, ops in enumerate(side):
            for op in ops:
                rows_of[op].append(row)
    for op in having[0].keys() & having[1].keys():
        for some, others in permutations(rows_of[op] for rows_of in having):
            unmatched = [row for row in some if is_unmatched[row]]
            yield from ((unmatched[0], row) for row in others if unmatched)
            yield from ((row, others[0]) for row in unmatched)


def _group(
    rows: pd.DataFrame, members: list[int], ours: Sequence[frozenset[str]], theirs: Sequence[frozenset[str]]
) -> Regrouped:
    sides = [Counter(op for at in members for op in side[at]) for side in (ours, theirs)]
    common = (sides[0] & sides[1]).most_common()
    counts = [sum((rows["status"].iloc[at] != lacking) for at in members) for lacking in (ADDED, REMOVED)]
    names = tuple(op.partition("\n")[2] for op, _ in common)
    return Regrouped(tuple(rows.index[members]), (counts[0], counts[1]), names)
