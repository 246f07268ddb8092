"""When a series changed, by how much, and which ops explain it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.attribution import NEGLIGIBLE_US
from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.side import window_of
from tfcompare.compare.stats.change_points import FEWEST_RUNS, change_points, change_points_of_family
from tfcompare.errors import TfcompareError
from tfcompare.markdown import as_code
from tfcompare.run import Run, load
from tfcompare.tables.straggler import steps_of_straggler
from tfcompare.text import some_of
from tfcompare.tools.runs.series import STEP_TIME, THROUGHPUT, Metric, device_of_read, label_of
from tfcompare.units import format_bytes, format_time_us

if TYPE_CHECKING:
    from tfcompare.sources.logdir import FoundRun
    from tfcompare.tools.runs.series import Opener

COLUMNS = ("run", "name", "recorded", "label", "run_before", "label_before", "before", "after", "ratio", "ratio_low",
           "ratio_high", "p", "runs_before", "runs_after")  # fmt: skip
"""The columns of `changes`."""
OP_COLUMNS = ("host_or_device", "op_type", "op_name", "run", "label", "delta_us", "ratio", "ratio_low", "ratio_high",
              "p")  # fmt: skip
"""The columns of `op_changes`."""
NO_OP = "no op running"
OTHER_HOSTS = "other hosts slower"
BETWEEN = "time between steps"
NEAREST = 10
"""An explanation compares at most this many runs on either side of a change."""
FAMILY_RUNS = 200
"""Changes in every op are looked for in at most this many of the last runs."""
SMALLEST_OP_SHARE = 0.005
"""Ops below this share of the time in all runs are not tested, as in verdicts."""
_NAMED, _NAMED_PLACES = 2, 3
STEP_TIME_METRIC = Metric(STEP_TIME)
_OP = ["host_or_device", "op_type", "op_name"]


def changes(rows: pd.DataFrame) -> pd.DataFrame:
    """The change points of a series (the result of `tools.series.series`), in its order.

    Columns: `run`, `name`, `recorded` and `label` of the first run after the change; `run_before` and `label_before`
    of the last one before; `before` and `after`, the geometric means up to the neighbouring changes with strays
    clipped, in the metric's unit; `ratio`, after ÷ before, with its 95 % confidence interval `ratio_low` to
    `ratio_high`; `p`; `runs_before` and `runs_after`, how many runs that rests on. Runs without a value do not count.
    """
    known = rows[rows["value"] > 0].reset_index(drop=True)
    out = []
    for point in change_points(known["value"].to_numpy(np.float64)):
        after, before = known.iloc[point.at], known.iloc[point.at - 1]
        out.append((after["run"], after["name"], after["recorded"], after["label"], before["run"], before["label"],
                    point.before, point.after, point.ratio, point.low, point.high, point.p, point.at - point.first,
                    point.end - point.at))  # fmt: skip
    return pd.DataFrame(out, columns=list(COLUMNS))


def sentence(rows: pd.DataFrame, found: pd.DataFrame, metric: Metric, moves: pd.DataFrame | None = None) -> str:
    """The last change in words, as Markdown; or that there is none.

    `found` are the `changes` of `rows`, `moves` the ops that explain the last one.
    """
    count = int((rows["value"] > 0).sum())
    name = metric_name(metric)
    if count < FEWEST_RUNS:
        return f"{count} runs with a value: at least {FEWEST_RUNS} are needed to find changes."
    if not len(found):
        return f"No change of {name[0].lower()}{name[1:]} in the last {count:,} runs."
    last = found.iloc[-1]
    verb = "rose" if last["ratio"] > 1 else "fell"
    size, low, high = (100 * abs(last[column] - 1) for column in ("ratio", "ratio_low", "ratio_high"))
    interval = f"{min(low, high):.1f}–{max(low, high):.1f} %"
    if (last["ratio_low"] - 1) * (last["ratio_high"] - 1) < 0:
        interval = f"{100 * (last['ratio_low'] - 1):+.1f} to {100 * (last['ratio_high'] - 1):+.1f} %"
    values = f"from {format_value(metric, last['before'])} to {format_value(metric, last['after'])}"
    where = f"at {as_code(last['label'])} on {last['recorded']:%Y-%m-%d}"
    start = f"{name} {verb} by {size:.1f} % ({interval}) {where}, {values}"
    why = "" if moves is None else explanation(moves)
    return f"{start}; {why}." if why else f"{start}."


def explanation(moves: pd.DataFrame) -> str:
    """`explained by MatMul +1.1 ms and Relu +0.2 ms of +1.4 ms per step`; empty if nothing moved.

    The largest opposite change is named as well if it is as large as the sum of all changes.
    """
    total = float(moves["delta_us"].sum())
    same_way = moves[np.sign(moves["delta_us"]) == np.sign(total)].head(_NAMED)
    if abs(total) < NEGLIGIBLE_US or same_way.empty:
        return ""
    opposite = moves[moves["delta_us"] * -np.sign(total) >= abs(total)].head(1)
    named, against = (
        " and ".join(f"{as_code(row.op_name)} {_signed(row.delta_us)}" for row in some.itertuples())
        for some in (same_way, opposite)
    )
    if against:
        return f"explained by {named} against {against}, together with the rest {_signed(total)} per step"
    return f"explained by {named} of {_signed(total)} per step"


def version_remark(rows: pd.DataFrame) -> str:
    """Where the versions of the tables changed that the values of a series come from, as Markdown; empty if nowhere."""
    known = rows[rows["value"].notna()]
    made_by = [dict(each.split(" ") for each in text.split(", ")) for text in known["versions"]]
    pairs = zip(known["label"].iloc[1:], made_by, made_by[1:], strict=False)
    places = [(label, [name for name in now if now[name] != before[name]]) for label, before, now in pairs]
    places = [(label, names) for label, names in places if names]
    if not places:
        return ""
    last = [as_code(label) for label, _ in places[-_NAMED_PLACES:]]
    named = some_of(last, _NAMED_PLACES, len(places))
    tables = ", ".join(as_code(name) for name in dict.fromkeys(name for _, names in places for name in names))
    return (
        f"Different versions of tfcompare made {tables}, which may itself change values: the version changed at "
        f"{named}. `tfcompare ingest` again, where the profiles still exist, makes them alike."
    )


def metric_name(metric: Metric) -> str:
    """The metric in words, to begin a sentence."""
    names = {"step_time": "Step time", "throughput": "Throughput", "peak_memory": "Peak memory"}
    return names.get(metric.kind) or f"{metric.kind.removesuffix(':').capitalize()} time of {as_code(metric.pattern)}"


def format_value(metric: Metric, value: float) -> str:
    """A value with its unit."""
    if metric.unit == "us":
        return format_time_us(value)
    return format_bytes(value) if metric.unit == "bytes" else f"{value:.4g} steps/s"


def op_moves(
    runs: Sequence[FoundRun],
    at: int,
    first: int = 0,
    end: int | None = None,
    opener: Opener = load,
    metric: Metric = STEP_TIME_METRIC,
) -> pd.DataFrame:
    """How the mean step changed op by op from the runs before position `at` to those from there on.

    For throughput, one row is the time between steps, and all add up to the change of step and time between.

    At most `NEAREST` runs count on each side, none before `first` or from `end` on. Times are wall time: where several
    ops ran at once, an instant is divided among them, so the rows, one of which is the time in which no op ran, add up
    to the change of the mean step. Of several hosts, each run's straggler counts. Ops are matched by their exact names.
    Columns: `host_or_device`, `op_type`, `op_name`, `before_us`, `after_us`, `delta_us`; the largest change first.
    Empty if no run on a side has steps or can be read.
    """
    times_of = period_times_us if metric.kind == THROUGHPUT else wall_times_us
    before = _mean_times(runs[max(at - NEAREST, first) : at], opener, times_of)
    after = _mean_times(runs[at : min(at + NEAREST, len(runs) if end is None else end)], opener, times_of)
    if before is None or after is None:
        return pd.DataFrame(columns=[*_OP, "before_us", "after_us", "delta_us"])
    both = pd.concat({"before_us": before, "after_us": after}, axis=1).fillna(0.0)
    both["delta_us"] = both["after_us"] - both["before_us"]
    order = both["delta_us"].abs().sort_values(ascending=False, kind="stable").index
    return both.loc[order].reset_index()


def _mean_times(runs: Sequence[FoundRun], opener: Opener, times_of: Callable[[Run], pd.Series]) -> pd.Series | None:
    each = []
    for found in runs:
        try:
            run = opener(found)
        except TfcompareError:  # its row of the series says why
            continue
        if run.info.has_step_times:
            each.append(times_of(run))
    if not each:
        return None
    means: pd.Series = pd.concat(each, axis=1).fillna(0.0).mean(axis=1)
    return means


def wall_times_us(run: Run) -> pd.Series:
    """The wall time per step of each op of a run's straggler, by side, type and name, with the time without any op and
    what steps of the run take longer than the straggler's."""
    steps = steps_of_straggler(run.table("steps"))
    steps = steps[steps["included"].astype(bool)]
    shares = run.op_shares(str(steps["host"].iloc[0]))
    shares = shares[shares["step"].isin(steps["step"])]
    times = shares.groupby(_OP, observed=True)["wall_time_us"].sum() / len(steps)
    step_us = float(steps["duration_us"].mean())
    of_run_us = float(run.steps.loc[run.steps["included"].astype(bool), "duration_us"].mean())
    rest = {("", "", NO_OP): step_us - float(times.sum()), ("", "", OTHER_HOSTS): of_run_us - step_us}
    every: pd.Series = pd.concat([times, pd.Series(rest).rename_axis(_OP)])
    return every


def period_times_us(run: Run) -> pd.Series:
    """`wall_times_us`, and the mean time between steps."""
    window = window_of(run)
    between_us = 0.0 if window is None else window.between_us
    every: pd.Series = pd.concat([wall_times_us(run), pd.Series({("", "", BETWEEN): between_us}).rename_axis(_OP)])
    return every


def op_changes(
    runs: Sequence[FoundRun],
    progress: Callable[[int, int], object] = lambda _done, _all: None,
    opener: Opener = load,
) -> tuple[pd.DataFrame, int]:
    """(the change points of every op in the last `FAMILY_RUNS` of these runs, tested together; the ops tested).

    Columns `OP_COLUMNS`, the largest change of time first. Only ops that all runs have are tested, and none below
    `SMALLEST_OP_SHARE` of the time in all runs. Runs on another device than the last one are left out.
    """
    shown = runs[-FAMILY_RUNS:]
    columns: dict[str, pd.Series] = {}
    devices: dict[str, str] = {}
    for done, found in enumerate(shown):
        progress(done, len(shown))
        try:
            run = opener(found)
            columns[found.id], devices[found.id] = _self_times_us(run), device_of_read(run)
        except TfcompareError:  # its row of the series says why
            continue
    progress(len(shown), len(shown))
    read = [run for run in shown if run.id in columns]
    if not read:
        return pd.DataFrame(columns=list(OP_COLUMNS)), 0
    kept = [run for run in read if devices[run.id] == devices[read[-1].id]]
    times = pd.concat({run.id: columns[run.id] for run in kept}, axis=1).dropna()
    times = times[(times > 0).all(axis=1)]
    times = times[(times >= SMALLEST_OP_SHARE * times.sum()).any(axis=1)]
    rows = []
    for op, points in zip(times.index, change_points_of_family(times.to_numpy(np.float64)), strict=True):
        for point in points:
            changed, before = kept[point.at], float(times.loc[op].iloc[point.first : point.at].mean())
            rows.append((*op, changed.id, label_of(changed), before * (point.ratio - 1), point.ratio, point.low,
                         point.high, point.p))  # fmt: skip
    out = pd.DataFrame(rows, columns=list(OP_COLUMNS))
    order = out["delta_us"].abs().sort_values(ascending=False, kind="stable").index
    return out.loc[order].reset_index(drop=True), len(times)


def _self_times_us(run: Run) -> pd.Series:
    """The self time per step of every op of a run, of all hosts and devices, by side, type and name."""
    ops = without_idle(run.in_steps("op_stats"))
    times: pd.Series = ops.groupby(_OP)["self_time_us"].sum() / run.info.steps_included
    return times


def _signed(us: float) -> str:
    return f"{'+' if us >= 0 else '−'}{format_time_us(abs(us))}"
