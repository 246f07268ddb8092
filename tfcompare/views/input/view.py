"""Input: how long steps wait for it, and what the host does meanwhile, as TensorBoard's Input Pipeline Analyzer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import pandas as pd

from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.compare.step_time_verdict import step_marker_call
from tfcompare.compare.tf_data.call_verdicts import CallVerdict
from tfcompare.schema import SIDES
from tfcompare.schema.input import INPUT_CATEGORIES
from tfcompare.tables.hosts import steps_of_straggler
from tfcompare.text import as_code, as_markdown, capitalized
from tfcompare.units import MISSING, format_percent, format_time_us
from tfcompare.views.advice import input_advice as input_category_advice
from tfcompare.views.blocks import (
    Block,
    Chart,
    Choose,
    Facts,
    Items,
    Judgements,
    Link,
    Links,
    Text,
    later,
)
from tfcompare.views.input import charts
from tfcompare.views.input import figures as input_bound
from tfcompare.views.input import ops as input_ops
from tfcompare.views.input import ops as ops_view
from tfcompare.views.input.figures import InputWait, on_waiting
from tfcompare.views.key_figures import Better, KeyFigure, better_by
from tfcompare.views.ops import annotations as host_annotations
from tfcompare.views.ops.annotations import that_get_input
from tfcompare.views.options import option
from tfcompare.views.steps.attribution import getting_input
from tfcompare.views.steps.figures import has_step_times, may_draw
from tfcompare.views.verdict_marks import Judged
from tfcompare.views.view import Make, View, by_role, cards

HOW_TO_RECORD = (
    "Record a program that reads through `tf.data`, with "
    "`tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)`."
)
HOW_TO_ANNOTATE = 'Annotate what gets the input, to see how long it takes: `with {}("load_batch"): …`.'
_TRACE = {"JAX": "jax.profiler.TraceAnnotation", "TensorFlow": "tf.profiler.experimental.Trace"}
BY_THEIR_NAMES = (
    "Annotations and Python functions count as input by their names. Their wall time is time of the steps in which no "
    "op runs and no device works; it is no part of the input wait, which only `tf.data` and stages of `grain` show."
)


def _categories(pair: Pair, _options: Any) -> dict[str, str]:
    def make() -> set[str]:
        diff = pair.diff("input_pipeline")
        return {*diff["category"], *diff["category_candidate"].dropna()}

    there = pair.cached("input categories", make)
    return {name: name for name in INPUT_CATEGORIES if name in there}


@dataclass(frozen=True)
class Options:
    """Which input ops are shown, and the input wait of each step as a time or as a share of it."""

    filter: str = option(
        "", "Filter", hint="words in the name",
        help="Shows ops whose names contain all words; case does not matter",
    )  # fmt: skip
    category: str | None = option(None, "Category", _categories)
    wait_as: Literal["time", "share"] = option("time", "Input wait as", {"time": "time", "share": "share"})


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """How long the steps wait, in a sentence and as figures; every input op, what changed most, and each step."""
    yield Text(headline(pair), "headline")
    if _is_without_input(pair):
        yield from _of_program(pair) if len(that_get_input(pair)) else [Text(_how_to_see(pair), "notice")]
        return
    yield later(partial(_figures, pair))
    yield later(partial(_of_program, pair))
    yield later(partial(_what_next, pair))
    if not pair.diff("input_pipeline").empty:
        yield Choose(["filter", "category"])
        rows = cache(partial(ops_view.rows_of, pair, options.filter, options.category))
        yield later(lambda: [ops_view.table(pair, rows())])
        if not pair.is_single:
            yield later(lambda: ops_view.what_changed(pair, rows(), (options.filter, options.category)))
    if may_draw(frame for _, frame in _steps(pair)):
        yield Choose(["wait_as"])
        yield Chart("input_wait", partial(_wait, pair, options), on=options.wait_as)
    if _by_core(pair):
        yield later(lambda: [Chart("input_by_core", partial(_cores, pair), _cores_as_facts(pair))])
    if not pair.diff("input_pipeline").empty:
        yield later(lambda: [Chart("input_host", partial(_category_times, pair), _categories_as_facts(pair))])


def headline(pair: Pair) -> str:
    """How long the runs wait for input, or why that is unknown, in Markdown without a full stop."""
    if _is_without_input(pair):
        return _getting_input(pair) or "No step waits for input, and no input ops were recorded"
    waits = waits_of(pair)
    if pair.is_single:
        return capitalized(input_bound.finding(waits[0]))
    return input_bound.headline(*waits, pair.marked, identical=pair.is_identical)


def _getting_input(pair: Pair) -> str:
    """How much of the step each run spends in annotations and functions that get input; empty without any, or where
    steps are unknown."""
    if not all(map(has_step_times, pair.runs)):
        return ""
    sides = pair.cached("getting input", partial(getting_input, pair))
    of_runs = [
        f"{name} spends {format_percent(us.sum() / step_us)} of the step time in {as_code(us.index[0])}"
        + (f" and {len(us) - 1:,} more" if len(us) > 1 else "")
        for name, (us, step_us) in zip(pair.marked, sides, strict=True)
        if len(us) and step_us > 0
    ]
    return capitalized("; ".join(of_runs[: len(pair.shown)]))


def _of_program(pair: Pair) -> Iterator[Block]:
    """What gets input and is no op, by the names that the program gave it; nothing without any."""
    rows = that_get_input(pair)
    if len(rows):
        yield host_annotations.table(pair, rows, "Input by name")
        yield Text(BY_THEIR_NAMES, "quiet")


def _how_to_see(pair: Pair) -> str:
    """How to record the input where nothing shows any."""
    frameworks = {run.info.framework for _, run in pair.shown}
    how = HOW_TO_ANNOTATE.format(_TRACE["JAX" if "JAX" in frameworks else "TensorFlow"])
    return how if frameworks == {"JAX"} else f"{HOW_TO_RECORD} {how}"


def waits_of(pair: Pair) -> tuple[InputWait, InputWait]:
    """How long each run waits for input, on the host that is shown or on the slowest host of each step."""

    def make() -> tuple[InputWait, InputWait]:
        ours, theirs = map(input_bound.wait_of_side, pair.sides)
        return ours, theirs

    return pair.cached("input_waits", make)


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
    waiting, calls = pair.cached("input_verdicts", partial(_verdicts, pair))
    if not pair.is_identical:
        rows = [Judged("Input wait", waiting)]
        if calls is not None:
            rows.append(Judged(f"Mean tf.data call ({calls.name})", calls.verdict))
        yield Judgements(rows)
    figures = [_waiting(pair, waiting), _share(pair), _step_time(pair), _on_host(pair), _mean_call(pair, calls)]
    known = [one for one in figures if not (math.isnan(one.baseline) and math.isnan(one.candidate))]
    if known:
        yield cards(pair, known)


def _verdicts(pair: Pair) -> tuple[Verdict, CallVerdict | None]:
    """On the input wait of the steps, and on the mean call to the slowest pipeline if both runs have one."""
    return on_waiting(pair), pair.slowest_call_verdict()


def _waiting(pair: Pair, verdict: Verdict) -> KeyFigure:
    ours, theirs = (wait.input_time_us.average for wait in waits_of(pair))
    meaning = "Time in which a step waits for input or copies it to the device."
    meaning = _with_spreads(meaning, pair, "input_time_us")
    return _figure("Input wait per step", ours, theirs, better_by(verdict), meaning)


def _share(pair: Pair) -> KeyFigure:
    ours, theirs = (wait.share.average for wait in waits_of(pair))
    meaning = _with_spreads("Input wait ÷ step time, of all included steps together.", pair, "share")
    return KeyFigure("Share of the step", "share", ours, theirs, "neither", meaning)


def _step_time(pair: Pair) -> KeyFigure:
    ours, theirs = (wait.step_time_us.average for wait in waits_of(pair))
    meaning = _with_spreads("Each step as long as on its slowest host.", pair, "step_time_us")
    better = better_by(pair.verdict)
    return _figure("Mean step time", ours, theirs, better, meaning)


def _on_host(pair: Pair) -> KeyFigure:
    per, categories = pair.per_what, _by_category(pair)
    ours, theirs = (input_ops.host_input_time_us(categories, role) for role in SIDES)
    meaning = (
        f"Self time of all input ops per {per}, summed over all threads and hosts. It includes work ahead of time, "
        "for which no step waits."
    )
    return _figure(f"Input ops per {per}", ours, theirs, "neither", meaning)


def _mean_call(pair: Pair, found: CallVerdict | None) -> KeyFigure:
    """The mean call to the slowest pipeline; without a verdict, since only one run calls tf.data, to all pipelines."""
    if found is None:
        ours, theirs = (input_bound.mean_call_us(table) for table in pair.tables("tf_data_pipelines"))
        meaning = "How long the program waited for an element on average, all pipelines together."
        return _figure("Mean call to tf.data", ours, theirs, "neither", meaning)
    meaning = (
        f"Mean time that the program waits for an element, each run's slowest pipeline: {as_markdown(found.name)}."
    )
    return _figure("Mean tf.data call", found.baseline_us, found.candidate_us, better_by(found.verdict), meaning)


def _figure(label: str, baseline: float, candidate: float, better: Better, meaning: str) -> KeyFigure:
    return KeyFigure(label, "µs", baseline, candidate, better, meaning)


def _with_spreads(meaning: str, pair: Pair, field: str) -> str:
    """The meaning of a figure, and its mean, standard deviation and range in each run, as a table in Markdown."""
    text = format_percent if field == "share" else format_time_us
    rows = []
    for (side, _), wait in zip(pair.shown, waits_of(pair), strict=False):
        if wait.is_known:
            spread: input_bound.Spread = getattr(wait, field)
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


def _steps(pair: Pair) -> list[tuple[Side, pd.DataFrame]]:
    """The steps to draw of each run, each with its share of input wait; none for a run whose input wait is unknown."""

    def make() -> list[tuple[Side, pd.DataFrame]]:
        series = []
        for (side, run), wait in zip(pair.shown, waits_of(pair), strict=False):
            frame = steps_of_straggler(run.table("steps", host=pair.host_of(run)))
            frame = frame if wait.is_known else frame.iloc[:0]
            series.append((side, frame.assign(input_share=input_bound.share_by_step(frame))))
        return series

    return pair.cached("input_steps", make)


def _wait(pair: Pair, options: Options) -> Any:
    """Each step with its input wait, as a figure; None without steps."""
    series = _steps(pair)
    if not may_draw(frame for _, frame in series):
        return None
    return charts.input_shares(series) if options.wait_as == "share" else charts.step_times(series)


def _by_core(pair: Pair) -> list[tuple[Side, pd.DataFrame]]:
    """How the input wait of each step differs between the cores of each run; none where no run has several."""

    def make() -> list[tuple[Side, pd.DataFrame]]:
        found = [(side, input_bound.share_by_core(run, pair.host_of(run))) for side, run in pair.shown]
        return found if any((frame["cores"] > 1).any() and frame["largest"].any() for _, frame in found) else []

    return pair.cached("input_by_core", make)


def _cores(pair: Pair, _options: Any = None) -> Any:
    """Between which shares of each step the cores wait for input, as a figure; None without several cores."""
    series = _by_core(pair)
    return charts.shares_by_core(series, _what_cores_are(pair)) if may_draw(frame for _, frame in series) else None


def _what_cores_are(pair: Pair) -> str:
    return "devices" if any(run.devices for _, run in pair.shown) else "hosts"


def _cores_as_facts(pair: Pair) -> Facts:
    """Of the steps together: the least and the largest share of any core, and the mean of all."""
    columns = [
        [format_percent(frame["least"].min()), format_percent(frame["mean"].mean()),
         format_percent(frame["largest"].max()), f"{frame['cores'].max():,}"] if len(frame) else [MISSING] * 4
        for _, frame in _by_core(pair)
    ]  # fmt: skip
    what = _what_cores_are(pair)
    labels = ("Least", "Mean", "Largest", what.capitalize())
    rows = [[label, *cells] for label, *cells in zip(labels, *columns, strict=True)]
    return Facts([f"Input wait of the {what}, share of a step", *pair.headings], rows, range(1, len(columns) + 1))


def _by_category(pair: Pair) -> pd.DataFrame:
    """The self time of input ops by category."""
    return pair.cached("input_categories", lambda: input_ops.category_times(pair.diff("input_pipeline")))


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
