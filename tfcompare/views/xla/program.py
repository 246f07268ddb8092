"""The text of a compiled program of both runs, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from hashlib import blake2b
from itertools import groupby
from operator import eq

import pandas as pd

from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.hlo.names import plain_instruction
from tfcompare.run import Run
from tfcompare.schema import SIDES
from tfcompare.text import as_code, as_markdown, text_of
from tfcompare.views.blocks import Block, Code, Section, Text
from tfcompare.views.view import by_role, cached_per_pair
from tfcompare.views.xla.memory import program_names
from tfcompare.views.xla.program_words import Kinds, Pairs, kinds_of

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
MOST_INSTRUCTIONS = 20_000
"""Of programs that are compared though few instructions are at the same position: that takes up to ten seconds."""
MOST_ALIKE = 500_000
"""Pairs of equal texts up to which all of them are looked at; above, difflib leaves out frequent texts (`autojunk`)."""
_CONTEXT = 3


def section(pair: Pair, program: str, rows: pd.DataFrame) -> Iterator[Section]:
    """The diff of the program with these instructions, if both runs have it."""
    if not pair.is_single and all(program_names(rows)):
        yield Section("The whole program", lambda: _program_blocks(pair, program, rows), help=HELP)


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
        ours, theirs = (_recomputed(rows, side, own) for side, own in zip(SIDES, sides, strict=True))
        return program_diff(sides[0], sides[1], (ours, theirs))

    size = _equal_instructions(pair, rows)
    return ProgramDiff(size, 0, 0, 0, ()) if size else pair.cached(("xla_program_diff", program), make)


def _program_blocks(pair: Pair, program: str, rows: pd.DataFrame) -> Iterator[Block]:
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
        text = f"{more:,} more lines are left out. `tfcompare show RUN hlo_programs` has every instruction."
        yield Text(text, "quiet")


@cached_per_pair
def programs_of(pair: Pair) -> tuple[Programs, Programs]:
    """The rows of `hlo_programs` of each (host, program), on both sides.

    Raises `TfcompareError` if a profile has gone.
    """
    ours, theirs = (
        {(str(host), str(name)): rows for (host, name), rows in table.groupby(["host", "program"], sort=False)}
        for table in pair.tables("hlo_programs")
    )
    return ours, theirs


@cached_per_pair
def contents_of(pair: Pair) -> tuple[dict[tuple[str, str], str], ...]:
    """A digest of the program of each (host, program), on both sides: of its bytes, if all programs have the same on
    both sides and on all hosts, else of what counts in them. Raises as `programs_of` does."""
    sides = [{place: digest for place, (_, digest) in side.items()} for side in _recorded(pair)]
    ours, theirs = (set(side.values()) for side in sides)
    by_name = [{(name, digest) for (_, name), digest in side.items()} for side in sides]
    if ours == theirs != set() and all(len(dict(pairs)) == len(pairs) for pairs in by_name):
        return tuple(sides)
    return tuple({place: content(rows) for place, rows in side.items()} for side in programs_of(pair))


@cached_per_pair
def _recorded(pair: Pair) -> list[dict[tuple[str, str], tuple[int, str]]]:
    """`recorded_programs` of both sides."""
    return [recorded_programs(side.run, side.host) for side in pair.sides]


def recorded_programs(run: Run, host: str | None = None) -> dict[tuple[str, str], tuple[int, str]]:
    """(number of instructions, digest of the bytes) of each (host, program) that ran, as far as it is known."""
    table = run.tables.host_table("hlo_contents", host=host)
    cells = zip(*(table[name] for name in ("host", "program", "instructions", "content")), strict=True)
    return {(host, name): (int(size), digest) for host, name, size, digest in cells}


def are_identical(pair: Pair) -> bool:
    """Whether both sides compiled the same programs, and some; False if a profile has gone."""
    try:
        ours, theirs = (set(side.values()) for side in contents_of(pair))
    except TfcompareError:
        return False
    return ours == theirs != set()


def _equal_instructions(pair: Pair, rows: pd.DataFrame) -> int:
    """How many instructions the program has if its bytes are the same on both sides and it computes nothing again, else
    0."""
    sides = zip(_recorded(pair), program_names(rows), strict=True)
    ours, theirs = ({found for (_, name), found in side.items() if name in names} for side, names in sides)
    computes_again = rows[by_role("is_rematerialized", SIDES)].astype("boolean").fillna(False).to_numpy().any()
    return next(iter(ours))[0] if ours == theirs and len(ours) == 1 and not computes_again else 0


def _recomputed(rows: pd.DataFrame, side: str, program: pd.DataFrame) -> int:
    """How many instructions of a program, its rows of `hlo_programs`, compute a value again to save memory. `rows` are
    those of all captures, whose programs may have other names."""
    again = rows[rows[f"is_rematerialized_{side}"].astype("boolean").fillna(False).astype(bool)]
    names = again["hlo_op"] if side == "baseline" else again["hlo_op_candidate"].fillna(again["hlo_op"])
    return int(program["hlo_op"].isin(names).sum())


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
    first = [next(iter(side.values()), _NOTHING) for side in found]
    return [other if own is None else own for own, other in zip(alone, first, strict=True)]


@dataclass(frozen=True)
class ProgramDiff:
    """How many instructions both sides have, each pair once, and how many were `added`, `removed` and `changed`.

    `lines` begin with `-` (baseline only), `+` (candidate only) or a space; those far from any difference are left out.
    `kinds` say in a few words what the differences are.
    """

    instructions: int
    added: int
    removed: int
    changed: int
    lines: Sequence[str]
    kinds: Kinds = field(default_factory=Kinds)

    @property
    def summary(self) -> str:
        """`12 of 1,204 instructions differ: 1 added, 11 changed`; empty if none does."""
        counts = {"added": self.added, "removed": self.removed, "changed": self.changed}
        different = sum(counts.values())
        if not different:
            return ""
        listed = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        verb = "differs" if different == 1 else "differ"
        text = f"{different:,} of {self.instructions:,} instructions {verb}"
        return text if different == self.changed else f"{text}: {listed}"

    @property
    def sentence(self) -> str:
        """The summary and the kinds of differences, as Markdown; empty if there are none."""
        return "; ".join([self.summary, *self._leading, *self.kinds.others])

    @property
    def brief(self) -> str:
        """As `sentence`, without what follows from other differences unless there are no others."""
        return "; ".join([self.summary, *(self._leading or self.kinds.others)])

    @property
    def _leading(self) -> list[str]:
        return [*self.kinds.telling, *filter(None, [self.kinds.shapes])]


def content(rows: pd.DataFrame) -> str:
    """A digest of the instructions of one program, its rows of `hlo_programs`: equal for equal programs."""
    cells = zip(rows["digest"], rows["operands"], strict=True)
    return blake2b("\n".join(f"{own} {used}" for own, used in cells).encode(), digest_size=16).hexdigest()


def is_too_large(baseline: pd.DataFrame, candidate: pd.DataFrame) -> bool:
    """Whether `program_diff` would take too long."""
    is_large = max(len(baseline), len(candidate)) > MOST_INSTRUCTIONS
    return is_large and not _are_mostly_in_place(list(baseline["digest"]), list(candidate["digest"]))


def program_diff(baseline: pd.DataFrame, candidate: pd.DataFrame, recomputed: tuple[int, int] = (0, 0)) -> ProgramDiff:
    """The instructions of one program on both sides, compared. The frames are its rows of `hlo_programs`; `recomputed`
    is how many instructions compute a value again on either side.

    Instructions are paired by digest and by name without its number. A pair is equal if its digests are, and if the
    instructions that both use or call are pairs, too; other pairs are changed.
    """
    pairs = _pairs(baseline, candidate)
    differs = [not one for one in _are_equal(baseline, candidate, pairs)]
    differing = [pair for pair, is_other in zip(pairs, differs, strict=True) if is_other]
    added, removed = (sum(pair[side] < 0 for pair in differing) for side in (0, 1))
    lines = list(_lines(baseline, candidate, pairs, differs))
    kinds = kinds_of(baseline, candidate, pairs, differing, recomputed)
    return ProgramDiff(len(pairs), added, removed, len(differing) - added - removed, lines, kinds)


def _pairs(baseline: pd.DataFrame, candidate: pd.DataFrame) -> Pairs:
    """All instructions, paired by digest and then by name, or by name first where few digests are equal."""
    ours, theirs = ([list(side["digest"]), [*map(plain_instruction, side["hlo_op"])]] for side in (baseline, candidate))
    if 2 * (Counter(ours[0]) & Counter(theirs[0])).total() < min(len(baseline), len(candidate)):
        ours, theirs = ours[::-1], theirs[::-1]
    if theirs < ours:  # difflib finds other pairs if the sides are exchanged
        return [(one, other) for other, one in _align(theirs, ours)]
    return list(_align(ours, theirs))


def _align(ours: list[list[str]], theirs: list[list[str]]) -> Iterator[tuple[int, int]]:
    """Pairs of positions with equal texts in the first list of both sides, and between these in the next list."""
    for kind, begin, end, there, until in _blocks(ours[0], theirs[0]):
        if kind == "equal":
            yield from zip(range(begin, end), range(there, until), strict=True)
        elif kind == "replace" and ours[1:]:
            inner = _align([one[begin:end] for one in ours[1:]], [one[there:until] for one in theirs[1:]])
            yield from ((at + begin if at >= 0 else -1, to + there if to >= 0 else -1) for at, to in inner)
        else:
            yield from ((at, -1) for at in range(begin, end))
            yield from ((-1, to) for to in range(there, until))


def _blocks(ours: list[str], theirs: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """The parts of both lists that are equal and those that are not, as difflib's `get_opcodes`."""
    if _are_mostly_in_place(ours, theirs):  # they stay there: the longest equal parts may be of different layers
        at = 0
        for is_same, run in groupby(map(eq, ours, theirs)):
            end = at + len(list(run))
            yield "equal" if is_same else "replace", at, end, at, end
            at = end
    elif max(len(ours), len(theirs)) > MOST_INSTRUCTIONS:
        yield "replace", 0, len(ours), 0, len(theirs)
    else:
        counts = Counter(theirs)
        is_many = sum(counts[one] for one in ours) > MOST_ALIKE
        yield from SequenceMatcher(None, ours, theirs, autojunk=is_many).get_opcodes()


def _are_mostly_in_place(ours: list[str], theirs: list[str]) -> bool:
    """Whether most texts are at the same place in both lists."""
    return len(ours) == len(theirs) and 2 * sum(map(eq, ours, theirs)) > len(ours)


def _are_equal(baseline: pd.DataFrame, candidate: pd.DataFrame, pairs: Pairs) -> Iterator[bool]:
    """Whether the instructions of each pair compute the same of the same."""
    columns = ([list(side[name]) for side in (baseline, candidate)] for name in ("digest", "operands"))
    (digests, other_digests), (operands, other_operands) = columns
    counterpart = {str(at): str(to) for at, to in pairs if at >= 0 <= to}
    paired = set(counterpart.values())
    for at, to in pairs:
        if at < 0 or to < 0 or digests[at] != other_digests[to]:
            yield False
            continue
        used, other_used = operands[at].split(), other_operands[to].split()
        yield len(used) == len(other_used) and all(
            counterpart[one] == other if one in counterpart else other not in paired
            for one, other in zip(used, other_used, strict=True)
        )


def _lines(baseline: pd.DataFrame, candidate: pd.DataFrame, pairs: Pairs, differs: list[bool]) -> Iterator[str]:
    """The differing instructions with those around them, below the name of their computation, the main one first."""
    texts = [list(side["expression"]) for side in (baseline, candidate)]
    computations = _computations(baseline, candidate, pairs)
    last_first = {name: -rank for rank, name in enumerate(dict.fromkeys(computations))}  # the main one is last
    order = sorted(range(len(pairs)), key=lambda at: last_first[computations[at]])
    near = {p for at, one in enumerate(order) if differs[one] for p in range(at - _CONTEXT, at + _CONTEXT + 1)}
    before, above = -1, None
    for place in sorted(place for place in near if 0 <= place < len(pairs)):
        one = order[place]
        if place > before + 1 or computations[one] != above:
            skipped = f"{place - before - 1:,} equal instructions, then " if place > before + 1 else ""
            yield f"  … {skipped}in %{text_of(computations[one])}:"
        before, above = place, computations[one]
        at, to = pairs[one]
        if not differs[one]:
            yield f"  {text_of(texts[0][at])}"
            continue
        if at >= 0:
            yield f"- {text_of(texts[0][at])}"
        if to >= 0:
            yield f"+ {text_of(texts[1][to])}"
    if 0 <= before < len(pairs) - 1:
        yield f"  … {len(pairs) - 1 - before:,} equal instructions"


def _computations(baseline: pd.DataFrame, candidate: pd.DataFrame, pairs: Pairs) -> list[str]:
    """The computation of each pair, by its name in the baseline if any of its instructions is there."""
    ours, theirs = (list(map(str, side["computation"])) for side in (baseline, candidate))
    counterpart: dict[str, str] = {}
    for at, to in pairs:
        if at >= 0 <= to:
            counterpart.setdefault(theirs[to], ours[at])
    return [ours[at] if at >= 0 else counterpart.get(theirs[to], theirs[to]) for at, to in pairs]
