"""The arrays of the rows of a diff on both sides: of ops, kernels and instructions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.compare.matching.tiers import PROBABLE
from tfcompare.schema import HLO_OPS, OP_STATS, SIDES
from tfcompare.tables.op_shapes import RESULT, dimensions_of, tensors_of

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side

ARROW = " → "
_OPS = ["op_name", "op_name_candidate"]
_TYPE = r"^[^\[]*"
_FLOATING = r"^b?f\d"
_OF_SIDE = ["shape", "dimensions"]


def arrays(pair: Pair, name: str = OP_STATS.name) -> pd.DataFrame:
    """The known arrays of the rows of the diff of ops, or of the ops of kernels: `row` (its label there), `number` (0
    for the result, else the operand's), and for each side `shape_<side>` and `dimensions_<side>`, as in
    `schema.OP_SHAPES`, missing where unknown, and on a side without the row. Rows follow those of the diff, and numbers
    each other.

    Of an op of compiled programs they are those of the pair of its instructions that takes longest on either side:
    programs may run several, such as both gradients of a convolution, and which of them takes longest differs. Where no
    sure pair is known they are unknown, unless each side has one instruction of the op; of other ops they are those of
    `op_shapes`.
    """
    return pair.cached(("arrays", name), partial(_of_ops, pair, name))


def arrays_of_instructions(rows: pd.DataFrame) -> pd.DataFrame:
    """As `arrays`, without dimensions, of the rows of a diff of `hlo_ops`: those that their texts name."""
    found = _joined(*(tensors_of(rows[f"expression_{side}"].fillna("")) for side in SIDES))
    return found.assign(row=rows.index.to_numpy()[found["row"]])


def shape_texts(every: pd.DataFrame) -> pd.Series:
    """`[3,3,512,128] → [3,3,16,8]` of each row that has any of these `arrays`, by its label: its result, or the first
    operand that differs if the result does not.

    Equal shapes, and those of one side alone, are there once, types only where they differ: `f32[8,64] → bf16[8,64]`.
    """
    differing = every.index.isin(differing_arrays(every).index)
    first = every.assign(is_equal=~differing).sort_values(["row", "is_equal", "number"], kind="stable")
    first = first.drop_duplicates("row").set_index("row")
    before, after = (first[name] for name in _both("shape"))
    both = before.notna() & after.notna()
    same_type = ~both | (_types(before) == _types(after))
    ours, theirs = (side.where(~same_type, side.str.replace(_TYPE, "", regex=True)) for side in (before, after))
    single = ours.where(before.notna(), theirs)
    return single.where(~both | (before == after), ours + ARROW + theirs)


def differing_arrays(every: pd.DataFrame) -> pd.DataFrame:
    """The rows of `arrays` with different shapes on both sides. Fusions list their operands in any order: only those of
    as many dimensions, and of like types, are taken for the same operand."""
    ours, theirs = every["shape_baseline"], every["shape_candidate"]
    differing = every[ours.notna() & theirs.notna() & (ours != theirs)]
    sides = [differing[name] for name in _both("shape")]
    kind, other_kind = map(_types, sides)
    rank, other_rank = (side.str.count(",") for side in sides)
    is_alike = (kind == other_kind) | (kind.str.contains(_FLOATING) & other_kind.str.contains(_FLOATING))
    return differing[(differing["number"] == RESULT) | (is_alike & (rank == other_rank))]


def _types(side: pd.Series) -> pd.Series:
    return side.str.replace(r"\[.*", "", regex=True)


def _both(name: str) -> list[str]:
    return [f"{name}_baseline", f"{name}_candidate"]


def _joined(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """The arrays of both sides by row and number."""
    keys = ["row", "number"]
    texts = [name for name in ours.columns if name in _OF_SIDE]
    sides = (side[[*keys, *texts]] for side in (ours, theirs))
    found = next(sides).merge(next(sides), how="outer", on=keys, suffixes=("_baseline", "_candidate"))
    dtypes = dict.fromkeys((both for name in texts for both in _both(name)), "str")
    return found.sort_values(keys, kind="stable", ignore_index=True).astype(dtypes)


def _of_ops(pair: Pair, name: str) -> pd.DataFrame:
    diff = pair.diff(name)
    rows = diff[_OPS].assign(
        op_name=diff["op_name"].where(diff["status"] != ADDED),
        op_name_candidate=diff["op_name_candidate"].where(diff["status"] != REMOVED),
        row=diff.index,
    )
    of_pairs = _of_instruction_pairs(pair)
    compiled = rows.merge(of_pairs, on=_OPS)
    rest = rows[~rows["row"].isin(compiled["row"]) & ~((diff["status"] == MATCHED) & _run_several(pair, rows))]
    ours, theirs = (
        rest[["row", op]].dropna().merge(_by_op(side), left_on=op, right_on="op")
        for op, side in zip(_OPS, pair.sides, strict=True)
    )
    found = pd.concat([compiled[["row", "number", *_both("shape"), *_both("dimensions")]], _joined(ours, theirs)])
    return found.sort_values(["row", "number"], kind="stable", ignore_index=True)


def _run_several(pair: Pair, rows: pd.DataFrame) -> pd.Series:
    """Which ops run several instructions on either side: the longest of one side may do other work than that of the
    other."""
    found = pd.Series(False, rows.index)
    instructions = pair.diff(HLO_OPS.name)
    for op, name in zip(_OPS, _both("op_name"), strict=True):
        counts = instructions[name].value_counts()
        found |= rows[op].isin(counts.index[counts > 1])
    return found


def _by_op(side: Side) -> pd.DataFrame:
    """`op_shapes` of the run that stands for a side, of several hosts the first that has the op: `op`, `number`,
    `shape`, `dimensions`."""
    every = side.run.table("op_shapes", host=side.host)
    every = every[every["host"] == every.groupby("op_name")["host"].transform("first")]
    operand = every["tensor"].str.removeprefix("operand ")
    number = operand.where(every["tensor"] != "result", str(RESULT)).astype(np.int64)
    return every[_OF_SIDE].assign(op=every["op_name"], number=number)


def _of_instruction_pairs(pair: Pair) -> pd.DataFrame:
    """The arrays of the longest pair of instructions that is surely one, for each pair of ops: `_OPS`, `number`,
    shapes and dimensions of both sides."""
    diff = pair.diff(HLO_OPS.name)
    ops = _both("op_name")
    sure = diff[(diff["status"] == MATCHED) & (diff["match"] != PROBABLE) & (diff[ops] != "").all(axis=1)]
    longest = sure[_both("self_time_us")].max(axis=1).sort_values(ascending=False, kind="stable").index
    chosen = sure.loc[longest].drop_duplicates(ops)
    sides = []
    for side in SIDES:
        found = tensors_of(chosen[f"expression_{side}"])
        sides.append(found.assign(dimensions=dimensions_of(found, chosen[f"op_name_{side}"])))
    found = _joined(*sides)
    names = chosen[ops].iloc[found["row"]].set_axis(_OPS, axis=1).reset_index(drop=True)
    return pd.concat([found.drop(columns="row"), names], axis=1)
