"""`hlo_memory`: the buffers of the XLA programs in one host's profile."""

from __future__ import annotations

import pandas as pd

from tfcompare import schema
from tfcompare.errors import NotAProfile
from tfcompare.frames.hlo.programs import Programs, programs_of
from tfcompare.hlo.buffers import Buffer, buffers
from tfcompare.hlo.program import Instruction, Program
from tfcompare.hlo.shapes import Array
from tfcompare.xspace import XSpace

_KEYS = list(schema.HLO_MEMORY.keys)


def hlo_memory(space: XSpace, host: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """(columns of `schema.HLO_MEMORY`, by program, the largest buffer first; a remark if programs are damaged).

    Buffers of programs that did not run while the profile was recorded are included.
    """
    programs = programs_of(space)
    rows: list[dict[str, object]] = []
    damaged: dict[str, NotAProfile] = {}
    for program_id in programs.ids:
        try:
            rows += _rows(programs, program_id)
        except NotAProfile as error:
            damaged[programs.name(program_id)] = error
    remarks = _remarks(damaged)
    if not rows:
        return schema.HLO_MEMORY.empty(), remarks
    frame = pd.DataFrame(rows).assign(host=host)
    frame = frame.sort_values(["size_bytes", *_KEYS], ascending=[False, *[True] * len(_KEYS)], kind="stable")
    frame = frame.drop_duplicates(_KEYS).sort_values("program", kind="stable")
    return schema.HLO_MEMORY.conform(frame.reset_index(drop=True)), remarks


def _remarks(damaged: dict[str, NotAProfile]) -> tuple[str, ...]:
    if not damaged:
        return ()
    name, error = next(iter(damaged.items()))
    others = f" (and {len(damaged) - 1:,} more)" if len(damaged) > 1 else ""
    where = f"at its byte {error.offset:,} expected {error.expected}, found {error.found}"
    return (f"the memory of the XLA program {name}{others} is unknown: {where}",)


def _rows(programs: Programs, program_id: int) -> list[dict[str, object]]:
    """A row per buffer of the program, without the host."""
    program, name = programs.program(program_id), programs.name(program_id)
    if program is None:
        return []
    by_number = {one.number: one for one in program.instructions.values()}
    return [_row(name, program, one, by_number.get(one.instruction)) for one in buffers(program)]


def _row(name: str, program: Program, buffer: Buffer, instruction: Instruction | None) -> dict[str, object]:
    array = _array(instruction, buffer.output) if instruction is not None else None
    return {
        "program": name,
        "memory_space": min(buffer.memory_space, 1 << 31),
        "hlo_op": instruction.name if instruction is not None else "",
        "output_index": ",".join(map(str, buffer.output)),
        "kind": buffer.kind,
        "shape": str(array) if array is not None else "",
        "op_name": instruction.op_name if instruction is not None else "",
        "source": program.source(instruction) if instruction is not None else "",
        "size_bytes": buffer.size_bytes,
        "lifetime_share": buffer.lifetime_share,
        "first_position": buffer.first_position,
        "last_position": buffer.last_position,
        "positions": buffer.positions,
        "is_live_at_peak": buffer.is_live_at_peak,
    }


def _array(instruction: Instruction, index: tuple[int, ...]) -> Array | None:
    """The array at that index of the instruction's value; None for a table of pointers to the parts of a tuple."""
    made = instruction.arrays
    if len(index) == 1 and index[0] < len(made):
        return made[index[0]]
    return made[0] if not index and len(made) == 1 else None
