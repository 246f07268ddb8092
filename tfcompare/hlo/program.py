"""One compiled program: its computations and their instructions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tfcompare.errors import NotAProfile
from tfcompare.hlo.scan import (
    CALLED,
    CALLED_IDS,
    IN_PARTS,
    MESSAGE,
    METADATA,
    NAME,
    NUMBER,
    OPCODE,
    OPERAND_IDS,
    OPERANDS,
    SHAPE,
    instruction_places,
)
from tfcompare.hlo.shapes import Array, arrays
from tfcompare.hlo.wire import Content, check, fields, integers, messages, unpacked
from tfcompare.xspace.texts import text_of

_MODULE, _BUFFER_ASSIGNMENT = 1, 3
_MODULE_NAME, _COMPUTATION, _ENTRY, _STACK_FRAMES = 1, 3, 6, 17
_OP_TYPE, _OP_NAME, _SOURCE_FILE, _SOURCE_LINE, _STACK_FRAME = 1, 2, 3, 4, 15
_FILE_NAMES, _LOCATIONS, _FRAMES = 1, 3, 4
_FILE_OF_LOCATION, _LINE_OF_LOCATION, _LOCATION_OF_FRAME = 1, 3, 1

MOST_INSTRUCTIONS = 1_000_000
"""In one program; the largest real ones have a tenth of that."""

Int64 = npt.NDArray[np.int64]


@dataclass(eq=False)
class Instruction:
    """One instruction. Only its name, opcode and number are read at once; the rest is read on first use.

    `number` is its id, `computation` the id of the computation that it is part of.
    """

    name: str
    opcode: str
    number: int
    computation: int
    _bytes: memoryview = field(repr=False)  # of the computation
    _places: Int64 = field(repr=False)
    _row: int = field(repr=False)

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """The array that it produces, or all arrays of the tuple that it produces."""
        shape = self._at(SHAPE)
        return arrays(shape) if len(shape) else ()

    @cached_property
    def operands(self) -> tuple[int, ...]:
        """The numbers of the instructions whose values it uses."""
        return self._integers(OPERANDS, OPERAND_IDS)

    @cached_property
    def called(self) -> tuple[int, ...]:
        """The ids of the computations that it calls."""
        return self._integers(CALLED, CALLED_IDS)

    @cached_property
    def metadata(self) -> dict[int, Content]:
        """The fields of its `OpMetadata`."""
        return dict(fields(self._at(METADATA)))

    def _integers(self, place: int, number: int) -> tuple[int, ...]:
        if self._places[self._row, place + 1] == IN_PARTS:
            return tuple(integers(self._at(MESSAGE), number))
        return tuple(unpacked([self._at(place)]))

    def _at(self, place: int) -> memoryview:
        """The bytes of its message, or of a field in it, empty if that is absent."""
        begin, size = self._places[self._row, place : place + 2].tolist()
        return self._bytes[begin : begin + size]

    @property
    def op_name(self) -> str:
        """Name of the framework op that it came from; empty if unknown."""
        return _text(self.metadata, _OP_NAME)

    @property
    def tf_op(self) -> str:
        """The framework op as `op_name:op_type`, empty if unknown."""
        name, op_type = self.op_name, _text(self.metadata, _OP_TYPE)
        return f"{name}:{op_type}" if name or op_type else ""

    def part(self, number: int) -> memoryview | None:
        """The message or text in that field; None if it is absent."""
        return next(messages(self._at(MESSAGE), number), None)

    def number_in(self, number: int, absent: int) -> int:
        """The integer in that field, `absent` if there is none."""
        found = (content for key, content in fields(self._at(MESSAGE)) if key == number)
        return next((content for content in found if isinstance(content, int)), absent)

    def text(self, number: int) -> str:
        """The text in that field, empty if it is absent."""
        content = self.part(number)
        return text_of(content) if content is not None else ""


@dataclass(frozen=True, eq=False)
class Computation:
    """One computation: its id, its name, and the number of the instruction whose value it returns."""

    number: int
    name: str
    root: int
    _bytes: memoryview = field(repr=False)
    _places: Int64 = field(repr=False)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """Its instructions, in order."""
        names, opcodes = (self._texts(place) for place in (NAME, OPCODE))
        numbers = self._places[:, NUMBER].tolist()
        return tuple(
            Instruction(name, opcode, number, self.number, self._bytes, self._places, row)
            for row, (name, opcode, number) in enumerate(zip(names, opcodes, numbers, strict=True))
        )

    def _texts(self, place: int) -> list[str]:
        return [
            text_of(self._bytes[begin : begin + size]) for begin, size in self._places[:, place : place + 2].tolist()
        ]

    @cached_property
    def by_number(self) -> dict[int, Instruction]:
        """The instructions by number."""
        return {instruction.number: instruction for instruction in self.instructions}


@dataclass(frozen=True, eq=False)
class Program:
    """One program. `name` is the module's, `computations` are by id."""

    name: str
    entry: int
    computations: dict[int, Computation]
    buffer_assignment: memoryview | None = field(repr=False)
    _stack_frames: memoryview | None = field(repr=False)

    @cached_property
    def instructions(self) -> dict[str, Instruction]:
        """The instructions of all computations, by name."""
        return {one.name: one for computation in self.computations.values() for one in computation.instructions}

    def operands(self, instruction: Instruction) -> list[Instruction | None]:
        """The instructions whose values it uses, None for one that its computation lacks."""
        there = self.computations[instruction.computation].by_number
        return [there.get(number) for number in instruction.operands]

    def origin(self, instruction: Instruction) -> Instruction:
        """The instruction that names the framework's op: itself, or for a fusion that names none, the last one in it
        that does. None in it does: itself."""
        if instruction.opcode != "fusion" or instruction.op_name:
            return instruction
        called = (self.computations[own_id] for own_id in instruction.called if own_id in self.computations)
        fused = (one for computation in called for one in reversed(computation.instructions) if one.op_name)
        return next(fused, instruction)

    def types(self, instruction: Instruction) -> frozenset[int]:
        """The element types (`PrimitiveType`) of what it produces and uses."""
        used = [operand.arrays for operand in self.operands(instruction) if operand is not None]
        return frozenset(array.type for arrays in (instruction.arrays, *used) for array in arrays)

    def source(self, instruction: Instruction) -> str:
        """Where the framework's program has it, as `file:line`; empty if unknown."""
        metadata = instruction.metadata
        file, line = _text(metadata, _SOURCE_FILE), metadata.get(_SOURCE_LINE, 0)
        if not file:
            frame = metadata.get(_STACK_FRAME, 0)
            file, line = self._source_of_frame.get(frame if isinstance(frame, int) else 0, ("", 0))
        return f"{file}:{line}" if file and isinstance(line, int) else file

    @cached_property
    def _source_of_frame(self) -> dict[int, tuple[str, int]]:
        """(file, line) of each stack frame; frames, locations and files count from 1."""
        if self._stack_frames is None:
            return {}
        files = dict(enumerate(map(text_of, messages(self._stack_frames, _FILE_NAMES)), 1))
        locations = dict(enumerate(map(_numbers, messages(self._stack_frames, _LOCATIONS)), 1))
        out = {}
        for number, frame in enumerate(map(_numbers, messages(self._stack_frames, _FRAMES)), 1):
            location = locations.get(frame.get(_LOCATION_OF_FRAME, 0), {})
            file = files.get(location.get(_FILE_OF_LOCATION, 0), "")
            out[number] = file, location.get(_LINE_OF_LOCATION, 0)
        return out


def read_program(proto: memoryview) -> Program:
    """The program in an `HloProto`.

    Raises `NotAProfile` if its bytes are invalid or it has more than `MOST_INSTRUCTIONS` instructions. Details of
    instructions raise it when they are read.
    """
    name, entry, count = "", 0, 0
    computations: dict[int, Computation] = {}
    frames: memoryview | None = None
    for module in messages(proto, _MODULE):
        for number, content in fields(module):
            if number == _ENTRY and isinstance(content, int):
                entry = content
            elif isinstance(content, int):
                continue
            elif number == _MODULE_NAME:
                name = text_of(content)
            elif number == _STACK_FRAMES:
                frames = content
            elif number == _COMPUTATION:
                computation, instructions = _computation(content, MOST_INSTRUCTIONS - count)
                count += instructions
                computations[computation.number] = computation
    buffers = next(messages(proto, _BUFFER_ASSIGNMENT), None)
    return Program(name, entry, computations, buffers, frames)


def _computation(message: memoryview, most: int) -> tuple[Computation, int]:
    """(the computation, how many instructions it has)."""
    places, number, root, name, name_size, error, at = instruction_places(np.frombuffer(message, np.uint8), most)
    check(error, at)
    if len(places) > most:
        raise NotAProfile(None, 0, f"an HLO module of at most {MOST_INSTRUCTIONS:,} instructions", "more")
    return Computation(number, text_of(message[name : name + name_size]), root, message, places), len(places)


def _numbers(message: memoryview) -> dict[int, int]:
    return {number: content for number, content in fields(message) if isinstance(content, int)}


def _text(found: dict[int, Content], number: int) -> str:
    content = found.get(number, 0)
    return "" if isinstance(content, int) else text_of(content)
