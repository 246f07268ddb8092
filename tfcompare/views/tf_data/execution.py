"""One execution of a tf.data pipeline: its bottleneck in words and what to do about it, its graphs and iterators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import SideRows, diff_table
from tfcompare.compare.matching.matching import with_hosts_of
from tfcompare.compare.pair import Pair
from tfcompare.compare.tf_data.iterator_tree import display_name, whereabouts
from tfcompare.compare.tf_data.tf_data_bottleneck import Analysis, AnalysisPair, analyse
from tfcompare.compare.tf_data.tf_data_graph import Graph, graphs
from tfcompare.schema import SIDES
from tfcompare.text import END_OF_LINE, as_code
from tfcompare.units import format_count, format_time_us
from tfcompare.views import links
from tfcompare.views.advice.input_advice import TF_DATA_GUIDE, tf_data_advice
from tfcompare.views.blocks import Beside, Block, Chart, Items, Links, Table, Text
from tfcompare.views.input.figures import InputWait
from tfcompare.views.input.view import waits_of
from tfcompare.views.links import Moment
from tfcompare.views.ops.op import LACKING
from tfcompare.views.pair_words import stand_ins
from tfcompare.views.tf_data.charts import pipeline_graphs
from tfcompare.views.view import CHANGE, by_role, cached_per_pair

MOST_NAMED = 10
"""Longer paths are abbreviated in the middle."""


@dataclass(frozen=True)
class ChosenExecution:
    """A row of the pipelines' diff, and the rank of the execution (0 is the slowest)."""

    row: pd.Series
    rank: int

    @property
    def host(self) -> str:
        """The host, as the diff names it."""
        return str(self.row["host"])

    @property
    def pipelines(self) -> tuple[str, str]:
        """The names of the pipeline on both sides, empty where a side does not have it."""
        ours, theirs = (
            "" if self.row["status"] == LACKING[role] else str(self.row[name])
            for role, name in zip(SIDES, ("pipeline", "pipeline_candidate"), strict=True)
        )
        return ours, theirs

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells it apart from others."""
        return (self.host, *self.pipelines, self.rank)


def blocks(pair: Pair, choice: ChosenExecution) -> Iterator[Block]:
    """The five steps of the guide's bottleneck analysis, what to do, and the graphs."""
    sides = _analyses(pair, choice)
    waits = waits_of(pair)[: len(pair.shown)]
    yield Beside([list(_five_steps(pair, role, sides[role], wait)) for role, wait in enumerate(waits)], framed=True)
    yield from _what_to_do(pair, sides)
    if note := stand_ins(pair):
        yield Text(note, "quiet")
    yield Beside([list(_graph(pair, choice, role)) for role in range(len(pair.shown))])


@cached_per_pair
def analysis_of(pair: Pair, /, role: int, **chosen: str | int) -> Analysis | None:
    """The bottleneck analysis of one side (0 for the baseline, 1 for the candidate); parameters as those of `analyse`.

    None if that side lacks the pipeline.
    """
    pipelines, executions = (pair.tables(name)[role] for name in ("tf_data_pipelines", "tf_data"))
    return analyse(pipelines, executions, **chosen)  # type: ignore[arg-type]


def _analyses(pair: Pair, choice: ChosenExecution) -> AnalysisPair:
    """The analyses of both sides for the chosen execution; None if a side lacks the pipeline."""
    ours, theirs = (
        analysis_of(pair, role, host=own[choice.host], pipeline=pipeline, rank=choice.rank) if pipeline else None
        for role, (own, pipeline) in enumerate(zip(_own_hosts(pair), choice.pipelines, strict=True))
    )
    return ours, theirs


def _own_hosts(pair: Pair) -> tuple[dict[str, str], dict[str, str]]:
    """For both sides, a mapping from each host name in the diff to the run's own name for it."""
    ours, theirs = pair.tables("tf_data_pipelines")
    as_ours = with_hosts_of(ours, theirs)["host"]
    return {str(host): str(host) for host in ours["host"]}, dict(zip(as_ours, theirs["host"], strict=True))


def _five_steps(pair: Pair, role: int, side: Analysis | None, wait: InputWait) -> Iterator[Block]:
    """The analysis of one side in words."""
    who = [] if pair.is_single else [f"**{pair.headings[role]}** {as_code(pair.runs[role].name)}"]
    steps = "This run does not have the pipeline." if side is None else _steps(side, wait)
    yield Text(END_OF_LINE.join([*who, steps]))
    if side is not None and len(side.iterators):
        moment = Moment(role, float(side.iterators["start_us"].min()), side.latency_us)
        yield Links([links.to_moment(pair, moment, side.host, "Show this call in timeline")])


def _steps(side: Analysis, wait: InputWait) -> str:
    on_host = f" on host {as_code(side.host)}" if len(side.hosts) > 1 else ""
    if side.iterators.empty:
        return f"{as_code(side.pipeline)}{on_host}: no execution {side.rank}, only {format_count(side.calls)} calls."
    which = "slowest" if side.rank == 0 else f"execution {side.rank}"
    took_part, waited_for = len(side.iterators), len(side.critical_path)
    critical = "all" if waited_for == took_part else format_count(waited_for)
    lines = [
        f"{as_code(side.pipeline)}{on_host}: {which} of {format_count(side.calls)} calls, "
        f"**{format_time_us(side.latency_us)}**",
        f"{_count(took_part, 'iterator')}, {critical} on the critical path",
    ]
    bottleneck = side.bottleneck
    if bottleneck is None:
        lines.append("No bottleneck: no iterator took any time, or the pipeline only feeds a device")
    else:
        name = as_code(display_name(str(bottleneck["iterator"])))
        what = "Bottleneck" if wait.is_bound else "Slowest on it"
        lines.append(
            f"{what}: **{name}**{_bottleneck_path(side)}, {format_time_us(bottleneck['self_time_us'])} self time in "
            f"{_count(bottleneck['calls'], 'call')}"
        )
    return END_OF_LINE.join(lines)


def _count(number: float, noun: str) -> str:
    return f"{format_count(number)} {noun}{'s' if number != 1 else ''}"


def _bottleneck_path(side: Analysis) -> str:
    """` (Root › Batch › Map)`: the path from the root to the bottleneck; the critical path may continue below it."""
    parents = dict(zip(side.iterators["iterator_id"], side.iterators["parent_id"], strict=True))
    names = dict(zip(side.iterators["iterator_id"], side.iterators["iterator"], strict=True))
    path: list[str] = []
    at = "" if side.bottleneck is None else str(side.bottleneck["iterator_id"])
    while at in names and len(path) < len(names):
        path.insert(0, as_code(display_name(str(names[at]))))
        at = str(parents[at])
    if len(path) > MOST_NAMED:
        path = [*path[: MOST_NAMED // 2], "…", *path[-MOST_NAMED // 2 :]]
    return f" ({' › '.join(path)})" if len(path) > 1 else ""


def _what_to_do(pair: Pair, sides: AnalysisPair) -> Iterator[Block]:
    """The guide's advice for the bottleneck of each input-bound run."""
    advised: dict[tuple[str, str], list[str]] = {}
    for _, side, wait, who in zip(pair.shown, sides, waits_of(pair), pair.marked, strict=False):
        if side is not None and side.bottleneck is not None and wait.is_bound:
            name = as_code(display_name(str(side.bottleneck["iterator"])))
            advised.setdefault((name, tf_data_advice(side.bottleneck)), []).append(who)
    items = []
    for (name, text), runs in advised.items():
        where = "" if pair.is_single else f" in {' and '.join(runs)}"
        items.append((f"How to speed up **{name}**{where}", f"{text} [Analyze tf.data performance]({TF_DATA_GUIDE})"))
    if items:
        yield Items(items)


def _graph(pair: Pair, choice: ChosenExecution, role: int) -> Iterator[Block]:
    """The graph of one side; matched iterators of both sides are at the same height."""
    graph = _graphs(pair, choice)[0][role]
    if graph.nodes.empty:
        yield Text(f"{as_code(pair.runs[role].name)} does not have this execution.", "notice")
    else:
        yield Chart(f"tf_data_{SIDES[role]}", partial(figure, pair, choice, role), on=choice.key)
    if graph.left_out:
        text = (
            f"{format_count(len(graph.nodes))} iterators are drawn, those on the critical path and the slowest first."
        )
        yield Text(f"{text} {format_count(graph.left_out)} more are in the table.", "quiet")


def figure(pair: Pair, choice: ChosenExecution, role: int) -> Any:
    """The graph of the iterators of one side as a figure; None if that side does not have the execution."""
    drawn, figures = _graphs(pair, choice)
    return None if drawn[role].nodes.empty else figures[role]


def _graphs(pair: Pair, choice: ChosenExecution) -> tuple[tuple[Graph, Graph], tuple[Any, Any]]:
    """The graphs of both sides, and their figures."""

    def graphs_and_figures() -> tuple[tuple[Graph, Graph], tuple[Any, Any]]:
        sides = _analyses(pair, choice)
        ours, theirs = (schema.TF_DATA.empty() if side is None else side.iterators for side in sides)
        # the long names in all executions of the pipelines shown
        names = [set[str](), set[str]()]
        for at, (side, table) in enumerate(zip(sides, pair.tables("tf_data"), strict=True)):
            if side is not None:
                is_shown = (table["host"] == side.host) & (table["pipeline"] == side.pipeline)
                names[at] = set(table.loc[is_shown, "long_name"])
        drawn = graphs(ours, theirs, (names[0], names[1]))
        execution = "Slowest execution" if choice.rank == 0 else f"Execution {choice.rank}"
        texts = ["" if side is None else f"{side.pipeline}, {format_time_us(side.latency_us)}" for side in sides]
        ours_drawn, theirs_drawn = zip(pair.sides, drawn, texts, strict=True)
        return drawn, pipeline_graphs((ours_drawn, theirs_drawn), execution)

    return pair.cached(("tf_data_graphs", choice.key), graphs_and_figures)


def iterators(pair: Pair, choice: ChosenExecution) -> Table:
    """Every iterator of the execution."""
    rows = pair.cached(("tf_data_iterators", choice.key), partial(_rows, pair, choice))
    names, every = _columns(every=False), _columns(every=True)
    nothing = "This execution was not recorded."
    return Table(schema.TF_DATA, "Iterators of the execution", rows, names, pair.is_single, every, nothing)


def _rows(pair: Pair, choice: ChosenExecution) -> pd.DataFrame:
    """The diff of the chosen execution by iterator, with one column `iterator` and `long_name` for both sides."""
    sides = _analyses(pair, choice)
    ours, theirs = (schema.TF_DATA.empty() if side is None else side.iterators for side in sides)
    pipelines = choice.pipelines
    counterparts = {(choice.host, pipelines[1]): pipelines[0]} if all(pipelines) else {}
    baseline = SideRows(ours.assign(host=choice.host))
    candidate = SideRows(theirs.assign(host=choice.host), pipelines=counterparts)
    rows = diff_table(schema.TF_DATA, pair.candidate.id, baseline, candidate, identical=pair.is_identical)
    either = {
        name: rows[f"{name}_baseline"].where(rows["status"] != "added", rows[f"{name}_candidate"])
        for name in ("iterator", "long_name")
    }
    return rows.assign(**either | {"iterator": _distinct(either["iterator"], rows)})


def _distinct(iterator: pd.Series, rows: pd.DataFrame) -> pd.Series:
    """Labels for iterators of the same name, as `TFRecord (FlatMap[1])` or `TFRecord (FlatMap[1] → FlatMap[0])`."""
    sides = (rows[f"long_name_{role}"].fillna("") for role in SIDES)
    ours, theirs = (names.map(whereabouts(names.unique())) for names in sides)
    arrow = pd.Series(" → ", index=rows.index).where((ours != "") & (theirs != ""), "")
    where = ours.where(ours == theirs, ours + arrow + theirs)
    return iterator.where(where == "", iterator + " (" + where + ")")


def _columns(*, every: bool) -> list[str]:
    names = ["iterator", *by_role("self_time_us", CHANGE), "status"]
    names += [f"{name}_{role}" for name in ("total_duration_us", "calls") for role in SIDES]
    if not every:
        return names
    more = "on_critical_path is_bottleneck start_us parallelism buffer_limit buffered_elements element_size_bytes"
    names += [f"{name}_{role}" for name in more.split() for role in SIDES]
    names += ["match", "verdict", "long_name", "iterator_id", "iterator_id_candidate"]
    last = ("autotune", "shapes", "types", "dataset", "settings")
    return names + [f"{name}_{role}" for name in last for role in SIDES]
