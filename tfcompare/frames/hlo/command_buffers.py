"""The instructions whose kernels ran in command buffers of XLA, which are graphs of CUDA or HIP.

XLA hands many instructions to the GPU in one launch, and the profiler gives each of their kernels the name of that
command buffer, or none, where other kernels have the name of their instruction. Two things still tell it. A kernel that
XLA generated bears its instruction's name, unless several equal ones share it. Others, such as those of libraries,
copies and memory sets, belong to the one instruction that the program's schedule has between the two such kernels of
the launch around them, if it has just one there that may run them. Of what remains, only the command buffer is known.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from tfcompare.frames.grouping import combinations
from tfcompare.frames.hlo.programs import Programs, instruction_name, programs_of
from tfcompare.frames.planes import HLO_OP, device_kind, device_rows
from tfcompare.hlo.program import Program
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import StringStat

COMMAND_BUFFER = "command buffer"
"""The category, and the type of op, of kernels in a command buffer whose instructions are unknown."""
_UNNAMED = "command_buffer"
"""What XLA's names of command buffers begin with, and the name of one that its kernels do not name."""

_CONTAINERS = frozenset({"call", "while", "conditional", "async-start"})
"""Instructions that run others: these have the kernels."""
_WITHOUT_KERNELS = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "domain"),
        *("opt-barrier", "optimization-barrier", "partition-id", "replica-id", "get-dimension-size"),
        *("copy-done", "async-done", "async-update", "all-reduce-done", "all-gather-done", "collective-permute-done"),
        *("send-done", "recv-done"),
    }
)
_NO_PROGRAM = -1
_FARTHEST = 100  # instructions between two kernels that followed one another: a schedule with more is not what ran
_LEAST_SHARE = 0.01  # less changes no reading of a table
_OF_AMD = ".kd"  # how AMD's profiler ends the names of kernels
_NONE: frozenset[int] = frozenset()
_OTHER_LETTER = re.compile(r"\W")

_of_space: WeakKeyDictionary[XSpace, Instructions] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Instructions:
    """Which instruction each event ran: as recorded, and for those in command buffers as far as it is known.

    `hlo_op`: the names of instructions; of the other events in command buffers, those of the buffers, which are
    `buffers`, too. `rows` are the events in command buffers, `programs` the ids of their programs, −1 where unknown;
    `unattributed` those of which only the buffer is known.
    """

    hlo_op: StringStat
    buffers: frozenset[str] = frozenset()
    rows: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    programs: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    unattributed: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))

    def program_ids(self, space: XSpace, rows: Int32 | Int64) -> Int64:
        """The ids of the programs of these events of `space`; 0, or in command buffers −1, where unknown."""
        out = space.number_of("program_id", rows, 0)
        if len(self.rows):
            at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
            out = np.where(self.rows[at] == rows, self.programs[at], out)
        return out


def instructions_of(space: XSpace) -> Instructions:
    """The instructions that the file's events ran; they are found once, however many tables need them.

    Raises `NotAProfile` for a damaged program.
    """
    if space not in _of_space:
        _of_space[space] = _instructions_of(space)
    return _of_space[space]


def _instructions_of(space: XSpace) -> Instructions:
    recorded = space.strings(HLO_OP)
    if device_kind(space) != "GPU":
        return Instructions(recorded)
    programs, codes = programs_of(space), recorded.spread(len(space.events))
    rows = device_rows(space)
    program = space.number_of("program_id", rows, _NO_PROGRAM)
    is_inside = _are_in_buffers(space, programs, recorded, rows, codes[rows], program)
    rows, program = rows[is_inside], program[is_inside]
    if not len(rows):
        return Instructions(recorded)
    labels = {label: code for code, label in enumerate(recorded.labels)}
    new, of_program = codes[rows].copy(), program.copy()
    is_known = np.zeros(len(rows), np.bool_)
    kernel_names = frozenset(space.metadata_names.tolist())
    readers: dict[int, _Reader] = {}
    found: dict[tuple[int, bytes], tuple[int, list[str]]] = {}
    for positions in _launches(space, rows, program):
        kernels = space.events.metadata[rows[positions]]
        key = int(program[positions[0]]), kernels.tobytes()
        if key not in found:
            found[key] = _names(programs, kernel_names, readers, key[0], space.metadata_names[kernels].tolist())
        of_program[positions], names = found[key]
        for at, name in zip(positions.tolist(), names, strict=True):
            if name:
                new[at], is_known[at] = labels.setdefault(name, len(labels)), True
    new[(new < 0) & (of_program != _NO_PROGRAM)] = labels.setdefault(_UNNAMED, len(labels))
    codes[rows] = new
    owners = np.flatnonzero(codes >= 0).astype(np.int32)
    order, names = np.argsort(rows), list(labels)
    return Instructions(
        StringStat(owners, codes[owners], names),
        frozenset(names[code] for code in np.unique(new[~is_known & (new >= 0)]).tolist()),
        rows[order], of_program[order], rows[~is_known],
    )  # fmt: skip


def _are_in_buffers(
    space: XSpace, programs: Programs, recorded: StringStat, rows: Int32, codes: Int32, program: Int64
) -> Bools:
    """Whether each of `rows` ran in a command buffer: it names one, or it is of a graph and names no instruction of its
    program, or one that only runs others."""
    firsts, which = combinations(codes, program)
    is_of_buffer, may_be = np.zeros(len(firsts), np.bool_), codes[firsts] < 0
    named = np.flatnonzero(~may_be)
    names = [recorded.labels[code] for code in codes[firsts[named]].tolist()]
    may_be[named] = np.isin(program[firsts[named]], programs.ids)
    names_buffer = np.array([instruction_name(name).startswith(_UNNAMED) for name in names], np.bool_)
    is_of_buffer[named] = may_be[named] & names_buffer
    for _, compiled, at, found in programs.find(program[firsts[named]], names):
        is_of_buffer[named[at]] = False
        may_be[named[at]] = compiled.has_opcode(found, _CONTAINERS.__contains__)
    return is_of_buffer[which] | (may_be[which] & space.have("cuda_graph_id", rows))


def _launches(space: XSpace, rows: Int32, program: Int64) -> Iterator[Int64]:
    """The positions in `rows` of the events of each launch of a command buffer, in the order of their start."""
    plane, correlation = space.planes_of(rows), space.number_of("correlation_id", rows, 0)
    order = np.lexsort((space.events.start_ps[rows], program, correlation, plane))
    keys = np.stack([plane, correlation, program])[:, order]
    ends = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    yield from np.split(order, ends)


def _names(
    programs: Programs, recorded: Container[str], readers: dict[int, _Reader], program_id: int, kernels: Sequence[str]
) -> tuple[int, list[str]]:
    """(the id of the program, the names of the instructions) of the kernels of one launch; −1 and empty where unknown.

    Without an id, the program is the one that has the most of the kernels, if only one has.
    """
    is_unknown = program_id == _NO_PROGRAM
    ids = programs.ids if is_unknown else [program_id]
    for candidate in ids:
        if candidate not in readers and (compiled := programs.program(candidate)) is not None:
            readers[candidate] = _Reader(compiled, recorded)
    if is_unknown:
        counts = sorted((readers[i].count(kernels), i) for i in ids)
        (second, _), (most, best) = [(0, 0), (0, 0), *counts][-2:]
        program_id = best if most > second else _NO_PROGRAM
    if program_id not in readers:
        return program_id, [""] * len(kernels)
    return program_id, readers[program_id].names(kernels)


class _Reader:
    """Finds the instructions of one program by kernels; `recorded` are the names of all kernels in the file."""

    def __init__(self, program: Program, recorded: Container[str]) -> None:
        self._program, place = program, program.places
        containers = np.flatnonzero(program.has_opcode(program.every, _CONTAINERS.__contains__))
        computations = np.unique(np.append(program.called.flat(containers)[2], program.entry))
        rows = program.instructions_of(computations[computations >= 0])
        rows = rows[~program.has_opcode(rows, _WITHOUT_KERNELS.__contains__)]
        self._rows = rows[np.lexsort((place[rows], program.computation[rows]))]
        self._at = {row: at for at, row in enumerate(self._rows.tolist())}
        self._containers = frozenset(containers.tolist())
        kernels = [_OTHER_LETTER.sub("_", name) for name in program.names(self._rows).tolist()]
        self._of_kernel: dict[str, int] = {}
        for row, kernel in zip(self._rows.tolist(), kernels, strict=True):
            self._of_kernel[kernel] = -1 if kernel in self._of_kernel else row  # two of one name: it tells neither
        # Equal fusions share the kernel that is named after one of them: those that have none of their own.
        is_fusion = program.has_opcode(self._rows, "fusion".__eq__).tolist()
        self._fusions = frozenset(self._rows[is_fusion].tolist())
        self._sharing: dict[int, set[int]] = {}
        for row, kernel, may_share in zip(self._rows.tolist(), kernels, is_fusion, strict=True):
            if may_share and kernel not in recorded and kernel + _OF_AMD not in recorded:
                self._sharing.setdefault(int(program.shape[row]), set()).add(row)

    def count(self, kernels: Sequence[str]) -> int:
        """How many of these kernels are named after an instruction."""
        return len({kernel.removesuffix(_OF_AMD) for kernel in kernels} & self._of_kernel.keys())

    def names(self, kernels: Sequence[str]) -> list[str]:
        """The instructions of the kernels of one launch, in their order; empty where unknown."""
        named = [self._of_kernel.get(kernel.removesuffix(_OF_AMD), -1) for kernel in kernels]
        found = [row if row >= 0 and self._others(row) is _NONE else -1 for row in named]
        known, certain = [at for at, row in enumerate(found) if row >= 0], frozenset(found)
        for before, after in pairwise(known):
            if after > before + 1:
                between = [row for row in self._between(found[before], found[after]) if row not in certain]
                found[before + 1 : after] = [self._only(row, between) for row in named[before + 1 : after]]
        texts = self._program.names(np.array(found, np.int64)).tolist()
        return [text if row >= 0 else "" for row, text in zip(found, texts, strict=True)]

    def _others(self, row: int) -> Container[int]:
        """The instructions that may run the kernel of this one, too: those that share kernels and have its shape."""
        return self._sharing.get(int(self._program.shape[row]), _NONE) if row in self._fusions else _NONE

    def _between(self, before: int, after: int) -> list[int]:
        """The instructions that the schedule of a computation has between these two; none if they are of different
        ones, or far apart."""
        computation, first, last = self._program.computation, self._at[before] + 1, self._at[after]
        if computation[before] != computation[after] or last - first > _FARTHEST:
            return []
        found: list[int] = self._rows[first:last].tolist()
        return found

    def _only(self, row: int, between: list[int]) -> int:
        """The only one of these instructions that may have run the kernel named after the instruction `row`, or after
        none (−1); −1 if there are several or none, or if it runs others."""
        if row >= 0:
            others = self._others(row)
            between = [one for one in between if one == row or one in others]
        return between[0] if len(between) == 1 and between[0] not in self._containers else -1


def unattributed_kernels(space: XSpace) -> str:
    """A remark if the instructions of kernels in command buffers are unknown that took a noticeable part of the GPUs'
    time; empty if not."""
    ran, duration = instructions_of(space), space.events.duration_ps
    unknown = int(duration[ran.unattributed].sum())
    if not unknown:
        return ""
    share = unknown / int(duration[device_rows(space)].sum())
    if share < _LEAST_SHARE:
        return ""
    return (
        f"kernels that took {100 * share:.2g} % of the GPUs' time ran in command buffers (CUDA graphs) and do not tell "
        "their instruction: they are listed as `command buffer`; record with "
        "`XLA_FLAGS=--xla_gpu_enable_command_buffer=` to see what they are"
    )
