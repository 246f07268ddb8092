"""What a change of time is made of, in words: how often, how much work, and at which rate."""

from __future__ import annotations

import math

import pandas as pd

from tfcompare.compare.stats.verdict import USUAL_MARGIN
from tfcompare.compare.work.terms import FLOPS, SAME_WITHIN, work_changes
from tfcompare.schema import SIDES
from tfcompare.text import capitalized
from tfcompare.units import READS_AS_FRACTION_BELOW, format_value
from tfcompare.views.view import by_role

TERMS = ["count_ratio", "work_ratio", "time_per_work_ratio", "time_each_ratio", "work_in", *by_role("work_rate")]
"""All columns of the terms of a change."""


def term_columns(rows: pd.DataFrame) -> list[str]:
    """The columns of the terms that say most about these rows: where no work is known, how often they ran, and none
    where all ran as often."""
    if rows["work_ratio"].notna().any():
        return ["work_ratio", "time_per_work_ratio"]
    return ["count_ratio"] if ((rows["count_ratio"] - 1).abs() > SAME_WITHIN).any() else []


def work_words(row: pd.Series) -> str:
    """`1/64 of the FLOPs at 1/7 of the rate (8.9 → 1.2 TFLOP/s)`, `2× as often`, of a row with the columns of
    `with_work_terms`; empty where nothing is known, or nothing but the time."""
    count, work, per_work, each = (float(row[name]) for name in TERMS[:4])
    often = "" if math.isnan(count) or abs(count - 1) <= SAME_WITHIN else f"{_factor(count)} as often"
    if math.isnan(work):
        return f"{often}, {_share(each, 'time', USUAL_MARGIN)} each" if often and not math.isnan(each) else often
    done = _share(work, str(row["work_in"]), SAME_WITHIN) + (" each" if often else "")
    if not math.isnan(per_work):
        done += f" at {_share(1 / per_work, 'rate', USUAL_MARGIN)} ({_rates(row)})"
    return ", ".join(filter(None, [often, done]))


def work_done(row: pd.Series) -> str:
    """`1/64 of the FLOPs`, of a row with the columns of `with_work_terms`; empty where as much is done, or unknown."""
    work = float(row["work_ratio"])
    return "" if math.isnan(work) or abs(work - 1) <= SAME_WITHIN else _share(work, str(row["work_in"]), SAME_WITHIN)


def work_sentence(row: pd.Series) -> str:
    """`Less work: 1/64 of the FLOPs at 1/7 of the rate (8.9 → 1.2 TFLOP/s).`; empty as `work_words`."""
    words, change = work_words(row), work_changes(pd.DataFrame([row])).iloc[0]
    return f"{': '.join(filter(None, [capitalized(change), words]))}." if words else ""


def _share(ratio: float, what: str, margin: float) -> str:
    """`1/64 of the FLOPs`, `83 % of the FLOPs`, `the same FLOPs` within a margin, `1.2× the FLOPs`."""
    if abs(ratio - 1) <= margin:
        return f"{'the same' if margin == SAME_WITHIN else 'about the same'} {what}"
    if READS_AS_FRACTION_BELOW <= ratio < 1:
        return f"{100 * ratio:.0f} % of the {what}"
    return f"{_factor(ratio)} {'of ' if ratio < 1 else ''}the {what}"


def _factor(ratio: float) -> str:
    """`1/64` or `2.5×`."""
    size = max(ratio, 1 / ratio)
    text = f"{size:,.0f}" if size >= 99.5 else f"{size:.2g}"
    return f"{text}×" if ratio >= 1 else f"1/{text}"


def _rates(row: pd.Series) -> str:
    """`8.90 → 1.20 TFLOP/s`, with one unit if both have it."""
    unit = "FLOP/s" if row["work_in"] == FLOPS else "bytes/s"
    ours, theirs = (format_value(float(row[f"work_rate_{role}"]), unit) for role in SIDES)
    number, _, of_ours = ours.partition(" ")
    return f"{number if theirs.endswith(f' {of_ours}') else ours} → {theirs}"
