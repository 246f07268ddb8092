"""Which instructions of a program ran the kernels of a launch, by the names of the kernels and by their order."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import pairwise

import numpy as np

from tfcompare.frames.hlo.schedule import Candidates, Rows, alternatives, schedule_of
from tfcompare.frames.ops.kernel_details import COLLECTIVE_KERNEL, LOCAL_KERNEL
from tfcompare.hlo.program import Program

_OF_AMD = ".kd"  # how AMD's profiler ends the names of kernels
_FURTHER = re.compile(r"__\d+$")  # how XLA ends the names of an instruction's second kernel and of those after it
_MEMORY_SET, _MEMORY_COPY = "Memset", "Memcpy"
_COLLECTIVES = ("all-", "reduce-scatter", "collective-", "ragged-all-to-all", "send", "recv")
_OTHER_LETTER = re.compile(r"\W")
_MOST_EQUAL = 1_000  # instructions for one kernel: several for each of a hundred layers


class ProgramKernels:
    """The kernels of one program. `recorded` are the names of all that the file has of it, to be filled in before
    asking for instructions."""

    def __init__(self, program: Program) -> None:
        self.recorded: set[str] = set()
        self._program, self._schedule = program, schedule_of(program)
        rows = np.array(self._schedule.rows, np.int64)
        self._own = dict(zip(rows.tolist(), map(_kernel_of, program.names(rows).tolist()), strict=True))
        self._named: dict[str, set[int]] = {}
        for row, kernel in self._own.items():
            self._named.setdefault(kernel, set()).add(row)
        self._found: dict[str, Candidates] = {}
        self._custom_calls = self._of_opcode("custom-call")
        self._collectives, self._copies = self._of_opcode(*_COLLECTIVES), self._of_opcode("copy")

    def count(self, kernels: Collection[str]) -> int:
        """How many of these kernels bear the name of an instruction."""
        return len(self._named.keys() & kernels)

    def is_named(self, kernel: str) -> bool:
        """Whether this kernel bears the name of an instruction."""
        return self._plain(kernel) in self._named

    def instructions(self, kernels: Sequence[str]) -> list[str]:
        """The names of the instructions that ran the kernels of one launch, in their order; empty where unknown."""
        options = [self._candidates(kernel) for kernel in kernels]
        found = [possible.rows for possible in options]
        anchors = [
            (at, row)
            for at, possible in enumerate(found)
            if (row := _only(possible)) is not None and self.is_named(kernels[at])
        ]
        nothing: list[tuple[int | None, int | None]] = [(None, None)]
        for (begin, first), (end, last) in pairwise([*nothing, *anchors, *nothing]):
            inner = slice(0 if begin is None else begin + 1, end)
            found[inner] = alternatives(self._schedule, options[inner], self._repeated, first, last)
        rows = [-1 if (row := _only(possible)) is None else row for possible in found]
        texts = self._program.names(np.array(rows, np.int64)).tolist()
        return [text if row >= 0 else "" for row, text in zip(rows, texts, strict=True)]

    def _candidates(self, kernel: str) -> Candidates:
        if kernel not in self._found:
            self._found[kernel] = self._with_kernel(kernel)
        return self._found[kernel]

    def _with_kernel(self, kernel: str) -> Candidates:
        """The instructions that may have run a kernel: those it is named after, and equal ones that have none of their
        own; for kernels of other names, those that may use what they belong to."""
        named = self._named.get(self._plain(kernel))
        if named is not None:
            sharing = [self._without_own[self._contents[row]] for row in named]
            return Candidates(named.union(*sharing) if sum(map(len, sharing)) <= _MOST_EQUAL else None)
        if kernel.startswith(_MEMORY_SET):
            return self._that_set
        if kernel.startswith(_MEMORY_COPY):
            return Candidates(self._of_libraries)
        if re.match(COLLECTIVE_KERNEL, kernel) and not re.match(LOCAL_KERNEL, kernel):
            return Candidates(self._collectives)
        return self._of_other_kernels

    @cached_property
    def _that_set(self) -> Candidates:
        """For what sets memory: it is set for the kernel that writes to it next."""
        before_own = (self._custom_calls | self._generated) - self._copies
        return Candidates((self._of_libraries | before_own) - self._copies, before_own)

    @cached_property
    def _of_other_kernels(self) -> Candidates:
        """For kernels whose names tell nothing."""
        return Candidates(self._of_libraries - self._collectives - self._copies)

    def _of_opcode(self, *beginnings: str) -> AbstractSet[int]:
        """The instructions whose opcode begins with one of these texts."""
        rows = np.array(self._schedule.rows, np.int64)
        return frozenset(rows[self._program.has_opcode(rows, lambda opcode: opcode.startswith(beginnings))].tolist())

    def _plain(self, kernel: str) -> str:
        """The name of the first kernel of the instruction that a kernel is named after."""
        return kernel if kernel in self._named else _FURTHER.sub("", kernel)

    @cached_property
    def _generated(self) -> AbstractSet[int]:
        """The instructions of which a kernel bears the name."""
        recorded = set(map(self._plain, self.recorded))
        return frozenset(row for row, kernel in self._own.items() if kernel in recorded)

    @cached_property
    def _of_libraries(self) -> AbstractSet[int]:
        """The instructions that may have run kernels that bear no instruction's name."""
        generated = {self._contents[row] for row in self._generated - self._custom_calls}
        return frozenset().union(*(rows for key, rows in self._without_own.items() if key not in generated))

    @cached_property
    def _repeated(self) -> AbstractSet[int]:
        """The instructions that may have run several kernels."""
        of_several = {self._plain(kernel) for kernel in self.recorded if self._plain(kernel) != kernel}
        found = (self._candidates(kernel).rows for kernel in of_several & self._named.keys())
        return frozenset(self._of_libraries).union(*filter(None, found))

    @cached_property
    def _without_own(self) -> dict[bytes, set[int]]:
        """The instructions of which no kernel bears the name, by what they compute."""
        out: dict[bytes, set[int]] = {key: set() for key in self._contents.values()}
        for row in self._own.keys() - self._generated:
            out[self._contents[row]].add(row)
        return out

    @cached_property
    def _contents(self) -> dict[int, bytes]:
        """What each instruction computes: its opcode and shape, or those of all that it fuses, in any order. Fusions
        whose kernel XLA lets others share are equal in more than that."""
        program, rows = self._program, np.array(self._schedule.rows, np.int64)
        kinds = np.stack([program.opcode, program.shape], axis=1)
        fused = np.where(program.has_opcode(rows, "fusion".__eq__), program.called.at(rows, 0), -1)
        computations = np.unique(fused[fused >= 0])
        inner = (kinds[program.first[at] : program.first[at + 1]] for at in computations.tolist())
        of_computation = dict(
            zip(computations.tolist(), (kind[np.lexsort(kind.T)].tobytes() for kind in inner), strict=True)
        )
        return {
            row: of_computation.get(computation) or kinds[row].tobytes()
            for row, computation in zip(rows.tolist(), fused.tolist(), strict=True)
        }


def is_memory_op(kernel: str) -> bool:
    """Whether this is a memory set or copy, by its name."""
    return kernel.startswith((_MEMORY_SET, _MEMORY_COPY))


def as_of_nvidia(kernel: str) -> str:
    """The name of a kernel without what AMD's profiler adds."""
    return kernel.removesuffix(_OF_AMD)


def _only(rows: Rows) -> int | None:
    """The only one of these; None if there are several, or none."""
    return next(iter(rows)) if rows is not None and len(rows) == 1 else None


def _kernel_of(instruction: str) -> str:
    """The name of the kernel that XLA generates for an instruction."""
    return _OTHER_LETTER.sub("_", instruction)
