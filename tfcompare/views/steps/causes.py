"""What the candidate does otherwise than the baseline, as far as the profiles tell of the work itself: that needs no
statistics, and whether it explains the change of the step time is left to the budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.compare.work.input_changes import input_changes
from tfcompare.compare.work.lone_layers import layer_of, lone_layers
from tfcompare.compare.work.terms import FLOPS
from tfcompare.schema import SIDES
from tfcompare.schema.hlo import MOST_UNKNOWN
from tfcompare.text import as_code, some_of
from tfcompare.units import format_time_us, ratio_of
from tfcompare.views.ops.figures import most_changed
from tfcompare.views.ops.work_words import work_done
from tfcompare.views.pair_words import sums_per
from tfcompare.views.steps.attribution import INPUT, attribution_of
from tfcompare.views.steps.shape_words import shapes_clause

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair

_MOST_NAMED = 2
_LEAST_OF_LAYER = 0.01
"""Of its side's self time, what a layer that only that side has takes at least to be named: less matters to no step."""
_LEAST_MATCHED = 0.5
"""Of both sides' time, what is in matched ops where layers are called added or removed; else only names may differ."""


def cause(pair: Pair, names: tuple[str, str], *, is_subject: bool, with_programs: bool = True) -> str:
    """What the candidate does otherwise, as a clause in Markdown such as "its convolutions have 512 → 16 filters, 1/32
    of the FLOPs in `encoder`"; empty where that is not known.

    `names` are those of baseline and candidate in Markdown; `is_subject`: whether the candidate is that of the clause
    before, so that `it` can stand for it; `with_programs`: whether the text of compiled programs may be told of.
    """
    if pair.is_single or pair.is_identical or pair.are_unrelated:
        return ""
    found = pair.cached(("cause", names[0]), lambda: _of_work_or_input(pair, names[0]))
    if not found and with_programs:
        from tfcompare.views.steps.what_differs import program_changes_clause  # it loads Plotly; `check` does without

        found = program_changes_clause(pair)
    subject, _, rest = found.partition(" ")
    whole = {"it": names[1], "its": f"{names[1]}'s"}
    return found if is_subject or subject not in whole else f"{whole[subject]} {rest}"


def _of_work_or_input(pair: Pair, baseline: str) -> str:
    """The most telling clause, which begins with `it` or `its`: on the ops, or on the input where that changed most or
    the ops tell nothing."""
    of_work, of_input = _shapes(pair) or _layers(pair, baseline), _input(pair)
    is_of_input = bool(of_input) and (not of_work or attribution_of(pair).moved_most == INPUT)
    return of_input if is_of_input else of_work


def _shapes(pair: Pair) -> str:
    """The changed sizes and types, and how much work the layer does whose op changed most."""
    clause = shapes_clause(pair)
    row = most_changed(pair) if clause else None
    if row is None or not work_done(row):
        return clause
    layer = layer_of(str(row["op_name"]))
    work = work_done(_work_of_layer(pair, layer, row))
    return f"{clause}, {work} in {as_code(layer)}" if work else clause


def _work_of_layer(pair: Pair, layer: str, row: pd.Series) -> pd.Series:
    """`work_ratio` of all ops of a layer together, in what the work of the `row` of one of them is measured in; missing
    where it is unknown of some."""
    ops = pair.diff()
    ops = ops[ops["host_or_device"] == row["host_or_device"]]
    cost = "flops" if row["work_in"] == FLOPS else "bytes_accessed"
    sums = []
    for names, absent, role in zip(("op_name", "op_name_candidate"), (ADDED, REMOVED), SIDES, strict=True):
        own = ops[(ops["status"] != absent) & ops[names].str.contains(layer, regex=False)]
        own = own[own[names].map(layer_of) == layer]
        times, costs = own[f"self_time_us_{role}"], own[f"{cost}_{role}"].astype("float64")
        is_known = times[costs.isna()].sum() <= MOST_UNKNOWN * times.sum()
        sums.append(float(costs.sum()) if is_known else math.nan)
    return pd.Series({"work_ratio": ratio_of(*sums), "work_in": row["work_in"]})


def _layers(pair: Pair, baseline: str) -> str:
    """The layers that only one side has."""
    share = float(pair.coverage()["matched_share"].iloc[0])
    if math.isnan(share) or share < _LEAST_MATCHED:
        return ""
    diff = pair.diff()
    whole = [float(diff[f"self_time_us_{role}"].sum()) for role in SIDES]
    layers = [one for one in lone_layers(diff) if one.self_time_us >= _LEAST_OF_LAYER * whole[one.side]]
    clauses = []
    for side, verb, other in ((1, "has", "lacks"), (0, "lacks", "has")):
        if own := [one for one in layers if one.side == side]:
            named = some_of([as_code(one.name) for one in own], _MOST_NAMED)
            time = format_time_us(sum(one.self_time_us for one in own))
            clauses.append(f"{verb} {named}, which {baseline} {other} ({time} per {sums_per(pair)})")
    return f"it {' and '.join(clauses)}" if clauses else ""


def _input(pair: Pair) -> str:
    """How the input pipelines are built differently."""
    found = input_changes(pair)
    listed = [*map(as_code, found.changed[:_MOST_NAMED])]
    listed += [f"new {' and '.join(map(as_code, found.added[:_MOST_NAMED]))}"] if found.added else []
    if listed:
        return f"its input pipeline has {' and '.join(listed)}"
    return f"its input pipeline lacks {some_of(map(as_code, found.removed), _MOST_NAMED)}" if found.removed else ""
