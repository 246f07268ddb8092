"""Instructions that the compiler fused otherwise, as groups whose sums can be compared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.schema import SIDES
from tfcompare.text import as_code, as_markdown
from tfcompare.units import format_delta, format_percent, format_ratio, format_time_us, ratio_of
from tfcompare.views.blocks import Block, Details, Facts, Finding, Opens, Section, Text
from tfcompare.views.view import by_role

MOST_GROUPS = 10
_TIME = "execution_time_us"
_HELP = (
    "Where the compiler fused differently, instructions have no counterpart, though the same ops are computed on both "
    "sides. Each row sums the instructions of both sides that compute ops in common. Select a row for its instructions."
)
MOST_MEMBERS = 32
"""Of more instructions that hang together, a group says no more than the sums of the program do."""

SourceOps = Mapping[tuple[str, str], frozenset[str]]
"""The framework's ops that an instruction computes, by (program, instruction)."""


def section(pair: Pair, program: str, rows: pd.DataFrame) -> Iterator[Section]:
    """The groups of the program with these instructions, if both sides have some without a counterpart."""
    if (
        not (pair.is_single or pair.are_unrelated)
        and (rows["status"] != MATCHED).any()
        and len(rows["status"].unique()) > 1
    ):
        yield Section("Regrouped instructions", partial(_blocks, pair, program, rows), True, help=_HELP)


def _blocks(pair: Pair, program: str, rows: pd.DataFrame) -> Iterator[Block]:
    try:
        found = groups(pair, program, rows)
    except TfcompareError as error:  # the profile is not there any more
        yield Text(as_markdown(error), "quiet")
        return
    small = [one for one in found if not one.is_too_large]
    every = _time(rows)
    matched = (rows["status"] == MATCHED).to_numpy()
    grouped = rows.index.isin([row for one in small for row in one.rows])
    shares = [float(every[which].sum() / (every.sum() or 1.0)) for which in (matched, matched | grouped)]
    if not small:
        text = f"{format_percent(shares[0])} of the time is in instructions with a counterpart; {_why_none(found)}."
        yield Text(text, "quiet")
        return
    cells, findings = [], []
    for one in small[:MOST_GROUPS]:
        here, label = rows.loc[list(one.rows)], _label(one)
        ours, theirs = (float(here[name].astype("float64").sum()) for name in by_role(_TIME, SIDES))
        times = map(format_time_us, (ours, theirs))
        cells.append([label, format_delta(theirs - ours, "µs"), *times, format_ratio(ratio_of(ours, theirs))])
        findings.append(Finding(_id(rows, one), label, "µs", ours, theirs, more="xla"))
    more = len(small) - len(cells)
    note = (
        f"Time in instructions with a counterpart: {format_percent(shares[0])}, with these groups "
        f"{format_percent(shares[1])}.{f' {more:,} more groups.' if more else ''}"
    )
    by_id = {_id(rows, one): one for one in small}
    header = ["Instructions, time per execution", "Change", *pair.headings, "Ratio"]
    opens = Opens(lambda chosen: _details(pair, rows, by_id.get(chosen)))
    yield Facts(header, cells, (1, 2, 3, 4), (), (2, 3), note=note, findings=findings, opens=opens, address="group_of")


def groups(pair: Pair, program: str, rows: pd.DataFrame) -> Sequence[Regrouped]:
    """The groups of a program, those of the most time first. Raises `TfcompareError` if a profile is gone."""

    def make() -> list[Regrouped]:
        ours, theirs = map(source_ops, pair.tables("hlo_texts"))
        return regrouped(rows, ours, theirs)

    return pair.cached(("regrouped", program), make)


def _time(rows: pd.DataFrame) -> pd.Series:
    return rows[by_role(_TIME, SIDES)].astype("float64").fillna(0.0).sum(axis=1)


def _label(one: Regrouped) -> str:
    """`3 → 1: mlp/gelu and 2 more ops`."""
    more = len(one.ops) - 1
    others = f" and {more:,} more {'op' if more == 1 else 'ops'}" if more > 0 else ""
    return f"{one.counts[0]:,} → {one.counts[1]:,}: {one.ops[0] if one.ops else 'unknown'}{others}"


def _why_none(found: Sequence[Regrouped]) -> str:
    """Why no group is shown, as a clause."""
    if not found:
        return "the others compute no op that instructions of the other side do, as far as the programs tell"
    ours, theirs = found[0].counts
    return (
        f"too many of the others compute ops in common to be shown as one group ({ours:,} → {theirs:,}), so only the "
        "sums by category compare them"
    )


def _id(rows: pd.DataFrame, one: Regrouped) -> str:
    """By one of its instructions, whose side, program and name are the same in every comparison of these runs."""
    first = rows.loc[one.rows[0]]
    side = SIDES[1] if first["status"] == ADDED else SIDES[0]
    return f"group:{side}:{first['program']}:{first['hlo_op']}"


def _details(pair: Pair, rows: pd.DataFrame, one: Regrouped | None) -> Details | None:
    return None if one is None else Details(_label(one), partial(_members, pair, rows.loc[list(one.rows)], one))


def _members(pair: Pair, rows: pd.DataFrame, one: Regrouped) -> Iterator[Block]:
    """The instructions of a group on both sides, those of the most time first."""
    longest = rows.loc[_time(rows).sort_values(ascending=False, kind="stable").index]
    names = longest["hlo_op_candidate"].where(longest["status"] == MATCHED, "").fillna("")
    cells = []
    for name, row in zip(names, longest.to_dict("records"), strict=True):
        label = f"{row['hlo_op']} → {name}" if name not in ("", row["hlo_op"]) else str(row["hlo_op"])
        cells.append([label, *(format_time_us(row[column]) for column in by_role(_TIME)), str(row["status"])])
    yield Facts(["Instruction, time per execution", *pair.headings, "Status"], cells, (1, 2))
    if one.ops:
        yield Text(f"In common: {', '.join(map(as_code, one.ops[:MOST_GROUPS]))}.", "quiet")


@dataclass(frozen=True)
class Regrouped:
    """Instructions of both sides that compute the same ops: `rows` is their index in the diff, `counts` how many each
    side has, `ops` the ops that they have in common, without wrapping scopes, the most frequent first, then by name."""

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
    time = _time(rows).to_numpy()
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
    """Pairs of rows of both sides that share an op, where one has no counterpart: as many as connect all of them."""
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
    common = sorted((sides[0] & sides[1]).items(), key=lambda op_count: (-op_count[1], op_count[0]))
    counts = [sum((rows["status"].iloc[at] != lacking) for at in members) for lacking in (ADDED, REMOVED)]
    names = tuple(op.partition("\n")[2] for op, _ in common)
    return Regrouped(tuple(rows.index[members]), (counts[0], counts[1]), names)
