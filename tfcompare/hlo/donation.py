"""Donated inputs: parameters of a program whose memory its outputs may use, in XLA's notation."""

from __future__ import annotations

from collections import defaultdict

from tfcompare.hlo.program import PARAMETER_NUMBER, Program
from tfcompare.hlo.proto_fields import Content, fields, messages, unpacked

_ENTRIES = 1
_OUTPUT_INDEX, _PARAMETER, _PARAMETER_INDEX, _KIND = 1, 2, 3, 4
_DONOR, _DONOR_INDEX = 1, 2
_KINDS = {1: "may-alias", 2: "must-alias"}
ALIAS, DONOR = "input_output_alias", "buffer_donor"


def donations(program: Program) -> dict[int, str]:
    """For the row of each donated parameter of the main computation, `input_output_alias={ {0}: (1, {}, may-alias) }`
    or `buffer_donor={ (1, {}) }`. Raises `NotAProfile` for damage."""
    found: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for entry in [] if program.aliases is None else messages(program.aliases, _ENTRIES):
        parts = list(fields(entry))
        parameter, output = _number(parts, _PARAMETER), _index(parts, _OUTPUT_INDEX)
        kind = _KINDS.get(_number(parts, _KIND), "undefined")
        found[parameter][ALIAS].append(f"{output}: ({parameter}, {_index(parts, _PARAMETER_INDEX)}, {kind})")
    for entry in [] if program.donors is None else messages(program.donors, _ENTRIES):
        parts = list(fields(entry))
        parameter = _number(parts, _DONOR)
        found[parameter][DONOR].append(f"({parameter}, {_index(parts, _DONOR_INDEX)})")
    if not found:
        return {}
    rows = program.every[program.computation == program.entry]
    rows = rows[program.has_opcode(rows, "parameter".__eq__)]
    numbers = program.integers(rows, PARAMETER_NUMBER).tolist()
    return {
        row: ", ".join(f"{how}={{ {', '.join(entries)} }}" for how, entries in found.pop(number).items())
        for row, number in zip(rows.tolist(), numbers, strict=True)
        if number in found  # the first of its number: parameters have one each
    }


def _number(parts: list[tuple[int, Content]], wanted: int) -> int:
    return next((content for number, content in parts if number == wanted and isinstance(content, int)), 0)


def _index(parts: list[tuple[int, Content]], wanted: int) -> str:
    """The place in a tuple, `{}` for the whole."""
    return f"{{{','.join(map(str, unpacked(content for number, content in parts if number == wanted)))}}}"
