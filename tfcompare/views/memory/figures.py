"""Compares the memories of two runs: matches them, and compares their peaks and what is live at them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import SideRows, diff_table
from tfcompare.compare.groups.aggregate import Part as Summary
from tfcompare.compare.groups.aggregate import aggregate, scope_of
from tfcompare.compare.matching.manual import ManualChoice
from tfcompare.compare.matching.matching import NO_EVIDENCE, Evidence
from tfcompare.compare.stats.verdict import SAME, verdict_on_size
from tfcompare.schema import SIDES
from tfcompare.units import MINUS, format_bytes, format_percent_change, format_ratio
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.memory.curve import Memory

if TYPE_CHECKING:
    from tfcompare.run import Run

Part = Literal["scope", "region"]
Hosts = Mapping[str, str]
"""Maps each matched host of the candidate to the baseline's host."""
Figures = Mapping[str, tuple[float, float]]
"""Metrics of `memory_summary`, each of baseline and candidate; NaN for a side without the memory."""

SMALLEST_SHARE = 0.004
"""Parts below this share of both peaks are merged, because they would be invisible."""

SMALLEST_ROW = 0.001
"""Allocations below this share of both peaks are one row of the table: a hundred of them are a tenth of it at most."""

MULTIPLE = 2
"""From this ratio on, an increase is stated as a ratio instead of in percent."""

PEAK_MEANING = "The largest sum of stack and heap within the profile."
HEAP_MEANING = "The largest heap, without the stack, since the program began. It may be before the profile."
CAPACITY_MEANING = "Peak as a share of the allocator's limit, which may differ from the memory of the device."
FRAGMENTATION_MEANING = "Share of the free memory that is in small pieces at the peak, as reported by the allocator."

NO_OP = "(no op named)"
NO_REGION = "(no region)"
NOT_NAMED = ("",)
"""Op names and regions of allocations that were made for no op."""

BOTH = "both runs"


@dataclass(frozen=True)
class MemoryPair:
    """Matched memories of baseline and candidate; None if a side has none."""

    baseline: Memory | None
    candidate: Memory | None

    @property
    def memories(self) -> tuple[Memory | None, Memory | None]:
        """The baseline's, the candidate's."""
        return self.baseline, self.candidate

    @property
    def memory_id(self) -> str:
        """The memory's id in the baseline, else in the candidate."""
        memory = self.baseline or self.candidate
        return memory.memory_id if memory else ""

    @property
    def has_one_name(self) -> bool:
        """Whether the memory has the same id on both sides, or exists on one side only."""
        return len({memory.memory_id for memory in self.memories if memory}) < 2


def memory_pairs(baseline: pd.DataFrame, candidate: pd.DataFrame, hosts: Hosts) -> list[MemoryPair]:
    """Matches the memories of two `memory_summary` tables by name on matched hosts, the largest peak first.

    Unmatched memories follow the pairs.
    """
    ours = {memory: (memory, peak) for memory, peak in _peaks(baseline)}
    theirs = {_rename_levels(memory, hosts): (memory, peak) for memory, peak in _peaks(candidate)}
    ranked = []
    for key in {**ours, **theirs}:
        sides = ours.get(key), theirs.get(key)
        pair = MemoryPair(*(side[0] if side else None for side in sides))
        peak = max(side[1] for side in sides if side)
        ranked.append((None in sides, -peak, key.host, key.memory_id, pair))
    return [pair for *_, pair in sorted(ranked, key=lambda entry: entry[:4])]


def by_peak(summary: pd.DataFrame) -> list[Memory]:
    """The memories of one `memory_summary` table, the largest peak first."""
    return [memory for memory, _ in sorted(_peaks(summary), key=lambda entry: -entry[1])]


def _peaks(summary: pd.DataFrame) -> list[tuple[Memory, int]]:
    columns = (summary[name].tolist() for name in ("host", "memory_id", "peak_bytes"))
    return [(Memory(host, memory_id), peak) for host, memory_id, peak in zip(*columns, strict=True)]


def figures(summary_diff: pd.DataFrame, pair: MemoryPair, hosts: Hosts) -> Figures:
    """The metrics of a pair in the diff of `memory_summary`, per step as there."""
    metrics = [column.name for column in schema.MEMORY_SUMMARY.metrics]
    sides = []
    for role, memory in zip(SIDES, pair.memories, strict=True):
        rows = _of(summary_diff, memory and (memory if role == "baseline" else _rename_levels(memory, hosts)))
        sides.append([float(rows[f"{metric}_{role}"].iloc[0]) if len(rows) else math.nan for metric in metrics])
    return {metric: (ours, theirs) for metric, ours, theirs in zip(metrics, *sides, strict=True)}


def key_figures(figures: Figures, per: str) -> list[KeyFigure]:
    """The key figures of two memories."""
    peaks = zip(figures["peak_bytes"], figures["capacity_bytes"], strict=True)
    ours, theirs = (peak / capacity if capacity > 0 else math.nan for peak, capacity in peaks)
    allocations = f"Number of allocations within the profile, per {per}."
    return [
        KeyFigure("Peak in use", "bytes", *figures["peak_bytes"], "lower", PEAK_MEANING),
        KeyFigure("Peak heap since start", "bytes", *figures["peak_heap_bytes"], "lower", HEAP_MEANING),
        KeyFigure("Capacity used", "share", ours, theirs, "neither", CAPACITY_MEANING),
        KeyFigure("Fragmentation", "share", *figures["fragmentation"], "neither", FRAGMENTATION_MEANING),
        KeyFigure(f"Allocations per {per}", "", *figures["allocations"], "neither", allocations),
    ]


def _rename_levels(memory: Memory, hosts: Hosts) -> Memory:
    """The candidate's memory with the baseline's name for its host, as in a diff."""
    return Memory(hosts.get(memory.host, memory.host), memory.memory_id)


def peak_diff(
    whole: pd.DataFrame,
    pair: MemoryPair,
    hosts: Hosts,
    tables: tuple[pd.DataFrame, pd.DataFrame],
    *,
    identical: bool,
    manual_pairs: Sequence[ManualChoice] = (),
    evidence: Evidence = NO_EVIDENCE,
) -> pd.DataFrame:
    """The diff of `memory_peak` of one pair of memories.

    `whole` is the diff of the two runs, in which only memories with equal names are compared. Memories with different
    names are compared here, from `tables`, the `memory_peak` of the runs, with the choices `manual_pairs` and the
    `evidence` of their ops; the rows then have the baseline's names.
    """
    if pair.has_one_name:
        there = pair.baseline or (pair.candidate and _rename_levels(pair.candidate, hosts))
        return _of(whole, there)
    ours, theirs = (_of(table, memory) for table, memory in zip(tables, pair.memories, strict=True))
    theirs = theirs.assign(memory_id=pd.Series(pair.memory_id, index=theirs.index, dtype="str"))
    candidate = str(whole["candidate"].iloc[0])
    sides = SideRows(ours, evidence=evidence[0]), SideRows(theirs, evidence=evidence[1])
    return diff_table(schema.MEMORY_PEAK, candidate, *sides, identical=identical, manual_pairs=manual_pairs)


def small_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a diff of `memory_peak` below `SMALLEST_ROW` of both peaks; none where that is a single one."""
    sizes = rows[[f"allocation_bytes_{role}" for role in SIDES]].astype("float64").fillna(0.0)
    found = rows[(sizes <= SMALLEST_ROW * sizes.sum()).all(axis=1)]
    return found if len(found) > 1 else rows.iloc[:0]


def with_small_rows_as_one(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a diff of `memory_peak`, the last of which is the sum of all `small_rows`: `433 smaller`."""
    small = small_rows(rows)
    if small.empty:
        return rows
    name = pd.DataFrame({"op_name": f"{len(small):,} smaller"}, small.index, dtype="str")
    sums: dict[str, Summary] = {metric.name: "sum" for metric in schema.MEMORY_PEAK.metrics}
    one = aggregate(small, dict.fromkeys(SIDES, name), sums, pd.Series(data=False, index=small.index))
    one = one.reindex(columns=rows.columns).astype(rows.dtypes.to_dict())
    return pd.concat([rows.drop(small.index), one], ignore_index=True)


def _of(table: pd.DataFrame, memory: Memory | None) -> pd.DataFrame:
    if memory is None:
        return table.iloc[:0]
    rows = table[(table["host"] == memory.host) & (table["memory_id"] == memory.memory_id)]
    return rows.reset_index(drop=True)


def op_at_peak(run: Run, memory: Memory) -> str:
    """The op whose allocation made the peak of a memory; empty where the profile names none."""
    ((_, events),) = run.tables.memory_events(host=memory.host)
    peak = int(events.peaks()[events.memory_ids.index(memory.memory_id)])
    return events.op_name.labels[int(events.op_name.code[peak])]


def headline(pair: MemoryPair, peaks: tuple[float, float], names: tuple[str, str], *, identical: bool) -> str:
    """A sentence in Markdown on the peaks of the two memories, in bytes.

    `names` are those of the runs and of the two memories, made fit for Markdown.
    """
    (ours, theirs), (before, after) = names, peaks
    if pair.baseline is None or pair.candidate is None:
        side, other, peak = (ours, theirs, before) if pair.baseline else (theirs, ours, after)
        return f"Only {side} has this memory: {format_bytes(peak)} at its peak. {other} has no events of it."
    if identical:
        return f"{theirs} and {ours} are the same capture: {format_bytes(after)} at their peak, the **same**."
    verdict = verdict_on_size(before, after)
    ratio = after / before if before > 0 else math.inf
    if verdict == SAME:
        change = f" ({format_percent_change(ratio)})" if after != before else ""
        return f"{theirs} uses the **same** memory at its peak as {ours}: {format_bytes(after)}{change}."
    is_multiple = ratio >= MULTIPLE
    change = "" if is_multiple else f"{format_percent_change(ratio).lstrip(f'+{MINUS}')} "
    times = f" ({format_ratio(ratio)})" if is_multiple and before > 0 else ""
    return (
        f"{theirs} uses {change}**{verdict}** memory at its peak than {ours}: "
        f"{format_bytes(after)} vs {format_bytes(before)}{times}."
    )


def headline_alone(peak: float, name: str) -> str:
    """A sentence in Markdown on the peak of the memory of one run, in bytes."""
    return f"{name} uses {format_bytes(peak)} at its peak."


def with_labels(diff: pd.DataFrame) -> pd.DataFrame:
    """The diff of `memory_peak` with labels for charts: `what` (op and shape) and `detail` (the rest)."""
    op = diff["op_name"].mask(diff["op_name"].isin(NOT_NAMED), NO_OP)
    shape = diff["shape"].where(~diff["shape"].isin(["", "unknown"]), "")
    facts = zip(diff["region_type"], diff["data_type"], _counts(diff), strict=True)
    detail = pd.Series([" · ".join(part for part in parts if part) for parts in facts], index=diff.index, dtype="str")
    return diff.assign(what=(op + " " + shape).str.strip(), detail=detail)


def _counts(diff: pd.DataFrame) -> list[str]:
    """`2 → 3 allocations`, or the count of the only side that has any."""
    texts = []
    for ours, theirs in zip(diff["occurrences_baseline"], diff["occurrences_candidate"], strict=True):
        there = list(dict.fromkeys(f"{count:,}" for count in (ours, theirs) if not pd.isna(count)))
        texts.append(f"{' → '.join(there)} {'allocation' if there == ['1'] else 'allocations'}")
    return texts


def peak_tree(diff: pd.DataFrame, by: Part) -> pd.DataFrame:
    """The contents of both sides' peaks as a tree: root, side, scopes or regions, allocations.

    Columns: `node`, `parent` (empty for the root), `label`, `what` (the full name), `detail`, `bytes`; for the same
    allocation on both sides `baseline_bytes` and `candidate_bytes` (0 if a side has none). Each node's `bytes` are the
    sum over its children; small children are merged. The baseline comes first, then the largest nodes.
    """
    rows = with_labels(diff)
    region = rows["region_type"].mask(rows["region_type"].isin(NOT_NAMED), NO_REGION)
    sizes = {f"{role}_bytes": rows[f"allocation_bytes_{role}"].astype("float64").fillna(0.0) for role in SIDES}
    group = scope_of(rows["op_name"]) if by == "scope" else region
    label = rows["op_name"].str.rsplit("/", n=1).str[-1].mask(rows["op_name"].isin(NOT_NAMED), NO_OP)
    leaves = rows[["what", "detail"]].assign(group=group, label=label, **sizes)
    whole = leaves[_SIZES].sum().to_frame().T
    root = whole.assign(node=BOTH, parent="", label=BOTH, what=BOTH, detail="", bytes=whole.sum(axis=1))
    return pd.concat([root[_TREE], *(_side_of_tree(leaves, role) for role in SIDES)], ignore_index=True)


def tree_alone(tree: pd.DataFrame) -> pd.DataFrame:
    """The baseline's part of the result of `peak_tree`: the tree of a run that is shown alone."""
    own = tree[tree["node"].str.startswith("baseline")].reset_index(drop=True)
    return own.assign(parent=own["parent"].where(own["parent"] != BOTH, ""))


_SIZES = ["baseline_bytes", "candidate_bytes"]
_TREE = ["node", "parent", "label", "what", "detail", "bytes", *_SIZES]


def _side_of_tree(leaves: pd.DataFrame, role: str) -> pd.DataFrame:
    own = f"{role}_bytes"
    tiles: pd.DataFrame = leaves[leaves[own] > 0]
    smallest = SMALLEST_SHARE * leaves[_SIZES].to_numpy().sum()
    small = tiles[tiles[own] < smallest].groupby("group")
    merged = small[_SIZES].sum().assign(label=small.size().map("{:,} smaller".format)).reset_index()
    tiles = pd.concat([tiles[tiles[own] >= smallest], merged], ignore_index=True)
    tiles = tiles.sort_values(own, ascending=False, kind="stable", ignore_index=True)
    tiles = tiles.assign(node=[f"{role}/{i}" for i in range(len(tiles))], parent=f"{role}:" + tiles["group"])
    groups = leaves.groupby("group", as_index=False, sort=False)[_SIZES].sum()
    groups = groups[groups[own] > 0].sort_values(own, ascending=False, kind="stable")
    groups = groups.assign(node=f"{role}:" + groups["group"], parent=role, label=groups["group"])
    side = leaves[_SIZES].sum().to_frame().T.assign(node=role, parent=BOTH, label=role)
    tree = pd.concat([side[side[own] > 0], groups, tiles], ignore_index=True)
    tree = tree.assign(bytes=tree[own], what=tree["what"].fillna(tree["label"]), detail=tree["detail"].fillna(""))
    return pd.DataFrame(tree[_TREE])
