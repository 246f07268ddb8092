"""`hlo_programs`: every instruction of the XLA programs that ran on one host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.hlo.programs import programs_of
from tfcompare.hlo.expression import digests, expressions
from tfcompare.hlo.program import Program
from tfcompare.xspace import XSpace


def hlo_programs(space: XSpace, ran: pa.Table) -> pa.Table:
    """Columns of `schema.HLO_PROGRAMS`, for the programs in `ran`, the host's `hlo_ops`, in its order.

    Programs that the file lacks are left out. Raises `NotAProfile` for a damaged program.
    """
    programs = programs_of(space)
    ids = {programs.name(own_id): own_id for own_id in programs.ids}
    found = {name: programs.program(ids[name]) for name in ran["program"].unique().to_pylist() if name in ids}
    parts = [_columns(name, program) for name, program in found.items() if program is not None and len(program)]
    if not parts:
        return empty("hlo_programs")
    return host_table("hlo_programs", {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _columns(name: str, program: Program) -> dict[str, np.ndarray[Any, Any]]:
    rows = program.every
    used: list[list[str]] = [[] for _ in rows]
    (owner, _, operand), (caller, _, called) = program.operands.flat(rows), program.called.flat(rows)
    roots = np.where(called < 0, -1, np.append(program.root, -1)[called])
    for row, position in zip([*owner.tolist(), *caller.tolist()], [*operand.tolist(), *roots.tolist()], strict=True):
        used[row].append(str(position))
    return {
        "program": np.full(len(rows), name, object),
        "position": rows,
        "computation": program.computation_names(program.computation),
        "hlo_op": program.names(rows),
        "expression": np.array(expressions(program, rows), object),
        "operands": np.array(list(map(" ".join, used)), object),
        "digest": np.array(digests(program, rows), object),
    }
