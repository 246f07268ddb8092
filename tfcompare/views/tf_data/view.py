"""tf.data: the bottleneck of the slowest call to an input pipeline, and the graph of its iterators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import MATCHED
from tfcompare.compare.pair import Pair
from tfcompare.compare.tf_data.iterator_tree import display_name
from tfcompare.compare.tf_data.iterators import pair_iterators
from tfcompare.compare.tf_data.pipelines import iterators_of
from tfcompare.compare.tf_data.tf_data_bottleneck import Analysis, AnalysisPair
from tfcompare.schema import SIDES
from tfcompare.text import as_code
from tfcompare.units import format_time_us
from tfcompare.views.blocks import MORE, Block, Judgements, Link, Links, Section, Table, Text, later
from tfcompare.views.input.view import waits_of
from tfcompare.views.options import option
from tfcompare.views.tf_data import execution
from tfcompare.views.tf_data.execution import ChosenExecution, analysis_of
from tfcompare.views.verdict_marks import Judged
from tfcompare.views.view import CHANGE, Make, View, by_role, cached_per_pair, largest_first

MOST_SHOWN = 4
"""The number of pipelines whose verdict is shown above the table: those with the longest mean call."""

PIPELINE_HELP = "Sorted by the longest call; pipelines that only feed a device come last"
HOW_TO_RECORD = (
    "Record a program that reads from a `tf.data.Dataset` (TensorFlow 2.4 or newer), with "
    "`tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)`."
)
HOW_TO_READ = (
    "Each call to the pipeline is one execution. In the graph, data flows up to Root. Bold: on the critical path, for "
    "which the call waits. Dashed: not waited for. Orange: the slowest of these. Start times count from the call. "
    "Self times add up all calls of an iterator, also parallel and earlier ones, so they can exceed the execution."
)


def _hosts(pair: Pair, _options: Any) -> dict[str, str]:
    return {str(host): str(host) for host in _rank_executions(pair)["host"]}


def _names(pair: Pair, options: Options) -> dict[str, str]:
    return {name: name for name in _on_host(pair, options)["name"]}


def _ranks(pair: Pair, options: Options) -> range:
    row = _row(pair, options)
    return range(1) if row is None else range(int(max(row[by_role("executions_kept")].dropna())))


@dataclass(frozen=True)
class Options:
    """Which execution of a pipeline is shown: by default that of the longest call."""

    tf_host: str = option("", "Host", _hosts, is_list=True, help="Sorted by the longest call")
    pipeline: str = option("", "Pipeline", _names, is_list=True, help=PIPELINE_HELP)
    rank: int = option(0, "Execution", _ranks, help="0 is the slowest, the last one the fastest that was stored")


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """The bottlenecks in a sentence, every pipeline, and one execution: its bottleneck, graphs, and iterators."""
    sides = analysis_of(pair, 0), analysis_of(pair, 1)
    yield Text(headline(pair, sides), "headline")
    if None in sides:
        yield Text(HOW_TO_RECORD, "notice")
    yield later(partial(_verdicts, pair))
    rows = largest_first(pair, schema.TF_DATA_PIPELINES, pair.diff("tf_data_pipelines"))
    yield _pipelines(pair, rows)
    if _are_renamed(rows):
        yield Text("The runs have different pipelines. Pipelines with the most similar graphs are matched.", "quiet")
    choices = ["tf_host", "pipeline", "rank"]
    yield Section("One execution", partial(_execution, pair, options), True, choices, HOW_TO_READ)
    yield Section(MORE, partial(_iterators, pair, options))


def headline(pair: Pair, sides: AnalysisPair) -> str:
    """Where the input is slow in both runs, in Markdown without a full stop; one of them must have tf.data calls."""
    are_bound = tuple(wait.is_bound for wait in waits_of(pair))
    if not pair.is_single or sides[0] is None:
        sentence = change(sides, (are_bound[0], are_bound[1]), pair.marked, identical=pair.is_identical)
    elif sides[0].feeds_device_only:
        sentence = "Only pipelines that pass elements to a device were recorded"
    else:
        sentence = f"{'Input-bound' if are_bound[0] else 'Not input-bound'}: {finding(sides[0], are_bound[0])}"
    return sentence


def change(
    sides: AnalysisPair, are_bound: tuple[bool, bool], names: tuple[str, str], *, identical: bool = False
) -> str:
    """The input bottlenecks of two runs, candidate first, in one or two sentences of Markdown without the last full
    stop.

    `are_bound`: whether each run is input-bound; a run that is not has no bottleneck. `identical`: both runs are the
    same capture.
    """
    ours, theirs = names
    baseline, candidate = sides
    if baseline is None or candidate is None:
        for there, is_bound, name, missing in zip(sides, are_bound, names, names[::-1], strict=True):
            if there is not None:
                return f"No tf.data calls in {missing}. In {name}, {finding(there, is_bound)}"
        return "No tf.data calls in either profile"
    if identical:
        return f"{ours} and {theirs} are the same capture: {finding(candidate, are_bound[1])}"
    if baseline.feeds_device_only or candidate.feeds_device_only:
        known = list(zip(names, (baseline, candidate), are_bound, strict=True))
        only = [name for name, side, _ in known if side.feeds_device_only]
        others = [f"In {name}, {finding(side, bound)}" for name, side, bound in known if not side.feeds_device_only]
        text = f"{' and '.join(only)}: only pipelines that pass elements to a device were recorded"
        return ". ".join([text, *others])
    mean = f"Mean call: {theirs} {format_time_us(candidate.mean_us)}, {ours} {format_time_us(baseline.mean_us)}"
    if are_bound == (True, True):
        return f"{_of_both_bound(baseline, candidate, names)} {mean}"
    if are_bound == (False, False):
        return f"Neither run is input-bound. {mean}"
    if are_bound[1]:
        return f"{theirs} is input-bound{_blamed_iterators(candidate)}, {ours} is not. {mean}"
    return f"{theirs} is not input-bound, {ours} is{_blamed_iterators(baseline)}. {mean}"


def finding(analysis: Analysis, is_bound: bool) -> str:
    """``the mean call takes 8.22 ms (bottleneck: `Map`)``."""
    return f"the mean call takes {format_time_us(analysis.mean_us)}{_blamed_iterators(analysis) if is_bound else ''}"


def _blamed_iterators(analysis: Analysis) -> str:
    bottleneck = analysis.usual_bottleneck
    return "" if bottleneck is None else f" (bottleneck: {_name_of(bottleneck)})"


def _name_of(iterator: pd.Series) -> str:
    return as_code(display_name(iterator["iterator"]))


def _of_both_bound(baseline: Analysis, candidate: Analysis, names: tuple[str, str]) -> str:
    """The bottlenecks of two input-bound runs."""
    ours, theirs = baseline.usual_bottleneck, candidate.usual_bottleneck
    if ours is None or theirs is None:
        return "Both runs are input-bound."
    was, now = _name_of(ours), _name_of(theirs)
    if _is_paired(baseline, candidate, ours, theirs):
        if was == now:
            return f"Bottleneck of both runs: {now}."
        return f"Bottleneck: {now}, in {names[0]} {was} (same step)."
    own, of_baseline = (f" ({as_code(side.pipeline)})" for side in (candidate, baseline))
    if baseline.pipeline == candidate.pipeline:
        own, of_baseline = "", " (another step)" if was == now else ""
    return f"Bottleneck: {now}{own}, in {names[0]} {was}{of_baseline}."


def _is_paired(baseline: Analysis, candidate: Analysis, ours: pd.Series, theirs: pd.Series) -> bool:
    """Whether the two bottlenecks are matched iterators."""
    sides = baseline.iterators, candidate.iterators
    pairs = pair_iterators(*(iterators_of(side) for side in sides))
    before, after = (side["long_name"].tolist() for side in sides)
    blamed = (ours["long_name"], theirs["long_name"])
    return any((before[pair.baseline], after[pair.candidate]) == blamed for pair in pairs)


def _why_not(pair: Pair) -> str:
    if any(len(table) for table in pair.tables("tf_data_pipelines")):
        return ""
    return f"No tf.data calls were recorded{'' if pair.is_single else ' in either run'}."


def _verdicts(pair: Pair) -> Iterator[Block]:
    """The verdict on the mean call to each pipeline, and a link to what the calls cost a step."""
    if not pair.is_identical:
        every = pair.cached("tf_data_verdicts", lambda: pair.call_verdicts(pair.diff("tf_data_pipelines")))
        calls = [call for call in every if not call.feeds_device]
        longest = sorted(calls, key=lambda call: -max(call.baseline_us, call.candidate_us))
        several = len({call.host for call in calls}) > 1
        if longest:
            names = [f"{call.name} on {call.host}" if several else call.name for call in longest[:MOST_SHOWN]]
            yield Judgements(
                [Judged(f"Mean call to {name}", call.verdict) for name, call in zip(names, longest, strict=False)]
            )
        if len(longest) > MOST_SHOWN:
            text = f"The {MOST_SHOWN} pipelines with the longest mean call; the table has all verdicts."
            yield Text(text, "quiet")
    yield Links([Link("Input wait per step", "input_pipeline")])


def _pipelines(pair: Pair, rows: pd.DataFrame) -> Table:
    names, every = _columns(rows, every=False), _columns(rows, every=True)
    table = Table(schema.TF_DATA_PIPELINES, "Pipelines", rows, names, pair.is_single, every, address="pipelines_")
    return replace(table, sums_per=pair.sums_per(), switch="all_pipeline_columns")


def _columns(rows: pd.DataFrame, *, every: bool) -> list[str]:
    names = ["pipeline", *(["host"] if every or rows["host"].nunique() > 1 else [])]
    names += ["pipeline_candidate"] if every or _are_renamed(rows) else []
    names += [*by_role("mean_latency_us", CHANGE), "verdict"]
    names += by_role("max_latency_us", CHANGE if every else SIDES)
    names += by_role("calls")
    names += ["status"] if every or (rows["status"] != MATCHED).any() else []
    if not every:
        return names
    more = ("slow_calls", "min_latency_us", "bottleneck_self_time_us", "bottleneck")
    return [*names, "evidence", *(f"{name}_{role}" for name in more for role in SIDES)]


def _are_renamed(rows: pd.DataFrame) -> bool:
    matched = rows[rows["status"] == MATCHED]
    return bool((matched["pipeline"] != matched["pipeline_candidate"]).any())


@cached_per_pair
def _rank_executions(pair: Pair) -> pd.DataFrame:
    """The pipelines, that of the longest call first and those that only feed a device last; `name` tells them apart."""
    rows = largest_first(pair, schema.TF_DATA_PIPELINES, pair.diff("tf_data_pipelines"))
    longest = rows[by_role("max_latency_us")].max(axis=1)
    feeds = rows[by_role("feeds_device")].fillna(False).any(axis=1)
    rows = rows.assign(longest=longest, feeds=feeds, name=[_name(row) for row in rows.to_dict("records")])
    return rows.sort_values(["feeds", "longest"], ascending=[True, False], kind="stable")


def _name(row: dict[Any, Any]) -> str:
    if row["status"] != MATCHED:
        return f"{row['pipeline']}, {'candidate' if row['status'] == 'added' else 'baseline'} only"
    if row["pipeline"] == row["pipeline_candidate"]:
        return str(row["pipeline"])
    return f"{row['pipeline']}, candidate's {row['pipeline_candidate']}"


def _on_host(pair: Pair, options: Options) -> pd.DataFrame:
    rows = _rank_executions(pair)
    return rows[rows["host"] == options.tf_host]


def _row(pair: Pair, options: Options) -> pd.Series | None:
    """The chosen pipeline; None where there is none."""
    rows = _on_host(pair, options)
    found = rows[rows["name"] == options.pipeline]
    return None if found.empty else found.iloc[0]


def _execution(pair: Pair, options: Options) -> Iterator[Block]:
    row = _row(pair, options)
    return iter(()) if row is None else execution.blocks(pair, ChosenExecution(row, options.rank))


def _iterators(pair: Pair, options: Options) -> Iterator[Block]:
    row = _row(pair, options)
    if row is not None:
        yield execution.iterators(pair, ChosenExecution(row, options.rank))


def _graph(pair: Pair, options: Options, role: int) -> Any:
    """The iterators of the chosen execution on one side, as a figure; None if it has no such execution."""
    row = _row(pair, options)
    if row is None or role >= len(pair.shown):
        return None
    return execution.figure(pair, ChosenExecution(row, options.rank), role)


CHARTS: dict[str, Make] = {"tf_data_baseline": partial(_graph, role=0), "tf_data_candidate": partial(_graph, role=1)}
VIEW = View("tf_data", "tf.data", blocks, CHARTS, _why_not, remedy=HOW_TO_RECORD, options=Options)
