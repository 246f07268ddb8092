"""The time of the input pipeline's ops on the host: by category, the longest, and the largest changes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from functools import partial

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.pair import Pair
from tfcompare.schema import SIDES
from tfcompare.schema.input import INPUT_CATEGORIES, OTHER_INPUT
from tfcompare.text import as_code
from tfcompare.views import bars as ops
from tfcompare.views import links
from tfcompare.views.blocks import Block, Chart, Details, Links, Opens, Table, Text
from tfcompare.views.ops import op
from tfcompare.views.ops.figures import ops_of, with_words
from tfcompare.views.ops.op import LACKING
from tfcompare.views.steps import figures as step_series
from tfcompare.views.steps.figures import has_step_times
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
    return pair.cached("input_ops", lambda: with_shares(pair.diff("input_pipeline")))


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
        everything=partial(everything, pair, schema.INPUT_PIPELINE, with_shares),
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
    names = changes["op_name"] + (" · " + changes["host"] if several else "")
    renamed = (changes["status"] == MATCHED) & (changes["op_name"] != changes["op_name_candidate"])
    candidates = (" · in the candidate " + changes["op_name_candidate"].fillna("")).where(renamed, "")
    changes = changes.assign(named=names, detail=changes["category"] + candidates)
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
    """The row's op in each step of one side, on the row's host or of all hosts; no steps if that side lacks it."""
    run = pair.runs[SIDES.index(role)]
    if row["status"] == LACKING[role] or not has_step_times(run):
        return run.table("steps").iloc[:0].assign(self_time_us=0.0)
    host = None if row["host"] == schema.ALL_HOSTS else str(row["host"])
    if host is not None and run is not pair.baseline:
        host = host_counterparts(pair.baseline.host_names, run.host_names).get(host, host)
    name = str(row["op_name_candidate"] if role == "candidate" else row["op_name"])
    single = pd.DataFrame([{"host_or_device": schema.HOST, "op_name": name}])
    return step_series.op_by_step(run.tables.step_cells("op_stats", host=host), step_series.steps_of(run, host), single)


def with_shares(diff: pd.DataFrame) -> pd.DataFrame:
    """A diff of `input_pipeline` with shares of each side's total self time of input ops.

    Adds `input_self_share_<role>`, which add up to 1 over the rows of a side, and `input_total_share_<role>`, which may
    exceed 1 in total because an op's total time includes nested ops.
    """
    columns = {}
    for role in SIDES:
        self_time, total_time = (diff[f"{name}_{role}"].astype("float64") for name in ("self_time_us", "total_time_us"))
        whole = float(self_time.sum())
        for name, times in (("input_self_share", self_time), ("input_total_share", total_time)):
            columns[f"{name}_{role}"] = times / whole if whole > 0 else times * 0.0
    return diff.assign(**columns)


def category_times(diff: pd.DataFrame) -> pd.DataFrame:
    """The self time of input ops by category, one row for each of `INPUT_CATEGORIES`, in that order.

    Columns: `category`; `self_time_us_<role>` (per step if the diff is; missing on a side without input ops) and
    `share_<role>`, which add up to 1. `OTHER_INPUT` is left out if neither side has any.
    """
    times = pd.DataFrame({"category": pd.Series(INPUT_CATEGORIES, dtype="str")})
    for role, absent, key in (("baseline", ADDED, "category"), ("candidate", REMOVED, "category_candidate")):
        rows = diff[diff["status"] != absent]
        sums = rows[f"self_time_us_{role}"].astype("float64").groupby(rows[key]).sum()
        of_side = times["category"].map(sums).astype("float64").fillna(0.0 if len(rows) else math.nan)
        whole = float(of_side.sum())
        times[f"self_time_us_{role}"] = of_side
        times[f"share_{role}"] = of_side / whole if whole > 0 else of_side
    is_empty = times[[f"self_time_us_{role}" for role in SIDES]].fillna(0.0).sum(axis=1) == 0
    return times[~(is_empty & (times["category"] == OTHER_INPUT))].reset_index(drop=True)


def host_input_time_us(categories: pd.DataFrame, role: str) -> float:
    """The self time of all input ops of one side of `category_times`; NaN if it has none."""
    return float(categories[f"self_time_us_{role}"].sum(min_count=1))


def dominant(categories: pd.DataFrame, role: str) -> tuple[str, float] | None:
    """(the category with the most input time of a side, its share); None if the input took no time."""
    shares = categories.set_index("category")[f"share_{role}"].dropna()
    if shares.empty or shares.max() <= 0:
        return None
    return str(shares.idxmax()), float(shares.max())


def longest_op(diff: pd.DataFrame, role: str, category: str) -> str:
    """The name of the op with the largest self time in a category of a side, which must have such an op."""
    key = "_candidate" if role == "candidate" else ""
    rows = diff[diff["status"] != (REMOVED if role == "candidate" else ADDED)]
    rows = rows[rows[f"category{key}"] == category]
    longest_first = rows.sort_values(f"self_time_us_{role}", ascending=False, kind="stable")
    return str(longest_first[f"op_name{key}"].iloc[0])
