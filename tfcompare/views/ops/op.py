"""One op: what it took on both sides, in every step, its kernels, and its memory at the peak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.fused_rows import CONSTITUENTS, row_name, single_ops
from tfcompare.compare.matching.kernel_names import kernel_labels
from tfcompare.compare.matching.tiers import FUSED
from tfcompare.compare.pair import Pair
from tfcompare.schema import DEVICE, SIDES
from tfcompare.text import as_code
from tfcompare.units import MISSING, format_percent, format_percent_change, format_ratio, format_value
from tfcompare.views import links
from tfcompare.views.blocks import Block, Chart, Choose, Details, Facts, Links, Live, Table, Text, later
from tfcompare.views.key_figures import points_text
from tfcompare.views.ops.figures import ops_of
from tfcompare.views.ops.work_words import work_sentence
from tfcompare.views.options import option
from tfcompare.views.steps import charts as steps
from tfcompare.views.steps import figures as step_series
from tfcompare.views.steps.figures import has_step_times, steps_of
from tfcompare.views.verdict_marks import text_of
from tfcompare.views.view import CHANGE, View, by_role, largest_first

LACKING = {"baseline": "added", "candidate": "removed"}
"""The status of a row that a side lacks."""

NUMBERS = {
    "self_time_us": ("Self time", "µs"),
    "total_time_us": ("Total time", "µs"),
    "occurrences": ("Occurrences", ""),
    "avg_self_time_us": ("Average self time", "µs"),
    "self_share": ("Share of self time", "share"),
}

COSTS = ("flops", "bytes_accessed", "flops_per_s", "bandwidth_bytes_per_s", "operational_intensity")
"""Columns of `op_stats` that are shown where they are known."""


def op_key(rows: pd.DataFrame) -> pd.Series:
    """A unique key for each op; an added op may have the same name as a removed one."""
    names: pd.Series = rows["host_or_device"] + ":" + rows["op_type"] + ":" + rows["op_name"]
    return names.mask(rows["status"] == "added", "+" + names)


def details_by_name(pair: Pair, op_name: str) -> Details:
    """Everything about the op of that name, on either side."""
    return Details(op_name, partial(_of_name, pair, op_name))


def details_of_row(pair: Pair, row: pd.Series) -> Details:
    """Everything about the op of one row of `ops_of`."""
    return Details(row_name(str(row["op_name"]), str(row["op_type"])), partial(_of_row, pair, row))


def _of_name(pair: Pair, op_name: str) -> Iterator[Block]:
    if rows_named(ops_of(pair, idle=False), op_name, op_name).empty:
        yield Text("No time was recorded for this op.", "notice")
    yield from times(pair, op_name)
    yield from _places(pair, op_name, op_name)
    yield from kernels(pair, op_name, op_name)
    yield from memory(pair, op_name, op_name)


def _of_row(pair: Pair, row: pd.Series) -> Iterator[Block]:
    name, is_added = str(row["op_name"]), row["status"] == LACKING["baseline"]
    ours = None if is_added else name
    theirs = name if is_added else None if row["status"] == LACKING["candidate"] else str(row["op_name_candidate"])
    yield from numbers_and_steps(pair, row, "op")
    yield from _places(pair, ours, theirs)
    yield from kernels(pair, ours, theirs)
    yield from memory(pair, ours, theirs)
    if not pair.is_single and row["op_type"] != schema.IDLE:
        yield Live("pair_op", (row,))


def _places(pair: Pair, baseline: str | None, candidate: str | None) -> Iterator[Block]:
    """The line of the program that made the op, and links to it in the timeline and to its instructions."""
    name = baseline or candidate or ""
    rows = pair.every_instruction()
    of_op = rows[(rows["op_name_baseline"] == baseline) | (rows["op_name_candidate"] == candidate)]
    of_sides = (
        rows.loc[(rows[f"op_name_{role}"] == own) & (rows[f"source_{role}"].fillna("") != ""), f"source_{role}"]
        for role, own in zip(SIDES, (baseline, candidate), strict=True)
    )
    if lines := dict.fromkeys(", ".join(map(as_code, sorted(set(side)))) for side in of_sides if len(side)):
        yield Text(f"Source: {' → '.join(lines)}")
    yield Links([links.to_op(name), *links.to_instructions(pair, of_op, name)])


def times(pair: Pair, op_name: str) -> Iterator[Block]:
    """The numbers and steps of the op of that name, where it ran: on the device, on the host, or on both."""
    for position, row in rows_named(ops_of(pair, idle=False), op_name, op_name).iterrows():
        yield Text(f"**{as_code(str(row['op_type']))} on {schema.place_word(str(row['host_or_device']))}**")
        yield from numbers_and_steps(pair, row, f"op_{position}")


def rows_named(rows: pd.DataFrame, baseline: str | None, candidate: str | None) -> pd.DataFrame:
    """The rows of a diff whose op has these names in baseline and candidate, those on the device first.

    None stands for a side without the op. Added rows are named as in the candidate.
    """
    is_added = rows["status"] == LACKING["baseline"]
    ours = (rows["op_name"] == baseline) & ~is_added
    theirs = rows["op_name_candidate"].where(~is_added, rows["op_name"]) == candidate
    found = rows[ours | (theirs & (rows["status"] != LACKING["candidate"]))]
    if "host_or_device" not in found:
        return found
    return found.assign(later=found["host_or_device"] != DEVICE).sort_values("later", kind="stable")


def numbers_and_steps(pair: Pair, row: pd.Series, name: str) -> Iterator[Block]:
    """The numbers of one row of `ops_of`, and its self time in every step as the chart of that name."""
    if not pair.is_single:
        yield Text(verdict_sentence(row, pair.interval(row)))
        if work := work_sentence(row):
            yield Text(work)
        if row["status"] == MATCHED and row["op_name"] != row["op_name_candidate"]:
            yield Text(f"In the candidate: {as_code(str(row['op_name_candidate']))}")
        if row["match"] == FUSED:
            sides = [", ".join(as_code(op) for op in row[f"{CONSTITUENTS}_{role}"]) for role in SIDES]
            yield Text(f"Compared as one, since one side has fused them: {sides[0]} → {sides[1]}")
    yield numbers(pair, row)
    identity = tuple(str(row[key]) for key in ("host_or_device", "op_type", "op_name", "status"))
    yield Chart(name, partial(_in_steps, pair, row), on=identity)


def verdict_sentence(row: pd.Series, interval_of_ratio: tuple[float, float]) -> str:
    """Markdown such as `▼ **faster**: 0.512× (95 % confidence interval 0.481× to 0.540×)`; of a row of a diff.

    `interval_of_ratio` is that of the ratio of the sums shown, NaN without one.
    """
    if row["status"] != MATCHED:
        return f"**Only in the {'candidate' if row['status'] == 'added' else 'baseline'}.**"
    ratio = row["self_time_us_ratio"]
    interval = ""
    if interval_of_ratio[0] == interval_of_ratio[0]:
        low, high = map(format_ratio, interval_of_ratio)
        interval = f" (95 % confidence interval {low} to {high})"
    return f"**{text_of(str(row['verdict']), row['evidence'])}**: {format_ratio(ratio)} self time{interval}"


def numbers(pair: Pair, row: pd.Series) -> Facts:
    """The numbers of one op: a row for each, with the columns of both sides and the change."""
    costs = {column.name: (column.label, column.unit) for column in map(schema.OP_STATS.column, COSTS)}
    rows = numbers_of(pair, schema.OP_STATS, row, NUMBERS | costs, known=tuple(costs))
    bounds = ["" if pd.isna(row[f"bound_by_{role}"]) else str(row[f"bound_by_{role}"]) for role in SIDES]
    if any(bounds):
        ours, theirs = (bound or MISSING for bound in bounds)
        change = "unchanged" if ours == theirs else f"{ours} → {theirs}"
        rows.append([schema.OP_STATS.column("bound_by").label, *([ours] if pair.is_single else [ours, theirs, change])])
    return Facts(["", *numbers_header(pair)], rows, (1, 2, 3))


def numbers_header(pair: Pair) -> list[str]:
    """The headings of the columns of `numbers_of`, without the first."""
    return ["Value"] if pair.is_single else ["Baseline", "Candidate", "Change"]


def numbers_of(
    pair: Pair, table: schema.Table, row: pd.Series, labels: dict[str, tuple[str, str]], known: tuple[str, ...] = ()
) -> list[list[str]]:
    """Numbers of a row of the diff of a table as texts: the label, both sides and the change, or the label and the
    value.

    `labels` are those and the units of columns; those of `known` are left out where neither side has them.
    """
    lines = []
    for name, (label, unit) in labels.items():
        ours, theirs = (row[f"{name}_{role}"] for role in SIDES)
        if name in known and pd.isna(ours) and pd.isna(theirs):
            continue
        text = format_percent if unit == "share" else partial(format_value, unit=unit)
        per = pair.sums_per().of(table.column(name)) if name in table.column_names else ""
        what = f"{label} per {per}" if per else label
        both = [text(ours), text(theirs), change_of(ours, theirs, unit)]
        lines.append([what, *(both[:1] if pair.is_single else both)])
    return lines


def change_of(ours: Any, theirs: Any, unit: str) -> str:
    """`+12.3 %`, or `+1.2 pp` of shares."""
    if pd.isna(ours) or pd.isna(theirs):
        return MISSING
    if ours == theirs:
        return "unchanged"
    if unit == "share":
        return points_text(theirs - ours)
    return format_percent_change(theirs / ours) if ours > 0 else MISSING


def _in_steps(pair: Pair, row: pd.Series) -> Any:
    """The row's op in each step of each side that has it, as a figure; None without steps."""
    frames = []
    for role, run in zip(SIDES, pair.runs, strict=True):
        of_run = steps_of(run, pair.host_of(run))
        if row["status"] == LACKING[role] or not has_step_times(run):
            frames.append(of_run.iloc[:0].assign(self_time_us=0.0))
        else:
            cells = run.tables.step_cells("op_stats", host=pair.host_of(run))
            frames.append(step_series.op_by_step(cells, of_run, single_ops(row.to_frame().T, role)))
    return in_steps(pair, str(row["op_name"]), frames)


def in_steps(pair: Pair, op_name: str, frames: list[pd.DataFrame]) -> Any:
    """One op in every step, as a figure; `frames` are those of `step_series.op_by_step`. None if all are empty."""
    if all(frame.empty for frame in frames):
        return None
    return steps.op_in_steps(list(zip(pair.sides, frames, strict=True))[: len(pair.shown)], op_name)


def kernels(pair: Pair, baseline: str | None, candidate: str | None) -> Iterator[Block]:
    """The launches of the op of these names, if it has any."""
    rows = rows_named(pair.diff("kernel_stats"), baseline, candidate)
    if rows.empty:
        return
    names = ["kernel_name", "block_dim", "grid_dim", *by_role("total_duration_us", CHANGE[:3])]
    names += [*by_role("occurrences"), "verdict"]
    table = small_table(pair, schema.KERNEL_STATS, "Kernels", rows, names, "op_kernels_")
    yield replace(table, readings=kernel_labels([*rows["kernel_name"], *rows["kernel_name_candidate"].dropna()]))


def memory(pair: Pair, baseline: str | None, candidate: str | None) -> Iterator[Block]:
    """What is allocated for the op of these names at the peak of each memory, if anything."""
    rows = rows_named(pair.diff("memory_peak"), baseline, candidate)
    if rows.empty:
        return
    names = ["memory_id", "region_type", "data_type", "shape", *by_role("allocation_bytes", CHANGE[:3])]
    yield small_table(pair, schema.MEMORY_PEAK, "Memory at the peak", rows, names, "op_memory_")


def small_table(
    pair: Pair, table: schema.Table, title: str, rows: pd.DataFrame, names: list[str], address: str
) -> Table:
    """A table within the details of a row of another."""
    sums_per = pair.sums_per()
    return Table(table, title, rows, names, pair.is_single, address=address, is_small=True, sums_per=sums_per)


def _names(pair: Pair, _options: Any) -> dict[str, str]:
    """The ops of either run, those that changed most, or of a run alone took longest, first."""
    rows = largest_first(pair, schema.OP_STATS, ops_of(pair, idle=False))
    return {name: name for name in rows["op_name"]}


@dataclass(frozen=True)
class Options:
    """Which op is shown."""

    op: str = option("", "Op", _names, is_list=True, help="The name of an op, as in the table op_stats")


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """Everything about an op, by default the one that changed most."""
    yield Text(as_code(options.op), "headline")
    yield Choose(["op"])
    yield later(partial(_of_name, pair, options.op))


def _why_not(pair: Pair) -> str:
    return "No ops were recorded." if ops_of(pair, idle=False).empty else ""


VIEW = View("op", "Op", blocks, why_not=_why_not, options=Options)
