"""Describes waterfalls in sentences: which part of the step explains its change, and which ops within that part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.attribution import FACTOR, NEGLIGIBLE_US, NO_OP, OTHER_HOSTS, OTHERS, Waterfall
from tfcompare.frames.ops.op_names import DATASET, UNKNOWN
from tfcompare.units import format_delta, format_percent, format_time_us, middle_ellipsis

if TYPE_CHECKING:
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
    "other_us": "time that nothing explains",
    OTHER_HOSTS: "time in which other hosts are slower",
}
"""The name of each part of a step in sentences."""

NAME_LENGTH = 80
_WORTH_SAYING = 0.1
"""Share of the largest move below which moves are not mentioned."""
_CANCELS = 0.2
"""If the total change is below this share of the largest move, the moves mostly cancel each other out. One of the other
eight is then worth mentioning."""
_WHOLE = 0.02


def step_sentence(parts: pd.DataFrame) -> str:
    """A sentence on the part that explains most of the step's change; `parts` is the result of `part_means`."""
    deltas = parts.set_index("part")["delta_us"]
    moved = deltas[deltas.abs() >= NEGLIGIBLE_US]
    if moved.empty:
        return "No part of the average step takes more or less time than before."
    moved = moved.loc[moved.abs().sort_values(ascending=False, kind="stable").index]
    whole, largest = float(moved.sum()), float(moved.iloc[0])
    main = _moved(moved.index[0], largest)
    main = main[0].upper() + main[1:]
    others = moved.iloc[1:][moved.iloc[1:].abs() >= _WORTH_SAYING * abs(largest)]
    if abs(whole) < _CANCELS * abs(largest) or (whole > 0) != (largest > 0):
        against = others[(others > 0) != (largest > 0)]
        how = _together([_moved(part, delta) for part, delta in against.items()])
        return f"{main}, but {how}: {_outcome(whole)}."
    also = _together([_moved(part, delta) for part, delta in others.head(2).items()])
    if largest / whole > 1 + _WHOLE and also:
        return f"{main}; {also}; {_outcome(whole)}."
    return f"{main} and explains {_share(largest / whole, whole)}" + (f"; {also}." if also else ".")


def _moved(part: object, delta_us: float) -> str:
    return f"{PART_WORDS[str(part)]} {_fell_or_grew(delta_us)}"


def _fell_or_grew(delta_us: float) -> str:
    return f"{'fell' if delta_us < 0 else 'grew'} by {format_time_us(abs(delta_us))}"


def _share(share: float, whole_us: float) -> str:
    """A phrase for `share` of the change, which is at least a fifth."""
    change = f"change of {format_delta(whole_us, 'µs')} in the average step"
    if share < 1 - _WHOLE:
        return f"{format_percent(share)} of the {change}"
    if share <= 1 + _WHOLE:
        return f"the whole {change}"
    return f"a little more than the whole {change}" if share < 1.1 else f"{share:.1f} times the {change}"


def _outcome(whole_us: float) -> str:
    if abs(whole_us) < NEGLIGIBLE_US:
        return "the average step takes as long as before"
    return f"the average step takes {format_time_us(abs(whole_us))} {'less' if whole_us < 0 else 'more'}"


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
        factors = [f"the {move['name'].lower()} went from {move['detail']}" for _, move in named.iterrows()]
        return f"Within {PART_WORDS[part]}, {_together(factors)}.".replace(" → ", " to ")
    no_op = float(waterfall.moves.loc[waterfall.moves["kind"] == NO_OP, "delta_us"].sum())
    kind = moves["detail"].where(moves["detail"] != DATASET, moves["name"].map(_stage))
    totals = moves["delta_us"].groupby(kind).sum()
    if named.empty or abs(no_op) > totals.abs().max():
        return f"Within {PART_WORDS[part]}, time in which no op was running {_fell_or_grew(no_op)} per step."
    return f"Within {PART_WORDS[part]}, {_most_moved(moves, kind, totals)}."


def _most_moved(moves: pd.DataFrame, kind: pd.Series, totals: pd.Series) -> str:
    """The op type or op with the largest change. `kind`: the type of each op; `totals`: the change of each type."""
    main = str(totals.abs().idxmax())
    of_type = moves[(kind == main) & (moves["delta_us"].abs() >= NEGLIGIBLE_US)]
    first = of_type.iloc[0]
    if len(of_type) == 1 or main in ("", UNKNOWN):
        return f"{_code(_short(first))} {_what_became(first)}"
    return (
        f"the {len(of_type)} {_code(main)} ops {_fell_or_grew(float(totals[main]))} per step together, most of all "
        f"{_code(_short(first))} ({format_delta(float(first['delta_us']), 'µs')})"
    )


def inner_op_sentence(op_name: str, delta_us: float) -> str:
    """A sentence on the op that caused the change of a tf.data function, to follow the sentence on the function."""
    return f" In its function, most of that is {_code(op_name)} ({format_delta(delta_us, 'µs')})."


def _stage(long_name: str) -> str:
    """The last component of an iterator's long name: `Map` of `Iterator::Root::Prefetch::Map`."""
    return long_name.rpartition("::")[2]


def _short(move: pd.Series) -> str:
    return _stage(str(move["name"])) if move["detail"] == DATASET else str(move["name"])


def _what_became(move: pd.Series) -> str:
    took = format_time_us(abs(move["delta_us"]))
    if move["kind"] == "added":
        return f"was added and takes {took} per step"
    if move["kind"] == "removed":
        return f"was removed, which took {took} per step"
    return f"changed the most: it {_fell_or_grew(float(move['delta_us']))} per step"


def _code(name: str) -> str:
    return f"`{middle_ellipsis(' '.join(name.split()), NAME_LENGTH).replace('`', chr(39)) or ' '}`"
