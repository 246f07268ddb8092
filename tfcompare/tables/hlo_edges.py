"""`hlo_edges`: which instruction of a compiled program uses the value of which other one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema
from tfcompare.frames import HostTables, table_of_hosts
from tfcompare.frames.arrow import texts, with_labels_once
from tfcompare.frames.grouping import combinations
from tfcompare.hlo.contents import Lists
from tfcompare.hlo.shapes import size_of_text
from tfcompare.schema.arrays import Bools
from tfcompare.schema.hlo import OPERAND, RESULT_OF_CALL

_KINDS = (OPERAND, RESULT_OF_CALL, "")
_POSITION = r"^[0-9]{1,9}$"
_SHAPE = r"^%?\S+ = (?P<shape>\([^)]*\)|[^ ()]+) "
"""In an instruction as `hlo.expression` writes it."""


def hlo_edges(hosts: Sequence[HostTables]) -> pa.Table:
    """Columns of `schema.HLO_EDGES` of these hosts, texts as dictionaries, by program and position.

    Raises a `TfcompareError` if a profile is not there any more.
    """
    rows, counts = table_of_hosts("hlo_programs", hosts)
    rows = with_labels_once(rows)
    host = np.repeat(np.arange(len(hosts)), counts)
    names, used, program, computation = (
        rows[name].combine_chunks() for name in ("hlo_op", "operands", "program", "computation")
    )
    to, number, operand = _positions(used.dictionary).flat(used.indices.to_numpy())
    position, in_program = rows["position"].to_numpy(), combinations(host, program.indices.to_numpy())[1]
    made_by = np.clip(to + operand - position[to], 0, max(len(rows) - 1, 0))  # programs are in order, from position 0
    is_known = (position[made_by] == operand) & (in_program[made_by] == in_program[to])
    is_operand = computation.indices.to_numpy()[made_by] == computation.indices.to_numpy()[to]
    shapes = _shapes(rows["expression"].combine_chunks())
    sizes = np.array(list(map(_size, shapes.dictionary.to_pylist())), np.float64)
    columns = {
        "host": texts(host[to], [one.host for one in hosts]),
        "program": program.take(to),
        "to_position": position[to],
        "number": number,
        "kind": texts(np.select([~is_known, is_operand], [2, 0], 1), _KINDS),
        "from_position": pa.array(operand, mask=~is_known),
        "from_hlo_op": _where(is_known, names.take(made_by)),
        "to_hlo_op": names.take(to),
        "shape": _where(is_known, shapes.take(made_by)),
        "size_bytes": np.where(is_known, sizes[shapes.indices.to_numpy()][made_by], np.nan),
    }
    return pa.table({name: columns[name] for name in schema.HLO_EDGES.column_names})


def count_edges(hosts: Sequence[HostTables]) -> int:
    """The number of rows that `hlo_edges` would have. Raises as that does."""
    used = with_labels_once(table_of_hosts("hlo_programs", hosts)[0])["operands"].combine_chunks()
    return int(np.diff(_positions(used.dictionary).first)[used.indices.to_numpy()].sum(dtype=np.int64))


def _positions(operands: pa.StringArray) -> Lists:
    """The positions in texts such as `3 17 -1`, −1 for what is none."""
    lists = pc.split_pattern(operands, " ")
    items, owner = lists.flatten(), pc.list_parent_indices(lists).to_numpy()
    is_position = pc.match_substring_regex(items, _POSITION)
    found = pc.if_else(is_position, items, "-1").cast(pa.int64()).to_numpy()
    is_there = pc.not_equal(items, "").to_numpy(zero_copy_only=False)  # an instruction without operands
    return Lists.grouped(owner[is_there], found[is_there], len(operands))


def _shapes(expressions: pa.DictionaryArray) -> pa.DictionaryArray:
    """The shape of what each instruction makes; empty where its text tells none."""
    found = pc.struct_field(pc.extract_regex(expressions.dictionary, _SHAPE), "shape")
    return pc.fill_null(found, "").dictionary_encode().take(expressions.indices)


def _size(shape: str) -> float:
    """The size in bytes of an array or tuple such as `(f32[8], s4[3])`; NaN where it is not told."""
    parts = shape.removeprefix("(").removesuffix(")").split(", ") if shape != "()" else []
    size = float(np.ceil([size_of_text(part) for part in parts]).sum())
    return size if np.isfinite(size) else np.nan


def _where(is_known: Bools, column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The texts that are known; empty for the others."""
    codes = np.where(is_known, column.indices.to_numpy(), len(column.dictionary))
    return texts(codes, [*column.dictionary.to_pylist(), ""])
