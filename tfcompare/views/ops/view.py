"""Ops: TensorBoard's TensorFlow Stats of both runs, and what changed between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import pandas as pd

from tfcompare import schema
from tfcompare.compare.attribution import OTHER_HOSTS
from tfcompare.compare.diff import INTERVAL
from tfcompare.compare.groups.aggregate import Grouping, largest_changes, without_idle
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.schema import DEVICE, HOST, SIDES, SPARSE_CORE, place_word
from tfcompare.text import as_code
from tfcompare.views import bars, shares
from tfcompare.views import icicles as scopes
from tfcompare.views.blocks import (
    Beside,
    Block,
    Chart,
    Choose,
    Details,
    Live,
    Opens,
    Section,
    Table,
    Text,
    later,
)
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.ops import annotations as host_annotations
from tfcompare.views.ops import figures as op_figures
from tfcompare.views.ops import op
from tfcompare.views.ops.figures import groups_of, ops_of
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

SCOPES_HELP = (
    "The self time by layer, as ops are named. An instruction that XLA compiled counts for the op that it came from, "
    "which its program names. A fusion counts for one op: the one that XLA names for it, else the last one in it that "
    "has a name. Ops without a scope are in no layer."
)
PARTS_HELP = (
    "The mean step, part by part. Where several ops ran at once, each instant is divided equally among them, so that "
    "the ops of a part add up to it."
)
PER_OCCURRENCE = (
    "Divide the times in the table, and the changes, by how often the op ran: for runs whose ops ran more or less "
    "often. Verdicts are on the time per step, so an op with other numbers of occurrences per step has none."
)
FILTER_HELP = "All words must be in an op's name or type; case does not matter"
_PLACES = (DEVICE, SPARSE_CORE, HOST)
_RATES = ("flops_per_s", "bandwidth_bytes_per_s", "operational_intensity", "bound_by")
_AVERAGES = ("avg_time_us", "avg_self_time_us", "cumulative_share")


def _places(pair: Pair, _options: Any) -> dict[str, str]:
    ran_on = pair.cached("places", lambda: set(without_idle(pair.diff())["host_or_device"]))
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
    where: Literal["Device", "SparseCore", "Host", "both"] = option("both", "Where", _places)
    filter: str = option("", "Filter", hint="words in name or type", help=FILTER_HELP)
    idle: bool = option(False, "IDLE", help="Show the time in which no op ran as an op, as TensorBoard does by default")
    per_occurrence: bool = option(False, "Per occurrence", address="each", help=PER_OCCURRENCE)
    part: str = option("", "Part of the step", _parts, is_list=True)
    shares: bool = option(False, "Shares", help="Shares of each run's self time, which add up to 100 %")

    @property
    def places(self) -> tuple[str, ...]:
        """Where the ops ran, the device first."""
        return _PLACES if self.where == "both" else (self.where,)


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """The self time in a sentence and as figures, every op, what changed most, where the time goes, name scopes."""
    if why := why_not_compared(pair):
        yield Text(why, "notice")
        if pair.diff().empty:
            return
    yield cached_section(pair, "op_stats", _answer)
    yield Choose(["by", "where", "filter", "idle", "per_occurrence"])
    rows = cache(partial(_rows, pair, options))
    yield later(lambda: [_table(pair, rows(), options)])
    if not pair.is_single:
        yield Live("manual_pairs")  # those that were made, if any
    if not (pair.is_single or pair.are_unrelated):
        yield Section("What changed", lambda: _what_changed(pair, rows(), options), True)
    if _parts(pair, None):
        yield Section("By part of the step", partial(_within, pair, options), True, ["part"], PARTS_HELP)
    yield from host_annotations.section(pair)
    yield Section("Where the time goes", partial(_distributions, pair, options), True, ["shares"])
    if not pair.are_unrelated:  # they are coloured by change
        yield Section("Name scopes", partial(_scopes, pair, options), True, help=SCOPES_HELP)


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
    """The rows of the table: ops or groups of them, on the chosen side, that contain the words of the filter."""
    if options.by == "op_name":
        rows = ops_of(pair, idle=options.idle)
        columns = ["op_name", "op_type", "op_name_candidate", "op_type_candidate"]
    else:
        rows, columns = groups_of(pair, options.by, idle=options.idle), [options.by]
    if options.per_occurrence:
        rows = pair.rows_per_occurrence(rows, "op_stats")
    return op_figures.with_words(rows[rows["host_or_device"].isin(options.places)], options.filter, columns)


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
    names = ["op_name", "op_type", *side, *self_time, *wall_time, "verdict"]
    if pair.is_single and not every:
        names += [*shares_of[:1], *occurrences[:1]]
    elif options.per_occurrence and not every:
        names += occurrences
    names += shape_column(rows)
    names += [] if pair.is_single or pair.are_unrelated else TERMS if every else term_columns(rows)
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


def _distributions(pair: Pair, options: Options) -> Iterator[Block]:
    """Where the self time goes, by op and by op type: all shares at a glance, then each as bars."""
    draw = partial(_at_a_glance, pair, options)
    yield Chart("op_shares", draw, on=(options.places, options.idle), draw_narrow=partial(draw, pixels=NARROW))
    for place in options.places:
        times = _shares_on(pair, place, idle=options.idle)
        if times["op_type"].empty:
            if place != SPARSE_CORE:  # few devices have any
                yield Text(f"No op took any time on {place_word(place)}.", "notice")
            continue
        reach = op_figures.largest_bar(list(times.values()), "self_time_us", len(pair.shown), as_shares=options.shares)
        types = shares.facts(pair, times["op_type"], f"Share of self time on {place_word(place)}", MOST_TYPES)
        columns = []
        for by, rows in times.items():
            draw = partial(_bars, pair, rows, by, place, reach, options.shares)
            facts = types if by == "op_type" else None
            columns.append([Chart(f"shares_{place}_{by}", draw, facts, (options.idle, options.shares))])
        yield Beside(columns)


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


def _bars(pair: Pair, times: pd.DataFrame, by: Grouping, place: str, reach: float, as_shares: bool) -> Any:
    title = f"Self time on {place_word(place)} by {GROUPINGS[by]}"
    return shares.bars(pair, times, "self_time_us", title=title, of="self time", reach=reach, as_shares=as_shares)


def _scopes(pair: Pair, options: Options) -> Iterator[Block]:
    """The self time by name scope."""
    if coverage := op_figures.scoped_time(ops_of(pair, idle=False), is_single=pair.is_single):
        yield Text(coverage, "quiet")
    for place in [place for place in options.places if place != SPARSE_CORE]:
        nothing = f"No op took any time on {place.lower()}."
        yield Chart(f"scopes_{place.lower()}", partial(scopes_of, pair, place=place), on=place, nothing=nothing)


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
