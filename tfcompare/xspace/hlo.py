"""HLO instructions: names and types, from the serialized `HloProto` that a profile contains for each XLA program.

Field numbers are those of `hlo.proto` and `xla_data.proto` (OpenXLA).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfcompare.errors import NotAProfile
from tfcompare.xspace.texts import text_of

_MODULE, _COMPUTATION, _INSTRUCTION = 1, 3, 2
_NAME, _SHAPE, _METADATA, _ID, _OPERANDS = 1, 3, 7, 35, 36
_ELEMENT_TYPE, _TUPLE_SHAPES = 2, 4
_OP_TYPE, _OP_NAME = 1, 2
_TYPES_END = 64  # more than all existing types, so that types in a damaged file cannot accumulate without limit
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Instruction(NamedTuple):
    """An HLO instruction's name, the framework op it came from (`op_name:op_type`, or empty), and the types of its
    outputs and operands, as `PrimitiveType` numbers (`xla_data.proto`)."""

    name: str
    tf_op: str
    types: frozenset[int] = frozenset()


class _Read(NamedTuple):
    instruction: Instruction
    number: int
    operands: list[int]


def instructions(proto: memoryview) -> dict[str, Instruction]:
    """The instructions of an `HloProto` by name; raises `NotAProfile` if its bytes are invalid."""
    out: dict[str, Instruction] = {}
    for module in _messages(proto, _MODULE):
        for computation in _messages(module, _COMPUTATION):
            read = [_instruction(message) for message in _messages(computation, _INSTRUCTION)]
            made = {one.number: one.instruction.types for one in read}
            for one in read:
                taken = (made.get(operand, frozenset()) for operand in one.operands)
                out[one.instruction.name] = one.instruction._replace(types=one.instruction.types.union(*taken))
    return out


def _instruction(message: memoryview) -> _Read:
    """An instruction with the types of its outputs only."""
    name, tf_op, own_id = "", "", 0
    types: frozenset[int] = frozenset()
    operands: list[int] = []
    for number, content in _fields(message):
        if isinstance(content, int):
            own_id = content if number == _ID else own_id
            operands += [content] if number == _OPERANDS else []
        elif number == _NAME:
            name = text_of(content)
        elif number == _SHAPE:
            types = _element_types(content)
        elif number == _OPERANDS:
            operands += _packed(content)
        elif number == _METADATA:
            tf_op = _tf_op(content)
    return _Read(Instruction(name, tf_op, types), own_id, operands)


def _tf_op(metadata: memoryview) -> str:
    texts = {number: text_of(content) for number, content in _fields(metadata) if not isinstance(content, int)}
    op_name, op_type = texts.get(_OP_NAME, ""), texts.get(_OP_TYPE, "")
    return f"{op_name}:{op_type}" if op_name or op_type else ""


def _element_types(shape: memoryview) -> frozenset[int]:
    """The element type of an array, or those of all arrays in a tuple."""
    found = set()
    waiting = [shape]
    while waiting:
        for number, content in _fields(waiting.pop()):
            if isinstance(content, int):
                found.update([content] if number == _ELEMENT_TYPE and content < _TYPES_END else [])
            elif number == _TUPLE_SHAPES:
                waiting.append(content)
    return frozenset(found)


def _packed(content: memoryview) -> list[int]:
    at, out = 0, []
    while at < len(content):
        value, at = _varint(content, at)
        out.append(value)
    return out


def _messages(message: memoryview, wanted: int) -> Iterator[memoryview]:
    return (content for number, content in _fields(message) if number == wanted and not isinstance(content, int))


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    """(field number, content) of each length-delimited field, (field number, value) of each varint; skips others."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            length, at = _varint(message, at)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise NotAProfile(None, at, "the beginning of a field of an HLO module", "bytes that begin none")
        if length > end - at:
            raise NotAProfile(None, at, "a field that ends within its HLO module", "one that runs past its end")
        if wire == _BYTES:
            yield tag >> 3, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise NotAProfile(None, at, "a number in an HLO module", "the end of its message, or more than ten bytes")
