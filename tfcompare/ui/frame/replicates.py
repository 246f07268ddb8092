"""Captures of one program that are grouped by their names: at once for a run that is newly compared, else offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.replicates import suggest
from tfcompare.ui.frame.selection import Selection

MOST_AT_ONCE = 10
"""More captures of a run are grouped only where that is asked for: all of them have to be read."""


def with_replicates(selection: Selection, before: Selection, found: Sequence[FoundRun]) -> Selection:
    """The selection with the replicates, by their names, of each run that was not compared before.

    What is chosen itself stays as it is.
    """
    for run, runs in ungrouped(selection, suggest(found, selection.baseline, selection.candidates)).items():
        more = [one for one in runs if one not in selection.compared]
        if run not in before.compared and len(more) <= MOST_AT_ONCE:
            selection = selection.with_repeats(run, (*selection.repeats_of(run), *more))
    return selection


def ungrouped(selection: Selection, suggested: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Of what is suggested, what is no repeat yet."""
    grouped = {repeat for _, repeat in selection.repeats}
    more = {run: tuple(r for r in runs if r not in grouped) for run, runs in suggested.items()}
    return {run: runs for run, runs in more.items() if runs}
