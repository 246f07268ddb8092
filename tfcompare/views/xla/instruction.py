"""One instruction: its figures, text, operands and users in both runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.compare.matching.matching import with_hosts_of
from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.schema import ALL_HOSTS, SIDES, SPARSE_CORE
from tfcompare.text import as_code, as_markdown
from tfcompare.views import links
from tfcompare.views.blocks import Block, Code, Details, Facts, Links, Live, Text
from tfcompare.views.columns import row_keys
from tfcompare.views.ops.op import numbers_header, numbers_of
from tfcompare.views.ops.work_words import work_sentence

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
_NUMBERS = re.compile(r"(?<=%)([^\s,()]*?)(?:\.\d+)+(?=[\s,)]|$)")
_NAME = re.compile(r"^%(\S+) =", re.MULTILINE)
_OPENING, _CLOSING = "([{", ")]}"
_MOST_ALIGNED = 200
"""Lines: to align them takes up to the cube of their number. XLA's instructions have at most 50 operands here."""


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
    if not pair.is_single and (work := work_sentence(row)):
        yield Text(work)
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


def instruction_lines(expression: str) -> list[str]:
    """An instruction with each operand and attribute on a line of its own."""
    lines, begin, depth = [], 0, 0
    for position, sign in enumerate(expression):
        depth += (sign in _OPENING) - (sign in _CLOSING)
        is_operands = sign == "(" and depth == 1 and expression[position - 1] not in " ="
        if is_operands or (depth < 2 and expression.startswith(", ", position)):
            lines.append(expression[begin : position + 1])
            begin = position + 1
    lines.append(expression[begin:])
    return [lines[0], *(f"  {line.strip()}" for line in lines[1:])]


def instruction_diff(baseline: str, candidate: str) -> str:
    """Both instructions as lines that begin with `-` (baseline only), `+` (candidate only) or a space (both).

    Numbers at the end of names are left out, since the compiler numbers anew. Empty if nothing else differs.
    """
    ours, theirs = (instruction_lines(_NUMBERS.sub(r"\1", one)) for one in (baseline, candidate))
    return _diff_of(ours, theirs)


def lines_diff(baseline: str, candidate: str) -> str:
    """The lines of both texts, as `instruction_diff` has them."""
    ours, theirs = (_NUMBERS.sub(r"\1", text).splitlines() for text in (baseline, candidate))
    return _diff_of(ours, theirs)


def _diff_of(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """Where lines differ, those of both sides alternate; so do all lines where there are very many."""
    if ours == theirs:
        return ""
    aligned = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    is_long = max(len(ours), len(theirs)) > _MOST_ALIGNED
    lines: list[str] = []
    for _, begin, end, there, until in [("", 0, None, 0, None)] if is_long else aligned.get_opcodes():
        for before, after in zip_longest(ours[begin:end], theirs[there:until]):
            if before == after:
                lines.append(f"  {before}")
                continue
            lines += [f"- {before}"] if before is not None else []
            lines += [f"+ {after}"] if after is not None else []
    return "\n".join(lines)


def surroundings(baseline: pd.DataFrame, candidate: pd.DataFrame, row: pd.Series) -> dict[str, str]:
    """The texts around the instruction in `row` of a diff of `hlo_ops`, by column and side: `operands_baseline`,
    `users_candidate` and so on; empty where unknown.

    The frames are both sides of `hlo_texts`. The texts of a row of all hosts are those of the first that has them.
    """
    is_added = row["status"] == ADDED
    sides = {
        "baseline": (baseline.iloc[: 0 if is_added else None], ""),
        "candidate": (with_hosts_of(baseline, candidate), "" if is_added else "_candidate"),
    }
    found: dict[str, str] = {}
    for role, (texts, suffix) in sides.items():
        is_it = (texts["program"] == row[f"program{suffix}"]) & (texts["hlo_op"] == row[f"hlo_op{suffix}"])
        rows = texts[is_it]
        rows = rows[rows["host"].isin(rows["host"].head(1) if row["host"] == ALL_HOSTS else [row["host"]])]
        found |= {f"{column}_{role}": "".join(rows[column]) for column in ("operands", "users", "fused")}
    return found


def neighbours_that_ran(rows: pd.DataFrame, row: pd.Series, texts: Mapping[str, str]) -> pd.DataFrame:
    """The rows of the instructions that make the inputs of the one in `row` or use its result, on either side.

    `rows` are `executions.instructions` of its program, of which `row` is one; `texts` are its `surroundings`. In the
    order of the texts, each once.
    """
    here = rows[(rows["host"] == row["host"]) & (rows.index != row.name)]
    is_added = here["status"] == ADDED
    places = {
        "baseline": dict(zip(here.loc[~is_added, "hlo_op"], here.index[~is_added], strict=True)),
        "candidate": dict(zip(here["hlo_op_candidate"].where(~is_added, here["hlo_op"]), here.index, strict=True)),
    }
    found: dict[object, None] = {}
    for role, place in places.items():
        for column in ("operands", "users"):
            found |= {place[name]: None for name in _NAME.findall(texts[f"{column}_{role}"]) if name in place}
    return rows.loc[list(found)]
