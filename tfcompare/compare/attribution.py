"""Waterfalls that attribute the change of the step time to parts of the step, and the change of a part to ops.

All figures are means over the included steps, as the step time is. Of several hosts, the parts are those of one of
them, the straggler; what a step of the run takes longer, because another host took longer in it, is `OTHER_HOSTS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED, change, ratio
from tfcompare.compare.groups.fused_rows import single_ops
from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.steps.step_time_verdict import step_time_us
from tfcompare.schema import SIDES, STEP_PARTS, STEPS
from tfcompare.schema.ops import ANNOTATION, FUNCTION
from tfcompare.tables.hosts import straggler
from tfcompare.units import format_count, format_time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run

SHOWN_OPS = 8
WORTH_A_MOVE = 0.01
"""Share of the largest move below which ops are aggregated."""


PART = "part"
OTHERS = "others"
FACTOR = "factor"
NO_OP = "no op running"
NEGLIGIBLE_US = 1e-6
"""One picosecond, the unit of time in profiles: anything less is rounding."""

OTHER_HOSTS = "other_hosts_us"
_OTHER_HOSTS = "Mean step of the run, which is as long as on its slowest host in each step, less that of this host."

AROUND_OPS = (ANNOTATION, FUNCTION)
"""Kinds of what has the time that no op covers, in the place of an op's type."""

OP = ("host_or_device", "op_type", "op_name")
"""The columns that identify an op."""

MOVE_COLUMNS = ["name", "detail", "kind", "baseline_us", "candidate_us", "delta_us"]


@dataclass(frozen=True)
class Waterfall:
    """The change from the baseline's mean time to the candidate's, as a sequence of moves.

    `moves` has one row per move, in order: `name`; `detail`, an annotation; `kind` (`part` of a step; `matched`,
    `added` or `removed` for an op; `others` for several ops aggregated; `factor` of a product; `no op running`);
    `baseline_us` and `candidate_us`, missing if a side has none or the move is not a time of either; `delta_us`. The
    deltas add up to the total change.
    """

    baseline_us: float
    candidate_us: float
    moves: pd.DataFrame

    @property
    def delta_us(self) -> float:
        """The total change, candidate − baseline."""
        return self.candidate_us - self.baseline_us

    @property
    def is_empty(self) -> bool:
        """Whether there are no moves."""
        return bool((self.moves["delta_us"].abs() < NEGLIGIBLE_US).all())

    @property
    def levels_us(self) -> npt.NDArray[np.float64]:
        """The cumulative time before the first move and after each move."""
        return self.baseline_us + np.append(0.0, np.cumsum(self.moves["delta_us"].to_numpy(np.float64)))


def part_means(baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """The parts of the mean step of both sides, one row for each of `schema.STEP_PARTS`, in that order.

    Both frames have one row per step and the columns of `schema.STEPS`; only included steps count. Of several captures,
    which the column `capture` tells apart, a mean is that of their means. Columns: `part`, `label`; `mean_us_<side>`
    and `std_us_<side>` (sample standard deviation) for `baseline` and `candidate`, missing for a side without steps,
    the deviation also for a single step; `delta_us`, `ratio`.
    """
    columns: dict[str, pd.Series] = {}
    for side, steps in (("baseline", baseline), ("candidate", candidate)):
        counted = steps[steps["included"].astype(bool)]
        deviations = counted[list(STEP_PARTS)].astype("float64").std(ddof=1)
        columns |= {f"mean_us_{side}": mean_step(counted), f"std_us_{side}": deviations}
    parts = pd.DataFrame(columns, index=list(STEP_PARTS))
    ours, theirs = parts["mean_us_baseline"], parts["mean_us_candidate"]
    parts = parts.assign(delta_us=theirs - ours, ratio=ratio(ours, theirs))
    parts.insert(0, "label", [STEPS.column(part).label for part in STEP_PARTS])
    return parts.rename_axis("part").reset_index()


def mean_step(steps: pd.DataFrame) -> pd.Series:
    """The mean of each of `schema.STEP_PARTS` over steps; of several captures, as `part_means` says."""
    times = steps[list(STEP_PARTS)].astype("float64")
    return times.groupby(steps["capture"]).mean().mean() if "capture" in steps else times.mean()


def with_other_hosts(parts: pd.DataFrame, step_us: tuple[float, float]) -> pd.DataFrame:
    """`parts` with a last row `OTHER_HOSTS`, so that their sums are the mean steps of the runs, `step_us`; the same
    where they are already."""
    rest = [us - float(parts[f"mean_us_{side}"].sum(skipna=False)) for us, side in zip(step_us, SIDES, strict=True)]
    if not any(abs(us) >= NEGLIGIBLE_US for us in rest):  # NaN without steps
        return parts
    row = pd.DataFrame({"part": [OTHER_HOSTS], "label": ["Other hosts slower"]})
    for side, us in zip(SIDES, rest, strict=True):
        row[f"mean_us_{side}"] = 0.0 if abs(us) < NEGLIGIBLE_US else us
    row = row.assign(delta_us=rest[1] - rest[0], ratio=ratio(row["mean_us_baseline"], row["mean_us_candidate"]))
    return pd.concat([parts, row], ignore_index=True)


def has_both(parts: pd.DataFrame) -> bool:
    """Whether both sides have steps; `parts` is the result of `part_means`."""
    return bool(parts["delta_us"].notna().all())


def step_waterfall(parts: pd.DataFrame) -> Waterfall:
    """The waterfall from the baseline's mean step to the candidate's, with one move for each part of the step.

    `parts` is the result of `part_means`; both sides must have steps. The kind of every move is `part`.
    """
    ours, theirs = parts["mean_us_baseline"], parts["mean_us_candidate"]
    moves = pd.DataFrame(
        {
            "name": parts["label"],
            "detail": [_OTHER_HOSTS if p == OTHER_HOSTS else STEPS.column(p).meaning for p in parts["part"]],
            "kind": PART,
            "baseline_us": ours,
            "candidate_us": theirs,
            "delta_us": parts["delta_us"],
        }
    )
    there = (ours != 0) | (theirs != 0)
    return Waterfall(float(ours.sum()), float(theirs.sum()), moves[there].reset_index(drop=True))


def moved_most(parts: pd.DataFrame) -> str | None:
    """The part whose mean has the largest absolute change; the first among equals, None if none changed."""
    parts = parts[parts["part"] != OTHER_HOSTS]
    size = parts["delta_us"].abs()
    return None if (size < NEGLIGIBLE_US).all() else str(parts["part"].iloc[int(size.argmax())])


def op_moves(pairs: pd.DataFrame, baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """The change of each op's time, the largest first, with the columns of `Waterfall.moves`.

    `pairs` are rows of a diff with the columns `OP`, the last two of them also with `_candidate`, and `status`. The two
    sides have the columns `OP` and `time_us` for the relevant ops; pairs without a relevant op are left out. In a
    matched pair, a side without the op counts as 0; in other pairs, the absent side is missing.
    """
    ours = _times(baseline, pairs, SIDES[0]).where(pairs["status"] != ADDED)
    theirs = _times(candidate, pairs, SIDES[1]).where(pairs["status"] != REMOVED)
    counts = ours.notna() | theirs.notna()
    matched = pairs["status"] == MATCHED
    moves = pd.DataFrame(
        {
            "name": pairs["op_name"],
            "detail": pairs["op_type"],
            "kind": pairs["status"],
            "baseline_us": ours.mask(matched & ours.isna(), 0.0),
            "candidate_us": theirs.mask(matched & theirs.isna(), 0.0),
        }
    )[counts]
    return _largest_first(moves, pairs.loc[counts, "op_name_candidate"].fillna(moves["name"]))


def annotation_moves(baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """As `op_moves`, of annotations and Python functions, which are paired by name: `detail` is the kind of each."""
    both = baseline.merge(candidate, on=list(OP), how="outer", suffixes=("_baseline", "_candidate"))
    ours, theirs = both["time_us_baseline"], both["time_us_candidate"]
    moves = pd.DataFrame(
        {
            "name": both["op_name"],
            "detail": both["op_type"],
            "kind": np.select([ours.isna(), theirs.isna()], [ADDED, REMOVED], MATCHED),
            "baseline_us": ours,
            "candidate_us": theirs,
        }
    )
    return _largest_first(moves, moves["name"])


def all_moves(*several: pd.DataFrame) -> pd.DataFrame:
    """The moves of several kinds together, the largest first."""
    moves = pd.concat([one for one in several if len(one)] or [several[0]], ignore_index=True)
    return moves.loc[(-moves["delta_us"].abs()).sort_values(kind="stable").index].reset_index(drop=True)


def _largest_first(moves: pd.DataFrame, names_candidate: pd.Series) -> pd.DataFrame:
    """The moves with their `delta_us`, the largest first."""
    moves = moves.assign(delta_us=change(moves["baseline_us"], moves["candidate_us"]))
    names = zip(moves["name"], names_candidate, strict=True)
    either_way = [" ".join(sorted(set(pair))) for pair in names]  # a tie-breaker that does not depend on the side
    ranks = pd.DataFrame({"size": -moves["delta_us"].abs(), "names": either_way}, index=moves.index)
    return moves.loc[ranks.sort_values(["size", "names"], kind="stable").index, MOVE_COLUMNS].reset_index(drop=True)


def _times(of_side: pd.DataFrame, pairs: pd.DataFrame, side: str) -> pd.Series:
    """The time of each pair's ops on a side; missing if it has none of them."""
    ops = single_ops(pairs, side)[list(OP)]
    times = of_side.set_index(list(OP))["time_us"].reindex(pd.MultiIndex.from_frame(ops))
    return pd.Series(times.to_numpy(np.float64), ops.index).groupby(level=0).sum(min_count=1).reindex(pairs.index)


def part_waterfall(part: pd.Series, moves: pd.DataFrame, shown: int = SHOWN_OPS) -> Waterfall:
    """The waterfall from the baseline's mean time of a part to the candidate's, with one move per op.

    `part` is a row of `part_means`, `moves` the result of `op_moves`. The `shown` largest moves are separate unless
    they are below `WORTH_A_MOVE` of the largest; the rest is one move of kind `others`. The last move is the remaining
    time of the part, in which no op was running.
    """
    moved = moves[moves["delta_us"].abs() >= NEGLIGIBLE_US]
    worth = int((moved["delta_us"].abs() >= WORTH_A_MOVE * moved["delta_us"].abs().max()).sum())
    rows = [moved.head(min(shown, worth))]
    rest = moved.iloc[min(shown, worth) :]
    if len(rest):
        what = "others" if rest["detail"].isin(AROUND_OPS).any() else "other op" if len(rest) == 1 else "other ops"
        name = f"{len(rest):,} {what}"
        sums = (rest[column].sum() for column in ("delta_us", "baseline_us", "candidate_us"))
        rows.append(_move(name, "each changed by less than those above", OTHERS, *sums))
    if not (moves["kind"] == FACTOR).any():
        ours, theirs = (float(part[f"mean_us_{side}"] - moves[f"{side}_us"].sum()) for side in SIDES)
        if abs(theirs - ours) >= NEGLIGIBLE_US:
            detail = "time of this part that no op or annotation covers"
            rows.append(_move("No op running", detail, NO_OP, theirs - ours, ours, theirs))
    every = pd.concat([row for row in rows if len(row)] or [moved], ignore_index=True)
    return Waterfall(float(part["mean_us_baseline"]), float(part["mean_us_candidate"]), every)


def factor_moves(counts: Sequence[float], times_us: Sequence[float], names: tuple[str, str]) -> pd.DataFrame:
    """Attributes the change of a product, count × mean time, to the count and to the time.

    `counts` and `times_us` hold the values of baseline and candidate; `names` are the names of the two moves. Each
    factor's change is weighted by the mean of the other factor, so that the two moves add up exactly and swapping the
    sides negates them.
    """
    (few, many), (before, after) = counts, times_us
    of_count, of_time = ((many - few) * (before + after) / 2, (after - before) * (few + many) / 2)
    moves = [
        _move(names[0], f"from {' to '.join(map(format_count, counts))} a step", FACTOR, of_count),
        _move(names[1], f"from {' to '.join(map(format_time_us, times_us))}", FACTOR, of_time),
    ]
    return pd.concat(moves, ignore_index=True)


def _move(
    name: str, detail: str, kind: str, delta_us: float, baseline_us: float = np.nan, candidate_us: float = np.nan
) -> pd.DataFrame:
    return pd.DataFrame([(name, detail, kind, baseline_us, candidate_us, delta_us)], columns=MOVE_COLUMNS)


def attributed_hosts(pair: Pair) -> tuple[str, str]:
    """The hosts of baseline and candidate whose steps are attributed: the chosen host and its counterpart.

    Without a chosen one, the straggler of the run with the longer mean step and the same host of the other run: by
    name, else by position, else that run's own straggler. So it does not depend on which run is the baseline.
    """
    baseline, candidate = pair.runs
    if pair.host is not None:
        return pair.host, pair.sides[1].host or candidate.host_names[0]
    counterparts = host_counterparts(baseline.host_names, candidate.host_names)
    if step_time_us(pair.sides[0]) > step_time_us(pair.sides[1]):
        ours = _straggler_or_first(baseline)
        return ours, counterparts.get(ours) or _straggler_or_first(candidate)
    theirs = _straggler_or_first(candidate)
    of_theirs = {host: ours for ours, host in counterparts.items()}
    return of_theirs.get(theirs) or _straggler_or_first(baseline), theirs


def _straggler_or_first(run: Run) -> str:
    steps = run.table("steps")
    if (found := straggler(steps)) is not None:
        return found
    return str(steps["host"].min()) if len(steps) else run.host_names[0]
