"""The rows of the table on Home: one for each program, and below those that are unfolded one for each capture."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.replicates import without_repetition
from tfcompare.ui.frame.selection import Selection
from tfcompare.views.run_listing import UNREAD

if TYPE_CHECKING:
    import pandas as pd

Program = tuple[FoundRun, ...]
"""The captures of one program."""

INDENT = "\u2003"
_SEPARATORS = " _.-/"
MOST_CAPTURES = 50
"""On a page of the table, and read to fill it. A program with more captures has a page of its own."""


@dataclass(frozen=True)
class Row:
    """A program, a run that is the only capture of its program here, or one capture in an unfolded program.

    `captures` are what a tick selects; `program` are all captures of the same program in the table.
    """

    captures: tuple[FoundRun, ...]
    program: tuple[FoundRun, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the captures."""
        return tuple(run.id for run in self.captures)

    @property
    def has_captures(self) -> bool:
        """Whether it is a program that can be unfolded."""
        return len(self.captures) > 1

    @property
    def name(self) -> str:
        """The name of the program, or of the run; of a capture below its program, what distinguishes it."""
        if len(self.program) == 1:
            return self.captures[0].name
        whole = _program_name(self.program)
        if self.has_captures:
            return whole
        ends = [run.name.removeprefix(whole).strip(_SEPARATORS) for run in self.program]
        return INDENT + (ends[self.program.index(self.captures[0])] if all(ends) else self.captures[0].name)


def _program_name(program: Program) -> str:
    """What the captures' names have in common before `run-1` and the like; the first one's name if that is nothing."""
    names = [without_repetition(run.name) for run in program]
    same = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    return "".join(letter for letter, _ in same).rstrip(_SEPARATORS) or program[0].name


def programs(runs: Sequence[FoundRun], program_of: Mapping[str, Hashable]) -> list[Program]:
    """The captures of each program, the oldest first; programs are in the order of their first run in `runs`."""
    groups: dict[Hashable, list[FoundRun]] = {}
    for run in runs:
        groups.setdefault(program_of.get(run.id, run.id), []).append(run)
    return [tuple(sorted(group, key=lambda run: run.recorded)) for group in groups.values()]


def pages(found: Sequence[Program]) -> list[list[Program]]:
    """The programs on each page of the table."""
    split: list[list[Program]] = [[]]
    for program in found:
        if split[-1] and sum(map(len, split[-1])) + len(program) > MOST_CAPTURES:
            split.append([])
        split[-1].append(program)
    return split


def selected_elsewhere(
    runs: Sequence[FoundRun], program_of: Mapping[str, Hashable], selection: Selection, page: Sequence[Program]
) -> list[Program]:
    """The selected runs that a filter or the choice of a page hides: they stay in view, as what is compared."""
    by_id, shown = {run.id: run for run in runs}, {run.id for program in page for run in program}
    return programs([by_id[run] for run in selection.recordings if run not in shown], program_of)


def rows_of(found: Sequence[Program], selection: Selection, unfolded: Set[str]) -> list[Row]:
    """A row for each program, and for each of its captures if one of them is in `unfolded`, or if only some of them are
    selected as one side: nothing is selected out of sight."""
    rows = []
    for program in found:
        row = Row(program, program)
        rows.append(row)
        if row.has_captures and (not unfolded.isdisjoint(row.ids) or is_partly_selected(row, selection)):
            rows += [Row((run,), program) for run in program]
    return rows


def is_partly_selected(row: Row, selection: Selection) -> bool:
    """Whether some captures of the row are selected, but not all of them as one side."""
    own = {*row.ids}
    return bool(own.intersection(selection.recordings)) and not any(
        own <= {*selection.side_of(run)} for run in selection.compared
    )


def by_row(listed: pd.DataFrame, rows: Sequence[Row]) -> pd.DataFrame:
    """A line for each row from the listing of all runs in it, which has one for each run.

    Of several captures: when the newest was recorded, the mean step time, the least and the most of it, all steps. What
    is not known of one that can be read, because it was not read yet, is missing.
    """
    import pandas as pd

    by_id = listed.set_index("run", drop=False)
    lines = []
    for row in rows:
        captures = by_id.loc[list(row.ids)]
        line: dict[Hashable, object] = captures.iloc[-1].to_dict()
        line |= {"name": row.name, "least_ms": None, "most_ms": None}
        if row.has_captures:
            line |= _of_captures(captures)
        lines.append(line)
    columns = [*listed.columns, "least_ms", "most_ms"]
    types = listed.dtypes.to_dict() | {"least_ms": "float64", "most_ms": "float64"}
    return pd.DataFrame(lines, columns=columns).astype(types)


def _of_captures(captures: pd.DataFrame) -> dict[Hashable, object]:
    step = captures["step_time_ms_mean"]
    known = step.dropna()
    is_complete = not captures["state"].eq(UNREAD).any() and len(known) > 0
    times = [ms for one in captures["step_times_ms"] if isinstance(one, list | tuple) for ms in one]
    devices = captures["device"].dropna()
    return {
        "recorded": captures["recorded"].max(),
        "hosts": captures["hosts"].max(),
        "device": devices.iloc[-1] if len(devices) else None,
        "steps": captures["steps"].sum() if captures["steps"].notna().all() else None,
        "step_times_ms": times or None,
        "step_time_ms_mean": known.mean() if is_complete else None,
        "least_ms": known.min() if is_complete else None,
        "most_ms": known.max() if is_complete else None,
        "size_bytes": captures["size_bytes"].sum(),
        "remarks": "; ".join(dict.fromkeys(filter(None, captures["remarks"]))),
    }
