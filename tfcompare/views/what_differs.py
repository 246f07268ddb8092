"""What differs between two runs besides their times, and whether the change reached the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pandas as pd

from tfcompare.compare import executions
from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.hlo.names import plain_program
from tfcompare.markdown import as_code
from tfcompare.text import some_of
from tfcompare.tools.what_differs import Difference, differences, known
from tfcompare.tools.xla.xla_memory import program_names
from tfcompare.views.blocks import Block, Facts, Link, Links, Section, Text
from tfcompare.views.xla.xla_program import contents_of, diff_of

MOST_PROGRAMS = 3
"""Programs that a sentence names, and whose differences the Overview describes, the longest first; all are compared,
and the XLA page tells of all."""
UNREACHED = ": the change did not reach the compiler (layouts and backend options aside)"
_HELP = (
    "Besides times: devices, software, levels of the profiler's tracers, what the users noted of the runs, the inputs "
    "of compiled programs and the programs themselves, as far as the profiles have them. Programs have the same "
    "instructions if these are equal in name without numbers, shape, opcode, operands, attributes, sharding and "
    "donation; layouts, backend options and generated code are not compared."
)


def section(pair: Pair) -> Iterator[Block]:
    """A section of a pair of different captures; nothing where they do not differ and ran no compiled programs."""
    if not pair.is_single and not pair.is_identical and (_differences(pair) or not pair.instructions().empty):
        yield Section(
            "What differs", partial(pair.cached, "what differs", lambda: list(_blocks(pair))), True, help=_HELP
        )


def _differences(pair: Pair) -> list[Difference]:
    def make() -> list[Difference]:
        return differences(*pair.runs, pair.mismatches)

    return pair.cached("differences", make)


def _blocks(pair: Pair) -> Iterator[Block]:
    yield from _programs(pair)
    if found := _differences(pair):
        rows = [[one.label, one.baseline, one.candidate, one.meaning] for one in found]
        yield Facts(["Besides times", *pair.headings, "Why it matters"], rows, optional=(3,))
    else:
        same = known(*pair.runs)
        listed = f": same {', '.join(same)}" if same else ""
        yield Text(f"Nothing else that the profiles tell of differs{listed}.", "quiet")


def _programs(pair: Pair) -> Iterator[Block]:
    """What differs in each of the longest programs, which are equal on both sides, and which ran on one side only.

    The change did not reach the compiler if all programs that ran on either side are equal, in steps or not.
    """
    equal, differing, unknown = [], [], []
    programs = list(_of_either_side(pair))
    for label, rows in programs:
        diff = diff_of(pair, label, rows) if all(program_names(rows)) else None
        if isinstance(diff, str):
            unknown.append(label)
        elif diff is not None and diff.summary:
            differing.append((label, diff))
        elif diff is not None:
            equal.append(label)
    alone = [_alone(pair, programs, side) for side in (0, 1)]
    uneven = [_differing_hosts(pair, side) for side in (0, 1)]
    for label, diff in differing[:MOST_PROGRAMS]:
        links = [Link("On the XLA page", "xla", {"program": label})]
        yield Links(links, f"{as_code(label)}: {diff.sentence}.")
    if more := [label for label, _ in differing[MOST_PROGRAMS:]]:
        yield Text(f"{_named(more)} {'differs' if len(more) == 1 else 'differ'}, too.", more="xla")
    there = [(names, side) for names, side in zip(alone, pair.marked, strict=True) if names]
    if there:
        ran = zip(there, ("ran only", "only"), strict=False)
        yield Text(f"{', '.join(f'{_named(names)} {verb} in {side}' for (names, side), verb in ran)}.")
    for names, side in zip(uneven, pair.marked, strict=True):
        if names:
            yield Text(f"The hosts of {side} ran different programs under the name {_named(names)}.")
    if unknown and (equal or differing):
        yield Text(f"Not compared: {_named(unknown)}.", more="xla")
    if equal:
        ours, theirs = (set(side.values()) for side in _contents(pair))
        end = "" if differing or unknown or any(alone) or any(uneven) or ours != theirs else UNREACHED
        yield Text(f"{_named(equal)} {'has' if len(equal) == 1 else 'have'} the same instructions on both sides{end}.")


def _of_either_side(pair: Pair) -> Iterator[tuple[str, pd.DataFrame]]:
    """(name, instructions) of each program, the longest first."""
    rows = pair.instructions()
    for key, label in executions.programs(rows)[["program_key", "label"]].to_numpy().tolist():
        yield label.removeprefix(executions.ONLY_THERE), executions.of_program(rows, key)


def _alone(pair: Pair, programs: Sequence[tuple[str, pd.DataFrame]], side: int) -> list[str]:
    """The programs that ran on that side only.

    A host without a counterpart does not count where the other side ran the same program on another host.
    """
    each = [(label, program_names(rows)) for label, rows in programs]
    paired = {name for _, names in each if all(names) for name in names[side]}
    contents = _contents(pair)
    others, found = set(contents[1 - side].values()), []
    for label, names in each:
        if names[1 - side] or names[side] <= paired:
            continue
        own = {digest for (_, name), digest in contents[side].items() if name in names[side]}
        if not own or not own <= others:
            found.append(label)
    return found


def _contents(pair: Pair) -> tuple[dict[tuple[str, str], str], ...]:
    """`contents_of`; none where the profiles are gone."""
    try:
        return contents_of(pair)
    except TfcompareError:
        return {}, {}


def _differing_hosts(pair: Pair, side: int) -> list[str]:
    """The programs of one side that differ between its hosts though they have one name and id."""
    found: dict[str, set[str]] = {}
    for (_, program), digest in _contents(pair)[side].items():
        found.setdefault(program, set()).add(digest)
    return [plain_program(program) for program, digests in found.items() if len(digests) > 1]


def _named(names: Sequence[str]) -> str:
    """Up to `MOST_PROGRAMS` programs, and how many more there are."""
    return some_of(map(as_code, names), MOST_PROGRAMS)
