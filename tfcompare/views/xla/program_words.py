"""What the differences between two texts of a program are, summed up in a few words, as Markdown."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import pandas as pd

from tfcompare.text import as_code, some_of

Pairs = list[tuple[int, int]]
"""Positions of instructions in baseline and candidate, −1 for none, in program order."""
T = TypeVar("T")
Two = tuple[T, T]
"""Of baseline and candidate."""
_ByOpcode = dict[str, list[str]]
"""The names of instructions by their opcode."""

_TYPE, _OPCODE = re.compile(r" = \(*([a-z][a-z\d]*)\["), re.compile(r" ([a-z][a-z\d-]*)\(")
_SHARDING = re.compile(r", sharding=\{.*?\}(?=$|, )")
_DONATED = re.compile(r", (?:input_output_alias|buffer_donor)=")
_CALLED = re.compile(r", calls=%([^,\s]+(?:, %[^,\s]+)*)")
_PARAMETER = "parameter"
_PASSIVE = frozenset({_PARAMETER, "constant", "tuple", "get-tuple-element", "bitcast"})
"""Opcodes that compute nothing: how many there are says nothing of what changed."""
_HEAVY = ("dot", "convolution", "custom-call")
"""Opcodes that most of the work is in: what became of them is said first."""
_FUSION, _MOVES_DATA = "fusion", frozenset({"copy", "transpose"})
_COLLECTIVE = re.compile(r"(?:ragged-)?all-|reduce-scatter|collective-")
_MOST_KINDS = 3
_LEAST_FUSED = 0.05
"""Of the instructions, what moves at least where a program or a setting changed: between captures of one program whose
kernels XLA tuned anew, 1 % of them differ."""
_MOST_NAMED = 2


@dataclass(frozen=True)
class _Side:
    """The instructions of a program: their names, texts and computations."""

    names: list[str]
    texts: list[str]
    computations: list[str]

    @classmethod
    def of(cls, rows: pd.DataFrame) -> _Side:
        return cls(*(list(map(str, rows[name])) for name in ("hlo_op", "expression", "computation")))

    @cached_property
    def opcodes(self) -> list[str]:
        return [found[1] if (found := _OPCODE.search(text)) else "" for text in self.texts]

    @cached_property
    def of_others(self) -> list[bool]:
        """Which instructions are parameters of computations that the main one calls, the last: they are as it is."""
        both = zip(self.opcodes, self.computations, strict=True)
        return [opcode == _PARAMETER and computation != self.computations[-1] for opcode, computation in both]

    @cached_property
    def input_types(self) -> Counter[str]:
        """The element types of the main computation's parameters."""
        both = enumerate(zip(self.opcodes, self.of_others, strict=True))
        return Counter(self.type_of(at) for at, (opcode, other) in both if opcode == _PARAMETER and not other)

    @cached_property
    def counts(self) -> Counter[str]:
        """How many instructions of each opcode there are."""
        return Counter(self.opcodes)

    @cached_property
    def fused(self) -> Counter[str]:
        """How many of each opcode are parts of fusions."""
        texts = (text for text, opcode in zip(self.texts, self.opcodes, strict=True) if opcode == _FUSION)
        called = {name for text in texts if (found := _CALLED.search(text)) for name in found[1].split(", %")}
        within = zip(self.opcodes, self.computations, strict=True)
        return Counter(opcode for opcode, computation in within if computation in called)

    def type_of(self, at: int) -> str:
        """The element type of the result, of a tuple the first."""
        found = _TYPE.search(self.texts[at])
        return found[1] if found else ""

    def shape_of(self, at: int) -> str:
        """The result's types and dimensions."""
        found = _OPCODE.search(self.texts[at])
        return self.texts[at][: found.start()].partition(" = ")[2] if found else self.texts[at]

    def sharding_of(self, at: int) -> str:
        found = _SHARDING.search(self.texts[at])
        return found[0] if found else ""

    def is_donated(self, at: int) -> bool:
        return _DONATED.search(self.texts[at]) is not None


@dataclass(frozen=True)
class Kinds:
    """What the differing instructions are, in a few words each: what is `telling` by itself, the most telling first,
    that some have other `shapes`, and what mostly follows from that or from other inputs: counts of cheap instructions,
    attributes, operands.

    `of_program` is the most telling that the program or its settings must have changed: a compiler chooses anew which
    kernels it calls, and with them a few fusions, each time.
    """

    telling: Sequence[str] = ()
    others: Sequence[str] = ()
    of_program: str = ""
    shapes: str = ""


def kinds_of(
    baseline: pd.DataFrame, candidate: pd.DataFrame, pairs: Pairs, differing: Pairs, recomputed: Two[int] = (0, 0)
) -> Kinds:
    """The kinds of the differing pairs among the `pairs` of instructions of a program; the frames are its rows of
    `hlo_programs`. `recomputed` is how many instructions compute a value again on either side."""
    ours, theirs = _Side.of(baseline), _Side.of(candidate)
    alike = [(at, to) for at, to in differing if at >= 0 <= to and ours.opcodes[at] == theirs.opcodes[to]]
    alike = [(at, to) for at, to in alike if not theirs.of_others[to]]
    of_opcode = Counter(theirs.opcodes[to] for at, to in pairs if at >= 0 <= to and not theirs.of_others[to])
    types: defaultdict[Two[str], _ByOpcode] = defaultdict(dict)
    shapes: _ByOpcode = {}
    sharded, donated, others = 0, [0, 0], []
    for at, to in alike:
        opcode, name = theirs.opcodes[to], theirs.names[to]
        before, after = ours.type_of(at), theirs.type_of(to)
        are_donated = ours.is_donated(at), theirs.is_donated(to)
        is_sharded = ours.sharding_of(at) != theirs.sharding_of(to)
        sharded += is_sharded
        if are_donated[0] != are_donated[1]:
            donated[are_donated[1]] += 1
        is_other_type = bool(before and after) and before != after  # an empty tuple has none
        if is_other_type and opcode in _PASSIVE:
            continue  # they have the type of what they hold, and `_inputs` tells of inputs
        if is_other_type:
            types[before, after].setdefault(opcode, []).append(name)
        elif ours.shape_of(at) != theirs.shape_of(to):
            shapes.setdefault(opcode, []).append(name)
        elif not is_sharded and are_donated[0] == are_donated[1]:
            others.append(name)
    of_work, of_others = _counts(ours.counts, theirs.counts)
    again, fusions = list(_again(recomputed)), dict(_fusions(ours, theirs))
    by_program = [
        *_types(types, of_opcode),
        *_inputs(ours.input_types, theirs.input_types),
        *(again if not all(recomputed) else ()),
        *_divided(sharded, (donated[0], donated[1])),
        *(text for text, count in fusions.items() if count >= _LEAST_FUSED * len(pairs)),
    ]
    telling = list(dict.fromkeys([*by_program, *again, *fusions, *of_work]))
    is_all = len(others) == len(differing) - sum(theirs.of_others[to] for at, to in differing if at >= 0 <= to)
    have = "has" if sum(map(len, shapes.values())) == 1 else "have"
    of_shape = f"{_led_by(shapes, of_opcode)} {have} another shape" if shapes else ""
    return Kinds(telling, [*of_others, *_others(others, is_all=is_all)], next(iter(by_program), ""), of_shape)


def _types(types: Mapping[Two[str], _ByOpcode], of_opcode: Counter[str]) -> Iterator[str]:
    """`` 53 of 60 `dot` and 200 other instructions went from f32 to bf16 ``."""

    def rank(kinds: Two[str]) -> tuple[bool, int, Two[str]]:
        return not any(opcode in _HEAVY for opcode in types[kinds]), -sum(map(len, types[kinds].values())), kinds

    for before, after in sorted(types, key=rank)[:_MOST_KINDS]:
        yield f"{_led_by(types[before, after], of_opcode)} went from {before} to {after}"


def _inputs(ours: Counter[str], theirs: Counter[str]) -> Iterator[str]:
    """`3 of 4 inputs went from f32 to bf16`, where all that changed went from one type to another."""
    gone, come = ours - theirs, theirs - ours
    if len(gone) == len(come) == 1 and gone.total() == come.total():
        (before,), (after,) = gone, come
        if not (before and after):
            return
        changed, every = gone.total(), ours.total()
        of_all = "all" if changed == every else f"{changed:,} of"
        what = "the input" if every == 1 else f"{of_all} {every:,} inputs"
        yield f"{what} went from {before} to {after}"


def _again(recomputed: Two[int]) -> Iterator[str]:
    ours, theirs = recomputed
    if ours == theirs:
        return
    more = abs(theirs - ours)
    what = f"{more:,} instruction{'' if more == 1 else 's'}"
    are = "is" if more == 1 else "are"
    if not ours:
        yield f"{what} {are} computed again"
    elif not theirs:
        yield f"{what} {are} no longer computed again"
    else:
        yield f"{theirs:,} instead of {ours:,} instructions are computed again"


def _divided(sharded: int, donated: Two[int]) -> Iterator[str]:
    if sharded:
        yield f"{sharded:,} instruction{'' if sharded == 1 else 's'} divided among devices in another way"
    for count, end in zip(donated, ("no longer donated", "donated"), strict=True):
        if count:
            yield f"{count:,} input{' is' if count == 1 else 's are'} {end}"


def _fusions(ours: _Side, theirs: _Side) -> Iterator[tuple[str, int]]:
    """`` 24 instructions moved into fusions (`multiply`, `add`) `` and how many: of each opcode, as many as there are
    more in fusions and fewer outside."""
    for before, after, where in ((ours, theirs, "into"), (theirs, ours, "out of")):
        moved = Counter[str]()
        for opcode in after.fused.keys() - _PASSIVE:
            more = after.fused[opcode] - before.fused[opcode]
            fewer = (before.counts[opcode] - before.fused[opcode]) - (after.counts[opcode] - after.fused[opcode])
            moved[opcode] = max(min(more, fewer), 0)
        if count := moved.total():
            named = some_of([as_code(one) for one, _ in _most(+moved)], _MOST_NAMED)
            yield f"{count:,} instruction{'' if count == 1 else 's'} moved {where} fusions ({named})", count


def _counts(ours: Counter[str], theirs: Counter[str]) -> tuple[list[str], list[str]]:
    """More or fewer instructions of an opcode: of those with most of the work, and of others."""
    changed = {one for one in {*ours, *theirs} - _PASSIVE if ours[one] != theirs[one]}

    def sentences(which: set[str]) -> list[str]:
        most_first = sorted(which, key=lambda one: (one not in _HEAVY, -abs(theirs[one] - ours[one]), one))
        return [_count(one, ours[one], theirs[one]) for one in most_first]

    moves = changed & _MOVES_DATA
    telling = {one for one in changed - moves if one in _HEAVY or one == _FUSION or _COLLECTIVE.match(one)}
    found = sentences(telling)[:_MOST_KINDS]
    if moves:
        found.append(" and ".join(sentences(moves)))
    return found, sentences(changed - moves - telling)[:_MOST_KINDS]


def _count(opcode: str, few: int, many: int) -> str:
    if few and many:
        return f"{few:,} {as_code(opcode)} became {many:,}"
    count = few or many
    return f"{count:,} {as_code(opcode)} {'was' if count == 1 else 'were'} {'added' if many else 'removed'}"


def _led_by(names: _ByOpcode, of_opcode: Counter[str]) -> str:
    """`` 12 of 40 `fusion` and 30 other instructions ``, those of the opcode with most of the work first."""
    opcode = min(names, key=lambda one: (one not in _HEAVY, one in _PASSIVE, -len(names[one]), one))
    more = sum(map(len, names.values())) - len(names[opcode])
    others = f" and {more:,} other instruction{'' if more == 1 else 's'}" if more else ""
    return f"{_some(names[opcode], opcode, of_opcode)}{others}"


def _others(names: Sequence[str], *, is_all: bool) -> Iterator[str]:
    if is_all and len(names) > _MOST_NAMED:
        yield "all in attributes or operands"
    elif names:
        what = f"{len(names):,} instructions" if len(names) > _MOST_NAMED else " and ".join(map(as_code, names))
        yield f"{what} with other attributes or operands"


def _some(names: Sequence[str], opcode: str, of_opcode: Counter[str]) -> str:
    """The names of a few instructions, or how many of their opcode they are."""
    if len(names) <= _MOST_NAMED:
        return " and ".join(map(as_code, names))
    whole = of_opcode[opcode]
    return f"{'all' if len(names) == whole else f'{len(names):,} of'} {whole:,} {as_code(opcode)}"


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
