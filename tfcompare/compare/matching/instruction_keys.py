"""Matches compiled XLA programs, and prepares the rows of their instructions for matching.

Programs match by their name without the id behind it. Of several with the same name, those with equal contents match,
and then the rest in the order of their ids, if both sides have as many: their rows are probable matches. Programs whose
names differ match if their contents are equal and occur once on each side.

The contents of a program are the names, categories and costs of its instructions that ran, or its buffers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

import numpy as np
import pandas as pd

from tfcompare.compare.matching.guesses import by_place
from tfcompare.compare.matching.moved_layers import by_layers_below
from tfcompare.compare.matching.name_tree import Ops
from tfcompare.compare.matching.names import align_ops
from tfcompare.compare.matching.plain_names import is_recomputed, plain_name
from tfcompare.frames.grouping import combinations
from tfcompare.hlo.names import plain_instruction, plain_program
from tfcompare.tables.frames import codes_of

Contents = dict[str, frozenset[Hashable]]
"""The contents of each program, in the order of their ids."""
Pairs = list[tuple[str, str]]
"""(program of the baseline, program of the candidate)."""

_Names = dict[str, dict[tuple[str, str], str]]
"""For each of `PROGRAM_KEYS`, the baseline's program by host and program."""

PROGRAM_KEYS = ("named", "like", "guessed")
_ID = re.compile(r"\((\d*)\)$")
_NUMBER = re.compile(r"\.(\d{1,9})(?:\.[a-z_]+)*$")
_FEWEST = 2  # instructions of programs that match by their contents alone


def pair_programs(baseline: pd.DataFrame, candidate: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Maps each matched program of the candidate, (host, program), to the baseline's program.

    The frames are both sides of `hlo_ops`, `op_profile` or `hlo_memory`, with the baseline's names of hosts.
    """
    found = _by_host(baseline, candidate)
    return {(host, other): one for host, ways in found for pairs in ways for one, other in pairs}


def with_instruction_keys(baseline: pd.DataFrame, candidate: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both sides of `hlo_ops`, `op_profile` or `hlo_memory` with the keys of `tiers.HLO_TIERS`.

    Hosts must have the baseline's names in both.
    `named`, `guessed` and `like` hold the baseline's program that matches by name, by order and by contents; a unique
    placeholder for programs without such a match. `stem` is the instruction's name without numbers at its end, `op`
    its op without wrapping scopes, and `op_leaf` the last component of that, which tells recomputed work from what it
    repeats. `origin` is the op under the baseline's name if its layer was renamed. Unknown stems and origins are unique
    placeholders.
    `nth_of_op` is its place among the rows of its program with this origin and category (or of buffers this kind), by
    the last numbers of their names, and how many there are; `nth_of_stem` that among those with this stem: equal layers
    run the same ops.
    """
    names: tuple[_Names, _Names] = {key: {} for key in PROGRAM_KEYS}, {key: {} for key in PROGRAM_KEYS}
    for host, found in _by_host(baseline, candidate):
        for key, pairs in zip(PROGRAM_KEYS, found, strict=True):
            names[0][key].update({(host, one): one for one, _ in pairs})
            names[1][key].update({(host, other): one for one, other in pairs})
    # names of ops that only the candidate has, by those that only the baseline has: their layers were renamed or moved
    ours, theirs = ({plain_name(op) for op in side["op_name"].unique()} - {""} for side in (baseline, candidate))
    aligned = align_ops(*(Ops({name: {""} for name in side}) for side in (ours, theirs)))
    same = {name: name for name in ours & theirs}
    moved, _ = by_layers_below(aligned, same)
    renamed = moved | by_place(*aligned.sides, same | moved)
    return _with_keys(baseline, names[0], "baseline", {}), _with_keys(candidate, names[1], "candidate", renamed)


def _by_host(baseline: pd.DataFrame, candidate: pd.DataFrame) -> Iterator[tuple[str, tuple[Pairs, Pairs, Pairs]]]:
    for host in baseline["host"].unique():
        sides = [side[side["host"] == host] for side in (baseline, candidate)]
        yield host, _pair_programs(*sides)


def _with_keys(side: pd.DataFrame, names: _Names, placeholder: str, renamed: Mapping[str, str]) -> pd.DataFrame:
    firsts, program = combinations(codes_of(side["host"]), codes_of(side["program"]))
    each = list(zip(*(side[name].iloc[firsts].tolist() for name in ("host", "program")), strict=True))
    keys = {}
    for key, found in names.items():
        cells = pd.array([found.get(one, f"{placeholder} {one[1]}\0") for one in each], dtype="str")
        keys[key] = cells.take(program)
    stem, op = _map_unique(side["hlo_op"], plain_instruction), _map_unique(side["op_name"], plain_name)
    leaf = op.str.rsplit("/", n=1).str[-1]
    leaf = leaf.where(~op.map(is_recomputed), "recomputed " + leaf)
    origin = _distinct(_map_unique(op, lambda name: renamed.get(name, name)), placeholder)
    described = side.assign(**keys, stem=_distinct(stem, placeholder), op=op, op_leaf=leaf, origin=origin)
    if "depth" in side:
        return described  # `op_profile` has groups, too
    others = ("category",) if "category" in side else ("memory_space", "output_index", "kind")
    return described.assign(nth_of_op=_nth(described, *others), nth_of_stem=_nth(described, "stem", *others))


def _nth(rows: pd.DataFrame, *others: str) -> pd.Series:
    """The place of each row among those of its op that agree in the columns `others`: `1 of 3`."""
    names = rows["hlo_op"].tolist()
    found = [_NUMBER.search(name) for name in names]
    numbered = [(int(number[1]) if number else -1, name) for number, name in zip(found, names, strict=True)]
    order = np.array(sorted(range(len(names)), key=numbered.__getitem__), np.intp)
    group = combinations(*(codes_of(rows[name]) for name in ("host", "program", "origin", *others)))[1]
    counts = np.bincount(group)
    order = order[np.argsort(group[order], kind="stable")]  # one group after the other
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names)) - np.repeat(np.cumsum(counts) - counts, counts)
    texts = [f"{nth} of {count}" for nth, count in zip((place + 1).tolist(), counts[group].tolist(), strict=True)]
    return pd.Series(texts, rows.index, dtype="str")


def _map_unique(names: pd.Series, function: Callable[[str], str]) -> pd.Series:
    """The result for each name. Names repeat in other programs."""
    codes, unique = pd.factorize(names)
    return pd.Series([function(name) for name in unique], dtype="str").take(codes).set_axis(names.index)


def _distinct(names: pd.Series, placeholder: str) -> pd.Series:
    """The names, with a unique placeholder for each that is empty."""
    found, is_empty = names.copy(), (names == "").to_numpy()
    found[is_empty] = np.array([f"{placeholder} {row}\0" for row in np.flatnonzero(is_empty)], dtype=object)
    return found


def _contents(rows: pd.DataFrame) -> Contents:
    named = rows[rows["hlo_op"] != ""]
    if "executions" in rows:
        each = named[["flops", "bytes_accessed"]].div(named["executions"].where(named["executions"] > 0), axis=0)
        columns = named["hlo_op"], named["category"], *(each[cost].fillna(-1).round() for cost in each)
    else:
        columns = named["hlo_op"], named["output_index"], named["shape"], named["size_bytes"]
    found: dict[str, set[Hashable]] = {program: set() for program in rows["program"].unique()}
    for program, *content in zip(*(column.tolist() for column in (named["program"], *columns)), strict=True):
        found[program].add(tuple(content))
    return {program: frozenset(found[program]) for program in sorted(found, key=_by_id)}


def _pair_programs(baseline: pd.DataFrame, candidate: pd.DataFrame) -> tuple[Pairs, Pairs, Pairs]:
    """The pairs of programs of one host by name, by contents, and by order among programs of the same name."""
    named = _only_ones(*(_group(side["program"].unique(), plain_program) for side in (baseline, candidate)))
    ours = _contents(baseline[~baseline["program"].isin([one for one, _ in named])])
    theirs = _contents(candidate[~candidate["program"].isin([other for _, other in named])])
    guessed: Pairs = []
    groups, others = _group(ours, plain_program), _group(theirs, plain_program)
    for name in groups.keys() & others.keys():
        sure = [(program, program) for program in groups[name] if ours[program] == theirs.get(program)]
        sure += _with_equal_contents(*_unpaired_instructions(groups[name], others[name], sure), ours, theirs)
        left, left_there = _unpaired_instructions(groups[name], others[name], sure)
        named += sure
        guessed += zip(left, left_there, strict=True) if len(left) == len(left_there) else []
    left, left_there = _unpaired_instructions(ours, theirs, named + guessed)
    large = [program for program in left if len(ours[program]) >= _FEWEST]
    return named, _with_equal_contents(large, left_there, ours, theirs), guessed


def _with_equal_contents(group: list[str], others: list[str], ours: Contents, theirs: Contents) -> Pairs:
    """The pairs whose contents are equal, and unlike those of any other program in the groups."""
    return _only_ones(_group(group, ours.__getitem__), _group(others, theirs.__getitem__))


def _only_ones(groups: dict[Hashable, list[str]], others: dict[Hashable, list[str]]) -> Pairs:
    """The pairs of programs that are alone in groups of one key."""
    found = [(group, others[key]) for key, group in groups.items() if key in others]
    return [(group[0], other[0]) for group, other in found if len(group) == len(other) == 1]


def _unpaired_instructions(group: Iterable[str], others: Iterable[str], pairs: Pairs) -> tuple[list[str], list[str]]:
    paired, paired_there = {one for one, _ in pairs}, {other for _, other in pairs}
    return [one for one in group if one not in paired], [other for other in others if other not in paired_there]


def _group(programs: Iterable[str], key: Callable[[str], Hashable]) -> dict[Hashable, list[str]]:
    out: dict[Hashable, list[str]] = defaultdict(list)
    for program in programs:
        out[key(program)].append(program)
    return out


def _by_id(program: str) -> tuple[int, str]:
    found = _ID.search(program)
    return int(found[1] or 0) if found and len(found[1]) < 21 else 0, program
