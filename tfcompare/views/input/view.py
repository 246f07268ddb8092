"""Input: how long steps wait for it, and what the host does meanwhile, as TensorBoard's Input Pipeline Analyzer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import pandas as pd

from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.compare.steps.step_time_verdict import step_marker_call
from tfcompare.compare.tf_data.call_verdicts import CallVerdict
from tfcompare.schema import SIDES
from tfcompare.schema.input import INPUT_CATEGORIES
from tfcompare.tables.hosts import steps_of_straggler
from tfcompare.text import as_code, capitalized
from tfcompare.units import MISSING, format_percent, format_time_us
from tfcompare.views.advice import input_advice as input_category_advice
from tfcompare.views.blocks import (
    MORE,
    Block,
    Chart,
    Choose,
    Facts,
    Items,
    Judgements,
    Link,
    Links,
    Section,
    Text,
    later,
)
from tfcompare.views.input import charts
from tfcompare.views.input import figures as input_bound
from tfcompare.views.input import ops as input_ops
from tfcompare.views.input.figures import InputWait, Spread, on_waiting
from tfcompare.views.key_figures import Better, KeyFigure, Unit, better_by
from tfcompare.views.ops import annotations as host_annotations
from tfcompare.views.ops.annotations import input_annotations
from tfcompare.views.options import option
from tfcompare.views.steps.attribution import getting_input
from tfcompare.views.steps.figures import has_step_times, may_draw
from tfcompare.views.verdict_marks import Judged
from tfcompare.views.view import Make, View, by_role, cached_per_pair, cards

FILTER_HELP = "Shows ops whose names contain all words; case does not matter"
HOW_TO_RECORD = (
    "Record a program that reads through `tf.data`, with "
    "`tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)`."
)
HOW_TO_ANNOTATE = 'Annotate what gets the input, to see how long it takes: `with {}("load_batch"): …`.'
_TRACE = {"JAX": "jax.profiler.TraceAnnotation", "TensorFlow": "tf.profiler.experimental.Trace"}
WAIT_MEANING = "Time in which a step waits for input or copies it to the device."
BY_THEIR_NAMES = (
    "Annotations and Python functions count as input by their names. Their wall time is time of the steps in which no "
    "op runs and no device works; it is no part of the input wait, which only `tf.data` and stages of `grain` show."
)


def _category_choices(pair: Pair, _options: Any) -> dict[str, str]:
    diff = pair.diff("input_pipeline")
    there = pair.cached("input categories", lambda: {*diff["category"], *diff["category_candidate"].dropna()})
    return {name: name for name in INPUT_CATEGORIES if name in there}


@dataclass(frozen=True)
class Options:
    """Which input ops are shown, and the input wait of each step as a time or as a share of it."""

    filter: str = option("", "Filter", hint="words in the name", help=FILTER_HELP)
    category: str | None = option(None, "Category", _category_choices)
    wait_as: Literal["time", "share"] = option("time", "Input wait as", {"time": "time", "share": "share"})


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """How long the steps wait, in a sentence and as figures; every input op, what changed most, and each step."""
    yield Text(headline(pair), "headline")
    if _is_without_input(pair):
        yield from _of_program(pair) if len(input_annotations(pair)) else [Text(_how_to_see(pair), "notice")]
        return
    has_ops = not pair.diff("input_pipeline").empty
    rows = cache(partial(input_ops.rows_of, pair, options.filter, options.category))
    yield later(partial(_figures, pair))
    if not has_ops:
        yield later(partial(_of_program, pair))
    yield later(partial(_what_next, pair))
    if has_ops:
        yield Choose(["filter", "category"])
        yield later(lambda: [input_ops.table(pair, rows())])
    if may_draw(frame for _, frame in _steps(pair)):
        yield Choose(["wait_as"])
        yield Chart("input_wait", partial(_wait, pair, options), on=options.wait_as)
    if has_ops or _by_core(pair):
        yield Section(MORE, lambda: _more(pair, options, rows))


def _more(pair: Pair, options: Options, rows: Callable[[], pd.DataFrame]) -> Iterator[Block]:
    """What changed most, the cores beside each other, the host's work by category, and the input by name."""
    has_ops = not pair.diff("input_pipeline").empty
    if has_ops and not pair.is_single:
        yield later(lambda: input_ops.what_changed(pair, rows(), (options.filter, options.category)))
    if _by_core(pair):
        yield Chart("input_by_core", partial(_cores, pair), _cores_as_facts(pair))
    if has_ops:
        yield Chart("input_host", partial(_category_times, pair), _categories_as_facts(pair))
        yield later(partial(_of_program, pair))


def headline(pair: Pair) -> str:
    """How long the runs wait for input, or why that is unknown, in Markdown without a full stop."""
    if _is_without_input(pair):
        return _getting_input(pair) or "No step waits for input, and no input ops were recorded"
    waits = waits_of(pair)
    if pair.is_single:
        return capitalized(input_bound.finding(waits[0]))
    return input_bound.headline(*waits, pair.marked, identical=pair.is_identical)


def _getting_input(pair: Pair) -> str:
    """How much of the step each run spends in annotations and functions that get input; empty if unknown."""
    if not all(map(has_step_times, pair.runs)):
        return ""
    sides = pair.cached("getting input", partial(getting_input, pair))
    of_runs = []
    for name, (us, step_us) in zip(pair.marked, sides, strict=True):
        if len(us) and step_us > 0:
            more = f" and {len(us) - 1:,} more" if len(us) > 1 else ""
            share = format_percent(us.sum() / step_us)
            of_runs.append(f"{name} spends {share} of the step time in {as_code(us.index[0])}{more}")
    return capitalized("; ".join(of_runs[: len(pair.shown)]))


def _of_program(pair: Pair) -> Iterator[Block]:
    """What gets input and is no op, by the names that the program gave it; nothing without any."""
    rows = input_annotations(pair)
    if len(rows):
        yield host_annotations.table(pair, rows, "Input by name")
        yield Text(BY_THEIR_NAMES, "quiet")


def _how_to_see(pair: Pair) -> str:
    """How to record the input where nothing shows any."""
    frameworks = {run.info.framework for _, run in pair.shown}
    how = HOW_TO_ANNOTATE.format(_TRACE["JAX" if "JAX" in frameworks else "TensorFlow"])
    return how if frameworks == {"JAX"} else f"{HOW_TO_RECORD} {how}"


@cached_per_pair
def waits_of(pair: Pair) -> tuple[InputWait, InputWait]:
    """How long each run waits for input, on the host that is shown or on the slowest host of each step."""
    ours, theirs = map(input_bound.wait_of_side, pair.sides)
    return ours, theirs


def _has_ops(pair: Pair) -> bool:
    return any(len(table) for table in pair.tables("input_pipeline"))


def _is_without_input(pair: Pair) -> bool:
    return not _has_ops(pair) and all(wait.input_time_us.largest == 0 for wait in waits_of(pair))


def _why_not(pair: Pair) -> str:
    if _has_ops(pair) or any(wait.is_known for wait in waits_of(pair)):
        return ""
    marker = step_marker_call([run.info for _, run in pair.shown])
    where = "" if pair.is_single else " in either run"
    return f"No input pipeline was recorded{where}. Mark each step with `{marker}` to see how long it waits."


def _figures(pair: Pair) -> Iterator[Block]:
    """The verdicts on the input wait and the mean call to tf.data, and the key figures of the input."""
    waiting, calls = _verdicts(pair)
    if not pair.is_identical:
        judged = [Judged("Input wait", waiting)]
        if calls is not None:
            judged.append(Judged(f"Mean tf.data call ({calls.name})", calls.verdict))
        yield Judgements(judged)
    rows: tuple[tuple[str, Unit, str, Better, str], ...] = (
        ("Input wait per step", "µs", "input_time_us", better_by(waiting), WAIT_MEANING),
        ("Share of the step", "share", "share", "neither", "Input wait ÷ step time, of all included steps together."),
        ("Mean step time", "µs", "step_time_us", better_by(pair.verdict), "Each step as long as on its slowest host."),
    )
    figures = []
    for label, unit, name, better, meaning in rows:
        spreads: list[Spread] = [getattr(wait, name) for wait in waits_of(pair)]
        meaning = _with_spreads(meaning, pair, spreads, format_percent if unit == "share" else format_time_us)
        figures.append(KeyFigure(label, unit, spreads[0].average, spreads[1].average, better, meaning))
    figures += [_on_host(pair), _mean_call(pair, calls)]
    known = [one for one in figures if not (math.isnan(one.baseline) and math.isnan(one.candidate))]
    if known:
        yield cards(pair, known)


@cached_per_pair
def _verdicts(pair: Pair) -> tuple[Verdict, CallVerdict | None]:
    """On the input wait of the steps, and on the mean call to the slowest pipeline if both runs have one."""
    return on_waiting(pair), pair.slowest_call_verdict()


def _on_host(pair: Pair) -> KeyFigure:
    per, categories = pair.per_what, _by_category(pair)
    ours, theirs = (input_ops.host_input_time_us(categories, role) for role in SIDES)
    meaning = (
        f"Self time of all input ops per {per}, summed over all threads and hosts. It includes work ahead of time, "
        "for which no step waits."
    )
    return KeyFigure(f"Input ops per {per}", "µs", ours, theirs, "neither", meaning)


def _mean_call(pair: Pair, found: CallVerdict | None) -> KeyFigure:
    """The mean call to the slowest pipeline; without a verdict, since only one run calls tf.data, to all pipelines."""
    if found is None:
        ours, theirs = (input_bound.mean_call_us(table) for table in pair.tables("tf_data_pipelines"))
        meaning = "How long the program waited for an element on average, all pipelines together."
        return KeyFigure("Mean call to tf.data", "µs", ours, theirs, "neither", meaning)
    name, better = as_code(found.name), better_by(found.verdict)
    meaning = f"Mean time that the program waits for an element, each run's slowest pipeline: {name}."
    return KeyFigure("Mean tf.data call", "µs", found.baseline_us, found.candidate_us, better, meaning)


def _with_spreads(meaning: str, pair: Pair, spreads: Sequence[Spread], text: Callable[[float], str]) -> str:
    """The meaning of a figure, and its mean, standard deviation and range in each run, as a table in Markdown."""
    rows = []
    for (side, _), wait, spread in zip(pair.shown, waits_of(pair), spreads, strict=False):
        if wait.is_known:
            numbers = (spread.average, spread.deviation, spread.smallest, spread.largest)
            rows.append(" | ".join(["", side.role, *map(text, numbers), f"{wait.steps:,}", ""]).strip())
    if not rows:
        return meaning
    header = "| | Mean | Std. dev. | Min | Max | Steps |\n|---|--:|--:|--:|--:|--:|"
    return "\n".join([f"{meaning}\n", header, *rows])


def _what_next(pair: Pair) -> Iterator[Block]:
    """The largest part of the input time of the candidate or of a run alone, with advice, and a link to tf.data."""
    wait, diff = waits_of(pair)[1], pair.diff("input_pipeline")
    role, who = ("baseline", "") if pair.is_single else ("candidate", pair.marked[1])
    found = input_ops.dominant(_by_category(pair), role)
    if found is None:
        yield Text(f"No input ops were recorded{f' in {who}' if who else ''}. {HOW_TO_RECORD}")
    elif wait.level != "not":
        category, share = found
        op_name = input_ops.longest_op(diff, role, category)
        line = f"**{format_percent(share)}** of the input time is {category}: {as_code(op_name)}"
        guide = f"[TensorFlow Profiler guide]({input_category_advice.GUIDE})"
        advice = f"{input_category_advice.input_category_advice(category, op_name)} {guide}"
        yield Items([(f"{who}: {line}" if who else line, advice)])
    if not diff.empty:
        yield Links([Link("Find the slowest iterator in tf.data", "tf_data")])


@cached_per_pair
def _steps(pair: Pair) -> list[tuple[Side, pd.DataFrame]]:
    """The steps to draw of each run, each with its share of input wait; none for a run whose input wait is unknown."""
    series = []
    for (side, run), wait in zip(pair.shown, waits_of(pair), strict=False):
        frame = steps_of_straggler(run.table("steps", host=pair.host_of(run)))
        frame = frame if wait.is_known else frame.iloc[:0]
        series.append((side, frame.assign(input_share=input_bound.share_by_step(frame))))
    return series


def _wait(pair: Pair, options: Options) -> Any:
    """Each step with its input wait, as a figure; None without steps."""
    series = _steps(pair)
    if not may_draw(frame for _, frame in series):
        return None
    return charts.input_share_per_step(series) if options.wait_as == "share" else charts.step_times(series)


@cached_per_pair
def _by_core(pair: Pair) -> list[tuple[Side, pd.DataFrame]]:
    """How the input wait of each step differs between the cores of each run; none where no run has several."""
    found = [(side, input_bound.share_by_core(run, pair.host_of(run))) for side, run in pair.shown]
    return found if any((frame["cores"] > 1).any() and frame["largest"].any() for _, frame in found) else []


def _cores(pair: Pair, _options: Any = None) -> Any:
    """Between which shares of each step the cores wait for input, as a figure; None without several cores."""
    series = _by_core(pair)
    return charts.shares_by_core(series, _what_cores_are(pair)) if may_draw(frame for _, frame in series) else None


def _what_cores_are(pair: Pair) -> str:
    return "devices" if any(run.devices for _, run in pair.shown) else "hosts"


def _cores_as_facts(pair: Pair) -> Facts:
    """Of the steps together: the least and the largest share of any core, and the mean of all."""
    columns = []
    for _, frame in _by_core(pair):
        shares = map(format_percent, (frame["least"].min(), frame["mean"].mean(), frame["largest"].max()))
        columns.append([*shares, f"{frame['cores'].max():,}"] if len(frame) else [MISSING] * 4)
    what = _what_cores_are(pair)
    labels = ("Least", "Mean", "Largest", what.capitalize())
    rows = [[label, *cells] for label, *cells in zip(labels, *columns, strict=True)]
    return Facts([f"Input wait of the {what}, share of a step", *pair.headings], rows, range(1, len(columns) + 1))


@cached_per_pair
def _by_category(pair: Pair) -> pd.DataFrame:
    """The self time of input ops by category."""
    return input_ops.category_times(pair.diff("input_pipeline"))


def _category_times(pair: Pair, _options: Any = None) -> Any:
    """What the host does to prepare the input, as a figure; None without input ops."""
    if pair.diff("input_pipeline").empty:
        return None
    shown = [side for side, _ in pair.shown]
    return charts.category_times(_by_category(pair), shown, per=pair.per_what)


def _categories_as_facts(pair: Pair) -> Facts:
    times = _by_category(pair)
    columns = [times[name].map(format_time_us) for name in by_role("self_time_us", SIDES[: len(pair.shown)])]
    rows = [list(cells) for cells in zip(times["category"], *columns, strict=True)]
    return Facts([f"Self time of input ops per {pair.per_what}", *pair.headings], rows, (1, 2))


CHARTS: dict[str, Make] = {"input_wait": _wait, "input_by_core": _cores, "input_host": _category_times}
VIEW = View("input_pipeline", "Input pipeline", blocks, CHARTS, _why_not, remedy=HOW_TO_RECORD, options=Options)
