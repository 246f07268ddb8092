"""One compiled program: its computations and their instructions, as columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
    last_rows,
    messages_in,
    numbers_in,
    strings_at,
    texts_at,
)
from tfcompare.hlo.shapes import Shape, shape_of
from tfcompare.hlo.stack_frames import Frames, known
from tfcompare.schema.arrays import Bools, Int64, Strings
from tfcompare.xspace.lookup import used

_MODULE, _BUFFER_ASSIGNMENT = 1, 3
_MODULE_NAME, _COMPUTATION, _ENTRY, _SCHEDULE, _STACK_FRAMES = 1, 3, 6, 7, 17
_ALIASES, _DONORS = 8, 18
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
    """One program, as columns with a row for each instruction, and with one for each computation.

    `name` is the module's, `entry` the row of its main computation, −1 if unknown. Of computations: `ids`, the rows
    `root` of the instructions whose values they return, and `first`: the rows of computation i are those from
    `first[i]` to `first[i + 1]`. Of instructions: the row `computation`, the id `number`, the codes `opcode` among
    `opcodes` and `shape` among equal shapes, the rows `operands` whose values it uses, and the computations that it
    `called`. `aliases` and `donors` are the messages about donated parameters. A row is −1 for what the program lacks.
    Of several computations or instructions with the same id, or instructions with the same name, the last one counts.
    """

    name: str
    entry: int
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
    buffer_assignment: memoryview | None = field(repr=False)
    aliases: memoryview | None = field(repr=False)
    donors: memoryview | None = field(repr=False)
    _buffer: npt.NDArray[np.uint8] = field(repr=False)
    _computation_names: Int64 = field(repr=False)
    _messages: Int64 = field(repr=False)
    _names: Int64 = field(repr=False)
    _metadata: Int64 = field(repr=False)
    _shapes: Int64 = field(repr=False)
    _stack_frames: Int64 = field(repr=False)
    _schedule: Int64 = field(repr=False)
    _shapes_read: dict[int, Shape] = field(repr=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.number)

    @property
    def every(self) -> Int64:
        """The rows of all instructions."""
        return np.arange(len(self))

    def rows_named(self, names: list[str]) -> Int64:
        """The instruction of each of these names, −1 for none."""
        found = pc.index_in(pa.array(names, pa.large_string()), value_set=self._last_names)
        last: Int64 = found.fill_null(len(self)).to_numpy().astype(np.int64)
        return len(self) - 1 - last

    @cached_property
    def _last_names(self) -> pa.LargeStringArray:
        """The names of all instructions, the last one first."""
        return strings_at(self._buffer, self._names[::-1])

    @cached_property
    def numbers_by_name(self) -> dict[str, int]:
        """The id of the instruction of each name."""
        return dict(zip(self.names(self.every).tolist(), self.number.tolist(), strict=True))

    def names(self, rows: Int64) -> Strings:
        """The names of instructions."""
        return self._texts(self._names[rows])

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
        owner, _, operand = self.operands.flat(rows)
        owner, operand = owner[operand >= 0], operand[operand >= 0]
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
        owner, _, called = self.called.flat(rows[nameless])
        owner, called = owner[called >= 0], called[called >= 0]
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
        found = self._fields(self._metadata[rows], _SOURCE_FILE, _SOURCE_LINE, _STACK_FRAME)
        files, lines, frames = self._texts(found[:, 0]), found[:, 1, INTEGER], found[:, 2, INTEGER]
        frame_files, frame_lines = self._frames
        frames = np.where((frames > 0) & (frames < len(frame_files)), frames, 0)
        is_named = files != ""
        files = np.where(is_named, files, frame_files[frames])
        lines = np.where(is_named, lines, frame_lines[frames])
        return [f"{file}:{line}" if file else "" for file, line in zip(files.tolist(), lines.tolist(), strict=True)]

    def stacks(self, rows: Int64) -> list[str]:
        """The calls in the framework's program that led to these instructions, outermost first, one per line as
        `function (file:line)`, without what is unknown of these; empty without a stack.

        Of more than `MOST_FRAMES` calls the outer ones are left out, for which `…` stands.
        """
        frames = self._integers(self._metadata[rows], _STACK_FRAME)[:, 0]
        if not frames.any():
            return [""] * len(rows)
        texts = {frame: self._calls.stack(frame) for frame in np.unique(frames).tolist()}
        return [texts[frame] for frame in frames.tolist()]

    @cached_property
    def _frames(self) -> tuple[Strings, Int64]:
        """(file, line) of each stack frame; frames, locations and files count from 1."""
        parts = [messages_in(self._buffer, self._stack_frames, n)[1] for n in (_FILE_NAMES, _LOCATIONS, _FRAMES)]
        files = np.append(np.array([""], object), self._texts(parts[0]))
        nowhere = np.zeros((1, 2), np.int64)
        locations = np.append(nowhere, self._integers(parts[1], _FILE_OF_LOCATION, _LINE_OF_LOCATION), axis=0)
        locations[:, 0] = np.where((locations[:, 0] > 0) & (locations[:, 0] < len(files)), locations[:, 0], 0)
        frame = np.append(0, self._integers(parts[2], _LOCATION_OF_FRAME)[:, 0])
        location = locations[np.where((frame > 0) & (frame < len(locations)), frame, 0)]
        return files[location[:, 0]], location[:, 1]

    @cached_property
    def _calls(self) -> Frames:
        """The stack frames with what called them, which only `stacks` needs; functions count from 1, too."""
        wanted = (_FILE_NAMES, _FUNCTION_NAMES, _LOCATIONS, _FRAMES)
        *named, locations, frames = (messages_in(self._buffer, self._stack_frames, n)[1] for n in wanted)
        files, functions = (np.append(np.array([""], object), self._texts(places)) for places in named)
        file, function, line = self._integers(locations, _FILE_OF_LOCATION, _FUNCTION_OF_LOCATION, _LINE_OF_LOCATION).T
        location, parent = self._integers(frames, _LOCATION_OF_FRAME, _PARENT_OF_FRAME).T
        at = known(np.append(0, location), len(file) + 1)
        return Frames(
            files=files[known(np.append(0, file)[at], len(files))],
            lines=np.append(0, line)[at],
            functions=functions[known(np.append(0, function)[at], len(functions))],
            parents=known(np.append(0, parent), len(parent) + 1),
        )

    @cached_property
    def places(self) -> Int64:
        """The place of each instruction in its computation's schedule, in which it is run; without one, in the file."""
        out = self.every - self.first[self.computation]
        _, entries = messages_in(self._buffer, self._schedule, _SEQUENCE_OF_COMPUTATION)
        computations, sequences = np.moveaxis(self._fields(entries, _KEY, _VALUE), 1, 0)
        lists = numbers_in(self._buffer, sequences, _IDS_IN_SEQUENCE)
        owner, place, number = lists.flat(np.arange(len(sequences)))
        computation = last_rows(self.ids, computations[:, INTEGER])[owner]
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
    """The program in an `HloProto`.

    Raises `NotAProfile` if its bytes are invalid or it has more than `MOST_INSTRUCTIONS` instructions. Shapes and
    details of instructions raise it when they are read.
    """
    buffer = np.frombuffer(proto, np.uint8)
    whole = np.array([[0, len(buffer)]])
    _, modules = messages_in(buffer, whole, _MODULE)
    wanted = (_MODULE_NAME, _ENTRY, _STACK_FRAMES, _SCHEDULE)
    names, entries, frames, schedules = np.moveaxis(fields_of(buffer, modules, *wanted), 1, 0)
    _, computations = messages_in(buffer, modules, _COMPUTATION)
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
    find = _Numbering(computation, number)
    user = np.repeat(computation, np.diff(operands.first))
    assignments = messages_in(buffer, whole, _BUFFER_ASSIGNMENT)[1][:1]
    entry = int(entries[-1, INTEGER]) if len(entries) else 0
    last = [messages_in(buffer, modules, wanted)[1][-1:].tolist() for wanted in (_ALIASES, _DONORS)]
    aliases, donors = (next((buffer[begin : begin + size].data for begin, size in one), None) for one in last)
    return Program(
        name=next((str(name) for name in texts_at(buffer, names)[::-1]), ""),
        entry=int(last_rows(ids, np.array([entry]))[0]),
        ids=ids,
        root=find.rows(np.arange(len(ids)), roots),
        first=first,
        computation=computation,
        number=number,
        opcode=opcodes,
        opcodes=tuple(texts_at(buffer, parts[firsts, 2]).tolist()),
        shape=shapes,
        operands=Lists(operands.first, find.rows(user, operands.items)),
        called=Lists(called.first, last_rows(ids, called.items)),
        buffer_assignment=next((buffer[begin : begin + size].data for begin, size in assignments.tolist()), None),
        aliases=aliases,
        donors=donors,
        _buffer=buffer,
        _computation_names=own[:, 0],
        _messages=messages,
        _names=parts[:, 1],
        _metadata=parts[:, 4],
        _shapes=parts[first_shapes, 3],
        _stack_frames=frames[frames[:, 0] > 0][-1:],
        _schedule=schedules[schedules[:, 0] > 0][-1:],
    )


class _Numbering:
    """Finds the instructions of computations by their ids."""

    def __init__(self, computation: Int64, number: Int64) -> None:
        self._numbers, code = np.unique(number, return_inverse=True)
        self._keys = computation * (len(self._numbers) + 1) + code

    def rows(self, computation: Int64, number: Int64) -> Int64:
        """The last instruction of each computation with that id, −1 for none."""
        code = last_rows(self._numbers, number)
        code[code < 0] = len(self._numbers)
        return last_rows(self._keys, computation * (len(self._numbers) + 1) + code)
