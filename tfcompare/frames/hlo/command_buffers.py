"""Kernels of command buffers (CUDA graphs), attributed to instructions by name and order.

XLA hands many instructions to the GPU in one launch, and the profiler gives each of their kernels the name of that
command buffer, or none, where other kernels have the name of their instruction. Two things still tell it. A kernel that
XLA generated bears the name of its instruction, or of an equal fusion whose kernel it shares. And kernels run in the
order of the program's schedule, so that those of libraries, copies and memory sets, and shared ones, often fit only one
instruction between those around them. Of what remains, only the command buffer is known.

Newer files number the nodes of a graph, in the order in which XLA added them. That is the schedule's where kernels ran
at the same time, or in turn, and a node is of one instruction in all launches of its graph.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from tfcompare.frames.grouping import combinations, largest, smallest
from tfcompare.frames.hlo.programs import Programs, instruction_name, programs_of
from tfcompare.frames.hlo.schedule import Candidates, Rows, alternatives, is_container, schedule_of
from tfcompare.frames.ops.kernel_details import COLLECTIVE_KERNEL, LOCAL_KERNEL
from tfcompare.frames.planes import HLO_OP, device_kind, device_rows
from tfcompare.hlo.program import Program
from tfcompare.schema.arrays import Bools, Int32, Int64, Strings
from tfcompare.units import format_percent
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import StringStat, once_per_space

COMMAND_BUFFER = "command buffer"
"""The category, and the type of op, of kernels in a command buffer whose instructions are unknown."""
_UNNAMED = "command_buffer"
"""What XLA's names of command buffers begin with, and the name of one that its kernels do not name."""

_NO_PROGRAM = -1
Launch = tuple[int, tuple[str, ...]]
"""The id of the program, and the names of the kernels."""
_LEAST_SHARE = 0.01  # less changes no reading of a table
_PROGRAM_ID, _GRAPH, _NODE = "program_id", "cuda_graph_id", "cuda_graph_node_id"

_OF_AMD = ".kd"  # how AMD's profiler ends the names of kernels
_FURTHER = re.compile(r"__\d+$")  # how XLA ends the names of an instruction's second kernel and of those after it
_MEMORY_SET, _MEMORY_COPY = "Memset", "Memcpy"
_COLLECTIVES = ("all-", "reduce-scatter", "collective-", "ragged-all-to-all", "send", "recv")
_OTHER_LETTER = re.compile(r"\W")
_MOST_EQUAL = 1_000  # instructions for one kernel: several for each of a hundred layers


@dataclass(frozen=True, eq=False)
class Instructions:
    """Which instruction each event ran: as recorded, and for those in command buffers as far as it is known.

    `of_event` has the number of the instruction of each event, −1 for none; `program_ids` and `hlo_ops` are the
    program's id (0, or in command buffers −1, where unknown) and the name of each of these. Of the other events in
    command buffers that is the name of the buffer, one of `buffers`. `in_buffers` are the rows of the events in command
    buffers, `unattributed` those of which only the buffer is known.
    """

    of_event: Int32
    program_ids: Int64
    hlo_ops: Strings
    programs: Programs
    buffers: frozenset[str] = frozenset()
    in_buffers: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    unattributed: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))

    @cached_property
    def found(self) -> list[tuple[Program, Int64, Int64]]:
        """(programs, instructions, rows): which of the instructions these programs have, and where. Raises
        `NotAProfile` for a damaged program."""
        return list(self.programs.find(self.program_ids, self.hlo_ops))

    def found_among(self, instructions: Int32 | Int64) -> Iterator[tuple[Program, Int64, Int64]]:
        """(programs, positions, rows): which of these instructions, −1 for none, the programs have, and where; raises
        as `found`."""
        for program, which, rows in self.found:
            row = np.full(len(self.hlo_ops) + 1, -1, np.int64)  # the last one is that of none
            row[which] = rows
            positions = np.flatnonzero(row[instructions] >= 0)
            yield program, positions, row[instructions[positions]]


@once_per_space
def instructions_of(space: XSpace) -> Instructions:
    """The instructions that the file's events ran. Raises `NotAProfile` for a damaged program."""
    recorded, programs = space.strings(HLO_OP), programs_of(space)
    if device_kind(space) == "GPU" and (
        _GRAPH in space.stat_names or any(instruction_name(name).startswith(_UNNAMED) for name in recorded.labels)
    ):
        rows, codes = device_rows(space), recorded.spread()
        program = space.number_of(_PROGRAM_ID, rows, _NO_PROGRAM)
        is_inside = _are_in_buffers(space, programs, recorded, rows, codes[rows], program)
        if is_inside.any():
            outside = rows[~is_inside]
            return _with_buffers(space, programs, recorded.labels, codes, rows[is_inside], program[is_inside], outside)
    return _numbered(space, programs, recorded, space.number_of(_PROGRAM_ID, recorded.owners, 0))


def _numbered(space: XSpace, programs: Programs, named: StringStat, program_ids: Int64) -> Instructions:
    """The instructions of the events that have a name, and the id of a program each."""
    firsts, number = combinations(program_ids, named.codes)
    of_event = np.full(len(space.events), -1, np.int32)
    of_event[named.owners] = number
    return Instructions(of_event, program_ids[firsts], np.array(named.labels, object)[named.codes[firsts]], programs)


def _with_buffers(
    space: XSpace, programs: Programs, hlo_ops: list[str], codes: Int32, rows: Int32, program: Int64, outside: Int32
) -> Instructions:
    """With the instructions of `rows`, the events in command buffers, by their `program` and kernels, as far as these
    tell. `codes` are those of each event's recorded name among `hlo_ops`; they are overwritten. `outside` are the other
    events of devices."""
    wanted = set(program.tolist())
    every = [(own_id, programs.program(own_id)) for own_id in programs.ids if wanted & {own_id, _NO_PROGRAM}]
    kernels_of = {own_id: ProgramKernels(one) for own_id, one in every if one is not None}
    launches = _launches(space, rows, program, kernels_of)
    found = _names_by_launch(space, kernels_of, launches, outside)
    labels = {label: code for code, label in enumerate(hlo_ops)}
    instruction = np.full(len(rows), -1)
    for (program_id, names), same in zip(found, launches.values(), strict=True):
        known = np.flatnonzero([name != "" for name in names])
        code = np.array([labels.setdefault(names[at], len(labels)) for at in known.tolist()], np.int64)
        for launch in same:
            program[launch], instruction[launch[known]] = program_id, code
    instruction = _of_nodes(space, rows, instruction)
    is_known = instruction >= 0
    new = np.where(is_known, instruction, codes[rows])
    new[(new < 0) & (program != _NO_PROGRAM)] = labels.setdefault(_UNNAMED, len(labels))
    codes[rows] = new
    owners, names = np.flatnonzero(codes >= 0).astype(np.int32), list(labels)
    program_ids = np.zeros(len(space.events), np.int64)
    program_ids[owners] = space.number_of(_PROGRAM_ID, owners, 0)
    program_ids[rows] = program
    ran = _numbered(space, programs, StringStat(owners, codes[owners], names, len(codes)), program_ids[owners])
    buffers = frozenset(names[code] for code in np.unique(new[~is_known & (new >= 0)]).tolist())
    return replace(ran, buffers=buffers, in_buffers=np.sort(rows), unattributed=rows[~is_known])


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
    for compiled, at, found in programs.find(program[firsts[named]], names):
        is_of_buffer[named[at]] = False
        may_be[named[at]] = compiled.has_opcode(found, is_container)
    return is_of_buffer[which] | (may_be[which] & space.have(_GRAPH, rows))


def _launches(
    space: XSpace, rows: Int32, program: Int64, kernels_of: Mapping[int, ProgramKernels]
) -> dict[Launch, list[Int64]]:
    """The positions in `rows` of the events of each launch of a command buffer, in the order of their start, or of the
    schedule where nodes tell it; launches with the same kernels are listed together."""
    plane, correlation = space.planes_of(rows), space.number_of("correlation_id", rows, 0)
    correlation = np.where(correlation == 0, -1 - np.arange(len(rows)), correlation)  # unknown: none follow another
    order = np.lexsort((space.events.start_ps[rows], program, correlation, plane))
    keys = np.stack([plane, correlation, program])[:, order]
    is_first = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))
    order = _as_added(space, rows[order], np.cumsum(is_first) - 1, kernels_of, order)
    out: dict[Launch, list[Int64]] = {}
    for launch in np.split(order, np.flatnonzero(is_first)[1:]):
        kernels = space.metadata_names[space.events.metadata[rows[launch]]]
        out.setdefault((int(program[launch[0]]), tuple(map(as_of_nvidia, kernels.tolist()))), []).append(launch)
    return out


def _as_added(
    space: XSpace, rows: Int32, launch: Int64, kernels_of: Mapping[int, ProgramKernels], order: Int64
) -> Int64:
    """`order`, which is that of `rows`, with the nodes of each launch in the order of their numbers as far as it says
    which was added first.

    The nodes of libraries, in graphs of their own within the graph, may have higher numbers than all others. So it is
    known of nodes up to the last that bears the name of an instruction, and beyond of kernels with one name. Launches
    that ran a node several times, in a loop, stay as they are.
    """
    node, has_node = space.numbers_of(_NODE, rows)
    if not has_node.any():
        return order
    entry = space.events.metadata[rows]
    used, which = np.unique(entry, return_inverse=True)
    names = [as_of_nvidia(name) for name in space.metadata_names[used].tolist()]
    is_named = np.array([any(one.is_named(name) for one in kernels_of.values()) for name in names], np.bool_)[which]
    is_memory = np.array([name.startswith((_MEMORY_SET, _MEMORY_COPY)) for name in names], np.bool_)[which]
    last = np.full(launch[-1] + 1, -1)
    np.maximum.at(last, launch[is_named & has_node], node[is_named & has_node])
    firsts, same = combinations(launch, node)
    is_repeated = np.bincount(
        launch[has_node & (np.bincount(same, minlength=len(firsts))[same] > 1)], minlength=len(last)
    )
    kind = np.where(node <= last[launch], -1, entry)
    is_ordered = has_node & (is_repeated[launch] == 0) & ((kind < 0) | ~is_memory)
    places = np.flatnonzero(is_ordered)
    kind, launch, node = kind[places], launch[places], node[places]
    out = order.copy()
    out[places[np.lexsort((places, kind, launch))]] = order[places[np.lexsort((node, kind, launch))]]
    return out


def _of_nodes(space: XSpace, rows: Int32, instruction: Int64) -> Int64:
    """The code of the instruction of each of `rows`, −1 where unknown: what launches say of a node of a graph holds in
    all of them, and if they contradict each other, in none."""
    node, has_node = space.numbers_of(_NODE, rows)
    at = np.flatnonzero(has_node)
    firsts, which = combinations(space.planes_of(rows[at]), node[at])
    found, is_known = instruction[at], instruction[at] >= 0
    least, most = smallest(which[is_known], found[is_known], len(firsts)), largest(which, found, len(firsts))
    out = instruction.copy()
    out[at] = np.where(least == most, most, -1)[which]
    return out


def _names_by_launch(
    space: XSpace, kernels_of: Mapping[int, ProgramKernels], launches: Iterable[Launch], outside: Int32
) -> list[tuple[int, list[str]]]:
    """(the id of the program, the names of the instructions) of the kernels of each launch; −1 and empty where unknown.
    `outside` are the kernels that did not run in command buffers."""
    of_launch = []
    for own_id, kernels in launches:
        if own_id == _NO_PROGRAM:  # the one that has the most of the kernels, if only one has
            counts = sorted((program.count(kernels), one) for one, program in kernels_of.items())
            (second, _), (most, best) = [(0, 0), (0, 0), *counts][-2:]
            own_id = best if most > second else _NO_PROGRAM
        of_launch.append(own_id)
    for own_id, (_, kernels) in zip(of_launch, launches, strict=True):
        if own_id in kernels_of:
            kernels_of[own_id].recorded.update(kernels)
    of_outside = space.number_of(_PROGRAM_ID, outside, _NO_PROGRAM)
    firsts, _ = combinations(of_outside, space.events.metadata[outside])
    names = space.metadata_names[space.events.metadata[outside[firsts]]]
    for own_id, name in zip(of_outside[firsts].tolist(), names.tolist(), strict=True):
        if own_id in kernels_of:
            kernels_of[own_id].recorded.add(as_of_nvidia(name))
    return [
        (own_id, kernels_of[own_id].instructions(kernels) if own_id in kernels_of else [""] * len(kernels))
        for own_id, (_, kernels) in zip(of_launch, launches, strict=True)
    ]


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
        f"kernels that took {format_percent(share)} of the GPUs' time ran in command buffers (CUDA graphs) and do not "
        "tell their instruction: they are listed as `command buffer`; record with "
        "`XLA_FLAGS=--xla_gpu_enable_command_buffer=` to see what they are"
    )


class ProgramKernels:
    """The kernels of one program. `recorded`: the names of all in the file, to be added before anything is asked."""

    def __init__(self, program: Program) -> None:
        self.recorded: set[str] = set()
        self._program, self._schedule = program, schedule_of(program)
        rows = np.array(self._schedule.rows, np.int64)
        kernels = [_OTHER_LETTER.sub("_", name) for name in program.names(rows).tolist()]  # as XLA names them
        self._own = dict(zip(rows.tolist(), kernels, strict=True))
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


def as_of_nvidia(kernel: str) -> str:
    """The name of a kernel without what AMD's profiler adds."""
    return kernel.removesuffix(_OF_AMD)


def _only(rows: Rows) -> int | None:
    """The only one of these; None if there are several, or none."""
    return next(iter(rows)) if rows is not None and len(rows) == 1 else None
