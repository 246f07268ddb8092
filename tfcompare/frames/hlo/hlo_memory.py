"""`hlo_memory`: the buffers of the XLA programs in one host's profile."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.errors import NotAProfile
from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.grouping import combinations
from tfcompare.frames.hlo.programs import programs_of
from tfcompare.hlo.buffers import Buffer, buffers
from tfcompare.hlo.program import Program
from tfcompare.hlo.shapes import Array
from tfcompare.xspace import XSpace

_FIGURES = ("kind", "size_bytes", "lifetime_share", "first_position", "last_position", "positions", "is_live_at_peak")
"""Columns that are attributes of a `Buffer`."""
_LARGEST_SPACE = 1 << 31


def hlo_memory(space: XSpace) -> tuple[pa.Table, tuple[str, ...]]:
    """(columns of `schema.HLO_MEMORY`, by program, the largest buffer first; a remark if programs are damaged).

    Buffers of programs that did not run while the profile was recorded are included.
    """
    programs = programs_of(space)
    found: list[pa.Table] = []
    damaged: dict[str, NotAProfile] = {}
    for program_id in programs.ids:
        name = programs.name(program_id)
        try:
            program = programs.program(program_id)
            if program is not None and (of_program := buffers(program)):
                found.append(_table(program, of_program, name))
        except NotAProfile as error:
            damaged[name] = error
    if not found:
        return empty("hlo_memory"), _remarks(damaged)
    return _in_order(pa.concat_tables(found)), _remarks(damaged)


def _in_order(rows: pa.Table) -> pa.Table:
    """By program, the largest buffer first; the largest one of those with the same keys."""
    keys = ("program", "memory_space", "hlo_op", "output_index")
    order = [("program", "ascending"), ("size_bytes", "descending"), *((key, "ascending") for key in keys[1:])]
    rows = rows.take(pc.sort_indices(rows, order)).combine_chunks()
    firsts, _ = combinations(*(pc.rank(rows[key], tiebreaker="dense").to_numpy().astype(np.int64) for key in keys))
    columns = {name: rows[name].take(firsts).combine_chunks() for name in rows.column_names}
    return host_table("hlo_memory", columns)


def _table(program: Program, found: list[Buffer], name: str) -> pa.Table:
    """A row for each buffer of the program, texts not yet as dictionaries."""
    numbers = np.array([one.instruction for one in found], np.int64)
    instruction = program.rows_numbered(numbers)
    known = np.flatnonzero(instruction >= 0)
    texts = {column: np.full(len(found), "", object) for column in ("hlo_op", "shape", "op_name", "source")}
    rows = instruction[known]
    texts["hlo_op"][known] = program.names(rows)
    texts["shape"][known] = [
        _shape(program.shape_of(row).arrays, found[at].output)
        for at, row in zip(known.tolist(), rows.tolist(), strict=True)
    ]
    texts["op_name"][known] = program.op_names(rows)
    texts["source"][known] = program.sources(rows)
    figures = {column: [getattr(one, column) for one in found] for column in _FIGURES}
    columns = {
        "program": [name] * len(found),
        "memory_space": [min(one.memory_space, _LARGEST_SPACE) for one in found],
        "output_index": [",".join(map(str, one.output)) for one in found],
    }
    return pa.table(columns | texts | figures)


def _shape(arrays: tuple[Array, ...], index: tuple[int, ...]) -> str:
    """The array at that index of an instruction's value; empty for a table of pointers to the parts of a tuple."""
    if len(index) == 1 and index[0] < len(arrays):
        return str(arrays[index[0]])
    return str(arrays[0]) if not index and len(arrays) == 1 else ""


def _remarks(damaged: dict[str, NotAProfile]) -> tuple[str, ...]:
    if not damaged:
        return ()
    name, error = next(iter(damaged.items()))
    others = f" (and {len(damaged) - 1:,} more)" if len(damaged) > 1 else ""
    where = f"at its byte {error.offset:,} expected {error.expected}, found {error.found}"
    return (f"the memory of the XLA program {name}{others} is unknown: {where}",)
