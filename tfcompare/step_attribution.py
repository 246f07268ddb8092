"""What made a candidate's steps longer or shorter: its parts beside the baseline's, and what happened within a part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.attribution import (
    Waterfall,
    factor_moves,
    has_both,
    moved_most,
    op_moves,
    part_means,
    part_waterfall,
    step_waterfall,
)
from tfcompare.compare.attribution_words import PART_WORDS, ahead_sentence, part_sentence, step_sentence
from tfcompare.compare.diff import MATCHED
from tfcompare.compare.headline import step_marker_call
from tfcompare.part_times import Recorded, ahead_us, launches_of, ops_of, recorded, transfers_of
from tfcompare.schema import STEP_PARTS
from tfcompare.step_series import on_slowest_host

if TYPE_CHECKING:
    from tfcompare.compare import Comparison
    from tfcompare.run import Run


@dataclass(frozen=True)
class Attribution:
    """A pair's average steps, part by part.

    `parts` as `compare.attribution.part_means` gives them. `waterfall` is None where a run has no steps; `sentence`
    then says so. `moved_most` is the part that changed the most, None where none did.
    """

    parts: pd.DataFrame
    waterfall: Waterfall | None
    sentence: str

    @property
    def moved_most(self) -> str | None:
        """The part to look into first."""
        return None if self.waterfall is None else moved_most(self.parts)


@dataclass(frozen=True)
class Within:
    """What happened within one part of the step; without a `waterfall`, `sentence` says why there is none."""

    part: str
    waterfall: Waterfall | None
    sentence: str


def attribution(comparison: Comparison, candidate: Run) -> Attribution:
    """How the average step of a comparison's candidate differs from the baseline's, of its chosen host or of all."""
    parts = part_means(*(steps_of(comparison, run) for run in (comparison.baseline, candidate)))
    if why := _why_none(comparison.baseline, candidate):
        return Attribution(parts, None, why)
    if not has_both(parts):
        return Attribution(parts, None, "No waterfall: a run has no step that counts.")
    waterfall = step_waterfall(parts)
    if comparison.baseline.content_id == candidate.content_id:
        return Attribution(parts, waterfall, "Both runs are the same recording: no part of the step differs.")
    return Attribution(parts, waterfall, step_sentence(parts))


def steps_of(comparison: Comparison, run: Run) -> pd.DataFrame:
    """The run's steps with their parts, one row a step: those of the chosen host, or of the slowest of each step."""
    return on_slowest_host(run.table("steps", host=comparison.host_of(run)))


def within(comparison: Comparison, candidate: Run, part: str) -> Within:
    """What happened within one of `schema.STEP_PARTS`, from the ops, kernels, copies or launches that it is made of.

    Both runs must have steps.
    """
    runs = (comparison.baseline, candidate)
    means = part_means(*(steps_of(comparison, run) for run in runs))
    ours, theirs = (recorded(run, comparison.host_of(run)) for run in runs)
    diff = comparison.table("op_stats")
    find = _MOVES.get(part)
    moves = find(diff[diff["candidate"] == candidate.id], ours, theirs, part) if find else None
    if moves is None or moves.empty:
        return Within(part, None, f"The profiles do not tell what {PART_WORDS[part]} is made of.")
    waterfall = part_waterfall(means.iloc[STEP_PARTS.index(part)], moves)
    sentences = [part_sentence(part, waterfall)]
    if part == "input_us":
        sentences += [ahead_sentence(ahead_us(ours), ahead_us(theirs))]
    return Within(part, waterfall, " ".join(filter(None, sentences)))


def _op_moves(diff: pd.DataFrame, ours: Recorded, theirs: Recorded, part: str) -> pd.DataFrame:
    sides = ops_of(ours, part), ops_of(theirs, part)
    place = "Device" if part == "device_compute_us" else "Host"
    return op_moves(diff[diff["host_or_device"] == place], *sides)


def _input_moves(diff: pd.DataFrame, ours: Recorded, theirs: Recorded, part: str) -> pd.DataFrame:
    copied = _transfer_moves(diff, ours, theirs, part)
    return pd.concat([frame for frame in (_op_moves(diff, ours, theirs, part), copied) if len(frame)] or [copied])


def _transfer_moves(diff: pd.DataFrame, ours: Recorded, theirs: Recorded, part: str) -> pd.DataFrame:
    del diff
    sides = transfers_of(ours, part), transfers_of(theirs, part)
    keys = pd.concat(sides)[["op_type", "op_name"]].drop_duplicates(ignore_index=True)
    both = keys.assign(op_type_candidate=keys["op_type"], op_name_candidate=keys["op_name"], status=MATCHED)
    return op_moves(both, *sides)


def _launch_moves(diff: pd.DataFrame, ours: Recorded, theirs: Recorded, part: str) -> pd.DataFrame | None:
    del diff, part
    launches = launches_of(ours), launches_of(theirs)
    if min(launches) <= 0:
        return None
    each = [side.mean_us("kernel_launch_us") / n for side, n in zip((ours, theirs), launches, strict=True)]
    return factor_moves(launches, each, ("Number of launches", "Time per launch while no device is busy"))


_MOVES: dict[str, Callable[[pd.DataFrame, Recorded, Recorded, str], pd.DataFrame | None]] = {
    "input_us": _input_moves,
    "output_us": _transfer_moves,
    "kernel_launch_us": _launch_moves,
    "host_compute_us": _op_moves,
    "device_collectives_us": _transfer_moves,
    "device_to_device_us": _transfer_moves,
    "device_compute_us": _op_moves,
}
"""What is looked into, by part; compiling and what nothing explains leave nothing to look into."""


def _why_none(*runs: Run) -> str:
    without = list(dict.fromkeys(f"`{run.name.replace('`', chr(39))}`" for run in runs if not run.info.has_steps))
    if not without:
        return ""
    call = step_marker_call(run.info for run in runs)
    return (
        f"No waterfall: {' and '.join(without)} {'has' if len(without) == 1 else 'have'} no step markers, so there is "
        f"no step time to take apart. Record again with each step inside `{call}`."
    )
