"""What a waterfall says, in words: which part of the step explains its change, and what within that part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.attribution import FACTOR, NEGLIGIBLE_US, NOT_ATTRIBUTED, OTHERS, Waterfall
from tfcompare.units import format_delta, format_percent, format_time_us, middle_ellipsis

if TYPE_CHECKING:
    import pandas as pd

PART_WORDS = {
    "compile_us": "compilation",
    "input_us": "input",
    "output_us": "output",
    "kernel_launch_us": "kernel launch",
    "host_compute_us": "host compute",
    "device_collectives_us": "communication between devices",
    "device_to_device_us": "copying between devices",
    "device_compute_us": "device compute",
    "other_us": "time that nothing explains",
}
"""What a sentence calls each part of a step."""

NAME_LENGTH = 80
_WORTH_SAYING = 0.1
"""Of the largest move: smaller ones are not in the sentence."""
_CANCELS = 0.2
"""Of the largest move: where the whole change is smaller, the moves cancel out rather than make it. One of the eight
others is then worth saying."""
_WHOLE = 0.02
_OVERLAPS = 1.25


def step_sentence(parts: pd.DataFrame) -> str:
    """Which part of the step explains how much of its change; `parts` as `part_means` gives them for two sides."""
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
    return f"{main} and explains {_share(largest / whole, whole)}" + (f"; {also}." if also else ".")


def _moved(part: object, delta_us: float) -> str:
    return f"{PART_WORDS[str(part)]} {_fell_or_grew(delta_us)}"


def _fell_or_grew(delta_us: float) -> str:
    return f"{'fell' if delta_us < 0 else 'grew'} by {format_time_us(abs(delta_us))}"


def _share(share: float, whole_us: float) -> str:
    """`share` of the change: at least a fifth of it, or this would be no explanation."""
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


def part_sentence(part: str, waterfall: Waterfall) -> str:
    """What moved the most within a part of the step, and how far its ops explain it, in Markdown.

    `part` is one of `schema.STEP_PARTS`, `waterfall` that of its ops.
    """
    moves = waterfall.moves
    ops = moves[moves["kind"] != NOT_ATTRIBUTED]
    named = ops[ops["kind"] != OTHERS]
    if waterfall.is_empty:
        return f"Nothing within {PART_WORDS[part]} changed."
    if named.empty:
        return f"Nothing that was recorded tells what changed within {PART_WORDS[part]}."
    if (named["kind"] == FACTOR).all():
        factors = [f"the {move['name'].lower()} went from {move['detail']}" for _, move in named.iterrows()]
        return f"Within {PART_WORDS[part]}, {_together(factors)}.".replace(" → ", " to ")
    first = named.iloc[0]
    sentence = f"Within {PART_WORDS[part]}, {_code(str(first['name']))} {_what_became(first)}."
    return " ".join([sentence, *_reservation(waterfall.delta_us, float(ops["delta_us"].sum()))])


def _what_became(move: pd.Series) -> str:
    took = format_time_us(abs(move["delta_us"]))
    if move["kind"] == "added":
        return f"was added and takes {took} a step"
    if move["kind"] == "removed":
        return f"is gone, which took {took} a step"
    return f"changed the most: it {_fell_or_grew(float(move['delta_us']))} a step"


def _reservation(part_us: float, ops_us: float) -> list[str]:
    """Why the ops' own changes are not the part's, where they are far from it."""
    together = f"Together these times {_fell_or_grew(ops_us)}"
    if abs(ops_us) < NEGLIGIBLE_US:
        return ["They all but cancel out, so the change of the part lies elsewhere."]
    if (ops_us > 0) != (part_us > 0):
        return [
            f"{together}, against the part's own change of {format_delta(part_us, 'µs')}: what changed is not how long "
            "they run but how much of it the step waits for."
        ]
    if abs(part_us) < NEGLIGIBLE_US or ops_us / part_us > _OVERLAPS:
        times = f", {ops_us / part_us:.1f} times as much as the part" if abs(part_us) >= NEGLIGIBLE_US else ""
        return [f"{together}{times}: what runs at the same time on several threads or streams counts for each of them."]
    if ops_us / part_us < 1 / _OVERLAPS:
        return [f"{together} of {format_time_us(abs(part_us))}; the rest lies in no op that was recorded."]
    return []


def _code(name: str) -> str:
    return f"`{middle_ellipsis(' '.join(name.split()), NAME_LENGTH).replace('`', chr(39)) or ' '}`"


def ahead_sentence(baseline_us: float, candidate_us: float) -> str:
    """How much work on the input, per step, is done ahead and so in no waterfall; empty where none is."""
    if max(baseline_us, candidate_us) < NEGLIGIBLE_US:
        return ""
    ours, theirs = (format_time_us(time) if time else "none" for time in (baseline_us, candidate_us))
    return (
        "Stages that work ahead, on threads of their own, are left out, since no step waits for them: "
        f"{theirs} a step in the candidate, {ours} in the baseline."
    )
