"""Compares one baseline with many candidates: a row per run, and the ops with the largest changes in all runs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import ADDED, change, ratio
from tfcompare.compare.groups.aggregate import group_diff, without_idle
from tfcompare.compare.groups.fused_rows import single_ops
from tfcompare.compare.matching.tiers import CANONICAL, FUSED
from tfcompare.compare.pairs import Pairs, pair_with, pairs_of
from tfcompare.compare.pooling import median_of
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.compare.steps.iterations import ALIKE
from tfcompare.compare.steps.peak_memory import peak_bytes
from tfcompare.compare.steps.step_time_verdict import knows_step_time, step_time_us
from tfcompare.errors import Unknown
from tfcompare.views.input.figures import wait_of_side

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side

By = Literal["op_name", "op_type"]

FEWEST_CANDIDATES = 2
"""The minimum number of candidates for the overview of many runs."""
ROWS = 20
"""The number of ops or op types whose change is shown for all runs."""

BASELINE = "baseline"
CANDIDATE = "candidate"
NEITHER = "neither"
"""Status of an op that neither the baseline nor this candidate has: another candidate has it."""

_STEP_TIMES = ("step_time_us_median", "step_time_us_tenth", "step_time_us_ninetieth")
COLUMNS = (
    *("run", "name", "role", "steps", "step_time_us_mean", *_STEP_TIMES),
    *("verdict", "evidence", "ratio", "interval_low", "interval_high", "reason", "caveat"),
    *("peak_bytes", "peak_bytes_delta", "input_share", "start_time", "start_time_source"),
)
"""The columns of `runs_table`."""

_SPREAD = (0.1, 0.9)
_OP = ["host_or_device", "op_type", "op_name", "is_added"]
_TYPE = ["host_or_device", "op_type"]


def runs_table(pairs: Pairs) -> pd.DataFrame:
    """One row a run, the baseline first, then the candidates as they were given.

    Columns: `run` (its id), `name`, `role` (`baseline`, `candidate`); of the steps that count `steps`,
    `step_time_us_mean`, their mean, which is what runs are compared by (`compare.steps.step_time_verdict`),
    `step_time_us_median`, and between which times most of them lie, `step_time_us_tenth` and `_ninetieth` (percentiles;
    missing, as the others are, where no steps are marked); of a candidate the verdict on its step time: `verdict`,
    `evidence`, `ratio` (of the step times, candidate ÷ baseline; of steps of unlike work, per iteration) with
    `interval_low` and `interval_high` (missing where it was not tested), `reason`, `caveat` (empty or missing for the
    baseline); `peak_bytes`, the largest peak of any memory, and `peak_bytes_delta` (candidate − baseline);
    `input_share`, the share of the step time spent waiting for input; `start_time` and `start_time_source`.
    """
    rows = []
    every = [None, *pairs_of(pairs)]
    for side, pair in zip(pairs.sides, every, strict=False):
        run, verdict = side.run, pair.verdict if pair else Verdict("", "")
        ours, theirs = pair.iterations if pair else ALIKE
        rows.append(
            {
                "run": run.id,
                "name": run.name,
                "role": CANDIDATE if side.position else BASELINE,
                "step_time_us_mean": step_time_us(side),
                "iterations": theirs / ours,
                **_step_times(side),
                "verdict": verdict.word,
                "evidence": verdict.evidence,
                "reason": verdict.reason,
                "caveat": verdict.caveat,
                "interval_low": verdict.low,
                "interval_high": verdict.high,
                "peak_bytes": median_of(side.each(peak_bytes)),
                "input_share": wait_of_side(side).share.average,
                "start_time": run.info.start_time,
                "start_time_source": run.info.start_time_source,
            }
        )
    runs = pd.DataFrame(rows)
    is_candidate = runs["role"] == CANDIDATE
    per_iteration = runs["step_time_us_mean"] / runs["iterations"]
    peak = runs["peak_bytes"].astype("Int64")
    ratios, deltas = (
        (per_iteration / per_iteration.iloc[0]).where(is_candidate),
        (peak - peak.iloc[0]).where(is_candidate),
    )
    return runs.assign(ratio=ratios, peak_bytes=peak, peak_bytes_delta=deltas)[list(COLUMNS)]


def fastest_first(runs: pd.DataFrame) -> pd.DataFrame:
    """The rows of `runs_table` sorted by the time of as much work as a step of the baseline does, those without one
    last."""
    step_us = runs["step_time_us_mean"]
    of_equal_work = (runs["ratio"] * step_us.iloc[0]).fillna(step_us)
    order = runs.assign(time=of_equal_work).sort_values(["time", "start_time", "run"], na_position="last").index
    return runs.loc[order].reset_index(drop=True)


def in_time_order(runs: pd.DataFrame) -> pd.DataFrame:
    """The rows of `runs_table` sorted by capture time."""
    return runs.sort_values(["start_time", "run"], ignore_index=True)


def fastest_and_next(pairs: Pairs) -> Pair | None:
    """The run with the shortest step as the candidate, compared with the next; None if fewer than two have steps."""
    work = {0: 1.0} | {pair.position: pair.iterations[1] / pair.iterations[0] for pair in pairs_of(pairs)}
    times = {side: step_time_us(side) / work[side.position] for side in pairs.sides}
    timed = sorted((side for side in times if times[side] > 0), key=times.__getitem__)  # NaN without steps
    if len(timed) < 2:
        return None
    fastest, runner_up = timed[:2]
    sides = replace(runner_up, position=0, sides=2), replace(fastest, position=1, sides=2)
    return pair_with(Pairs(sides, pairs.per, pairs.of_each, pairs.spread))


def side_by_side(pairs: Pairs, name: str) -> pd.DataFrame:
    """The headline metric of a table in all runs: one row for each that any run has, by the largest change first.

    Columns: the table's keys as the baseline has them (those of a candidate for a row that only candidates have), and
    for each run by its position, from 0 for the baseline, `value_<position>` (missing without the row), for
    candidates also `ratio_<position>` (candidate ÷ baseline). Sums are per step, run or device as in the diff; of steps
    of unlike work, those of a candidate are of as much work as a step of the baseline does. IDLE is left out. Raises
    `Unknown` for a table without a headline metric or a diff.
    """
    table = schema.table(name)
    if table.headline is None or not table.has_diff:
        known = [one.name for one in schema.TABLES.values() if one.has_diff and one.headline is not None]
        raise Unknown("table with a headline metric", name, known)
    rows = pairs.diffs(name)
    metric = table.headline
    if name == schema.OP_STATS.name:
        rows = _alike_for_all(without_idle(rows), metric)
    rows = rows.assign(is_added=rows["status"] == ADDED)
    if pairs.per == "step" and table.column(metric).kind == "sum":
        iterations = {pair.candidate.id: float(pair.iterations[0]) for pair in pairs_of(pairs)}
        both = [f"{metric}_{BASELINE}", f"{metric}_{CANDIDATE}"]
        rows = rows.assign(**rows[both].astype("float64").mul(rows["candidate"].map(iterations), axis=0))
    keys = [*table.keys, "is_added"]
    found = rows.groupby(keys, sort=False, dropna=False)[[f"{metric}_{BASELINE}"]].first()
    found = found.astype("float64").set_axis(["value_0"], axis=1)
    moved = []
    for position, run in enumerate(pairs.candidates, start=1):
        of_run = rows[rows["candidate"] == run.id].groupby(keys, sort=False, dropna=False)[f"{metric}_{CANDIDATE}"]
        values = of_run.sum(min_count=1).astype("float64").reindex(found.index)
        found[f"value_{position}"] = values
        found[f"ratio_{position}"] = ratio(found["value_0"], values)
        moved.append(change(found["value_0"], values).abs())
    order = pd.concat(moved, axis=1).max(axis=1).sort_values(ascending=False, kind="stable").index
    return found.loc[order].reset_index().drop(columns="is_added")


def changes_by_run(diff: pd.DataFrame, by: By = "op_name", n: int = ROWS) -> pd.DataFrame:
    """The self time, in all candidates, of the `n` ops or op types with the largest change in any candidate.

    `diff` is the diff of `op_stats` with all candidates. Returns one row for each op and candidate, the op with the
    largest change first, candidates in the diff's order: `row` (0 for the first op), `host_or_device`, `op_type`, with
    `by="op_name"` also `op_name`; `candidate`; `baseline_us` and `candidate_us`, per step as in the diff, missing on a
    side without the op; `ratio` (candidate ÷ baseline); `status` (`matched`, `added`, `removed`, `neither`); `verdict`
    and `evidence` (empty for unmatched ops). Ops have the baseline's name, added ops their own. IDLE and unchanged ops
    are excluded.

    Raises `Unknown` for another `by`.
    """
    if by not in ("op_name", "op_type"):
        raise Unknown("grouping", by, ["op_name", "op_type"])
    candidates = diff["candidate"].drop_duplicates()
    rows = _alike_for_all(without_idle(diff), "self_time_us")
    keys = _OP if by == "op_name" else _TYPE
    rows = rows.assign(is_added=rows["status"] == ADDED) if by == "op_name" else group_diff(rows, by)
    cells = rows[[*keys, "candidate", "status", "verdict", "evidence"]].assign(
        baseline_us=rows["self_time_us_baseline"].astype("float64"),
        candidate_us=rows["self_time_us_candidate"].astype("float64"),
        ratio=rows["self_time_us_ratio"].astype("float64"),
        moved_us=change(rows["self_time_us_baseline"], rows["self_time_us_candidate"]).abs(),
    )
    moved = cells.groupby(keys, as_index=False)["moved_us"].max()
    moved = moved[moved["moved_us"] > 0].sort_values(["moved_us", *keys], ascending=[False] + [True] * len(keys))
    chosen = moved.head(n).drop(columns="moved_us").reset_index(drop=True).rename_axis("row").reset_index()
    grid = chosen.merge(candidates.to_frame(), how="cross")
    found: pd.DataFrame = grid.merge(cells.drop(columns="moved_us"), on=[*keys, "candidate"], how="left")
    for name, empty in (("status", NEITHER), ("verdict", ""), ("evidence", "")):
        found[name] = found[name].fillna(empty).astype("str")
    return found.drop(columns="is_added", errors="ignore")


def _alike_for_all(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of a diff with ops of the baseline that some candidate has fused as one row for every candidate.

    Such a row is called after the baseline's ops. Put together from several rows, it has no verdict.
    """
    fused = rows[rows["match"] == FUSED]
    if fused.empty:
        return rows
    label = fused["op_type"].str.partition(" → ")[0]
    parts = single_ops(fused, BASELINE)
    single = parts[[*_TYPE, "op_name"]].itertuples(name=None)
    names = {tuple(op): (label[row], fused["op_name"][row]) for row, *op in single}
    whole_ops = zip(fused["host_or_device"], label, fused["op_name"], strict=True)
    names |= {(place, text, name): (text, name) for place, text, name in whole_ops}
    types = rows["op_type"].where(rows["match"] != FUSED, label.reindex(rows.index))
    keys = zip(rows["host_or_device"], types, rows["op_name"], rows["status"], strict=True)
    found = [names.get((place, text, name)) if status != ADDED else None for place, text, name, status in keys]
    is_named = pd.Series([one is not None for one in found], rows.index)
    named = pd.DataFrame([one for one in found if one], rows.index[is_named], columns=["op_type", "op_name"])
    rows = rows.assign(match=rows["match"].replace(FUSED, CANONICAL))
    rows.loc[is_named, ["op_type", "op_name"]] = named
    rows.loc[is_named, "op_type_candidate"] = named["op_type"]
    whole = rows[is_named].groupby(["candidate", "host", *_TYPE, "op_name"], as_index=False, sort=False)
    sums = whole.first()
    for column in (f"{metric}_{BASELINE}", f"{metric}_{CANDIDATE}"):
        sums[column] = whole[column].sum(min_count=1)[column]
    sums[f"{metric}_ratio"] = ratio(sums[f"{metric}_{BASELINE}"], sums[f"{metric}_{CANDIDATE}"])
    sums["verdict"] = sums["verdict"].where(whole.size()["size"] == 1, "")
    return pd.concat([rows[~is_named], sums[rows.columns]], ignore_index=True)


def _step_times(side: Side) -> dict[str, Any]:
    durations = np.concatenate([times.included[0] for times in side.step_times_us])
    if not durations.size or not all(knows_step_time(run.info) for run in side.runs):
        return {"steps": 0, **dict.fromkeys(_STEP_TIMES, math.nan)}
    figures = [float(np.median(durations)), *(float(np.quantile(durations, share)) for share in _SPREAD)]
    return {"steps": len(durations), **dict(zip(_STEP_TIMES, figures, strict=True))}
