"""Compiled loops over the protobuf messages of an XLA program."""

from __future__ import annotations

import numpy as np

from tfcompare.xspace.compilation import Array, Int, compiled, inlined
from tfcompare.xspace.wire import OK, field

_VARINT, _BYTES = 0, 2
_INSTRUCTION, _COMPUTATION_ID, _ROOT = 2, 5, 6
_NAME, _OPCODE, _SHAPE, _METADATA, _ID = 1, 2, 3, 7, 35
OPERAND_IDS, CALLED_IDS = 36, 38

# Columns of `instruction_places`.
NUMBER, MESSAGE, NAME, OPCODE, SHAPE, METADATA, OPERANDS, CALLED = 0, 1, 3, 5, 7, 9, 11, 13
IN_PARTS = -1


@compiled
def field_rows(buffer: Array, pos: Int, most: Int) -> tuple[Array, Int, Int]:
    """(rows of at most so many fields from `pos` on, the next position, the error code).

    A row is the field's number, the first byte and the length of its content; of a varint −1 and the value.
    """
    end = np.int64(len(buffer))
    rows = np.empty((min((end - pos) // 2 + 1, most), 3), np.int64)
    count, error = 0, np.int64(OK)
    while pos < end and count < len(rows) and error == OK:
        number, wire, content, begin, following, error = field(buffer, pos, end)
        pos = following if error == OK else begin
        if error == OK and wire in (_VARINT, _BYTES):
            rows[count, 0] = number
            rows[count, 1] = begin if wire == _BYTES else -1
            rows[count, 2] = content
            count += 1
    return rows[:count], pos, error


@compiled
def instruction_places(buffer: Array, most: Int) -> tuple[Array, Int, Int, Int, Int, Int, Int]:
    """(the instructions, id, number of the root, first byte and length of the name, error code, byte of the error).

    A row for each instruction, one more than `most` if there are more: its number, then at `MESSAGE`, `NAME` and so on
    the first byte of that and its length; `IN_PARTS` is the length of a list of numbers that is not in one piece.
    """
    end = np.int64(len(buffer))
    pos, count, error = np.int64(0), 0, np.int64(OK)
    while pos < end and count <= most and error == OK:
        number, wire, content, begin, pos, error = field(buffer, pos, end)
        count += wire == _BYTES and number == _INSTRUCTION
    rows = np.zeros((count, 15), np.int64)
    own_id, root, name, name_size, at = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    pos, row, error = np.int64(0), 0, np.int64(OK)
    while pos < end and error == OK:
        at = pos
        number, wire, content, begin, pos, error = field(buffer, pos, end)
        if wire == _VARINT and number == _COMPUTATION_ID:
            own_id = content
        elif wire == _VARINT and number == _ROOT:
            root = content
        elif wire == _BYTES and number == _NAME:
            name, name_size = begin, content
        elif wire == _BYTES and number == _INSTRUCTION and error == OK and row < count:
            rows[row, MESSAGE], rows[row, MESSAGE + 1] = begin, content
            inner, last = begin, begin + content
            while inner < last and error == OK:
                at = inner
                number, wire, content, begin, inner, error = field(buffer, inner, last)
                place = _place_of(number)
                is_list = number == OPERAND_IDS or number == CALLED_IDS
                if wire == _VARINT and number == _ID:
                    rows[row, NUMBER] = content
                elif is_list and (wire != _BYTES or rows[row, place + 1] != 0):
                    rows[row, place + 1] = IN_PARTS
                elif wire == _BYTES and place > 0:
                    rows[row, place], rows[row, place + 1] = begin, content
            row += 1
    return rows, own_id, root, name, name_size, error, at


@inlined
def _place_of(number: Int) -> Int:
    """The column of that field of an instruction, 0 if it has none."""
    if number == _NAME:
        return NAME
    if number == _OPCODE:
        return OPCODE
    if number == _SHAPE:
        return SHAPE
    if number == _METADATA:
        return METADATA
    if number == OPERAND_IDS:
        return OPERANDS
    return CALLED if number == CALLED_IDS else 0
