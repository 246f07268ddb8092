"""Runs of one id that are not the same, such as those of `before/run-1` and `after/run-1` if each was loaded alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfcompare.errors import TfcompareError
from tfcompare.sources.logdir.naming import Address, display_names

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tfcompare.run import Run


def told_apart(baseline: Run, candidates: Sequence[Run], with_repeats: Collection[str]) -> tuple[Run, tuple[Run, ...]]:
    """The runs, where a candidate has the baseline's id but other contents with the baseline under an id of its own and
    both under the names of their folders, or else with their choice of steps.

    `with_repeats` are the ids that replicates are given for. Raises `TfcompareError` if it is unclear whose these are,
    and if two candidates have one id.
    """
    ids = [run.id for run in candidates]
    if len(set(ids)) < len(ids):
        twice = next(run_id for run_id in ids if ids.count(run_id) > 1)
        raise TfcompareError(f"two candidates have the id {twice!r}; {_HOW_TO_RENAME}, or name each only once")
    if baseline.id not in ids:
        return baseline, tuple(candidates)
    other = candidates[ids.index(baseline.id)]
    if other.content_id == baseline.content_id:
        return baseline, tuple(candidates)
    if baseline.id in with_repeats:
        raise TfcompareError(
            f"baseline and candidate have the id {baseline.id!r}, so it is unclear whose replicates these are; "
            f"{_HOW_TO_RENAME}"
        )
    ours, theirs = display_names(
        [Address(str(run.path), run.path.parts[1:], len(run.path.parts)) for run in (baseline, other)]
    )
    if ours == theirs:
        ours, theirs = (f"{run.name} ({_steps(run)})" for run in (baseline, other))
    renamed = replace(other, name=theirs)
    return (
        replace(baseline, id=f"{baseline.id} (baseline)", name=ours),
        tuple(renamed if run is other else run for run in candidates),
    )


_HOW_TO_RENAME = "give one an id of its own with dataclasses.replace(run, id=…)"


def _steps(run: Run) -> str:
    """Which steps of the run were chosen."""
    choice = run.choice
    words = [
        f"steps {choice.range}" if choice.has_range else "",
        f"of {choice.kind}" if choice.kind else "",
        f"by {choice.marker}" if choice.marker else "",
        "with its stray" if choice.counts_stray else "",
    ]
    return " ".join(filter(None, words)) or "all steps"
