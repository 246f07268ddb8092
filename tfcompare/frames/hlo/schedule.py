"""The order in which a GPU runs the instructions of a program, and which of them may have run its kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
_MOST_PLACES = 100  # to look at for what follows an instruction: of a real program there are a few, in loops in loops
_MOST_ALTERNATIVES = 100  # for one kernel, to say which may have run the next: as many equal layers as programs have

Neighbours = Mapping[int, AbstractSet[int]]
"""The rows of the instructions that may run next to each, by its row."""


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
    computations = np.unique(np.append(called, program.entry))
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
    before: dict[int, set[int]] = {row: set() for row in with_kernels}
    for row, following in after.items():
        for one in following:
            before[one].add(row)
    return Schedule(with_kernels, after, before)


class _Order:
    """The instructions of each computation in order, and who calls it."""

    def __init__(self) -> None:
        self._sequences: dict[int, list[int]] = defaultdict(list)
        self._place: dict[int, tuple[int, int]] = {}
        self._opcode: dict[int, str] = {}
        self._called: dict[int, list[int]] = defaultdict(list)
        self._callers: dict[int, list[int]] = defaultdict(list)

    def add(self, row: int, computation: int, opcode: str) -> None:
        self._place[row] = computation, len(self._sequences[computation])
        self._sequences[computation].append(row)
        self._opcode[row] = opcode

    def calls(self, row: int, computation: int) -> None:
        if row in self._place and computation >= 0:
            self._called[row].append(computation)
            self._callers[computation].append(row)

    def after(self, row: int) -> frozenset[int]:
        """The instructions with kernels that may run right after this one; empty if they are too many places away."""
        found: set[int] = set()
        seen, waiting = set(), [self._next(row)]
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > _MOST_PLACES:
                return frozenset()
            computation, at = place
            sequence = self._sequences[computation]
            if at == len(sequence):
                for caller in self._callers[computation]:
                    waiting += self._after_call(caller)
            elif is_container(self._opcode[sequence[at]]):
                waiting += self._into(sequence[at])
            else:
                found.add(sequence[at])
        return frozenset(found)

    def _next(self, row: int) -> tuple[int, int]:
        computation, at = self._place[row]
        return computation, at + 1

    def _into(self, row: int) -> list[tuple[int, int]]:
        """Where to go on at an instruction that runs others."""
        begins = [(computation, 0) for computation in self._called[row]]
        return [*begins, self._next(row)] if self._opcode[row] == _LOOP or not begins else begins

    def _after_call(self, row: int) -> list[tuple[int, int]]:
        """Where to go on after a computation that this instruction called."""
        return self._into(row) if self._opcode[row] == _LOOP else [self._next(row)]


class Candidates(NamedTuple):
    """The instructions that may have run one kernel, and those among them that run another one after it."""

    rows: AbstractSet[int]
    unfinished: AbstractSet[int] = frozenset()


def alternatives(
    schedule: Schedule, kernels: Sequence[Candidates], repeated: AbstractSet[int], begin: int | None, end: int | None
) -> list[AbstractSet[int]]:
    """Which instructions may have run each of some kernels that followed one another; all empty if none fit.

    `repeated` are the instructions that may have run several of the kernels, `begin` and `end` those known to have run
    the kernels before and after.
    """
    options = [kernel.rows for kernel in kernels]
    unfinished = [kernel.unfinished for kernel in kernels]
    forward = _Pass(schedule.after, repeated, begin, [_NONE, *unfinished], [_NONE] * len(kernels))
    backward = _Pass(schedule.before, repeated, end, [_NONE] * len(kernels), unfinished[::-1])
    if begin is None:
        return forward.narrowed(backward.narrowed(options[::-1])[::-1])
    return backward.narrowed(forward.narrowed(options)[::-1])[::-1]


class _Pass(NamedTuple):
    """One way along the kernels, from `known`. At each kernel, one may not go on from the instructions `leaving` to
    another one, nor come from another one to those `arriving`."""

    neighbours: Neighbours
    repeated: AbstractSet[int]
    known: int | None
    leaving: Sequence[AbstractSet[int]]
    arriving: Sequence[AbstractSet[int]]

    def narrowed(self, options: Sequence[AbstractSet[int]]) -> list[AbstractSet[int]]:
        """The options of each kernel that can be reached from those of the one before."""
        out: list[AbstractSet[int]] = []
        last: AbstractSet[int] | None = None if self.known is None else {self.known}
        for possible, leaving, arriving in zip(options, self.leaving, self.arriving, strict=False):
            if last is not None:
                others = set().union(*(self.neighbours[row] for row in last - leaving)) - arriving
                possible = possible & (others | (last & self.repeated))
            out.append(possible)
            last = possible if len(possible) <= _MOST_ALTERNATIVES else None
        return out
