"""Sentences on the slow steps of runs and on their strays, from rows of the table `slow_steps`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.attribution_words import PART_WORDS, code
from tfcompare.compare.step_kinds import slow_steps_are_a_kind
from tfcompare.tables.step_times import position_of, run_steps
from tfcompare.tables.strays import BEYOND_SECOND
from tfcompare.units import format_percent, format_time_us

if TYPE_CHECKING:
    from tfcompare.run import Run

_WORTH_SAYING = 0.05
"""The share of the step time that slow steps must add to be mentioned in the headline."""


def row_of(run: Run, host: str | None) -> pd.Series | None:
    """The row of a run, or of one of its hosts; None without included steps."""
    rows = run.table("slow_steps", host=host)
    return None if rows.empty else rows.iloc[0]


def clause(rows: tuple[pd.Series | None, pd.Series | None], names: tuple[str, str]) -> str:
    """A clause on the slow steps of baseline and candidate, to end the headline; empty if they add little to the step
    time of either. `names` are in Markdown."""
    ours, theirs = (row if row is not None and _adds(row) >= _WORTH_SAYING else None for row in rows)
    if theirs is None:
        return "" if ours is None else _takes(ours, names[0])
    return _takes(theirs, names[1]) + ("" if ours is None else f" ({names[0]}: {_count(ours)})")


def sentences(run: Run, host: str | None, name: str) -> list[str]:
    """Markdown sentences on the slow steps and the stray of a run that is called `name` (in Markdown); not on slow
    steps that are those of another kind."""
    row = row_of(run, host)
    if row is None:
        return []
    steps = run.table("steps", host=host)
    others_us = run_steps(steps).query("included and not stray")["duration_us"].max()
    is_stray_here = row["stray_us"] > BEYOND_SECOND * others_us  # a stray of the run may be none of the host
    is_counted = run.choice.counts_stray
    is_told_as_stray = is_counted and is_stray_here and row["slow_steps"] == 1
    slow = "" if is_told_as_stray else _slow_sentence(row, name)
    if slow and slow_steps_are_a_kind(run, host):
        slow = ""
    stray = ""
    if pd.notna(row["stray_step"]):
        step = f"Step {position_of(run.table('steps'), row['stray_step'], host)} of {name}"
        if is_stray_here:
            stray = _stray_sentence(row, step, is_counted=is_counted)
        elif not is_counted:
            stray = f"{step} is excluded: it is a stray on another host."
    return [sentence for sentence in (slow, stray) if sentence]


def _slow_sentence(row: pd.Series, name: str) -> str:
    """How many steps of the run called `name` (in Markdown) are slow, and what they do more; empty without any."""
    if not row["slow_steps"]:
        return ""
    share = format_percent(row["slow_share"])
    extra = _cause(row, "")
    regular = f", {_every(row)}," if pd.notna(row["every"]) else ""
    times = f"{format_time_us(row['slow_step_us'])} instead of {format_time_us(row['usual_step_us'])}"
    are = "is" if row["slow_steps"] == 1 else "are"
    return f"{_count(row)} of {name}{regular} {are} slow: {times}, {share} of the time{extra}."


def _stray_sentence(row: pd.Series, step: str, *, is_counted: bool) -> str:
    """What the stray, which is called `step` (in Markdown), does more than other steps."""
    others = format_time_us(row["usual_step_us"])
    cause = _cause(row, "stray_")
    what = "is far longer than all others" if is_counted else "is excluded as a stray"
    return f"{step} {what}: {format_time_us(row['stray_us'])} instead of {others}{cause}."


def _takes(row: pd.Series, name: str) -> str:
    slow, others = format_time_us(row["slow_step_us"]), format_time_us(row["usual_step_us"])
    if pd.notna(row["every"]) and row["every"] > 1:
        return f"{_every(row)} step of {name} takes {slow}, the others {others}"
    takes = "takes" if row["slow_steps"] == 1 else "take"
    return f"{_count(row)} of {name} {takes} {slow}, the others {others}"


def _count(row: pd.Series) -> str:
    return f"{row['slow_steps']:,} of {row['steps']:,} steps"


def _every(row: pd.Series) -> str:
    """`every 5th`, or `one after another`."""
    every = int(row["every"])
    return f"every {_ordinal(every)}" if every > 1 else "one after another"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _cause(row: pd.Series, of: str) -> str:
    """`; 97 % of the extra is input, 95 % in …`, empty if no part has much of it. `of` is the prefix of the columns."""
    if not (part := row[f"{of}part"]):
        return ""
    op_name = str(row[f"{of}op_name"])
    op = f", {_amount(row[f'{of}op_share'])} in {code(op_name)}" if op_name else ""
    return f"; {_amount(row[f'{of}part_share'])} of the extra is {PART_WORDS[part]}{op}"


def _amount(share: float) -> str:
    return "all" if share >= 0.995 else format_percent(share)


def _adds(row: pd.Series) -> float:
    """The share of the step time that slow steps add."""
    step_us = float(row["usual_step_us"] + row["slow_excess_us"])
    return float(row["slow_excess_us"]) / step_us if step_us > 0 else 0.0
