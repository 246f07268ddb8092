"""The ops of a pair for reading, and the sentence and key figures that the op stats page begins with.

Definitions are those of xprof's `framework_op_stats`: device before host, self time descending, then name; a share is
of the self time of its own side (host or device), with or without the time in which no op ran (IDLE).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.attribution import NEGLIGIBLE_US
from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.compare.groups.aggregate import Grouping, group_diff, largest_changes, of_side, without_idle
from tfcompare.compare.groups.fused_rows import row_name_as_code, single_ops
from tfcompare.compare.matching.manual import with_distinct_names
from tfcompare.compare.work.terms import OF_OPS, with_work_terms
from tfcompare.schema import DEVICE, HOST, SIDES, SPARSE_CORE, place_word
from tfcompare.units import format_delta, format_percent, format_percent_change, format_time_us
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.ops.shapes import ops_with_shapes
from tfcompare.views.ops.work_words import work_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tfcompare.compare.pair import Pair

PREFIXES = {DEVICE: "device", HOST: "host", SPARSE_CORE: "sparse_core"}
"""Maps `host_or_device` to the prefix of its share columns."""
NAME_LENGTH = 60
NO_OPS = "No ops were recorded."


def op_table(op_stats: pd.DataFrame, *, idle: bool) -> pd.DataFrame:
    """The rows of `op_stats` in TensorBoard's order, with a rank, averages and shares added.

    `rank` counts from 1; averages are per occurrence, and 0 where an op never occurred (as IDLE); shares and cumulative
    shares are fractions of the self time of the row's own side, and 0 for the side that it does not belong to.
    """
    rows = op_stats if idle else without_idle(op_stats)
    order = ["host_or_device", "self_time_us", "op_name"]
    rows = rows.sort_values(order, ascending=[True, False, True], kind="stable", ignore_index=True)
    self_time = rows["self_time_us"].to_numpy(dtype=np.float64)
    occurrences = rows["occurrences"].to_numpy(dtype=np.float64)
    added: dict[str, NDArray[np.float64] | NDArray[np.int64]] = {
        "rank": np.arange(1, len(rows) + 1, dtype=np.int64),
        "avg_time_us": _divide(rows["total_time_us"].to_numpy(dtype=np.float64), occurrences),
        "avg_self_time_us": _divide(self_time, occurrences),
    }
    for side, prefix in PREFIXES.items():
        here = (rows["host_or_device"] == side).to_numpy(dtype=bool)
        share = share_of_whole(np.where(here, self_time, 0.0))
        added[f"{prefix}_self_share"] = share
        added[f"{prefix}_cumulative_share"] = np.where(here, np.cumsum(share), 0.0)
    return rows.assign(**added)


OTHER = "other"

ROW_COLUMNS = ("rank", "avg_time_us", "avg_self_time_us", "self_share", "cumulative_share")
"""What `side_by_side` adds for each side, as `<name>_baseline` and `<name>_candidate`."""


def ops_of(pair: Pair, *, idle: bool) -> pd.DataFrame:
    """The diff of ops with each side's ranks, averages and shares."""
    return pair.cached(("ops", idle), lambda: side_by_side(ops_with_shapes(pair), idle=idle)).copy(deep=False)


def groups_of(pair: Pair, by: Grouping, *, idle: bool) -> pd.DataFrame:
    """The ops of a pair aggregated by name, type or scope, with each side's shares."""

    def make() -> pd.DataFrame:
        rows = with_distinct_names(ops_of(pair, idle=idle), pair.manual_pairs)
        return with_shares(group_diff(rows, by, pair.group_verdicts))

    return pair.cached(("groups", by, idle), make).copy(deep=False)


def side_by_side(diff: pd.DataFrame, *, idle: bool) -> pd.DataFrame:
    """A diff of `op_stats` (one candidate's) with the `ROW_COLUMNS` of both sides, missing where a side has no such op,
    and with what each change of self time is made of (`with_work_terms`).

    Each side is ranked by itself, as `op_table` does; shares are of the row's own side (host or device). Without `idle`
    the IDLE rows are left out. Rows keep their order.
    """
    rows = (diff if idle else without_idle(diff)).reset_index(drop=True)
    columns = {}
    for role in SIDES:
        ranked = own_side_shares(op_table(_one_side(rows, role), idle=idle)).set_index("row")
        for name in ROW_COLUMNS:
            column = ranked[name].reindex(rows.index)
            columns[f"{name}_{role}"] = column.astype("Int64") if name == "rank" else column
    return with_work_terms(rows.assign(**columns), OF_OPS)


def _one_side(diff: pd.DataFrame, role: str) -> pd.DataFrame:
    """The rows of one side of a diff with the columns of `op_stats` and their position in `row`."""
    here = diff[diff["status"] != (ADDED if role == "baseline" else REMOVED)]
    key = "_candidate" if role == "candidate" else ""
    columns = {
        "host_or_device": here["host_or_device"],
        "op_type": here[f"op_type{key}"],
        "op_name": here[f"op_name{key}"],
        **{name: here[f"{name}_{role}"] for name in ("occurrences", "total_time_us", "self_time_us")},
    }
    return pd.DataFrame(columns).assign(row=here.index)


def time_shares(groups: pd.DataFrame, by: str, *, metric: str = "self_time_us", count: int = 9) -> pd.DataFrame:
    """The time of both sides by group: one row for each of the `count` largest groups, and one for all others.

    `groups` are rows of `aggregate.group_diff`, of one of host and device, so that the times add up; `by` is the
    column that names them. Returns `group`, `<metric>_<role>` (per step where the diff is), `share_<role>` (each side's
    add up to 1), `is_absent_<role>` (that side has no such group) and `others`, the number of groups that a row
    named `OTHER` stands for, the largest first.
    """
    times = pd.DataFrame({"group": groups[by].astype("str"), "others": 0})
    for role in SIDES:
        times[f"is_absent_{role}"] = groups[f"{metric}_{role}"].isna()
        times[f"{metric}_{role}"] = groups[f"{metric}_{role}"].astype("float64").fillna(0.0)
        times[f"share_{role}"] = share_of_whole(times[f"{metric}_{role}"].to_numpy())
    largest = times[["share_baseline", "share_candidate"]].max(axis=1).sort_values(ascending=False, kind="stable")
    top, rest = times.loc[largest.index[:count]], times.loc[largest.index[count:]]
    if rest.empty:
        return top.reset_index(drop=True)
    absent = {f"is_absent_{role}": rest[f"is_absent_{role}"].all() for role in SIDES}
    sums = rest.drop(columns=["group", *absent]).sum()
    other = pd.DataFrame([{"group": OTHER, **sums, **absent, "others": len(rest)}])
    return pd.concat([top, other], ignore_index=True)


def longest_first(shares: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of `time_shares` by the longer time of both sides instead of the larger share; all others stay last."""
    longest = shares[[f"{metric}_{role}" for role in SIDES]].max(axis=1).mask(shares["others"] > 0, -1.0)
    return shares.loc[longest.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


def with_shares(groups: pd.DataFrame) -> pd.DataFrame:
    """Rows of `aggregate.group_diff` with `self_share_<role>`: of the side's self time on host, or on device."""
    places = groups["host_or_device"]
    columns = {}
    for role in SIDES:
        times = groups[f"self_time_us_{role}"].astype("float64")
        whole = times.groupby(places).transform("sum")
        columns[f"self_share_{role}"] = (times / whole).where(whole > 0, times)
    return groups.assign(**columns)


def with_words(rows: pd.DataFrame, text: str, columns: list[str]) -> pd.DataFrame:
    """The rows that contain every word of `text` in any of `columns`, ignoring case; all rows if `text` is empty."""
    words = text.casefold().split()
    if not words:
        return rows
    cells = rows[columns].fillna("")
    every = cells[columns[0]].str.cat(cells[columns[1:]], sep="\n").str.casefold()
    return rows[np.logical_and.reduce([every.str.contains(word, regex=False) for word in words])]


def own_side_shares(ranked: pd.DataFrame) -> pd.DataFrame:
    """`ranked` (an `op_table`) with `self_share` and `cumulative_share`: those of the side that the row belongs to."""
    columns = {}
    for name in ("self_share", "cumulative_share"):
        columns[name] = sum(ranked[f"{prefix}_{name}"] for prefix in PREFIXES.values())  # 0 on other sides
    return ranked.assign(**columns)


def main_side(op_stats: pd.DataFrame) -> str:
    """The side to show first: `Device` if any op except IDLE ran there, else `Host`."""
    ops = without_idle(op_stats)
    return DEVICE if bool((ops["host_or_device"] == DEVICE).any()) else HOST


def top_ops(op_stats: pd.DataFrame, n: int) -> pd.DataFrame:
    """The `n` ops with the most self time on the `main_side`: rows of `op_table` without IDLE, with `self_share`."""
    ranked = own_side_shares(op_table(op_stats, idle=False))
    return ranked[ranked["host_or_device"] == main_side(op_stats)].head(n)


def share_of_whole(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each value as a fraction of the sum; all 0 if the sum is 0."""
    whole = float(values.sum())
    return values / whole if whole > 0 else np.zeros_like(values)


def _divide(dividend: NDArray[np.float64], divisor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Element-wise division; 0 where the divisor is 0."""
    return np.divide(dividend, divisor, out=np.zeros_like(dividend), where=divisor > 0)


def sentence(ops: pd.DataFrame, per: str) -> str:
    """`Self time on the device per step fell from 8.14 ms to 1.09 ms (−86.7 %). Largest change: …`, in Markdown.

    `ops` is a diff of `op_stats` of one candidate without IDLE; the time is that on the device if any op ran there.
    """
    place = main_side(ops)
    ours, theirs = _self_time(ops, place)
    if math.isnan(ours) or math.isnan(theirs):
        return f"Only one of the runs has ops on the {place_word(place)}." if len(ops) else NO_OPS
    about = f"Self time {_where(place, per)} {moved((ours, theirs), [*map(format_time_us, (ours, theirs))])}."
    changes = {}
    for where in (DEVICE, HOST):
        for _, row in largest_changes(ops[ops["host_or_device"] == where], n=1).iterrows():
            changes[where] = _name(row), float(row["self_time_us_change"]), work_words(row)
    if place not in changes:
        return about
    name, delta, work = changes[place]
    about = f"{about} Largest change: {name} ({format_delta(delta, 'µs')}){work and ', '}{work}."
    if place == DEVICE and abs(changes.get(HOST, ("", 0.0, ""))[1]) > abs(delta):
        name, delta, _ = changes[HOST]
        about = f"{about} Larger on the host: {name} ({format_delta(delta, 'µs')})."
    return about


def most_changed(pair: Pair) -> pd.Series | None:
    """The row of the diff of the op whose self time changed most, where most ops ran, with what its change is made of
    (`with_work_terms`); None where none did."""
    diff = pair.diff()
    changed = largest_changes(diff[diff["host_or_device"] == main_side(diff)], n=1)
    return None if changed.empty else with_work_terms(changed, OF_OPS).iloc[0]


def sentence_alone(ops: pd.DataFrame, per: str) -> str:
    """`Self time on the host per step: 213 ms. Longest op: … (38.0 %).`, in Markdown, of the baseline of `ops`."""
    place = main_side(ops)
    total = _self_time(ops, place)[0]
    if math.isnan(total):
        return NO_OPS
    here = ops[ops["host_or_device"] == place]
    longest = here.sort_values("self_time_us_baseline", ascending=False).iloc[0]
    share = format_percent(longest["self_share_baseline"])
    return f"Self time {_where(place, per)}: {format_time_us(total)}. Longest op: {_name(longest)} ({share})."


def _where(place: str, per: str) -> str:
    """`on the device per step`; `per step and device` says both."""
    return f"per {per}" if per.endswith(place.lower()) else f"on the {place_word(place)} per {per}"


def outside_of_steps(pair: Pair, name: str = "op_stats") -> str:
    """`Outside of the included steps: 3.10 ms of self time in all, baseline 2.00 ms.`; empty if nothing ran there.

    `name` is one of `schema.STEP_TABLES`. Per run, figures include that time, so there is nothing to say.
    """
    if pair.per != "step":
        return ""
    metric, outside_us = schema.table(name).headline, []
    for side in pair.sides:
        tables = (without_idle(of(name, host=side.host)) for of in (side.run.table, side.run.tables.in_steps))
        whole, inside = (float((rows[metric] * pair.shares(name, rows, side, 0)).sum()) for rows in tables)
        outside_us.append(max(whole - inside, 0.0))
    ours, theirs = outside_us
    if max(ours, theirs) < NEGLIGIBLE_US:
        return ""
    what = "self time" if name == "op_stats" else "kernel time"
    text = f"Outside of the included steps: {format_time_us(theirs)} of {what} in all"
    return f"{text}." if pair.is_single else f"{text}, baseline {format_time_us(ours)}."


def moved(values: tuple[float, float], texts: Sequence[str]) -> str:
    """`fell from 8.14 ms to 1.09 ms (−86.7 %)`, or `stayed at 8.14 ms`; `texts` are the formatted values."""
    before, after = values
    if before == after:
        return f"stayed at {texts[0]}"
    change = f" ({format_percent_change(after / before)})" if before > 0 else ""
    return f"{'fell' if after < before else 'rose'} from {texts[0]} to {texts[1]}{change}"


def figures(ops: pd.DataFrame, per: Callable[[str], str]) -> list[KeyFigure]:
    """Self time at each place, and the number of ops, of both sides; what neither side has is left out.

    `per` says what the sums of a place are per.
    """
    meaning = "Time of all ops without the ops that they call, over all threads or streams; without IDLE."
    figures = []
    for place in (DEVICE, SPARSE_CORE, HOST):
        label = f"Self time {_where(place, per(place)).replace('the ', '')}"
        figures.append(KeyFigure(label, "µs", *_self_time(ops, place), "neither", meaning))
    counts = [float(len(single_ops(of_side(ops, role), role))) for role in SIDES]
    figures.append(KeyFigure("Ops", "", counts[0], counts[1], "neither", "Ops with different names, types or places."))
    return [f for f in figures if not (math.isnan(f.baseline) and math.isnan(f.candidate))]


def matched_time(matched_share: float, exact_share: float) -> KeyFigure:
    """The share of the self time of both runs that is in matched ops, and how much of it has the same name."""
    meaning = (
        "Share of both runs' self time in ops that have a counterpart in the other run; "
        f"{format_percent(exact_share)} under the same name. Without IDLE."
    )
    return KeyFigure("Matched time", "share", math.nan, matched_share, "neither", meaning)


def largest_bar(times: Sequence[pd.DataFrame], metric: str, sides: int, *, as_shares: bool) -> float:
    """The largest time, or share, in some frames of `op_stats.time_shares`, for charts with the same scale."""
    names = [f"share_{role}" if as_shares else f"{metric}_{role}" for role in SIDES[:sides]]
    return max((float(frame[names].max().max()) for frame in times if len(frame)), default=0.0)


def _self_time(ops: pd.DataFrame, place: str) -> tuple[float, float]:
    """The self time of both sides at a place; NaN for a side without ops there."""
    here, metric = ops[ops["host_or_device"] == place], "self_time_us"
    ours, theirs = (float(here[f"{metric}_{role}"].astype("float64").sum(min_count=1)) for role in SIDES)
    return ours, theirs


def _name(row: pd.Series) -> str:
    return row_name_as_code(str(row["op_name"]), str(row["op_type"]), NAME_LENGTH)
