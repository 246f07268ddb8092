"""What differs between two runs besides their times, and whether the change reached the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tfcompare.charts.pair import Pair
from tfcompare.compare import executions
from tfcompare.markdown import as_code
from tfcompare.tools.what_differs import Difference, differences, known
from tfcompare.tools.xla.xla_memory import program_names
from tfcompare.views.blocks import Block, Facts, Section, Text
from tfcompare.views.xla.xla_program import diff_of

MOST_PROGRAMS = 3
"""Programs of which the Overview says whether they are the same, the longest first; the XLA page tells of all."""
_HELP = (
    "Besides times: devices, software, profiler options, what the users noted of the runs, the inputs of compiled "
    "programs and the programs themselves, as far as the profiles have them."
)


def section(pair: Pair) -> Iterator[Block]:
    """A section of a pair of different captures; nothing where they do not differ and ran no compiled programs."""
    if not pair.is_single and not pair.is_identical and (_differences(pair) or not pair.instructions().empty):
        yield Section(
            "What differs", partial(pair.cached, "what differs", lambda: list(_blocks(pair))), True, help=_HELP
        )


def _differences(pair: Pair) -> list[Difference]:
    def make() -> list[Difference]:
        return differences(*pair.runs, pair.comparison.mismatches(pair.candidate))

    return pair.cached("differences", make)


def _blocks(pair: Pair) -> Iterator[Block]:
    for sentence in _programs(pair):
        yield Text(sentence, more="xla")
    if found := _differences(pair):
        rows = [[one.label, one.baseline, one.candidate, one.meaning] for one in found]
        yield Facts(["Besides times", *pair.headings, "Why it matters"], rows, optional=(3,))
    else:
        same = known(*pair.runs)
        listed = f": {', '.join(same)} are the same" if same else ""
        yield Text(f"Nothing else that the profiles tell of differs{listed}.", "quiet")


def _programs(pair: Pair) -> Iterator[str]:
    """What differs in each of the longest programs, and which are the same on both sides."""
    rows, same, others = pair.instructions(), [], 0
    for key, label in executions.programs(rows)[["program_key", "label"]].head(MOST_PROGRAMS).to_numpy().tolist():
        of_program = executions.of_program(rows, key)
        diff = diff_of(pair, label, of_program) if all(program_names(of_program)) else ""
        if isinstance(diff, str) or diff.summary:
            others += 1
        else:
            same.append(as_code(label))
        if not isinstance(diff, str) and diff.summary:
            yield f"{as_code(label)}: {diff.sentence}."
    if same:
        verb = "is the same program" if len(same) == 1 else "are the same programs"
        meaning = "" if others else ": the change did not reach the compiler"
        yield f"{' and '.join(same)} {verb} on both sides{meaning}."
