"""One instruction of an XLA program: its numbers, its text on both sides, and its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.markdown import as_code, as_markdown
from tfcompare.schema import SIDES, SPARSE_CORE
from tfcompare.tools.row_keys import row_keys
from tfcompare.tools.xla.xla_text import (
    instruction_diff,
    instruction_lines,
    lines_diff,
    neighbours_that_ran,
    surroundings,
)
from tfcompare.views import links
from tfcompare.views.blocks import Block, Code, Details, Facts, Links, Live, Text
from tfcompare.views.op import numbers_header, numbers_of

NUMBERS = {
    "execution_time_us": ("Time per execution of the program", "µs"),
    "excess_us": ("Could still save", "µs"),
    "executions": ("Executions", ""),
    "flops_per_s": ("FLOP rate", "FLOP/s"),
    "peak_flops_per_s": ("Peak FLOP rate", "FLOP/s"),
    "bandwidth_bytes_per_s": ("Bandwidth", "bytes/s"),
    "peak_bytes_per_s": ("Peak bandwidth", "bytes/s"),
    "operational_intensity": ("Intensity", "FLOP/byte"),
}
NEIGHBOURS = {"Inputs come from": "operands", "Result is used by": "users", "Fused instructions": "fused"}
MOST_NEIGHBOURS = 20
_KEYS = ("host", "program", "hlo_op", "category", "status")


def instruction_key(rows: pd.DataFrame) -> pd.Series:
    """A key for each row that is unique and short enough for a URL."""
    category, on_sparse_core = rows["category"], rows["core_type"] == SPARSE_CORE
    return row_keys(rows.assign(category=category.mask(on_sparse_core, f"{SPARSE_CORE} " + category)), _KEYS)


def details(pair: Pair, rows: pd.DataFrame, chosen: str) -> Details | None:
    """The instruction with this key among `rows`, those of its program."""
    found = rows[instruction_key(rows) == chosen]
    if found.empty:
        return None
    row = found.iloc[0]
    return Details(str(row["hlo_op"]), partial(_blocks, pair, rows, row))


def _blocks(pair: Pair, rows: pd.DataFrame, row: pd.Series) -> Iterator[Block]:
    if row["status"] in (ADDED, REMOVED):
        run = pair.candidate if row["status"] == ADDED else pair.baseline
        yield Text(f"**Only in {as_code(run.name)}.**")
    elif row["hlo_op"] != row["hlo_op_candidate"]:
        yield Text(f"In {as_code(pair.candidate.name)}: {as_code(str(row['hlo_op_candidate']))}")
    numbers = numbers_of(pair, schema.HLO_OPS, row, NUMBERS, known=tuple(NUMBERS))
    yield Facts(["", *numbers_header(pair)], numbers, (1, 2, 3))
    for label, column in (("Op", "op_name"), ("Source", "source")):
        texts = dict.fromkeys(text for role in SIDES[: len(pair.shown)] if (text := _text(row, column, role)))
        if texts:
            yield Text(f"**{label}** {' → '.join(map(as_code, texts))}")
    op = _text(row, "op_name", "baseline") or _text(row, "op_name", "candidate")
    yield Links([links.to_op(op) if op else links.to_text(str(row["hlo_op"]))])
    yield from _expressions(pair, row)
    try:
        texts_around = surroundings(*pair.tables("hlo_texts"), row)
    except TfcompareError as error:  # the profile is not there any more, or another one
        yield Text(as_markdown(error), "quiet")
        return
    for heading, column in NEIGHBOURS.items():
        ours, theirs = (texts_around[f"{column}_{role}"] for role in SIDES)
        changes = lines_diff(ours, theirs) if ours and theirs else ""
        if changes or ours or theirs:
            yield Text(f"**{heading}**")
            yield Code(changes, "diff") if changes else Code(ours or theirs)
    neighbours = neighbours_that_ran(rows, row, texts_around).head(MOST_NEIGHBOURS)
    if not neighbours.empty:
        keys = dict(zip(instruction_key(neighbours), neighbours["hlo_op"], strict=True))
        yield Live("open_row", ("Open a neighbour", keys, instruction_key(row.to_frame().T).iloc[0]))


def _expressions(pair: Pair, row: pd.Series) -> Iterator[Block]:
    """The instruction in XLA's notation: as a diff if the runs have different ones."""
    ours, theirs = (_text(row, "expression", role) for role in SIDES)
    if not ours and not theirs:
        return
    if ours and theirs and (changes := instruction_diff(ours, theirs)):
        marks = "`-` only in the baseline, `+` only in the candidate; names without their numbers"
        yield Text("**HLO**", help=marks)
        yield Code(changes, "diff")
        return
    is_equal = bool(ours and theirs) and not pair.is_single
    yield Text("**HLO**, the same in both runs except for numbers of names" if is_equal else "**HLO**")
    yield Code("\n".join(instruction_lines(ours or theirs)))


def _text(row: pd.Series, column: str, role: str) -> str:
    value = row[f"{column}_{role}"]
    return "" if pd.isna(value) else str(value)
