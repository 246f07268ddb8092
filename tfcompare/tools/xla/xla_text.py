"""The text of an instruction of an XLA program and of its neighbours, as lines and as a diff."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest

import pandas as pd

from tfcompare.compare.diff import ADDED
from tfcompare.compare.matching.matching import with_hosts_of
from tfcompare.schema import ALL_HOSTS

_NUMBERS = re.compile(r"(?<=%)([^\s,()]*?)(?:\.\d+)+(?=[\s,)]|$)")
_NAME = re.compile(r"^%(\S+) =", re.MULTILINE)
_OPENING, _CLOSING = "([{", ")]}"
_MOST_ALIGNED = 200
"""Lines: to align them takes up to the cube of their number. XLA's instructions have at most 50 operands here."""


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
    """Where lines differ, the first of one side stands beside the first of the other, and so on; so do all lines where
    there are very many."""
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
