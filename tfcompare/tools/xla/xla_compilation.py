"""What was compiled while the runs of a pair were recorded, and a sentence on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import SideRows, change, diff_table
from tfcompare.schema import SIDES
from tfcompare.schema.hlo import COMPILING, TRACING
from tfcompare.tools.advice.model import code
from tfcompare.units import format_count, format_time_us

if TYPE_CHECKING:
    from tfcompare.run import Run

NOTHING = "Nothing was compiled during either capture."
NOTHING_ALONE = "Nothing was compiled during the capture."
MOST_SHAPES = 4
_VERBS = {COMPILING: "compiled", TRACING: "traced"}
_NUMBERS = [f"{name}_{role}" for name in ("occurrences", "total_time_us") for role in SIDES]


def compilation_rows(candidate: Run, ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """The diff of `compilations`, with sums over the whole capture: how often a function is compiled does not depend on
    the number of steps."""
    return diff_table(schema.COMPILATIONS, candidate.id, SideRows(ours), SideRows(theirs), identical=False)


def sentence(rows: pd.DataFrame, runs: tuple[str, str]) -> str:
    """`f` was compiled 5 times in `B` (1.20 s), in `A` not once. Its programs differ in …, in Markdown.

    About the function whose compilation changed most, or its tracing where nothing was compiled. `rows` are
    `compilation_rows`, `runs` the names of baseline and candidate. Of several hosts, the one with the longest counts.
    """
    found = _main_row(rows)
    if found is None:
        return NOTHING
    baseline, candidate = map(code, runs)
    counts = [int(found[f"occurrences_{role}"]) for role in SIDES]
    times = [_how_often(found, role) for role in SIDES]
    what = f"{_function(found)} was {_VERBS[str(found['phase'])]}"
    if min(counts):
        text = f"{what} {times[1]} in {candidate}, {times[0]} in {baseline}."
    elif counts[1]:
        text = f"{what} {times[1]} in {candidate}, not once in {baseline}."
    else:
        text = f"{what} {times[0]} in {baseline}, not once in {candidate}."
    return text + _shapes(found)


def sentence_alone(rows: pd.DataFrame) -> str:
    """`f` was compiled 5 times (1.20 s). Its programs differ in …, in Markdown; of the function that took longest."""
    found = _main_row(rows)
    if found is None:
        return NOTHING_ALONE
    return f"{_function(found)} was {_VERBS[str(found['phase'])]} {_how_often(found, 'baseline')}.{_shapes(found)}"


def _main_row(rows: pd.DataFrame) -> pd.Series | None:
    """The numbers of the function to speak of; None if there is none."""
    phases = [phase for phase in _VERBS if (rows["phase"] == phase).any()]
    if not phases:
        return None
    here = rows[rows["phase"] == phases[0]]
    texts = [f"shapes_{role}" for role in SIDES]
    of_hosts = here.groupby(["function", "phase"], as_index=False).agg(
        dict.fromkeys(_NUMBERS, "max") | dict.fromkeys(texts, "first")
    )
    of_hosts[_NUMBERS] = of_hosts[_NUMBERS].astype("float64").fillna(0.0)
    sides = [of_hosts[f"total_time_us_{role}"] for role in SIDES]
    order = pd.DataFrame({"change": change(*sides).abs(), "size": pd.concat(sides, axis=1).max(axis=1)})
    first = order.sort_values(["change", "size"], ascending=False, kind="stable").index[0]
    return pd.Series(of_hosts.loc[first])


def _function(found: pd.Series) -> str:
    return code(found["function"]) if found["function"] else "A function without a name"


def _how_often(found: pd.Series, role: str) -> str:
    count = found[f"occurrences_{role}"]
    times = "once" if count == 1 else f"{format_count(count)} times"
    return f"{times} ({format_time_us(found[f'total_time_us_{role}'])})"


def _shapes(found: pd.Series) -> str:
    """The shapes in which the programs of the function differ, of the side with the most programs."""
    texts = [found[f"shapes_{role}"] for role in SIDES]
    shapes = max((text.split("; ") for text in texts if isinstance(text, str) and text), key=len, default=[])
    if not shapes:
        return ""
    shown = ", ".join(map(code, shapes[:MOST_SHAPES]))
    return f" The shapes of its arguments change: {shown}{', …' if len(shapes) > MOST_SHAPES else ''}."
