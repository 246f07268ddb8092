"""Makes the diff of a table for a pair: the rows of both sides, what their sums are divided by, and the verdicts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import INTERVAL, MATCHED, SUMS_OF, VERDICT, SideRows, diff_table
from tfcompare.compare.groups.aggregate import Groups
from tfcompare.compare.matching.overlap import Overlap, have_same_names, overlap_of
from tfcompare.compare.matching.sure_pairs import are_sure
from tfcompare.compare.matching.tiers import NAMINGS
from tfcompare.compare.per_device import all_together, are_of_hosts, of_hosts_alone
from tfcompare.compare.pooling import POOLED, sums_of
from tfcompare.compare.stats.verdict import UNTESTED
from tfcompare.compare.steps.iterations import ALIKE
from tfcompare.compare.tf_data.pipelines import slowest_executions
from tfcompare.schema import SIDES
from tfcompare.schema.arrays import Bools
from tfcompare.tables.op_evidence import OpEvidence

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side
    from tfcompare.run import Run


def diff_of(pair: Pair, table: schema.Table) -> pd.DataFrame:
    """The diff of a table, with verdicts from steps or calls where the table has any."""
    is_alike = pair.iterations == ALIKE
    diff = (
        unjudged_ops(pair) if table is schema.OP_STATS and is_alike else _diff_without_verdicts(pair, table, pair.sides)
    )
    if table.name == schema.TF_DATA_PIPELINES.name:
        found = [call.verdict for call in pair.call_verdicts(diff)]
        cells = {"verdict": [v.word for v in found], "evidence": [v.evidence or None for v in found]}
        matched = diff.index[diff["status"] == MATCHED]
        return diff.assign(**pd.DataFrame(cells, matched, dtype="str").reindex(diff.index))
    return _with_step_verdicts(pair, table, diff) if table.name in schema.STEP_TABLES else diff


def unjudged_ops(pair: Pair) -> pd.DataFrame:
    """The diff of ops per step as recorded, without verdicts."""
    make = partial(_diff_without_verdicts, pair, schema.OP_STATS, pair.sides_as_recorded)
    return pair.among.retain((pair.candidate.id, "unjudged ops"), make)


def overlap(pair: Pair) -> Overlap:
    """How much of the time is in ops that both sides have, and whether it is so little that the programs are different.
    Where what ran on devices was not recorded on a side, it does not tell that."""

    def make() -> Overlap:
        is_alike = len({run.info.framework for run in pair.runs}) == 1
        found = overlap_of(unjudged_ops(pair), recorded_alike=is_alike)
        return found if pair.knows_devices else found._replace(are_unrelated=False)

    return pair.among.retain((pair.candidate.id, "overlap"), make)


def are_unrelated(pair: Pair) -> bool:
    """Whether the runs are of different programs; by the names of the ops of a host on each side, else by `overlap`."""

    def make() -> bool:
        if pair.is_identical:
            return False
        if pair.manual_pairs or not all(run.host_names for run in pair.runs):
            return overlap(pair).are_unrelated
        hosts = (side.host or side.run.host_names[0] for side in pair.sides_as_recorded)
        ours, theirs = (run.tables.table("op_stats", host=host) for run, host in zip(pair.runs, hosts, strict=True))
        return not have_same_names(ours, theirs) and overlap(pair).are_unrelated

    return pair.among.retain((pair.candidate.id, "unrelated"), make)


def sure_ops(pair: Pair) -> Bools:
    """Which rows of `unjudged_ops` are surely pairs (`are_sure`)."""

    return pair.among.retain((pair.candidate.id, "sure ops"), lambda: _are_sure_pairs(pair, unjudged_ops(pair)))


def _are_sure_pairs(pair: Pair, diff: pd.DataFrame) -> Bools:
    is_sure = (diff["status"] == MATCHED).to_numpy(np.bool_, copy=True)
    is_sure[is_sure] = are_sure(diff[is_sure], pair.evidence)
    return is_sure


def _diff_without_verdicts(pair: Pair, table: schema.Table, sides: tuple[Side, Side]) -> pd.DataFrame:
    """The diff of a table without verdicts from steps or calls."""
    ours, theirs = (side_rows(pair, table, side) for side in sides)
    if not pair.knows_devices:
        ours, theirs = (replace(side, frame=of_hosts_alone(table.name, side.frame)) for side in (ours, theirs))
    if "pipeline" in table.keys:
        theirs = replace(theirs, pipelines=pair.pipelines())
    candidate, choices = pair.candidate.id, pair.manual_pairs
    diff = diff_table(table, candidate, ours, theirs, identical=pair.is_identical, manual_pairs=choices)
    if pair.of_each and table.name in schema.OF_EACH:
        diff[SUMS_OF] = np.where(are_of_hosts(table.name, diff), "host", pair.of_each)
    diff.insert(0, "baseline", pd.Series(pair.baseline.id, diff.index, dtype="str"))
    return diff


def _with_step_verdicts(pair: Pair, table: schema.Table, diff: pd.DataFrame) -> pd.DataFrame:
    """The diff with verdicts from per-step data; each sure pair is tested as a separate group."""
    are_ops = table is schema.OP_STATS and pair.iterations == ALIKE
    rows = diff[sure_ops(pair) if are_ops else _are_sure_pairs(pair, diff)]
    number = pd.Series(np.arange(len(rows)), rows.index)
    ratios = rows[f"{table.headline}_ratio"].reset_index(drop=True)
    found = pair.group_verdicts(Groups(table.name, rows, dict.fromkeys(SIDES, number), ratios)).set_axis(rows.index)
    lost = rows["op_name"].isin(pair.lost_events()["op_name"])
    found.loc[lost, "verdict"] = UNTESTED
    found.loc[lost, ["evidence", *INTERVAL]] = None
    columns = {c: diff[c].mask(diff.index.isin(found.index), found[c].reindex(diff.index)) for c in VERDICT}
    return diff.assign(**columns)


def side_rows(pair: Pair, table: schema.Table, side: Side) -> SideRows:
    """The rows of a table of all captures of one side."""
    is_in_steps = pair.per == "step" and table.name in schema.IN_STEPS
    kinds = pair.common_kinds if is_in_steps else None

    def rows(position: int) -> pd.DataFrame:
        run, host = side.runs[position], side.hosts[position]
        if kinds is not None:
            found = kinds.in_steps(table, run, host)
        else:
            found = run.tables.in_steps(table.name, host=host) if is_in_steps else run.table(table.name, host=host)
        if not pair.of_each or table.name not in schema.OF_EACH:
            return found
        by = dict.fromkeys(sums_of(table), pair.workers_of_rows(table.name, found, side, position))
        if "wall_time_us" in by:  # of the step of each host, whatever its number of devices
            by["wall_time_us"] = np.full(len(found), float(pair.workers(side, position).hosts))
        return found.assign(**{name: found[name] / workers for name, workers in by.items()})

    is_pooled = table.name in POOLED and len(side.runs) > 1
    frame = side.rows(table.name, partial(_divisor, pair, table, side), rows) if is_pooled else rows(0)
    if are_together(pair, table):
        frame = all_together(table, frame)
    if "execution" in table.keys:
        frame = slowest_executions(frame)
    evidence = OpEvidence()
    if table.name in NAMINGS:
        evidence = side.run.tables.op_evidence(host=side.host if "host" in table.keys else None)
    divisor = None if pair.per == "run" else 1 if is_pooled else _divisor(pair, table, side, 0)
    return SideRows(frame, divisor, evidence=evidence)


def _divisor(pair: Pair, table: schema.Table, side: Side, position: int) -> int:
    """The steps that sums of a capture are divided by; per device, the devices, unless sums are of each already."""
    run, host = side.runs[position], side.hosts[position]
    if pair.per != "step":
        is_per_device = pair.per == "device" and table.name not in schema.OF_EACH
        return max(pair.workers(side, position).devices, 1) if is_per_device else 1
    if table.name in schema.IN_STEPS:
        return side.step_count(position) * side.iterations
    steps = run.tables.recorded_steps(host) if table.name in schema.OF_DEVICES else count_steps(run, host)
    return steps * side.iterations


def count_steps(run: Run, host: str | None) -> int:
    """The number of all steps of a run, or of those of one of its hosts."""
    return run.info.step_count if host is None else len(run.table("steps", host=host)) or run.info.step_count


def are_together(pair: Pair, table: schema.Table) -> bool:
    """Whether the rows of all hosts and devices are one, since those of a side have no counterpart on the other."""
    if not pair.of_each or table.name not in schema.OF_EACH:
        return False
    every = (pair.workers(side, position) for side in pair.among.sides for position in side.positions)
    return "device" in table.keys or any(workers.hosts > 1 for workers in every)
