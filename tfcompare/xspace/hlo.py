"""Names of HLO instructions, read from the serialized `HloProto` that a profile carries for each XLA program.

Field numbers are those of `hlo.proto` and `xla_data.proto` (OpenXLA).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfcompare.errors import NotAProfile

_MODULE, _COMPUTATION, _INSTRUCTION = 1, 3, 2
_NAME, _METADATA = 1, 7
_OP_TYPE, _OP_NAME = 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Instruction(NamedTuple):
    """An HLO instruction's name and the framework op it came from (`op_name:op_type`, or empty)."""

    name: str
    tf_op: str


def instructions(proto: memoryview) -> dict[str, Instruction]:
    """The instructions of an `HloProto` by name; raises `NotAProfile` where its bytes make no sense."""
    out: dict[str, Instruction] = {}
    for module in _messages(proto, _MODULE):
        for computation in _messages(module, _COMPUTATION):
            for message in _messages(computation, _INSTRUCTION):
                instruction = _instruction(message)
                out[instruction.name] = instruction
    return out


def _instruction(message: memoryview) -> Instruction:
    name, op_type, op_name = "", "", ""
    for number, content in _fields(message):
        if number == _NAME:
            name = _text(content)
        elif number == _METADATA:
            for inner, text in _fields(content):
                if inner == _OP_TYPE:
                    op_type = _text(text)
                elif inner == _OP_NAME:
                    op_name = _text(text)
    return Instruction(name, f"{op_name}:{op_type}" if op_name or op_type else "")


def _messages(message: memoryview, wanted: int) -> Iterator[memoryview]:
    return (content for number, content in _fields(message) if number == wanted)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """(field number, content) of each length-delimited field; all others are skipped."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == _VARINT:
            _, at = _varint(message, at)
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


def _text(content: memoryview) -> str:
    return content.tobytes().decode("utf-8", errors="replace")
