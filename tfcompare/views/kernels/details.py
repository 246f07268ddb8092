"""One row of the kernel stats: the launches of a kernel or an op, and what the op took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.kernel_groups import KEYS, KernelGrouping, counted_under, group_kernels
from tfcompare.compare.matching.kernel_names import kernel_labels
from tfcompare.compare.pair import Pair
from tfcompare.compare.work.kernel_work import with_kernel_terms, without_work
from tfcompare.text import as_code
from tfcompare.views import links
from tfcompare.views.blocks import Block, Code, Details, Links, Live, Text
from tfcompare.views.columns import row_keys
from tfcompare.views.kernels.figures import COUNT, TIME, with_ranks_and_shares
from tfcompare.views.ops import op
from tfcompare.views.ops.shapes import kernels_with_shapes
from tfcompare.views.view import CHANGE, by_role, cached_per_pair

By = KernelGrouping | Literal["launch"]

LAUNCH = ["block_dim", "grid_dim", "registers_per_thread", "shared_memory_bytes"]
FLAGS = ["is_op_tensor_core_eligible", "is_kernel_using_tensor_core"]
DURATIONS = ["avg_duration_us", "min_duration_us", "max_duration_us"]
NO_OP = "(no op)"
"""The op of kernels for which the profile names none."""


@cached_per_pair
def rows_of(pair: Pair, by: By) -> pd.DataFrame:
    """The diff of the pair's kernels, aggregated, with terms of each change, ranks, shares and their ops' shapes."""
    rows = diff = pair.diff("kernel_stats")
    group_of = pd.Series(diff.index, diff.index)
    if by != "launch":
        counted = counted_under(diff, by, pair.manual_pairs)
        rows = group_kernels(diff, by, pair.group_verdicts, pair.manual_pairs, counted)
        groups = rows[KEYS[by]].reset_index(names="group")
        group_of = counted.merge(groups, on=KEYS[by], how="left")["group"].set_axis(diff.index)
    if not all(map(len, pair.tables("hlo_ops"))):
        return kernels_with_shapes(pair, with_ranks_and_shares(without_work(rows)))
    with_terms = with_kernel_terms(rows, diff, group_of, pair.diff(), per_op=by == "op_name")
    return kernels_with_shapes(pair, with_ranks_and_shares(with_terms))


@cached_per_pair
def display_names(pair: Pair) -> dict[str, str]:
    """The short name of each kernel of the pair, and the text for no op."""
    diff = pair.diff("kernel_stats")
    return {**kernel_labels([*diff["kernel_name"], *diff["kernel_name_candidate"].dropna()]), "": NO_OP}


def kernel_key(rows: pd.DataFrame) -> pd.Series:
    """A key for each row that is unique and short enough for a URL."""
    keys = [name for name in ("host", "kernel_name", "op_name", *LAUNCH, "status") if name in rows]
    return row_keys(rows, keys)


def details_of_row(pair: Pair, row: pd.Series, by: By) -> Details:
    """The op of a row of `rows_of`, or the kernel with its launches and its op if it has only one."""
    launches, match = launches_of(pair, row, by), str(row["match"])
    if by == "op_name":
        return Details(str(row["op_name"]) or NO_OP, partial(_of_op, pair, launches, match))
    kernel = str(row["kernel_name"])
    title = display_names(pair).get(kernel, kernel)
    own = launches["kernel_name"].tolist()  # a group's name has an addition where different kernels have one name
    name = kernel if kernel in own else str(own[0])
    return Details(title, partial(_of_kernel, pair, launches, name, match, by))


def launches_of(pair: Pair, row: pd.Series, by: By) -> pd.DataFrame:
    """The rows of the diff that a row of `rows_of` aggregates."""
    rows = rows_of(pair, "launch")
    if by == "launch":
        return rows.loc[[row.name]] if row.name in rows.index else rows.iloc[:0]
    counted = counted_under(rows, by, pair.manual_pairs)
    keys = [name for name in ("kernel_name", "op_name") if name in row.index]
    return rows[(counted[keys] == row[keys]).all(axis=1)]


def _of_op(pair: Pair, launches: pd.DataFrame, match: str) -> Iterator[Block]:
    yield _launches(pair, launches)
    for op_name in _ops_of(launches):
        yield Links([links.to_op(op_name)])
        yield from op.times(pair, op_name)
        yield from op.memory(pair, op_name, op_name)
    if not pair.is_single:
        yield Live("pair_kernel", (launches, match, ("op_name",)))


def _of_kernel(pair: Pair, launches: pd.DataFrame, kernel: str, match: str, by: By) -> Iterator[Block]:
    yield Code(kernel)
    for other in [] if pair.is_single else launches["kernel_name_candidate"].dropna().unique():
        if other != kernel:
            yield Text("In the candidate:", "quiet")
            yield Code(other)
    yield Links([links.to_kernel(kernel)])
    yield _launches(pair, launches)
    if launches["registers_per_thread"].isna().all():
        yield Text("The profile has no numbers of registers; profilers of AMD GPUs do not record them.", "quiet")
    if len(ops := _ops_of(launches)) == 1:
        yield Text(f"**Op** {as_code(ops[0])}")
        yield from op.times(pair, ops[0])
        yield from op.memory(pair, ops[0], ops[0])
    if pair.is_single:
        return
    if by == "kernel_name":  # a kernel of many ops
        yield Text("Group by op, or by kernel and op, to pair rows manually.", "quiet")
    else:
        yield Live("pair_kernel", (launches, match, ("op_name", "kernel_name")))


def _ops_of(launches: pd.DataFrame) -> list[str]:
    """The names of the ops of the launches: the baseline's, if it has the row."""
    return [name for name in launches["op_name"].unique() if name]


def _launches(pair: Pair, launches: pd.DataFrame) -> Block:
    """The launches: first the columns that differ between them, then their figures."""
    keys = [name for name in ("op_name", "kernel_name", "host") if launches[name].nunique() > 1] or ["op_name"]
    launch, both = {}, launches[launches["status"] == MATCHED]
    for key in LAUNCH:
        is_same = both[key].astype("str").tolist() == both[f"{key}_candidate"].astype("str").tolist()
        launch[key] = [key] if is_same else [key, f"{key}_candidate"]
    names = [*keys, *launch["block_dim"], *launch["grid_dim"], *by_role(TIME, CHANGE[:3]), *by_role(COUNT)]
    names += [*launch["registers_per_thread"], *launch["shared_memory_bytes"]]
    names += [name for duration in DURATIONS for name in by_role(duration)]
    names += [*(name for flag in FLAGS for name in by_role(flag)), "status"]
    table = op.small_table(pair, schema.KERNEL_STATS, "Launches", launches, names, "launches_")
    return replace(table, readings=display_names(pair))
