"""The input ops in the view of the input pipeline: every op, what opens for one, and the largest changes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial

import pandas as pd

from tfcompare import schema
from tfcompare.charts import ops
from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.pair import Pair
from tfcompare.markdown import as_code
from tfcompare.schema import SIDES
from tfcompare.tools import step_series
from tfcompare.tools.input import input_ops
from tfcompare.tools.ops.op_stats import ops_of, with_words
from tfcompare.tools.step_series import has_step_times
from tfcompare.views import links, op
from tfcompare.views.blocks import Block, Chart, Details, Links, Opens, Table, Text
from tfcompare.views.op import LACKING
from tfcompare.views.view import CHANGE, by_role, changed, everything, largest_first

MOVERS = 10
_WORDS_IN = ["op_name", "category", "op_name_candidate", "category_candidate"]


def rows_of(pair: Pair, text: str, category: str | None) -> pd.DataFrame:
    """The input ops that have these words and are of that category, with their shares of all input ops."""
    rows = with_words(_every_row(pair), text, _WORDS_IN)
    if category is None:
        return rows
    return rows[(rows["category"] == category) | (rows["category_candidate"] == category)]


def _every_row(pair: Pair) -> pd.DataFrame:
    return pair.cached("input_ops", lambda: input_ops.with_shares(pair.diff("input_pipeline")))


def table(pair: Pair, rows: pd.DataFrame) -> Table:
    """The table of these rows; each opens that op in every step."""
    return Table(
        schema.INPUT_PIPELINE,
        "Input ops",
        largest_first(pair, schema.INPUT_PIPELINE, rows),
        _columns(rows, every=False),
        every=_columns(rows, every=True),
        is_alone=pair.is_single,
        nothing="No input op matches the filter. Clear it to see all.",
        opens=Opens(partial(_details, pair), input_op_key),
        sums_per=pair.sums_per(),
        everything=partial(everything, pair, schema.INPUT_PIPELINE, input_ops.with_shares),
    )


def _columns(rows: pd.DataFrame, *, every: bool) -> list[str]:
    """The table's columns, most important first."""
    host = ["host"] if every or rows["host"].nunique() > 1 else []
    moved = rows["category_candidate"].notna() & (rows["category"] != rows["category_candidate"])
    category = ["category", *(["category_candidate"] if moved.any() and not every else [])]
    names = ["op_name", *category, *host, *by_role("self_time_us", CHANGE[:3])]
    names += by_role("input_self_share")
    if every:
        others = ["occurrences", "total_time_us"]
        names += ["self_time_us_ratio", *(f"{name}_{role}" for name in others for role in CHANGE)]
        names += by_role("input_total_share")
        names += ["status", "match", "verdict", "op_name_candidate", "category_candidate"]
    return names


def input_op_key(rows: pd.DataFrame) -> pd.Series:
    """A unique key for each row: an added op may have the same name as an op with another match."""
    added = rows["status"].map({"added": ":added"}).fillna("")
    return rows["host"] + ":" + rows["category"] + ":" + rows["op_name"] + added


def what_changed(pair: Pair, rows: pd.DataFrame, on: Hashable) -> Iterator[Block]:
    """The largest changes among the rows, which depend on `on`."""
    changes = largest_changes(rows, n=MOVERS)
    several = changes["host"].nunique() > 1
    named = changes["op_name"] + (" · " + changes["host"] if several else "")
    renamed = (changes["status"] == MATCHED) & (changes["op_name"] != changes["op_name_candidate"])
    candidates = (" · in the candidate " + changes["op_name_candidate"].fillna("")).where(renamed, "")
    changes = changes.assign(named=named, detail=changes["category"] + candidates)
    make = partial(ops.movers, changes, "self_time_us", per=pair.per_what, by="named")
    nothing = "None of these ops changed its self time."
    return changed("input_changes", changes, make, on=on, nothing=nothing, is_time=False)


def _details(pair: Pair, chosen: str) -> Details | None:
    """The selected op, even if the filter hides it."""
    every = _every_row(pair)
    found = every[input_op_key(every) == chosen]
    return None if found.empty else Details(str(found.iloc[0]["op_name"]), partial(_op, pair, found.iloc[0], chosen))


def _op(pair: Pair, row: pd.Series, chosen: str) -> Iterator[Block]:
    """An op in every step of each run, and a link to everything else about it."""
    name = str(row["op_name"])
    if row["status"] == MATCHED and row["op_name_candidate"] != name:
        yield Text(f"In the candidate: {as_code(str(row['op_name_candidate']))}")
    frames = [_in_steps(pair, row, role) for role in SIDES]
    if all(frame.empty for frame in frames):
        yield Text("No steps to show: no step markers were found, or the op ran outside of the steps.", "notice")
    else:
        yield Chart("input_op", partial(op.in_steps, pair, name, frames), on=chosen)
        yield Text("Work ahead of time on a separate thread may belong to no step; it is then not shown here.", "quiet")
    in_stats = ops_of(pair, idle=False)
    in_stats = in_stats[(in_stats["host_or_device"] == schema.HOST) & (in_stats["op_name"] == name)]
    if len(in_stats):
        yield Links([links.to_op_view(op.op_key(in_stats).iloc[0])])


def _in_steps(pair: Pair, row: pd.Series, role: str) -> pd.DataFrame:
    """The row's op in each step of one side, on the row's host, or summed over all; no steps if that side does not have
    the op."""
    run = pair.runs[SIDES.index(role)]
    if row["status"] == LACKING[role] or not has_step_times(run):
        return run.table("steps").iloc[:0].assign(self_time_us=0.0)
    host = None if row["host"] == schema.ALL_HOSTS else str(row["host"])
    if host is not None and run is not pair.baseline:
        host = host_counterparts(pair.baseline.host_names, run.host_names).get(host, host)
    name = str(row["op_name_candidate"] if role == "candidate" else row["op_name"])
    single = pd.DataFrame([{"host_or_device": schema.HOST, "op_name": name}])
    return step_series.op_by_step(run.step_cells("op_stats", host=host), step_series.steps_of(run, host), single)
