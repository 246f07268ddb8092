"""Tiny XLA programs as bytes, written by hand.

    program(computation(1, instruction("p", "parameter", F32[2, 3]), instruction("n", "negate", F32[2, 3], "p")))

Numbers of instructions follow from their order; operands are given by name.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from tests.xspace_builder import Plane, chunk, event, integer, line, meta, plane, varint
from tfcompare.hlo import cost
from tfcompare.hlo.program import Program, read_program
from tfcompare.schema.arrays import Floats, Int64


@dataclasses.dataclass(frozen=True)
class Type:
    """An element type; `F32[2, 3]` is a shape."""

    number: int

    def __getitem__(self, dimensions: int | tuple[int, ...]) -> bytes:
        sizes = dimensions if isinstance(dimensions, tuple) else (dimensions,)
        return integer(2, self.number) + chunk(3, b"".join(map(varint, sizes)))

    @property
    def scalar(self) -> bytes:
        return self[()]


S8, S32, U8, BF16, F32, C64, PRED = (Type(number) for number in (2, 4, 6, 16, 11, 15, 1))


def shapes(*parts: bytes) -> bytes:
    """A tuple of these shapes."""
    return integer(2, 13) + b"".join(chunk(4, part) for part in parts)


@dataclasses.dataclass(frozen=True)
class Instruction:
    name: str
    opcode: str
    shape: bytes
    operands: tuple[str, ...]
    calls: tuple[int, ...]
    others: bytes


def instruction(
    name: str, opcode: str, shape: bytes, *operands: str, calls: tuple[int, ...] = (), others: bytes = b""
) -> Instruction:
    """`others`: further fields, as bytes."""
    return Instruction(name, opcode, shape, operands, calls, others)


def computation(number: int, *instructions: Instruction) -> bytes:
    """The last instruction is the root."""
    numbers = {one.name: 100 * number + i for i, one in enumerate(instructions)}
    body = b""
    for one in instructions:
        fields = [chunk(1, one.name), chunk(2, one.opcode), chunk(3, one.shape), integer(35, numbers[one.name])]
        fields += [chunk(36, b"".join(varint(numbers.get(name, 99_999)) for name in one.operands))]
        fields += [integer(38, called) for called in one.calls]
        body += chunk(2, b"".join(fields) + one.others)
    root = numbers[instructions[-1].name] if instructions else 0
    return chunk(1, f"computation.{number}") + body + integer(5, number) + integer(6, root)


def program(*computations: bytes, name: str = "module", others: bytes = b"") -> bytes:
    """An `HloProto`; the last computation is the entry. `others`: further fields of the module."""
    return chunk(1, chunk(1, name) + b"".join(chunk(3, one) for one in computations) + others)


def metadata(protos: dict[str, bytes]) -> Plane:
    """The plane that stores these programs, each under its name and id, as in `jit_f(7)`."""
    return plane("/host:metadata", line("", *(event(meta(n, "", {"Hlo Proto": it}), 0, 0) for n, it in protos.items())))


def read(*computations: bytes) -> Program:
    return read_program(memoryview(program(*computations)))


def flops(name: str, *computations: bytes) -> float | None:
    """The operations of the instruction of that name, None if unknown."""
    return _cost(cost.flops, name, read(*computations))


def bytes_accessed(name: str, *computations: bytes) -> float | None:
    """As `flops`."""
    return _cost(cost.bytes_accessed, name, read(*computations))


def _cost(costs: Callable[[Program, Int64], Floats], name: str, found: Program) -> float | None:
    (value,) = costs(found, found.rows_named([name])).tolist()
    return None if math.isnan(value) else value


def parameter(name: str, shape: bytes, number: int = 0) -> Instruction:
    return instruction(name, "parameter", shape, others=integer(9, number))
