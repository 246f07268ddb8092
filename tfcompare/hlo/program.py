"""Compiled programs: their computations and instructions, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.hlo.contents import (
    INTEGER,
    Lists,
    fields_of,
    from_counts,
    intern,
    messages_in,
    numbers_in,
    strings_at,
    texts_at,
)
from tfcompare.hlo.shapes import Shape, shape_of
from tfcompare.hlo.stack_frames import Frames, counted
from tfcompare.schema.arrays import Bools, Int64, Strings
from tfcompare.xspace.lookup import used

_MODULE, _BUFFER_ASSIGNMENT, _COMPUTATION = 1, 3, 3
_IN_MODULE = (1, 6, 7, 8, 18, 17)
_MODULE_NAME, _ENTRY, _SCHEDULE, ALIASES, DONORS, STACK_FRAMES, BUFFER_ASSIGNMENT = range(7)
"""The parts of a program that are read: of its module the fields `_IN_MODULE`, and what is beside it."""
_SEQUENCE_OF_COMPUTATION, _KEY, _VALUE, _IDS_IN_SEQUENCE = 1, 1, 2, 1
_COMPUTATION_NAME, _INSTRUCTION, _COMPUTATION_ID, _ROOT = 1, 2, 5, 6
_NAME, _OPCODE, _SHAPE, _METADATA, _ID, _OPERAND_IDS, _CALLED_IDS = 1, 2, 3, 7, 35, 36, 38
_OP_TYPE, _OP_NAME, _SOURCE_FILE, _SOURCE_LINE, _STACK_FRAME = 1, 2, 3, 4, 15
_FILE_NAMES, _FUNCTION_NAMES, _LOCATIONS, _FRAMES = 1, 2, 3, 4
_FILE_OF_LOCATION, _FUNCTION_OF_LOCATION, _LINE_OF_LOCATION, _LOCATION_OF_FRAME, _PARENT_OF_FRAME = 1, 2, 3, 1, 2

PARAMETER_NUMBER = 9
"""The field of an instruction with the position of a parameter."""


@dataclass(frozen=True, eq=False)
class Program:
    """One program, or several that were read together, as columns with a row for each instruction and computation.

    Of programs: `names_of_modules`, and `entry`, the row of the main computation, −1 if unknown. Of computations:
    `program`, which one it is of, `ids`, the rows `root` of the instructions whose values they return, and `first`: the
    rows of computation i are those from `first[i]` to `first[i + 1]`. Of instructions: the row `computation`, the id
    `number`, the codes `opcode` among `opcodes` and `shape` among equal shapes, the rows `operands` whose values it
    uses, and the computations that it `called`. A row is −1 for what its program lacks. Of several computations or
    instructions with the same id, or instructions with the same name, the last one counts.
    """

    names_of_modules: Strings
    entry: Int64
    program: Int64
    ids: Int64
    root: Int64
    first: Int64
    computation: Int64
    number: Int64
    opcode: Int64
    opcodes: tuple[str, ...]
    shape: Int64
    operands: Lists
    called: Lists
    _buffer: npt.NDArray[np.uint8] = field(repr=False)
    _computation_names: Int64 = field(repr=False)
    _messages: Int64 = field(repr=False)
    _names: Int64 = field(repr=False)
    _metadata: Int64 = field(repr=False)
    _shapes: Int64 = field(repr=False)
    _parts: Int64 = field(repr=False)
    _shapes_read: dict[int, Shape] = field(repr=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.number)

    @property
    def every(self) -> Int64:
        """The rows of all instructions."""
        return np.arange(len(self))

    def only(self, program: int) -> Program:
        """One of the programs by itself, with rows that count from 0."""
        if len(self.entry) == 1:
            return self
        begin, end = np.searchsorted(self.program, [program, program + 1]).tolist()
        first, last = self.first[[begin, end]].tolist()
        computations, rows = slice(begin, end), slice(first, last)
        return replace(
            self,
            names_of_modules=self.names_of_modules[program : program + 1],
            entry=_since(begin, self.entry[program : program + 1]),
            program=np.zeros(end - begin, np.int64),
            ids=self.ids[computations],
            root=_since(first, self.root[computations]),
            first=self.first[begin : end + 1] - first,
            computation=self.computation[rows] - begin,
            number=self.number[rows],
            opcode=self.opcode[rows],
            shape=self.shape[rows],
            operands=self.operands.between(first, last, lambda items: _since(first, items)),
            called=self.called.between(first, last, lambda items: _since(begin, items)),
            _computation_names=self._computation_names[computations],
            _messages=self._messages[rows],
            _names=self._names[rows],
            _metadata=self._metadata[rows],
            _parts=self._parts[program : program + 1],
        )

    def part(self, program: int, which: int) -> memoryview | None:
        """A message of one of the programs, such as its `BUFFER_ASSIGNMENT`; None if it has none."""
        return self.content(self._parts[program, which])

    def programs(self, rows: Int64) -> Int64:
        """The program of each instruction."""
        return self.program[self.computation[rows]]

    def rows_named(self, names: Sequence[str], programs: Int64 | int = 0) -> Int64:
        """The instruction of each of these names in that program, −1 for none."""
        labels, _ = self._labels
        found = pc.index_in(pa.array(names, pa.large_string()), value_set=pa.array(labels, pa.large_string()))
        codes: Int64 = found.fill_null(-1).to_numpy().astype(np.int64)
        return self._by_name.rows(np.broadcast_to(programs, len(codes)), codes)

    @cached_property
    def _by_name(self) -> _Numbering:
        return _Numbering(self.programs(self.every), self._labels[1])

    @cached_property
    def _labels(self) -> tuple[Strings, Int64]:
        """(the distinct names of instructions, the code among these of each instruction)."""
        codes, firsts = intern(self._buffer, self._names)
        labels = strings_at(self._buffer, self._names[firsts]).dictionary_encode()  # other bytes may be the same text
        return labels.dictionary.to_numpy(zero_copy_only=False), labels.indices.to_numpy()[codes].astype(np.int64)

    @cached_property
    def numbers_by_name(self) -> dict[str, int]:
        """The id of the instruction of each name."""
        return dict(zip(self.names(self.every).tolist(), self.number.tolist(), strict=True))

    def names(self, rows: Int64) -> Strings:
        """The names of instructions."""
        labels, codes = self._labels
        return labels[codes[rows]]

    def computation_names(self, computations: Int64) -> Strings:
        """The names of computations."""
        return self._texts(self._computation_names[computations])

    def instructions_of(self, computations: Int64) -> Int64:
        """The instructions of these computations, one after the other."""
        return Lists(self.first, self.every).flat(computations)[2]

    def has_opcode(self, rows: Int64, is_wanted: Callable[[str], bool]) -> Bools:
        """Whether the opcode of each instruction is a wanted one."""
        return np.array([is_wanted(name) for name in self.opcodes], np.bool_)[self.opcode[rows]]

    def shape_of(self, row: int) -> Shape:
        """The shape of what an instruction produces. Raises `NotAProfile` for damage."""
        return self._shape(int(self.shape[row]))

    def _shape(self, code: int) -> Shape:
        if code not in self._shapes_read:
            content = self.content(self._shapes[code])
            self._shapes_read[code] = shape_of(content) if content else Shape(())
        return self._shapes_read[code]

    def of_shapes(self, rows: Int64, figure: Callable[[Shape], Any], kind: type) -> npt.NDArray[Any]:
        """A figure of the shape of each instruction; each shape is read once. Raises `NotAProfile` for damage."""
        codes = used(self.shape[rows], len(self._shapes))
        figures: npt.NDArray[Any] = np.empty(len(self._shapes), kind)
        figures[codes] = [figure(self._shape(code)) for code in codes.tolist()]
        return figures[self.shape[rows]]

    def types(self, rows: Int64) -> Int64:
        """The element types that each instruction produces and uses, as bit masks. Raises `NotAProfile` for damage."""
        owner, operand = self.operands.known(rows)
        every = self.of_shapes(np.concatenate([rows, operand]), lambda shape: shape.types, np.int64)
        out = every[: len(rows)]
        np.bitwise_or.at(out, owner, every[len(rows) :])
        return out

    def fields(self, rows: Int64, *wanted: int) -> Int64:
        """These fields of each instruction, as in `scan.fields_of`; `content` gives the bytes of one."""
        return self._fields(self._messages[rows], *wanted)

    def content(self, place: Int64) -> memoryview | None:
        """The bytes of a field; None if there is no text or message."""
        begin, size = place[:INTEGER].tolist()
        return self._buffer[begin : begin + size].data if begin > 0 else None

    def field_texts(self, rows: Int64, wanted: int) -> Strings:
        """The text in that field of each instruction, empty without one."""
        return self._texts(self.fields(rows, wanted)[:, 0])

    def integers(self, rows: Int64, wanted: int) -> Int64:
        """The integer in that field of each instruction, 0 without one."""
        return self._integers(self._messages[rows], wanted)[:, 0]

    def op_names(self, rows: Int64) -> Strings:
        """Names of the framework ops that instructions came from; empty where unknown."""
        return self._texts(self._fields(self._metadata[rows], _OP_NAME)[:, 0])

    def tf_ops(self, rows: Int64) -> list[str]:
        """The framework ops as `op_name:op_type`, empty where unknown."""
        found = self._fields(self._metadata[rows], _OP_NAME, _OP_TYPE)
        names, types = self._texts(found[:, 0]), self._texts(found[:, 1])
        return [f"{name}:{kind}" if name or kind else "" for name, kind in zip(names, types, strict=True)]

    def origins(self, rows: Int64) -> Int64:
        """The instructions that name the framework's ops of others: themselves, or for a fusion that names none, the
        last one in it that does. None in it does: itself."""
        out = rows.copy()
        nameless = np.flatnonzero(self.has_opcode(rows, "fusion".__eq__) & ~self._has_op_name(rows))
        owner, called = self.called.known(rows[nameless])
        inner = self.instructions_of(np.unique(called))
        inner = inner[self._has_op_name(inner)]
        last = np.full(len(self.ids), -1, np.int64)
        np.maximum.at(last, self.computation[inner], inner)
        owner, called = owner[last[called] >= 0], called[last[called] >= 0]
        fusions, firsts = np.unique(owner, return_index=True)
        out[nameless[fusions]] = last[called[firsts]]
        return out

    def _has_op_name(self, rows: Int64) -> Bools:
        sizes: Int64 = self._fields(self._metadata[rows], _OP_NAME)[:, 0, 1]
        return sizes > 0

    def sources(self, rows: Int64) -> list[str]:
        """Where the framework's program has these instructions, as `file:line`; empty where unknown."""
        found = self._fields(self._metadata[rows], _SOURCE_FILE, _SOURCE_LINE)
        files, lines, frames = self._texts(found[:, 0]), found[:, 1, INTEGER], self._frames_of(rows)
        is_named = files != ""
        files = np.where(is_named, files, self._frames.files[frames])
        lines = np.where(is_named, lines, self._frames.lines[frames])
        return [f"{file}:{line}" if file else "" for file, line in zip(files.tolist(), lines.tolist(), strict=True)]

    def stacks(self, rows: Int64) -> list[str]:
        """The calls in the framework's program that led to these instructions, outermost first, one per line as
        `function (file:line)`, without what is unknown of these; empty without a stack.

        Of more than `MOST_FRAMES` calls the outer ones are left out, for which `…` stands.
        """
        frames = self._frames_of(rows)
        texts = {frame: self._frames.stack(frame) for frame in np.unique(frames).tolist()}
        return [texts[frame] for frame in frames.tolist()]

    def _frames_of(self, rows: Int64) -> Int64:
        """The position of each instruction's stack frame in `_frames`, 0 for none."""
        frames = self._integers(self._metadata[rows], _STACK_FRAME)[:, 0]
        return counted(frames, self.programs(rows), self._frames.counts)

    @cached_property
    def _frames(self) -> Frames:
        """The stack frames of all programs; each counts its frames, locations, files and functions from 1."""
        wanted = (_FILE_NAMES, _FUNCTION_NAMES, _LOCATIONS, _FRAMES)
        of_programs = self._parts[:, STACK_FRAMES]
        counts, found = zip(*(messages_in(self._buffer, of_programs, one) for one in wanted), strict=True)
        files, functions = (np.append(np.array([""], object), self._texts(places)) for places in found[:2])
        of_location, of_frame = (np.repeat(np.arange(len(count)), count) for count in counts[2:])
        file, function, line = self._integers(found[2], _FILE_OF_LOCATION, _FUNCTION_OF_LOCATION, _LINE_OF_LOCATION).T
        location, parent = self._integers(found[3], _LOCATION_OF_FRAME, _PARENT_OF_FRAME).T
        at = np.append(0, counted(location, of_frame, counts[2]))
        return Frames(
            files=files[np.append(0, counted(file, of_location, counts[0]))[at]],
            lines=np.append(0, line)[at],
            functions=functions[np.append(0, counted(function, of_location, counts[1]))[at]],
            parents=np.append(0, counted(parent, of_frame, counts[3])),
            counts=counts[3],
        )

    @cached_property
    def places(self) -> Int64:
        """The place of each instruction in its computation's schedule, in which it is run; without one, in the file."""
        out = self.every - self.first[self.computation]
        counts, entries = messages_in(self._buffer, self._parts[:, _SCHEDULE], _SEQUENCE_OF_COMPUTATION)
        computations, sequences = np.moveaxis(self._fields(entries, _KEY, _VALUE), 1, 0)
        lists = numbers_in(self._buffer, sequences, _IDS_IN_SEQUENCE)
        owner, place, number = lists.flat(np.arange(len(sequences)))
        of_entry = np.repeat(np.arange(len(counts)), counts)
        computation = _Numbering(self.program, self.ids).rows(of_entry, computations[:, INTEGER])[owner]
        rows = _Numbering(self.computation, self.number).rows(computation, number)
        out[rows[rows >= 0]] = place[rows >= 0]
        return out

    def _integers(self, places: Int64, *wanted: int) -> Int64:
        """The integers in these fields of each message, 0 where absent."""
        return self._fields(places, *wanted)[:, :, INTEGER]

    def _fields(self, places: Int64, *wanted: int) -> Int64:
        return fields_of(self._buffer, places, *wanted)

    def _texts(self, places: Int64) -> Strings:
        return texts_at(self._buffer, places)


def read_program(proto: memoryview) -> Program:
    """The program in an `HloProto`; raises as `read_programs`."""
    return read_programs(np.frombuffer(proto, np.uint8), np.array([[0, len(proto)]]))


def read_programs(buffer: npt.NDArray[np.uint8], places: Int64) -> Program:
    """The programs in the `HloProto`s at these places (rows of the first byte and the length) of the buffer.

    Raises `NotAProfile` if their bytes are invalid or they have more than `MOST_INSTRUCTIONS` instructions. Shapes and
    details of instructions raise it when they are read.
    """
    every, number_of_parts = np.arange(len(places)), len(_IN_MODULE) + 1
    counts, modules = messages_in(buffer, places, _MODULE)
    of_module = np.repeat(every, counts)
    facts = np.zeros((len(places), number_of_parts, 3), np.int64)
    facts[:, BUFFER_ASSIGNMENT] = fields_of(buffer, places, _BUFFER_ASSIGNMENT)[:, 0]
    in_modules = fields_of(buffer, modules, *_IN_MODULE)
    for part in range(len(_IN_MODULE)):  # of the last module of each program that has it
        has_part = in_modules[:, part].any(axis=1)
        facts[of_module[has_part], part] = in_modules[has_part, part]
    counts, computations = messages_in(buffer, modules, _COMPUTATION)
    program = np.repeat(of_module, counts)
    own = fields_of(buffer, computations, _COMPUTATION_NAME, _COMPUTATION_ID, _ROOT)
    ids, roots = own[:, 1:, INTEGER].T
    counts, messages = messages_in(buffer, computations, _INSTRUCTION)
    first = from_counts(counts)
    computation = np.repeat(np.arange(len(counts)), counts)
    parts = fields_of(buffer, messages, _ID, _NAME, _OPCODE, _SHAPE, _METADATA)
    number = parts[:, 0, INTEGER]
    opcodes, firsts = intern(buffer, parts[:, 2])
    shapes, first_shapes = intern(buffer, parts[:, 3])
    operands, called = (numbers_in(buffer, messages, wanted) for wanted in (_OPERAND_IDS, _CALLED_IDS))
    instructions, numbers = _Numbering(computation, number), _Numbering(program, ids)
    user, caller = (np.repeat(computation, np.diff(lists.first)) for lists in (operands, called))
    return Program(
        names_of_modules=texts_at(buffer, facts[:, _MODULE_NAME]),
        entry=numbers.rows(every, facts[:, _ENTRY, INTEGER]),
        program=program,
        ids=ids,
        root=instructions.rows(np.arange(len(ids)), roots),
        first=first,
        computation=computation,
        number=number,
        opcode=opcodes,
        opcodes=tuple(texts_at(buffer, parts[firsts, 2]).tolist()),
        shape=shapes,
        operands=Lists(operands.first, instructions.rows(user, operands.items)),
        called=Lists(called.first, numbers.rows(program[caller], called.items)),
        _buffer=buffer,
        _computation_names=own[:, 0],
        _messages=messages,
        _names=parts[:, 1],
        _metadata=parts[:, 4],
        _shapes=parts[first_shapes, 3],
        _parts=facts[:, :, :INTEGER],
    )


class _Numbering:
    """Finds rows by a group and a number within it; each row has both."""

    def __init__(self, group: Int64, number: Int64) -> None:
        self._numbers, code = np.unique(number, return_inverse=True)
        keys = group * (len(self._numbers) + 1) + code
        self._rows = np.argsort(keys, kind="stable")
        self._keys = keys[self._rows]

    def rows(self, group: Int64, number: Int64) -> Int64:
        """The last row of each group with that number, −1 for none."""
        if not len(self._keys):
            return np.full(len(number), -1, np.int64)
        code = np.searchsorted(self._numbers, number)
        code[self._numbers[np.minimum(code, len(self._numbers) - 1)] != number] = len(self._numbers)
        wanted = group * (len(self._numbers) + 1) + code
        at = np.searchsorted(self._keys, wanted, side="right") - 1
        return np.where(self._keys[at] == wanted, self._rows[at], -1)


def _since(begin: int, rows: Int64) -> Int64:
    """These rows, −1 for none, counted from `begin` on."""
    return np.where(rows < 0, -1, rows - begin)
