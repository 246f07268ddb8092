"""Tables of compiled programs: their instructions' texts on demand, and their memory at the peak."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.errors import NotAProfile
from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.grouping import combinations
from tfcompare.frames.hlo.programs import metadata_instructions, programs_of
from tfcompare.hlo.buffers import Buffer, buffers
from tfcompare.hlo.expression import digests, expressions
from tfcompare.hlo.neighbours import fused_texts, operand_texts, source_ops, user_texts
from tfcompare.hlo.program import Program
from tfcompare.hlo.shapes import Array
from tfcompare.hlo.stack_frames import MOST_FRAMES
from tfcompare.schema.arrays import Int64
from tfcompare.xspace import XSpace
from tfcompare.xspace.lookup import last_rows

_FIGURES = ("kind", "size_bytes", "lifetime_share", "first_position", "last_position", "positions", "is_live_at_peak")
"""Columns that are attributes of a `Buffer`."""
_LARGEST_SPACE = 1 << 31
_DIGEST_BYTES = 16
_TEXTS: dict[str, Callable[[Program, Int64], list[str]]] = {
    "operands": operand_texts,
    "users": user_texts,
    "fused": fused_texts,
    "source_ops": source_ops,
    "source_stack": lambda program, rows: program.stacks(program.origins(rows)),
}
_RECORDED_FRAME = re.compile(r"(\S.*?:\d+)(?:\s+|$)")
"""A frame of the stacks that TPUs record: `model.py:12:7 `, with the column."""
_CUT_OUT = re.compile(r"\.\.\.\d+_bytes_[0-9a-f]+\.\.\.")
"""What stands in the middle of long texts (`xspace.texts`)."""


def hlo_contents(space: XSpace, ran: pa.Table) -> pa.Table:
    """The table `hlo_contents`, with a row for each program in `ran`, the host's `hlo_ops`, that the file has: the
    number of its `instructions`, and a digest of its bytes as `content`: those with other bytes may be equal, too.

    Raises `NotAProfile` for a damaged program.
    """
    found = _that_ran(space, ran)
    columns = {
        "program": [name for name, _, _ in found],
        "instructions": [len(program) for _, program, _ in found],
        "content": [blake2b(proto, digest_size=_DIGEST_BYTES).hexdigest() for _, _, proto in found],
    }
    return host_table("hlo_contents", columns)


def hlo_programs(space: XSpace, ran: pa.Table) -> pa.Table:
    """Columns of `schema.HLO_PROGRAMS`, for the programs in `ran`, the host's `hlo_ops`, in its order.

    Programs that the file lacks are left out. Raises `NotAProfile` for a damaged program.
    """
    parts = [_columns(name, program) for name, program, _ in _that_ran(space, ran)]
    if not parts:
        return empty("hlo_programs")
    return host_table("hlo_programs", {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _that_ran(space: XSpace, ran: pa.Table) -> list[tuple[str, Program, memoryview]]:
    """(name, program, bytes) of the programs in `ran` that the file has, without those that have no instructions."""
    programs = programs_of(space)
    ids = {programs.name(own_id): own_id for own_id in programs.ids}
    names = [name for name in ran["program"].unique().to_pylist() if name in ids]
    every = ((name, programs.program(ids[name]), programs.proto(ids[name])) for name in names)
    return [(name, program, proto) for name, program, proto in every if program is not None and len(program)]


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


def hlo_texts(space: XSpace, ran: pa.Table) -> pa.Table:
    """Columns of `schema.HLO_TEXTS`, a row for each program and instruction in `ran`, the host's `hlo_ops`, in its
    order. Raises `NotAProfile` for a damaged program."""
    if not len(ran):
        return empty("hlo_texts")
    programs = programs_of(space)
    ids = {programs.name(own_id): own_id for own_id in programs.ids}
    keys = dict.fromkeys(zip(*(ran[key].to_pylist() for key in ("program", "hlo_op")), strict=True))
    known = [(at, ids[program], hlo_op) for at, (program, hlo_op) in enumerate(keys) if program in ids]
    texts = {name: np.full(len(keys), "", object) for name in _TEXTS}
    rows = np.array([at for at, _, _ in known], np.int64)
    own_ids = np.array([own_id for _, own_id, _ in known], np.int64)
    for program, positions, found in programs.find(own_ids, [hlo_op for _, _, hlo_op in known]):
        for name, texts_of in _TEXTS.items():
            texts[name][rows[positions]] = texts_of(program, found)
    recorded = _recorded_stacks(space)
    for at, (program, hlo_op) in enumerate(keys) if recorded else ():
        texts["source_stack"][at] = texts["source_stack"][at] or recorded.get((program, hlo_op), "")
    names = {"program": [program for program, _ in keys], "hlo_op": [hlo_op for _, hlo_op in keys]}
    return host_table("hlo_texts", {**names, **texts})


def _recorded_stacks(space: XSpace) -> dict[tuple[str, str], str]:
    """The stacks that TPUs record with instructions, by (program, instruction), as `Program.stacks`, with columns."""
    stacks = space.metadata_strings("source_stack")
    labels = [_recorded_stack(text) for text in stacks.labels]
    codes = stacks.spread()
    entries = np.flatnonzero(codes >= 0)
    ids, hlo_ops = metadata_instructions(space, entries)
    keys = zip(map(programs_of(space).name, ids.tolist()), hlo_ops.tolist(), strict=True)
    return {key: labels[code] for key, code in zip(keys, codes[entries].tolist(), strict=True)}


def _recorded_stack(text: str) -> str:
    frames = _RECORDED_FRAME.findall(text)
    frames = ["…" if _CUT_OUT.search(frame) else frame for frame in frames]
    return "\n".join(["…", *frames[-MOST_FRAMES:]] if len(frames) > MOST_FRAMES else frames)


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
    return _in_order(pa.concat_tables(found)) if found else empty("hlo_memory"), _remarks(damaged)


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
    instruction = last_rows(program.number, numbers)
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
