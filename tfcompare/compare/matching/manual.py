"""Manual matches: a user's choices that pair, or separate, a name of the baseline and a name of the candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from tfcompare.errors import Unknown
from tfcompare.schema import SIDES
from tfcompare.text import middle_ellipsis, some_of

if TYPE_CHECKING:
    from tfcompare.run import Run

Name = tuple[str, ...]
"""An op's name, or the names of an op and of a kernel that it launches."""

OP_TABLES = ("op_stats", "kernel_stats", "memory_peak", "input_pipeline")
"""The tables whose rows are ops or belong to an op."""

LEVELS = (("op_name", "kernel_name"), ("op_name",))
"""The columns of two-part and of one-part names. A choice about a kernel takes precedence over one about its op."""

OF_CANDIDATE = " (candidate's)"
"""Suffix for a candidate op whose name also exists in the baseline, for a different op."""

_MOST_NAMED, _NAME_LENGTH = 3, 60


class ManualChoice(NamedTuple):
    """A manual choice: the two names match (`is_pair`), or they do not. Both have the same number of parts."""

    is_pair: bool
    baseline: Name
    candidate: Name

    @property
    def mirrored(self) -> ManualChoice:
        """The same choice with baseline and candidate swapped."""
        return ManualChoice(self.is_pair, self.candidate, self.baseline)

    def renamed(self, ours: Callable[[str], str], theirs: Callable[[str], str]) -> ManualChoice:
        """The same choice with other names, of the baseline's and the candidate's ops."""
        return ManualChoice(self.is_pair, tuple(map(ours, self.baseline)), tuple(map(theirs, self.candidate)))


ManualPairs = Mapping[str, Sequence[ManualChoice]]
"""The choices for each candidate, by the candidate's id."""


def effective(choices: Iterable[ManualChoice]) -> tuple[ManualChoice, ...]:
    """The choices that apply; of contradicting choices, the last one wins.

    A name has one partner, so two pairs that share a name contradict each other. So do pairing and separating the same
    two names.
    """
    valid: dict[ManualChoice, None] = {}
    paired: dict[tuple[str, Name], ManualChoice] = {}
    for choice in choices:
        valid.pop(choice, None)
        valid.pop(choice._replace(is_pair=not choice.is_pair), None)
        if choice.is_pair:
            names = ("baseline", choice.baseline), ("candidate", choice.candidate)
            for name in names:
                if (earlier := paired.get(name)) is not None:
                    valid.pop(earlier, None)
            paired |= dict.fromkeys(names, choice)
        valid[choice] = None
    return tuple(valid)


def counterparts(choices: Iterable[ManualChoice], parts: int) -> dict[Name, Name]:
    """The manual pairs of names with `parts` parts, from the candidate's name to the baseline's."""
    return {c.candidate: c.baseline for c in choices if c.is_pair and len(c.baseline) == parts}


def parted(choices: Iterable[ManualChoice], parts: int) -> set[tuple[Name, Name]]:
    """The manually separated (baseline, candidate) names with `parts` parts."""
    return {(c.baseline, c.candidate) for c in choices if not c.is_pair and len(c.baseline) == parts}


def names_of_rows(frame: pd.DataFrame, columns: Sequence[str]) -> list[Name]:
    """The name of each row, taken from these columns."""
    return list(zip(*(frame[column] for column in columns), strict=True))


def with_manual_names(side: pd.DataFrame, columns: Sequence[str], pairs: Mapping[Name, Name]) -> pd.DataFrame:
    """The rows whose names are in `pairs`; their column `manual_name` holds the name shared by both sides."""
    names = names_of_rows(side, columns)
    there = np.array([name in pairs for name in names], np.bool_)
    known = ["\0".join(pairs[name]) for name in names if name in pairs]
    return side[there].assign(manual_name=pd.Series(known, index=side.index[there], dtype="str"))


def without_parted(
    pairs: pd.DataFrame,
    levels: Sequence[Sequence[str]],
    sides: tuple[pd.DataFrame, pd.DataFrame],
    choices: Sequence[ManualChoice],
) -> pd.DataFrame:
    """The pairs except those whose names are manually separated."""
    for columns in levels:
        if names := parted(choices, len(columns)):
            each = [names_of_rows(side.loc[pairs[role]], columns) for side, role in zip(sides, SIDES, strict=True)]
            pairs = pairs[np.array([pair not in names for pair in zip(*each, strict=True)], np.bool_)]
    return pairs


def with_distinct_names(diff: pd.DataFrame, choices: Sequence[ManualChoice]) -> pd.DataFrame:
    """A diff of ops in which added rows have unambiguous names, so that sums by name do not mix different ops.

    Separated ops may have the same name on both sides, and a paired op's old name may belong to another op.
    """
    if not choices:
        return diff
    return diff.assign(op_name=diff["op_name"].mask(diff["status"] == "added", _counted_as(diff["op_name"], choices)))


def _counted_as(names: pd.Series, choices: Sequence[ManualChoice]) -> pd.Series:
    pairs, apart = counterparts(choices, 1), parted(choices, 1)
    taken = set(pairs.values()) | {ours for ours, theirs in apart if ours == theirs}
    counted = {
        name: pairs[(name,)][0] if (name,) in pairs else f"{name}{OF_CANDIDATE}" if (name,) in taken else name
        for name in names.unique()
    }
    return names.map(counted).astype("str")


def applicable_choices(
    baseline: Run, candidates: Iterable[Run], manual_pairs: ManualPairs
) -> tuple[dict[str, tuple[ManualChoice, ...]], list[str]]:
    """The applicable choices for each candidate, and notes on those that do not apply. Raises `Unknown` for choices
    about a run that is not a candidate."""
    runs = {run.id: run for run in candidates}
    if unknown := [run_id for run_id in manual_pairs if run_id not in runs]:
        raise Unknown("candidate", unknown[0], list(runs))
    found = {run_id: applicable(choices, baseline, runs[run_id]) for run_id, choices in manual_pairs.items() if choices}
    return {run_id: holding for run_id, (holding, _) in found.items()}, [note for _, note in found.values() if note]


def applicable(choices: Sequence[ManualChoice], baseline: Run, candidate: Run) -> tuple[tuple[ManualChoice, ...], str]:
    """The choices that apply to these runs, and a sentence on those whose names a run lacks; empty if there are none.

    Raises the errors of reading the runs' tables.
    """
    holding = effective(choices)
    ours, theirs = _absent({c.baseline for c in holding}, baseline), _absent({c.candidate for c in holding}, candidate)
    left_out = [c for c in holding if c.baseline in ours or c.candidate in theirs]
    if not left_out:
        return holding, ""
    absent = [(name, baseline) for name in sorted(ours)] + [(name, candidate) for name in sorted(theirs)]
    missing = [f"{_readable(name)} in {run.name}" for name, run in absent]
    what = "One choice" if len(left_out) == 1 else f"{len(left_out)} choices"
    sentence = f"{what} made manually cannot be applied here: there is no {some_of(missing, _MOST_NAMED)}."
    return tuple(choice for choice in holding if choice not in left_out), sentence


def _absent(wanted: set[Name], run: Run) -> set[Name]:
    """The names that no table of the run contains; tables are read only while a name is missing."""
    left = set(wanted)
    for table in OP_TABLES:
        for columns in LEVELS:
            if any(len(name) == len(columns) for name in left):
                frame = run.table(table)
                if set(columns) <= set(frame.columns):
                    left -= set(names_of_rows(frame[list(columns)].drop_duplicates(), columns))
    return left


def _readable(name: Name) -> str:
    op = middle_ellipsis(name[0], _NAME_LENGTH)
    return f"“{op}”" if len(name) == 1 else f"“{middle_ellipsis(name[1], _NAME_LENGTH)}” of “{op}”"
