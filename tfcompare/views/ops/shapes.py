"""The column *Shape* of tables of ops, kernels and instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.work.shapes import arrays, arrays_of_instructions, shape_texts
from tfcompare.schema import KERNEL_STATS, OP_STATS

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare.pair import Pair

SHAPE = "array_shape"


def ops_with_shapes(pair: Pair) -> pd.DataFrame:
    """The diff of ops with the column `SHAPE`, missing where no shape is known."""
    return pair.diff().assign(**{SHAPE: _texts(pair, OP_STATS.name)})


def kernels_with_shapes(pair: Pair, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of kernels with `SHAPE`, that of their op; rows without the column `op_name` as they are."""
    if "op_name" not in rows:
        return rows
    texts = _texts(pair, KERNEL_STATS.name)
    by_name = texts.set_axis(pair.diff(KERNEL_STATS.name)["op_name"][texts.index])
    return rows.assign(**{SHAPE: rows["op_name"].map(by_name[~by_name.index.duplicated()]).astype("str")})


def instructions_with_shapes(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the diff of instructions with `SHAPE`."""
    return rows.assign(**{SHAPE: shape_texts(arrays_of_instructions(rows))})


def shape_column(rows: pd.DataFrame) -> list[str]:
    """The column, where any of these rows has a shape."""
    return [SHAPE] if SHAPE in rows and rows[SHAPE].notna().any() else []


def _texts(pair: Pair, name: str) -> pd.Series:
    return pair.cached(("shapes", name), lambda: shape_texts(arrays(pair, name)))
