"""Describes waterfalls in sentences: which part of the step explains its change, and which ops within that part."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from tfcompare.compare.attribution import AROUND_OPS, FACTOR, NEGLIGIBLE_US, NO_OP, OTHER_HOSTS, OTHERS, Waterfall
from tfcompare.compare.groups.fused_rows import row_name_as_code
from tfcompare.frames.ops.op_names import DATASET, UNKNOWN
from tfcompare.text import as_code
from tfcompare.units import MINUS, format_delta, format_time_us, scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

PART_WORDS = {
    "compile_us": "compilation",
    "input_us": "input",
    "output_us": "output",
    "kernel_launch_us": "kernel launch",
    "host_compute_us": "host compute",
    "host_collectives_us": "waiting for other hosts in collectives",
    "device_collectives_us": "communication between devices",
    "device_to_device_us": "copying between devices",
    "device_compute_us": "device compute",
    "device_waits_us": "device waits",
    "idle_us": "idle time",
    "other_us": "work of no known step",
    OTHER_HOSTS: "time in which other hosts are slower",
}
"""The name of each part of a step in sentences."""

NAME_LENGTH = 80
_WORTH_SAYING = 0.1
"""Share of the largest move below which moves are not mentioned."""
_MOST_TERMS = 3
"""More terms than these, beside "everything else", are a table and no sentence."""


def named_parts(parts: pd.DataFrame) -> pd.Series:
    """The changes in µs of the parts that a budget names, by part, the largest first; `parts` as of `part_means`."""
    deltas: pd.Series = parts.set_index("part")["delta_us"]
    moved = deltas[deltas.abs() >= NEGLIGIBLE_US]
    moved = moved.loc[moved.abs().sort_values(ascending=False, kind="stable").index]
    named: pd.Series = moved[moved.abs() >= _WORTH_SAYING * moved.abs().max()].head(_MOST_TERMS)
    return named


def step_budget(parts: pd.DataFrame, causes: Mapping[str, str]) -> str:
    """`**+49.9 ms per step** = 48.6 ms idle time before `LogicalAnd` + 1.7 ms device compute − 0.4 ms everything else.`

    A Markdown sentence on the change of the average step whose terms add up as they are written. `parts` is the result
    of `part_means`; `causes` says where in a part most of its change is, for those where that is known.
    """
    named = named_parts(parts)
    if named.empty:
        return "No part of the average step takes more or less time than before."
    whole_us = float(parts["delta_us"].sum())
    unit = scale([whole_us, *named], "µs")
    largest = max(abs(whole_us), float(named.abs().max())) / unit.size
    decimals = max(0, 2 - math.floor(math.log10(largest)))
    words = [" ".join(filter(None, [PART_WORDS[part], causes.get(part, "")])) for part in map(str, named.index)]
    terms = [(round(us / unit.size, decimals), text) for us, text in zip(named, words, strict=True)]
    whole = round(whole_us / unit.size, decimals)
    terms.append((round(whole - sum(number for number, _ in terms), decimals), "everything else"))
    texts = [(number, f"{abs(number):,.{decimals}f} {unit.unit} {words}") for number, words in terms if number]
    (first, text), *others = texts
    more = "".join(f" {MINUS if number < 0 else '+'} {one}" for number, one in others)
    sum_of = f"{MINUS if first < 0 else ''}{text}{more}"
    sign = "+" if whole > 0 else MINUS if whole < 0 else "±"
    return f"**{sign}{abs(whole):,.{decimals}f} {unit.unit} per step** = {sum_of}."


def _fell_or_grew(delta_us: float) -> str:
    return f"{'fell' if delta_us < 0 else 'grew'} by {format_time_us(abs(delta_us))}"


def _together(clauses: list[str]) -> str:
    return clauses[0] if len(clauses) == 1 else ", ".join(clauses[:-1]) + " and " + clauses[-1] if clauses else ""


def part_sentence(part: str, waterfall: Waterfall, moves: pd.DataFrame) -> str:
    """A Markdown sentence on the largest move within a part of the step: all ops of a type, or a single op.

    `part` is one of `schema.STEP_PARTS`, `waterfall` the waterfall of its ops, `moves` all of their moves.
    """
    named = waterfall.moves[~waterfall.moves["kind"].isin([NO_OP, OTHERS])]
    if waterfall.is_empty:
        return f"Nothing within {PART_WORDS[part]} changed."
    if (waterfall.moves["kind"] == FACTOR).any():
        factors = [f"the {move['name'].lower()} went {move['detail']}" for _, move in named.iterrows()]
        return f"Within {PART_WORDS[part]}, {_together(factors)}."
    no_op = float(waterfall.moves.loc[waterfall.moves["kind"] == NO_OP, "delta_us"].sum())
    kind = moves["detail"].where(moves["detail"] != DATASET, moves["name"].map(_stage))
    kind = kind.where(~moves["detail"].isin(AROUND_OPS), moves["detail"] + " " + moves["name"])
    totals = moves["delta_us"].groupby(kind).sum()
    if named.empty or abs(no_op) > totals.abs().max():
        most = f"time in which no op was running {_fell_or_grew(no_op)} per step"
    else:
        most = _most_moved(moves, kind, totals)
    return f"In the wall time of {PART_WORDS[part]}, {most}."


def _most_moved(moves: pd.DataFrame, kind: pd.Series, totals: pd.Series) -> str:
    """The op type or op with the largest change. `kind`: the type of each op; `totals`: the change of each type."""
    main = str(totals.abs().idxmax())
    of_type = moves[(kind == main) & (moves["delta_us"].abs() >= NEGLIGIBLE_US)]
    first = of_type.iloc[0]
    if len(of_type) == 1 or main in ("", UNKNOWN):
        took = format_time_us(abs(first["delta_us"]))
        if first["kind"] == "added":
            return f"{_code(first)} was added and takes {took} per step"
        if first["kind"] == "removed":
            return f"{_code(first)} was removed, which took {took} per step"
        return f"{_code(first)} changed the most: it {_fell_or_grew(float(first['delta_us']))} per step"
    return (
        f"the {len(of_type)} {code(main)} ops {_fell_or_grew(float(totals[main]))} per step together, most of all "
        f"{_code(first)} ({format_delta(float(first['delta_us']), 'µs')})"
    )


def inner_op_sentence(op_name: str, delta_us: float) -> str:
    """A sentence on the op that caused the change of a tf.data function, to follow the sentence on the function."""
    return f" In its function, most of that is {code(op_name)} ({format_delta(delta_us, 'µs')})."


def _stage(long_name: str) -> str:
    """The last component of an iterator's long name: `Map` of `Iterator::Root::Prefetch::Map`."""
    return long_name.rpartition("::")[2]


def _code(move: pd.Series) -> str:
    name = _stage(str(move["name"])) if move["detail"] == DATASET else str(move["name"])
    return row_name_as_code(name, str(move["detail"]), NAME_LENGTH)


code = partial(as_code, letters=NAME_LENGTH)
"""A name in a sentence."""
