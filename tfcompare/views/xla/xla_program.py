"""The whole text of an XLA program, as a diff of both runs."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.markdown import as_code, as_markdown
from tfcompare.tools.xla.xla_memory import program_names
from tfcompare.tools.xla.xla_program import ProgramDiff, content, is_too_large, program_diff
from tfcompare.views.blocks import Block, Code, Section, Text

Programs = dict[tuple[str, str], pd.DataFrame]
_NOTHING = pd.DataFrame()
MOST_LINES = 100
"""Lines of the diff that are shown; the table `hlo_programs` has all."""
HELP = (
    "Instructions with name, shape, opcode and operands, in program order; the main computation is first, those that "
    "it calls follow. `-`: only in the baseline, `+`: only in the candidate. Lines that read the same can differ, "
    "since attributes that are not shown are compared too, such as the value of a constant. Numbers at the end of "
    "names, layouts, backend options and generated code are not compared."
)


def section(pair: Pair, program: str, rows: pd.DataFrame) -> Iterator[Section]:
    """The diff of the program with these instructions, if both runs have it."""
    if not pair.is_single and all(program_names(rows)):
        yield Section("The whole program", lambda: _blocks(pair, program, rows), help=HELP)


def diff_of(pair: Pair, program: str, rows: pd.DataFrame) -> ProgramDiff | str:
    """The diff of the program with these instructions, or, as Markdown, why there is none."""

    def make() -> ProgramDiff | str:
        try:
            sides = _instructions(pair, rows)
        except TfcompareError as error:  # the profile is not there any more, or another one
            return as_markdown(error)
        name, sizes = as_code(program), list(map(len, sides))
        if not all(sizes):
            return f"The profiles do not have the text of {name} on both sides."
        if is_too_large(*sides):
            counts = " and ".join(f"{size:,}" for size in sizes)
            return f"{name} has {counts} instructions: too many to compare, as most are not at the same place."
        return program_diff(*sides)

    return pair.cached(("xla_program_diff", program), make)


def _blocks(pair: Pair, program: str, rows: pd.DataFrame) -> Iterator[Block]:
    diff, name = diff_of(pair, program, rows), as_code(program)
    if isinstance(diff, str):
        yield Text(diff, "notice")
        return
    if not diff.summary:
        yield Text(f"{name}: all {diff.instructions:,} instructions are equal on both sides.")
        return
    yield Text(f"{name}: {diff.sentence}.")
    yield Code("\n".join(diff.lines[:MOST_LINES]), "diff")
    if (more := len(diff.lines) - MOST_LINES) > 0:
        yield Text(
            f"{more:,} more lines are left out. `tfcompare show RUN hlo_programs` has every instruction.", "quiet"
        )


def programs_of(pair: Pair) -> tuple[Programs, Programs]:
    """The rows of `hlo_programs` of each (host, program), on both sides.

    Raises `TfcompareError` if a profile has gone.
    """

    def make() -> tuple[Programs, Programs]:
        ours, theirs = (
            {(str(host), str(name)): rows for (host, name), rows in table.groupby(["host", "program"], sort=False)}
            for table in pair.tables("hlo_programs")
        )
        return ours, theirs

    return pair.cached("hlo_programs", make)


def contents_of(pair: Pair) -> tuple[dict[tuple[str, str], str], ...]:
    """A digest of the program of each (host, program), on both sides. Raises as `programs_of` does."""

    def make() -> tuple[dict[tuple[str, str], str], ...]:
        return tuple({place: content(rows) for place, rows in side.items()} for side in programs_of(pair))

    return pair.cached("program contents", make)


def _instructions(pair: Pair, rows: pd.DataFrame) -> list[pd.DataFrame]:
    """The rows of `hlo_programs` of the program on both sides: of hosts between which it differs, else of the first."""
    found = [
        {contents[place]: own for place, own in every.items() if place[1] in names}
        for every, contents, names in zip(programs_of(pair), contents_of(pair), program_names(rows), strict=True)
    ]
    shared = found[0].keys() & found[1].keys()
    alone = [next((own for key, own in side.items() if key not in shared), None) for side in found]
    if alone[0] is None and alone[1] is None:
        return [found[0][next(iter(shared))]] * 2 if shared else [_NOTHING, _NOTHING]
    return [
        own if own is not None else next(iter(side.values()), _NOTHING) for own, side in zip(alone, found, strict=True)
    ]
