"""What the candidate does otherwise than the baseline, as far as the profiles tell of the work itself: that needs no
statistics, and whether it explains the change of the step time is left to the budget."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tfcompare.compare.work.input_changes import input_changes
from tfcompare.compare.work.lone_layers import lone_layers
from tfcompare.schema import SIDES
from tfcompare.text import as_code, some_of
from tfcompare.units import format_time_us
from tfcompare.views.steps.attribution import INPUT, attribution_of

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair

_MOST_NAMED = 2
_LEAST_OF_LAYER = 0.01
"""Of its side's self time, what a layer that only that side has takes at least to be named: less matters to no step."""
_LEAST_MATCHED = 0.5
"""Of both sides' time, what is in matched ops where layers are called added or removed; else only names may differ."""


def cause(pair: Pair, names: tuple[str, str], *, is_subject: bool) -> str:
    """What the candidate does otherwise, as a clause such as "it has `inserted`, which A lacks (1.11 ms of its ops)";
    empty where that is not known.

    `names` are those of baseline and candidate in Markdown; `is_subject`: whether the candidate is that of the clause
    before, so that `it` can stand for it.
    """
    if pair.is_single or pair.is_identical:
        return ""
    found = pair.cached("causes", partial(_causes, pair))
    return found[0].format(*(("it", "its") if is_subject else (names[1], f"{names[1]}'s")), names[0]) if found else ""


def _causes(pair: Pair) -> list[str]:
    """The clauses, the one to say first: `{0}` stands for the candidate, `{1}` for its genitive, `{2}` for the
    baseline."""
    clauses = list(filter(None, (_layers(pair), _input(pair))))
    return clauses[::-1] if len(clauses) > 1 and attribution_of(pair).moved_most == INPUT else clauses


def _layers(pair: Pair) -> str:
    """The layers that only one side has."""
    if float(pair.coverage()["matched_share"].iloc[0]) < _LEAST_MATCHED:
        return ""
    diff = pair.diff()
    whole = [float(diff[f"self_time_us_{role}"].sum()) for role in SIDES]
    clauses = []
    layers = [one for one in lone_layers(diff) if one.self_time_us >= _LEAST_OF_LAYER * whole[one.side]]
    for side, verb, other in ((1, "has", "which {2} lacks"), (0, "lacks", "which {2} has")):
        if own := [one for one in layers if one.side == side]:
            time = format_time_us(sum(one.self_time_us for one in own))
            named = some_of([_escaped(one.name) for one in own], _MOST_NAMED)
            clauses.append(f"{verb} {named}, {other} ({time} per {pair.per_what})")
    return f"{{0}} {' and '.join(clauses)}" if clauses else ""


def _input(pair: Pair) -> str:
    """How the input pipelines are built differently."""
    found = input_changes(pair)
    listed = [_escaped(one) for one in found.changed[:_MOST_NAMED]]
    listed += [f"new {' and '.join(map(_escaped, found.added[:_MOST_NAMED]))}"] if found.added else []
    if listed:
        return f"{{1}} input pipeline has {' and '.join(listed)}"
    return f"{{1}} input pipeline lacks {some_of(map(_escaped, found.removed), _MOST_NAMED)}" if found.removed else ""


def _escaped(text: str) -> str:
    """A text as code, to be formatted."""
    return as_code(text).replace("{", "{{").replace("}", "}}")
