"""The order in which a GPU runs the instructions of a program, and which of them may have run its kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tfcompare.hlo.program import Program

_CONTAINERS = frozenset({"call", "while", "conditional", "async-start"})
_LOOP = "while"
_WITHOUT_KERNELS = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "domain"),
        *("opt-barrier", "optimization-barrier", "partition-id", "replica-id", "get-dimension-size"),
        *("copy-done", "async-done", "async-update", "all-reduce-done", "all-gather-done", "collective-permute-done"),
        *("send-done", "recv-done"),
    }
)
_NONE: frozenset[int] = frozenset()
_MOST_PLACES = 32  # to look at for what follows an instruction: a few in loops in loops, and the branches of a switch
_MOST_ALTERNATIVES = 100  # for one kernel, to say which may have run the next: as many equal layers as programs have

Rows = AbstractSet[int] | None
"""The rows of instructions, as alternatives; None if they are too many: it may be any."""
Neighbours = Mapping[int, Rows]
"""The instructions that may run next to each, by its row."""


def is_container(opcode: str) -> bool:
    """Whether instructions of this kind run others, which have the kernels."""
    return opcode in _CONTAINERS


@dataclass(frozen=True)
class Schedule:
    """The order in which a program's instructions with kernels run.

    `rows` are these instructions, in order within their computations; `after` and `before` are those that may run right
    after each, and right before. Any branch of a conditional may run, and a loop any number of times.
    """

    rows: list[int]
    after: Neighbours
    before: Neighbours


def schedule_of(program: Program) -> Schedule:
    """The order in which the program's entry computation runs instructions, and those that it calls.

    Raises `NotAProfile` for a damaged schedule.
    """
    containers = np.flatnonzero(program.has_opcode(program.every, is_container))
    owner, _, called = program.called.flat(containers)
    computations = np.unique(np.append(called, program.entry[0]))
    rows = program.instructions_of(computations[computations >= 0])
    rows = rows[~program.has_opcode(rows, _WITHOUT_KERNELS.__contains__)]
    rows = rows[np.lexsort((program.places[rows], program.computation[rows]))]
    order = _Order()
    for row, computation, opcode in zip(
        rows.tolist(), program.computation[rows].tolist(), program.opcode[rows].tolist(), strict=True
    ):
        order.add(row, computation, program.opcodes[opcode])
    for row, computation in zip(containers[owner].tolist(), called.tolist(), strict=True):
        order.calls(row, computation)
    with_kernels = rows[~program.has_opcode(rows, is_container)].tolist()
    after = {row: order.after(row) for row in with_kernels}
    return Schedule(with_kernels, after, _invert(after))


def _invert(after: Neighbours) -> Neighbours:
    """The instructions that may run right before each."""
    before: dict[int, set[int]] = {row: set() for row in after}
    for row, following in after.items():
        for one in following or _NONE:
            if len(before[one]) <= _MOST_PLACES:
                before[one].add(row)
    if None in after.values():  # what follows these may be anything
        return dict.fromkeys(after)
    return {row: rows if len(rows) <= _MOST_PLACES else None for row, rows in before.items()}


class _Order:
    """The instructions of each computation in order, and who calls it."""

    def __init__(self) -> None:
        self._sequences: dict[int, list[int]] = defaultdict(list)
        self._place: dict[int, tuple[int, int]] = {}
        self._opcode: dict[int, str] = {}
        self._called: dict[int, dict[int, None]] = defaultdict(dict)
        self._callers: dict[int, dict[int, None]] = defaultdict(dict)

    def add(self, row: int, computation: int, opcode: str) -> None:
        self._place[row] = computation, len(self._sequences[computation])
        self._sequences[computation].append(row)
        self._opcode[row] = opcode

    def calls(self, row: int, computation: int) -> None:
        if row in self._place and computation >= 0:
            self._called[row][computation] = None
            self._callers[computation][row] = None

    def after(self, row: int) -> Rows:
        """The instructions with kernels that may run right after this one."""
        found: set[int] = set()
        waiting = [self._place_after(row)]
        seen = set(waiting)
        while waiting:
            computation, at = waiting.pop()
            sequence = self._sequences[computation]
            if at < len(sequence) and not is_container(self._opcode[sequence[at]]):
                found.add(sequence[at])
                continue
            for place in self._out_of(computation) if at == len(sequence) else self._into(sequence[at]):
                if place not in seen:
                    seen.add(place)
                    waiting.append(place)
                    if len(seen) > _MOST_PLACES:
                        return None
        return frozenset(found)

    def _place_after(self, row: int) -> tuple[int, int]:
        computation, at = self._place[row]
        return computation, at + 1

    def _into(self, row: int) -> Iterator[tuple[int, int]]:
        """Where to go on at an instruction that runs others."""
        for computation in self._called[row]:
            yield computation, 0
        if self._opcode[row] == _LOOP or not self._called[row]:
            yield self._place_after(row)

    def _out_of(self, computation: int) -> Iterator[tuple[int, int]]:
        """Where to go on after a computation."""
        for caller in self._callers[computation]:
            if self._opcode[caller] == _LOOP:
                yield from self._into(caller)
            else:
                yield self._place_after(caller)


class Candidates(NamedTuple):
    """The instructions that may have run one kernel, and those among them that run another one right after it."""

    rows: Rows
    unfinished: AbstractSet[int] = frozenset()


def alternatives(
    schedule: Schedule, kernels: Sequence[Candidates], repeated: AbstractSet[int], begin: int | None, end: int | None
) -> list[Rows]:
    """Which instructions may have run each of some kernels that followed one another; all empty if none fit.

    `repeated` are the instructions that may have run several of the kernels, `begin` and `end` those known to have run
    the kernels before and after.
    """
    options = [kernel.rows for kernel in kernels]
    unfinished = [kernel.unfinished for kernel in kernels]
    forward = _Pass(schedule.after, repeated, begin, [_NONE, *unfinished], [_NONE] * len(kernels))
    backward = _Pass(schedule.before, repeated, end, [_NONE] * len(kernels), unfinished[::-1])
    if begin is None:
        return forward.narrow(backward.narrow(options[::-1])[::-1])
    return backward.narrow(forward.narrow(options)[::-1])[::-1]


class _Pass(NamedTuple):
    """One way along the kernels, from `known`. At each kernel, one may go on from the instructions `leaving` only to
    the same one, and come to those `arriving` only from the same one."""

    neighbours: Neighbours
    repeated: AbstractSet[int]
    known: int | None
    leaving: Sequence[AbstractSet[int]]
    arriving: Sequence[AbstractSet[int]]

    def narrow(self, options: Sequence[Rows]) -> list[Rows]:
        """The options of each kernel that can be reached from those of the one before."""
        out: list[Rows] = []
        last: Rows = None if self.known is None else {self.known}
        for possible, leaving, arriving in zip(options, self.leaving, self.arriving, strict=False):
            nearby = [] if last is None else [self.neighbours[row] for row in last - leaving]
            if possible is not None and last is not None and None not in nearby:
                others = set().union(*filter(None, nearby)) - arriving
                possible = possible & others.union(last & self.repeated, last & leaving, last & arriving)
            out.append(possible)
            last = possible if possible is not None and len(possible) <= _MOST_ALTERNATIVES else None
        return out
