"""What the op stats page says first: a sentence and key figures about the ops of one or two runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare import schema
from tfcompare.compare.attribution import NEGLIGIBLE_US
from tfcompare.compare.groups.aggregate import largest_changes, of_side, without_idle
from tfcompare.compare.groups.fused_rows import row_name_as_code, single_ops
from tfcompare.schema import DEVICE, HOST, SIDES, SPARSE_CORE, place_word
from tfcompare.tools.key_figures import KeyFigure
from tfcompare.units import format_delta, format_percent, format_percent_change, format_time_us

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side

NAME_LENGTH = 60
NO_OPS = "No ops were recorded."


def sentence(ops: pd.DataFrame, per: str) -> str:
    """`Self time on the device per step fell from 8.14 ms to 1.09 ms (−86.7 %). Largest change: …`, in Markdown.

    `ops` is a diff of `op_stats` of one candidate without IDLE; the time is that on the device if any op ran there.
    """
    place = _main_place(ops)
    ours, theirs = _self_time(ops, place)
    if math.isnan(ours) or math.isnan(theirs):
        return f"Only one of the runs has ops on the {place_word(place)}." if len(ops) else NO_OPS
    about = f"Self time {_where(place, per)} {moved((ours, theirs), [*map(format_time_us, (ours, theirs))])}."
    largest = {where: largest_changes(ops[ops["host_or_device"] == where], n=1) for where in (DEVICE, HOST)}
    changes = {where: (_name(row), float(row["self_time_us_change"])) for where, rows in largest.items()
               for _, row in rows.iterrows()}  # fmt: skip
    if place not in changes:
        return about
    name, delta = changes[place]
    about = f"{about} Largest change: {name} ({format_delta(delta, 'µs')})."
    if place == DEVICE and abs(changes.get(HOST, ("", 0.0))[1]) > abs(delta):
        name, delta = changes[HOST]
        about = f"{about} Larger on the host: {name} ({format_delta(delta, 'µs')})."
    return about


def sentence_alone(ops: pd.DataFrame, per: str) -> str:
    """`Self time on the host per step: 213 ms. Longest op: … (38.0 %).`, in Markdown, of the baseline of `ops`."""
    place = _main_place(ops)
    total = _self_time(ops, place)[0]
    if math.isnan(total):
        return NO_OPS
    here = ops[ops["host_or_device"] == place]
    longest = here.sort_values("self_time_us_baseline", ascending=False).iloc[0]
    share = format_percent(longest["self_share_baseline"])
    return f"Self time {_where(place, per)}: {format_time_us(total)}. Longest op: {_name(longest)} ({share})."


def _where(place: str, per: str) -> str:
    """`on the device per step`; `per step and device` says both."""
    return f"per {per}" if per.endswith(place.lower()) else f"on the {place_word(place)} per {per}"


def outside_of_steps(pair: Pair, name: str = "op_stats") -> str:
    """`Outside of the included steps: 3.10 ms of self time in all, baseline 2.00 ms.`; empty if nothing ran there.

    `name` is one of `schema.STEP_TABLES`. Per run, figures include that time, so there is nothing to say.
    """
    if pair.per != "step":
        return ""
    ours, theirs = (_outside_us(pair, side, name) for side in pair.sides)
    if max(ours, theirs) < NEGLIGIBLE_US:
        return ""
    what = "self time" if name == "op_stats" else "kernel time"
    text = f"Outside of the included steps: {format_time_us(theirs)} of {what} in all"
    return f"{text}." if pair.is_single else f"{text}, baseline {format_time_us(ours)}."


def _outside_us(pair: Pair, side: Side, name: str) -> float:
    metric = schema.table(name).headline
    tables = (without_idle(of(name, host=side.host)) for of in (side.run.table, side.run.in_steps))
    whole, inside = (float((rows[metric] * pair.shares(name, rows, side, 0)).sum()) for rows in tables)
    return max(whole - inside, 0.0)


def moved(values: tuple[float, float], texts: Sequence[str]) -> str:
    """`fell from 8.14 ms to 1.09 ms (−86.7 %)`, or `stayed at 8.14 ms`; `texts` are the formatted values."""
    before, after = values
    if before == after:
        return f"stayed at {texts[0]}"
    change = f" ({format_percent_change(after / before)})" if before > 0 else ""
    return f"{'fell' if after < before else 'rose'} from {texts[0]} to {texts[1]}{change}"


def figures(ops: pd.DataFrame, per: Callable[[str], str]) -> list[KeyFigure]:
    """Self time at each place, and the number of ops, of both sides; what neither side has is left out.

    `per` says what the sums of a place are per.
    """
    meaning = "Time of all ops without the ops that they call, over all threads or streams; without IDLE."
    figures = [
        KeyFigure(f"Self time {where}", "µs", *_self_time(ops, place), "neither", meaning)
        for place in (DEVICE, SPARSE_CORE, HOST)
        for where in [_where(place, per(place)).replace("the ", "")]
    ]  # fmt: skip
    counts = [float(len(single_ops(of_side(ops, role), role))) for role in SIDES]
    figures.append(KeyFigure("Ops", "", counts[0], counts[1], "neither", "Ops with different names, types or places."))
    return [f for f in figures if not (math.isnan(f.baseline) and math.isnan(f.candidate))]


def matched_time(matched_share: float, exact_share: float) -> KeyFigure:
    """The share of the self time of both runs that is in matched ops, and how much of it has the same name."""
    return KeyFigure(
        "Time with a counterpart", "share", math.nan, matched_share, "neither",
        "Share of both runs' self time in ops that have a counterpart in the other run; "
        f"{format_percent(exact_share)} under the same name. Without IDLE.",
    )  # fmt: skip


def scoped_time(ops: pd.DataFrame, *, is_single: bool) -> str:
    """`Ops with a name scope: 98.2 % of self time in the baseline, 93.0 % in the candidate.`

    `ops` is a diff of `op_stats` of one candidate without IDLE. Empty where a side has no ops.
    """
    shares = []
    for role in SIDES:
        name = "op_name" if role == "baseline" else "op_name_candidate"
        times, has_scope = ops[f"self_time_us_{role}"].astype("float64"), ops[name].fillna("").str.contains("/")
        whole = times.sum()
        shares.append(format_percent(times[has_scope].sum() / whole) if whole > 0 else "")
    if not all(shares):
        return ""
    sides = "" if is_single else f" in the baseline, {shares[1]} in the candidate"
    return f"Ops with a name scope: {shares[0]} of self time{sides}."


def largest_bar(times: Sequence[pd.DataFrame], metric: str, sides: int, *, as_shares: bool) -> float:
    """The largest time, or share, in some frames of `op_stats.time_shares`, for charts with the same scale."""
    names = [f"share_{role}" if as_shares else f"{metric}_{role}" for role in SIDES[:sides]]
    return max((float(frame[names].max().max()) for frame in times if len(frame)), default=0.0)


def _main_place(ops: pd.DataFrame) -> str:
    return DEVICE if (ops["host_or_device"] == DEVICE).any() else HOST


def _self_time(ops: pd.DataFrame, place: str) -> tuple[float, float]:
    """The self time of both sides at a place; NaN for a side without ops there."""
    here, metric = ops[ops["host_or_device"] == place], "self_time_us"
    ours, theirs = (float(here[f"{metric}_{role}"].astype("float64").sum(min_count=1)) for role in SIDES)
    return ours, theirs


def _name(row: pd.Series) -> str:
    return row_name_as_code(str(row["op_name"]), str(row["op_type"]), NAME_LENGTH)
