"""Every chart of a comparison by its name, as pages show it first; for reports and notebooks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import plotly.graph_objects as go

from tfcompare import schema
from tfcompare.charts import attribution, hosts, input_pipeline, memory, memory_peak, ops, scopes, shares, steps
from tfcompare.charts import step_parts as parts
from tfcompare.charts import xla as xla_charts
from tfcompare.charts import xla_memory as xla_memory_charts
from tfcompare.charts.changes import changes_of_pair
from tfcompare.charts.kernels import KERNEL_TIME
from tfcompare.charts.memory_peak import LIVE
from tfcompare.charts.pair import Pair, has_steps, pairs_of, sides, steps_of
from tfcompare.charts.style import SELF_TIME, Quantity, Side
from tfcompare.charts.tf_data import pipeline_graphs
from tfcompare.charts.verdicts import colours_of_change
from tfcompare.compare import Comparison
from tfcompare.compare.aggregate import largest_changes, metric_in
from tfcompare.compare.matching.matching import pair_hosts
from tfcompare.compare.straggler import steps_of_straggler
from tfcompare.compare.tf_data.tf_data_change import analyse
from tfcompare.compare.tf_data.tf_data_graph import graphs
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.run import Run
from tfcompare.schema import DEVICE, HOST
from tfcompare.tools import hosts as host_tables
from tfcompare.tools import (
    input_bound,
    input_ops,
    kernel_stats,
    memory_timeline,
    step_attribution,
    xla_memory,
    xla_tree,
)
from tfcompare.tools import memory as memory_sides
from tfcompare.tools.memory import MemoryPair
from tfcompare.tools.memory_timeline import Memory
from tfcompare.tools.op_stats import ROLES
from tfcompare.units import format_time_us

DRAWN_CANDIDATES = 4
MAIN_MEMORY = 0

Make = Callable[[Pair], "go.Figure | None"]


def figure(comparison: Comparison, name: str, candidate: str | None = None) -> go.Figure:
    """The chart `name` of a comparison, one of `NAMES`, with the candidate of that id (by default the first).

    Raises `Unknown` for an unknown name or candidate, `TfcompareError` if the runs have nothing that it could show.
    """
    if name not in NAMES:
        raise Unknown("chart", name, list(NAMES))
    found = figure_of(_pair(comparison, candidate), name)
    if found is None:
        have = ", ".join(names_of(comparison, candidate))
        raise TfcompareError(f"these runs have nothing for the chart {name!r}; they have: {have or 'none'}")
    return found


def names_of(comparison: Comparison, candidate: str | None = None) -> tuple[str, ...]:
    """The names of the charts that these runs have. Each is drawn to know it. Raises `Unknown` for the candidate."""
    pair = _pair(comparison, candidate)
    return tuple(name for name in NAMES if figure_of(pair, name) is not None)


def _pair(comparison: Comparison, candidate: str | None) -> Pair:
    pairs = {pair.candidate.id: pair for pair in pairs_of(comparison)}
    if candidate is not None and candidate not in pairs:
        raise Unknown("candidate", candidate, list(pairs))
    return next(iter(pairs.values())) if candidate is None else pairs[candidate]


def figure_of(pair: Pair, name: str) -> go.Figure | None:
    """The chart of a pair; None if the runs have nothing that it could show."""
    return _MAKERS[name](pair)


def _waterfall(pair: Pair) -> go.Figure | None:
    found = pair.attribution
    if pair.is_single or found.waterfall is None or found.waterfall.is_empty:
        return None
    colours = colours_of_change(pair.comparison.verdict[pair.candidate.id])
    return attribution.step_waterfall(found.waterfall, pair.sides, colours)


def _average_step(pair: Pair) -> go.Figure | None:
    """Of a run alone: what its average step consists of."""
    if not pair.is_single or not has_steps(pair.baseline):
        return None
    return parts.step_breakdown(pair.attribution.parts, pair.sides[0])


def _series(pair: Pair) -> list[tuple[Side, pd.DataFrame]]:
    """The steps of all runs; none of a candidate that is not drawn, so that the others keep their colours."""
    runs = [pair.baseline, *([] if pair.is_single else pair.comparison.candidates)]
    return [
        (side, _steps(pair, run, is_drawn=position <= DRAWN_CANDIDATES or run is pair.candidate))
        for position, (side, run) in enumerate(zip(sides(pair.comparison), runs, strict=True))
    ]


def _steps(pair: Pair, run: Run, *, is_drawn: bool) -> pd.DataFrame:
    frame = steps_of(pair.comparison, run)
    return frame if is_drawn and has_steps(run) else frame.iloc[:0]


def _over_steps(pair: Pair, make: Callable[[list[tuple[Side, pd.DataFrame]]], go.Figure]) -> go.Figure | None:
    series = _series(pair)
    return make(series) if any(len(frame) for _, frame in series) else None


def _step_parts(pair: Pair, role: int) -> go.Figure | None:
    if role >= len(pair.shown) or not has_steps(pair.runs[role]):
        return None
    frames = step_attribution.attributed_steps(pair.comparison, pair.candidate)
    return parts.parts_of_steps(pair.sides[role], frames[role])


def _op_changes(pair: Pair) -> go.Figure | None:
    return (
        None if pair.is_single else _changes(pair, largest_changes(pair.diff(), n=ops.TOP), "self_time_us", SELF_TIME)
    )


def _changes(
    pair: Pair, changes: pd.DataFrame, metric: str, quantity: Quantity, by: str = "op_name"
) -> go.Figure | None:
    return None if changes.empty else changes_of_pair(pair, changes, metric, by=by, quantity=quantity)


def _kernel_changes(pair: Pair) -> go.Figure | None:
    if pair.is_single or pair.diff("kernel_stats").empty:
        return None
    changes = largest_changes(pair.kernels, n=ops.TOP, metric=kernel_stats.TIME)
    return _changes(pair, changes.assign(detail=""), kernel_stats.TIME, KERNEL_TIME, by="kernel_name")


def _tensor_cores(pair: Pair) -> go.Figure | None:
    use = kernel_stats.tensor_core_use(pair.diff("kernel_stats"))
    if not use[[f"share_{role}" for role in ROLES[: len(pair.shown)]]].iloc[:2].to_numpy().any():
        return None
    title, axis = "Kernel time by use of tensor cores", f"Kernel time per {pair.comparison.per}"
    return shares.time_bars(use, [side for side, _ in pair.shown], kernel_stats.TIME, title=title, axis=axis)


def _name_scopes(pair: Pair, place: str) -> go.Figure | None:
    if not (pair.diff()["host_or_device"] == place).any():
        return None
    tree = pair.scopes()
    metric = metric_in(tree, "self_time_us")
    took_time = tree[[f"{metric}_{role}" for role in ROLES]].max(axis=1) > 0
    here = tree[took_time & (tree["node"].str.split("/", n=1).str[0] == place)]
    make = scopes.scope_icicle_alone if pair.is_single else scopes.scope_icicle
    return None if here.empty else make(here, metric, per=pair.comparison.per, place=place.lower())


def _memories(pair: Pair) -> tuple[MemoryPair, dict[str, str]] | None:
    """The memory with the largest peak, as the memory page shows first, and the hosts that are paired."""
    ours, theirs = pair.tables("memory_summary")
    paired = pair_hosts(ours["host"].unique(), theirs["host"].unique())
    found = memory_sides.memory_pairs(ours, theirs, paired)
    return (found[0], paired) if found else None


def _of_each(pair: Pair) -> list[tuple[Side, Run, Memory]]:
    found = _memories(pair)
    if found is None:
        return []
    every = zip(pair.shown, found[0].memories, strict=False)
    return [(side, run, one) for (side, run), one in every if one is not None]


def _memory_step(pair: Pair) -> go.Figure | None:
    drawn = [
        (side, memory_timeline.typical_step(run, one, "in_use_bytes"))
        for side, run, one in _of_each(pair)
        if has_steps(run)
    ]
    return memory.typical_step(drawn, "in_use_bytes", "time") if any(len(frame) for _, frame in drawn) else None


def _memory_run(pair: Pair) -> go.Figure | None:
    drawn = [(side, memory_timeline.drawn(run, one, "in_use_bytes", "time")) for side, run, one in _of_each(pair)]
    return memory.timeline(drawn, [], "in_use_bytes", "time") if any(len(frame) for _, frame in drawn) else None


def _peak_rows(pair: Pair) -> pd.DataFrame | None:
    found = _memories(pair)
    if found is None:
        return None
    memories, paired = found
    rows = memory_sides.peak_diff(
        pair.diff("memory_peak"), memories, paired, pair.tables("memory_peak"),
        identical=pair.is_identical and memories.has_one_name, manual_pairs=pair.manual_pairs, evidence=pair.evidence,
    )  # fmt: skip
    return rows if len(rows) else None


def _memory_peak(pair: Pair) -> go.Figure | None:
    rows = _peak_rows(pair)
    if rows is None:
        return None
    tree, shown = memory_sides.peak_tree(rows, "scope"), [side for side, _ in pair.shown]
    return memory_peak.peak_treemap(memory_sides.tree_alone(tree) if pair.is_single else tree, shown, by="name scope")


def _memory_peak_changes(pair: Pair) -> go.Figure | None:
    rows = None if pair.is_single else _peak_rows(pair)
    if rows is None:
        return None
    changes = largest_changes(memory_sides.named(rows), n=ops.TOP, metric="allocation_bytes")
    return _changes(pair, changes, "allocation_bytes", LIVE, by="what")


def _input_wait(pair: Pair) -> go.Figure | None:
    series = []
    for side, run in pair.shown:
        frame = steps_of_straggler(run.table("steps", host=pair.host_of(run)))
        known = input_bound.wait_of(run, pair.host_of(run)).is_known
        frame = frame if known else frame.iloc[:0]
        series.append((side, frame.assign(input_share=input_bound.share_by_step(frame))))
    return input_pipeline.step_times(series) if any(len(frame) for _, frame in series) else None


def _input_host(pair: Pair) -> go.Figure | None:
    diff = pair.diff("input_pipeline")
    if diff.empty:
        return None
    shown = [side for side, _ in pair.shown]
    return input_pipeline.category_times(input_ops.category_times(diff), shown, per=pair.comparison.per)


def _host_steps(pair: Pair) -> tuple[host_tables.PairedSteps, host_tables.By] | None:
    """The steps of each host, or of each device, if a run has several."""
    for by in ("host", "device"):
        if any(by in host_tables.groupings(run) for _, run in pair.shown):
            return host_tables.paired_steps(*pair.runs, by), by
    return None


def _hosts(pair: Pair, which: int) -> go.Figure | None:
    """The busy time of each host in each step: of the baseline, of the candidate, or the difference."""
    found = _host_steps(pair)
    if found is None or (pair.is_single and which):
        return None
    paired, by = found
    matrices = paired.matrices("busy_us")
    if not matrices[which].size:
        return None
    rows = matrices[which].loc[[name for name in paired.by_skew if name in matrices[which].index]]
    size = f"{len(rows):,} {by}s × {rows.shape[1]:,} steps, the slowest on top"
    if which == 2:
        title = f"Busy time of each step, {pair.letters[-1]} − {pair.letters[0]}"
        return hosts.change_map(title, "blue: less; orange: more", rows)
    title = "Busy time of each step" if pair.is_single else f"Busy time of each step, {pair.letters[which]}"
    limits = hosts.value_range([matrix for matrix in matrices[:2] if matrix.size])
    return hosts.heat_map(title, size, rows, limits)


def _host_parts(pair: Pair) -> go.Figure | None:
    found = _host_steps(pair)
    if found is None:
        return None
    paired, _ = found
    rows = zip(pair.shown, (paired.baseline, paired.candidate), strict=False)
    means = [(side, host_tables.part_means(of_side)) for (side, _), of_side in rows]
    return hosts.host_parts(means, paired.by_skew[: hosts.MOST_BARS])


def _xla_time(pair: Pair) -> go.Figure | None:
    found = pair.program
    if found is None:
        return None
    name, rows = found
    return xla_charts.time_icicle(xla_tree.time_tree(rows, name, "category"), by="category", alone=pair.is_single)


def _roofline(pair: Pair) -> go.Figure | None:
    found, shown = pair.program, [side for side, _ in pair.shown]
    if found is None or not xla_charts.has_points(found[1], len(shown)):
        return None
    return xla_charts.roofline(found[1], shown)


def _xla_memory(pair: Pair) -> go.Figure | None:
    found = pair.program
    if found is None:
        return None
    every = zip(pair.shown, pair.tables("hlo_memory"), xla_memory.program_names(found[1]), strict=False)
    lines = [(side, xla_memory.over_program_order(table, of, MAIN_MEMORY)) for (side, _), table, of in every]
    if all(frame.empty or frame["positions"].iloc[0] < 2 for _, frame in lines):
        return None
    return xla_memory_charts.memory_over_program_order(lines, "Device memory")


def _tf_data(pair: Pair, role: int) -> go.Figure | None:
    """The iterators of the slowest call to tf.data on one side."""
    if role >= len(pair.shown):
        return None
    calls, executions = pair.tables("tf_data_pipelines"), pair.tables("tf_data")
    found = [analyse(*tables) for tables in zip(calls, executions, strict=True)]
    iterators = [schema.TF_DATA.empty() if one is None else one.iterators for one in found]
    names = [
        set() if one is None else set(table.loc[_is_of(table, one.host, one.pipeline), "long_name"])
        for one, table in zip(found, executions, strict=True)
    ]
    drawn = graphs(iterators[0], iterators[1], (names[0], names[1]))
    if drawn[role].nodes.empty:
        return None
    texts = ["" if one is None else f"{one.pipeline}, {format_time_us(one.latency_us)}" for one in found]
    of_sides = [(side, *of) for side, of in zip(pair.sides, zip(drawn, texts, strict=True), strict=True)]
    return pipeline_graphs((of_sides[0], of_sides[1]), "Slowest execution")[role]


def _is_of(table: pd.DataFrame, host: str, pipeline: str) -> pd.Series:
    return (table["host"] == host) & (table["pipeline"] == pipeline)


_MAKERS: dict[str, Make] = {
    "waterfall": _waterfall,
    "average_step": _average_step,
    "step_times": lambda pair: _over_steps(pair, steps.step_times),
    "step_distribution": lambda pair: _over_steps(pair, steps.step_distribution),
    "step_parts_baseline": partial(_step_parts, role=0),
    "step_parts_candidate": partial(_step_parts, role=1),
    "op_changes": _op_changes,
    "scopes_device": partial(_name_scopes, place=DEVICE),
    "scopes_host": partial(_name_scopes, place=HOST),
    "kernel_changes": _kernel_changes,
    "tensor_cores": _tensor_cores,
    "memory_step": _memory_step,
    "memory_run": _memory_run,
    "memory_peak": _memory_peak,
    "memory_peak_changes": _memory_peak_changes,
    "input_wait": _input_wait,
    "input_host": _input_host,
    "tf_data_baseline": partial(_tf_data, role=0),
    "tf_data_candidate": partial(_tf_data, role=1),
    "hosts_baseline": partial(_hosts, which=0),
    "hosts_candidate": partial(_hosts, which=1),
    "hosts_change": partial(_hosts, which=2),
    "host_parts": _host_parts,
    "xla_time": _xla_time,
    "roofline": _roofline,
    "xla_memory": _xla_memory,
}
NAMES = tuple(_MAKERS)
