"""Ops: TensorBoard's TensorFlow Stats of both runs, and what changed between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

import pandas as pd

from tfcompare import schema
from tfcompare.compare.attribution import OTHER_HOSTS
from tfcompare.compare.diff import INTERVAL
from tfcompare.compare.groups.aggregate import Grouping, group_diff, largest_changes, scope_of, without_idle
from tfcompare.compare.groups.scope_tree import OWN_TIME
from tfcompare.compare.matching.manual import with_distinct_names
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.schema import DEVICE, HOST, SIDES, SPARSE_CORE, place_word
from tfcompare.text import as_code
from tfcompare.views import bars, shares
from tfcompare.views import icicles as scopes
from tfcompare.views.blocks import (
    MORE,
    Block,
    Chart,
    Choose,
    Details,
    FlameGraph,
    Live,
    Opens,
    Section,
    Table,
    Text,
    later,
)
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.ops import annotations as host_annotations
from tfcompare.views.ops import by_scope, op
from tfcompare.views.ops import figures as op_figures
from tfcompare.views.ops.figures import groups_of, ops_of, with_shares
from tfcompare.views.ops.shapes import shape_column
from tfcompare.views.ops.work_words import TERMS, term_columns
from tfcompare.views.options import option
from tfcompare.views.pair_words import DIFFERENT_PROGRAMS, why_not_compared
from tfcompare.views.shares import NARROW, WIDE, share_rows
from tfcompare.views.steps import attribution as step_attribution
from tfcompare.views.steps.attribution import attribution_of
from tfcompare.views.steps.figures import has_step_times
from tfcompare.views.steps.part_charts import part_waterfall
from tfcompare.views.verdict_marks import colours_of_change
from tfcompare.views.view import CHANGE, Make, View, by_role, cached_section, cards, changed, largest_first
from tfcompare.views.xla import figures as unknown_costs

GROUPINGS: dict[Grouping, str] = {"op_name": "op", "op_type": "op type", "scope": "name scope"}
MOST_TYPES = 5
"""Op types that a text names."""

PARTS_HELP = (
    "The mean step, part by part. Where several ops ran at once, each instant is divided equally among them, so that "
    "the ops of a part add up to it."
)
PER_OCCURRENCE = (
    "Divide the times in the table, and the changes, by how often the op ran: for runs whose ops ran more or less "
    "often. Verdicts are on the time per step, so an op with other numbers of occurrences per step has none."
)
SCOPE_HELP = (
    "Only the ops in a bar of the flame graph, such as `Device/model/dense`: where they ran, and their name scopes, "
    "outermost first"
)
FILTER_HELP = "All words must be in an op's name or type; case does not matter"
_PLACES = (DEVICE, SPARSE_CORE, HOST)
_RATES = ("flops_per_s", "bandwidth_bytes_per_s", "operational_intensity", "bound_by")
_AVERAGES = ("avg_time_us", "avg_self_time_us", "cumulative_share")


def _places(pair: Pair, _options: Any) -> dict[str, str]:
    ran_on = pair.cached("places of ops", lambda: set(without_idle(pair.diff())["host_or_device"]))
    present = [place for place in _PLACES if place in ran_on] or [HOST]
    every = {"both": "both" if len(present) < len(_PLACES) else "all"} if len(present) > 1 else {}
    return {place: place for place in present} | every


def _parts(pair: Pair, _options: Any) -> dict[str, str]:
    """The parts of the step in either run, that which changed most first."""
    found = attribution_of(pair)
    if pair.is_single or found.moved_most is None:
        return {}
    there = found.parts[(found.parts["mean_us_baseline"] > 0) | (found.parts["mean_us_candidate"] > 0)]
    parts = sorted(there["part"], key=lambda part: part != found.moved_most)
    return {part: schema.STEPS.column(part).label for part in parts if part != OTHER_HOSTS}


@dataclass(frozen=True)
class Options:
    """Which ops are shown, and how."""

    by: Grouping = option("op_name", "Group by", GROUPINGS)
    where: Literal["Device", "SparseCore", "Host", "both"] = option("both", "Where", _places, resets=("scope",))
    filter: str = option("", "Filter", hint="words in name or type", pixels=230, help=FILTER_HELP)
    idle: bool = option(False, "IDLE", help="Show the time in which no op ran as an op, as TensorBoard does by default")
    per_occurrence: bool = option(False, "Per occurrence", address="each", help=PER_OCCURRENCE)
    scope: str = option("", "Scope or op", is_in_address=True, help=SCOPE_HELP)
    part: str = option("", "Part of the step", _parts, is_list=True)

    @property
    def places(self) -> tuple[str, ...]:
        """Where the ops ran, the device first."""
        return _PLACES if self.where == "both" else (self.where,)


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """The self time in a sentence and as figures, the tree of name scopes, and every op."""
    if why := why_not_compared(pair):
        yield Text(why, "notice")
        if pair.diff().empty:
            return
    yield cached_section(pair, "op_stats", _answer)
    yield Choose(["by", "where", "filter", "idle", "per_occurrence"])
    rows = cache(partial(_rows, pair, options))
    yield later(lambda: [_flame_graph(pair, options)])  # above the table, which gets shorter where a bar is clicked
    yield later(lambda: _every_op(pair, rows(), options))
    if not pair.is_single:
        yield Live("manual_pairs")  # those that were made, if any
    yield Section(MORE, lambda: _more(pair, rows(), options))


def _more(pair: Pair, rows: pd.DataFrame, options: Options) -> Iterator[Block]:
    """What changed most, with intervals; parts of the step; what hosts do outside of ops; shares by op and op type."""
    if not (pair.is_single or pair.are_unrelated):
        yield Section("What changed", lambda: _what_changed(pair, rows, options), True)
    if _parts(pair, None):
        yield Section("By part of the step", partial(_within, pair, options), True, ["part"], PARTS_HELP)
    yield from host_annotations.section(pair)
    yield Section("Where the time goes", lambda: [_shares(pair, options)], True)


def _answer(pair: Pair) -> Iterator[Block]:
    """The self time in a sentence and as figures, what ran outside of the steps, and what has no known cost."""
    yield Text(headline(pair), "headline")
    yield cards(pair, figures(pair))
    for text in filter(None, (op_figures.outside_of_steps(pair), unknown_costs.unknown_costs_sentence(pair))):
        yield Text(text, "quiet")


def headline(pair: Pair) -> str:
    """The change of the self time, in Markdown."""
    rows, per = ops_of(pair, idle=False), pair.per_what
    if pair.is_single:
        return op_figures.sentence_alone(rows, per)
    if pair.are_unrelated:
        return f"{DIFFERENT_PROGRAMS}."
    return "Both runs are the same capture: no op differs." if pair.is_identical else op_figures.sentence(rows, per)


def figures(pair: Pair) -> list[KeyFigure]:
    """Self times, the number of ops, and of two runs how much of the time has a counterpart."""
    found = op_figures.figures(ops_of(pair, idle=False), pair.per_on)
    if pair.is_single:
        return [figure.alone() for figure in found]
    row = pair.coverage().iloc[0]
    return [*found, op_figures.matched_time(row["matched_share"], row["exact_share"])]


def _rows(pair: Pair, options: Options) -> pd.DataFrame:
    """The rows of the table: ops or groups of them, on the chosen side, in the chosen scope, that contain the words of
    the filter."""
    if options.by == "op_name":
        return _in_scope(pair, _ops(pair, options), options)
    if options.scope:
        ops = _in_scope(pair, ops_of(pair, idle=options.idle), options)
        rows = with_shares(group_diff(with_distinct_names(ops, pair.manual_pairs), options.by, pair.group_verdicts))
    else:
        rows = groups_of(pair, options.by, idle=options.idle)
    if options.per_occurrence:
        rows = pair.rows_per_occurrence(rows, "op_stats")
    return op_figures.with_words(rows[rows["host_or_device"].isin(options.places)], options.filter, [options.by])


def _ops(pair: Pair, options: Options) -> pd.DataFrame:
    """The ops on the chosen side whose name and type, or whose group, contain the words of the filter."""
    rows = ops_of(pair, idle=options.idle)
    columns = ["op_name", "op_type", "op_name_candidate", "op_type_candidate"]
    if options.by == "scope":
        names = by_scope.nodes_of(pair, idle=options.idle)["node"].str.removesuffix(f"/{OWN_TIME}")
        rows, columns = rows.assign(scope=scope_of(names.str.partition("/")[2])), ["scope"]
    elif options.by == "op_type":
        columns = columns[1::2]
    if options.per_occurrence:
        rows = pair.rows_per_occurrence(rows, "op_stats")
    return op_figures.with_words(rows[rows["host_or_device"].isin(options.places)], options.filter, columns)


def _in_scope(pair: Pair, ops: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Those of the ops that are in the chosen scope; all where the runs have no such scope."""
    found = by_scope.below(pair, ops, options.scope, idle=options.idle) if options.scope else ops
    return ops if found is None else found


def _every_op(pair: Pair, rows: pd.DataFrame, options: Options) -> Iterator[Block]:
    """The table, and what it is restricted to."""
    if options.scope:
        is_there = by_scope.below(pair, rows.iloc[:0], options.scope, idle=options.idle) is not None
        no_scope = "The runs have no such scope: all ops are shown."
        yield Text(f"In {as_code(options.scope)}" if is_there else no_scope, clears="scope")
    yield _table(pair, rows, options)


def _flame_graph(pair: Pair, options: Options) -> FlameGraph:
    """The ops that the table shows, or would show without the chosen scope, as a tree."""
    return FlameGraph(
        "op_flame",
        "Self time by name scope",
        lambda: by_scope.tree(pair, _ops(pair, options), idle=options.idle),
        by_scope.TIME,
        pair.headings,
        per=pair.sums_per(per_occurrence=options.per_occurrence).sums,
        on=replace(options, scope="", part=""),
        chooses="scope",
        selected=options.scope,
        is_neutral=pair.are_unrelated,
        nothing="No op took any time here.",
    )


def _table(pair: Pair, rows: pd.DataFrame, options: Options) -> Table:
    filtered = f"No row has all words of {as_code(options.filter)}. Clear the filter to see all."
    return Table(
        schema.OP_STATS,
        f"Every {GROUPINGS[options.by]}",
        largest_first(pair, schema.OP_STATS, rows),
        _columns(pair, rows, options, every=False),
        every=_columns(pair, rows, options, every=True),
        is_alone=pair.is_single,
        nothing=filtered if options.filter else "No ops were recorded here.",
        opens=Opens(partial(_details, pair, options), op.op_key) if options.by == "op_name" else None,
        sums_per=pair.sums_per(per_occurrence=options.per_occurrence),
        everything=lambda: pd.concat(
            [ops_of(one, idle=options.idle) for one in pairs_of(pair.among)], ignore_index=True
        ),
        menu=None if pair.is_single else Live("load_manual_pairs"),
    )


def _columns(pair: Pair, rows: pd.DataFrame, options: Options, *, every: bool) -> list[str]:
    """The table's columns, most important first."""
    side = ["host_or_device"] if rows["host_or_device"].nunique() > 1 or every else []
    self_time = by_role("self_time_us", CHANGE)
    shares_of = by_role("self_share")
    occurrences = by_role("occurrences")
    if options.by != "op_name":
        names = [options.by, *side, *self_time, "verdict"]
        return names + (["status", "evidence", *INTERVAL, *shares_of, *occurrences, "match"] if every else [])
    wall_time = by_role("wall_time_us") if every and any(map(has_step_times, pair.runs)) else []
    terms = [] if pair.is_single or pair.are_unrelated else TERMS if every else term_columns(rows)
    self_time = self_time if every or not terms else self_time[:3]  # the ratio is the product of the terms
    names = ["op_name", *(["op_type"] if every else []), *side, *self_time, *wall_time, "verdict"]
    if pair.is_single and not every:
        names += [*shares_of[:1], *occurrences[:1]]
    elif options.per_occurrence and not every:
        names += occurrences
    names += [*terms, *shape_column(rows)]
    if every:
        names += ["sums_of"] if pair.of_each else []
        names += ["status", "evidence", *INTERVAL, *shares_of, "match", *by_role("rank")]
        names += [*occurrences, *by_role("total_time_us")]
        names += [f"{name}_{role}" for name in _AVERAGES for role in SIDES]
        known = [name for cost in ("flops", "bytes_accessed") for name in by_role(cost)]
        if rows[known].notna().any(axis=None):
            names += [*known, *(f"{name}_{role}" for name in _RATES for role in SIDES)]
        names += [*by_role("is_eager"), "op_name_candidate", "op_type_candidate"]
    return names


def _details(pair: Pair, options: Options, chosen: str) -> Details | None:
    """The selected op, even if the filter hides it."""
    every = ops_of(pair, idle=options.idle)
    found = every[op.op_key(every) == chosen]
    return None if found.empty else op.details_of_row(pair, found.iloc[0])


def _what_changed(pair: Pair, rows: pd.DataFrame, options: Options) -> Iterator[Block]:
    changes, make = largest_changes(rows, n=bars.TOP), partial(_changes, pair, options)
    return changed("op_changes", changes, make, on=options, nothing="None of these rows changed its self time.")


def _changes(pair: Pair, options: Options, letters: int = bars.MOVER_LENGTH) -> Any:
    if pair.is_single:
        return None
    changes = largest_changes(_rows(pair, options), n=bars.TOP)
    if changes.empty:
        return None
    per = pair.sums_per(per_occurrence=options.per_occurrence).sums
    return bars.changes_of_pair(pair, changes, "self_time_us", by=options.by, letters=letters, per=per)


def _within(pair: Pair, options: Options) -> Iterator[Block]:
    """What changed within the chosen part of the step."""
    inside = pair.cached(("within", options.part), partial(step_attribution.within, pair, options.part))
    yield Text(inside.sentence)
    if inside.waterfall is not None and not inside.waterfall.is_empty:
        colours = colours_of_change(pair.verdict)
        draw = partial(part_waterfall, inside.waterfall, pair.sides, schema.STEPS.column(options.part).label, colours)
        yield Chart("part_waterfall", draw, on=options.part, draw_narrow=partial(draw, narrow=True))


def _shares(pair: Pair, options: Options) -> Chart:
    """The shares of self time by op and by op type, with those of op types as texts."""
    types = {place: _shares_on(pair, place, idle=options.idle)["op_type"] for place in options.places}
    facts = next(
        (
            shares.facts(pair, times, f"Share of self time on {place_word(place)}", MOST_TYPES)
            for place, times in types.items()
            if len(times)
        ),
        None,
    )
    draw, nothing = partial(_at_a_glance, pair, options), "No op took any time."
    on = (options.places, options.idle)
    return Chart("op_shares", draw, facts, on, partial(draw, pixels=NARROW), nothing)


def _shares_on(pair: Pair, place: str, *, idle: bool) -> dict[Grouping, pd.DataFrame]:
    """The self time on host or device by op and by op type, as `time_shares`."""

    def make(by: Grouping) -> pd.DataFrame:
        rows = groups_of(pair, by, idle=idle)
        took_time = rows[by_role("self_time_us")].max(axis=1) > 0
        return op_figures.time_shares(rows[took_time & (rows["host_or_device"] == place)], by)

    groupings: tuple[Grouping, ...] = ("op_name", "op_type")
    return {by: pair.cached(("shares", place, by, idle), partial(make, by)) for by in groupings}


def _at_a_glance(pair: Pair, options: Options, pixels: int = WIDE) -> Any:
    """The shares of self time on host and device, by op and by op type, as a figure; None if no op took any."""
    rows = [
        (f"{place} by {GROUPINGS[by]}", times)
        for place in options.places
        for by, times in _shares_on(pair, place, idle=options.idle).items()
        if len(times)
    ]
    title = f"Shares of self time, {'with' if options.idle else 'without'} IDLE"
    return share_rows(rows, [side for side, _ in pair.shown], title=title, pixels=pixels) if rows else None


def scopes_of(pair: Pair, _options: Any = None, *, place: str) -> Any:
    """The self time on host or device by name scope, as a figure; None if no op took any."""
    if not (pair.diff()["host_or_device"] == place).any():
        return None
    tree = pair.scopes()
    took_time = tree[by_role("self_time_us")].max(axis=1) > 0
    here = tree[took_time & (tree["node"].str.split("/", n=1).str[0] == place)]
    make = scopes.scope_icicle_alone if pair.is_single else scopes.scope_icicle
    return None if here.empty else make(here, "self_time_us", per=pair.per_on(place), place=place.lower())


CHARTS: dict[str, Make] = {
    "op_changes": _changes,
    "op_shares": _at_a_glance,
    "scopes_device": partial(scopes_of, place=DEVICE),
    "scopes_host": partial(scopes_of, place=HOST),
}
VIEW = View("op_stats", "Op stats", blocks, CHARTS, options=Options)
