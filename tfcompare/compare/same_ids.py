"""Runs of one id that are not the same, such as those of `before/run-1` and `after/run-1` if each was loaded alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tfcompare.errors import TfcompareError
from tfcompare.sources.logdir.naming import Address, display_names
from tfcompare.text import text_of

if TYPE_CHECKING:
    from tfcompare.run import Run


def with_distinct_ids(runs: Sequence[Run], with_repeats: Collection[str]) -> tuple[Run, ...]:
    """A baseline and its candidates, those of one id and different contents with names of their own: those of their
    folders, or else their choices of steps. They also have ids of their own, except a candidate whose id no other has.

    `with_repeats` are the ids that replicates are given for. Raises `TfcompareError` if it is unclear whose these are,
    and if a candidate is given twice.
    """
    candidates = [(run.id, run.content_id) for run in runs[1:]]
    if twice := next((key for key in candidates if candidates.count(key) > 1), None):
        raise TfcompareError(f"the candidate {twice[0]!r} was given twice; name each candidate once")
    found = list(runs)
    for run_id in dict.fromkeys(run.id for run in runs):
        alike = {run.content_id: run for run in runs if run.id == run_id}
        if len(alike) == 1:
            continue
        if run_id in with_repeats:
            raise TfcompareError(
                f"{len(alike)} runs have the id {run_id!r}, so it is unclear whose replicates these are; give each an "
                "id of its own with dataclasses.replace(run, id=…)"
            )
        names = dict(zip(alike, _names(list(alike.values())), strict=True))
        keeps_id = sum(run.id == run_id for run in runs[1:]) == 1
        for position, run in enumerate(runs):
            if run.id == run_id:
                name = names[run.content_id]
                own_id = run_id if position and keeps_id else f"{run_id} ({name})"
                found[position] = replace(run, id=own_id, name=name)
    return tuple(found)


def _names(runs: Sequence[Run]) -> list[str]:
    """Different names for runs: of their folders, their choices of steps, both, or numbers for what has changed."""
    paths = [tuple(map(text_of, run.path.parts)) for run in runs]
    different = list(dict.fromkeys(paths))
    named = display_names([Address("/".join(parts), parts[1:], len(parts)) for parts in different])
    folders = [named[different.index(parts)] for parts in paths]
    steps = [_steps(run) for run in runs]
    by_steps = [f"{run.name} ({chosen})" for run, chosen in zip(runs, steps, strict=True)]
    by_both = [f"{folder} ({chosen})" for folder, chosen in zip(folders, steps, strict=True)]
    by_number = [f"{run.name} ({number})" for number, run in enumerate(runs, start=1)]
    return next(names for names in (folders, by_steps, by_both, by_number) if len(set(names)) == len(names))


def _steps(run: Run) -> str:
    """Which steps of the run were chosen."""
    choice = run.choice
    words = (
        choice.kind or "",
        f"steps {choice.range}" if choice.has_range else "",
        f"by {choice.marker}" if choice.marker else "",
        "with its stray" if choice.counts_stray else "",
    )
    return ", ".join(filter(None, words)) or "all steps"
