"""Attributes the change of a candidate's step time to parts of the step, and the change of a part to its ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfcompare.compare.attribution import (
    Waterfall,
    factor_moves,
    has_both,
    moved_most,
    op_moves,
    part_means,
    part_waterfall,
    step_waterfall,
    with_other_hosts,
)
from tfcompare.compare.attribution_words import inner_op_sentence, part_sentence, step_sentence
from tfcompare.compare.headline import step_marker_call
from tfcompare.compare.stats.verdict import UNCLEAR, UNTESTED
from tfcompare.compare.straggler import attributed_hosts, mean_step_us
from tfcompare.schema import STEP_PARTS
from tfcompare.tools.host_words import host_sentence
from tfcompare.tools.part_times import HostSteps, host_steps

_WITHOUT_CLAIM = {UNCLEAR: "has no conclusive change", UNTESTED: "was not tested"}

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare import Comparison
    from tfcompare.run import Run


@dataclass(frozen=True)
class Attribution:
    """A pair's average steps, part by part, of one host of each run.

    `hosts`: baseline's and candidate's; `parts` as `compare.attribution.part_means` gives them, with
    what other hosts add. `waterfall` is None where a run has no steps; `sentence` then says so. `host_sentence`: who is
    the slowest of several hosts, empty for one. `moved_most` is the part that changed the most, None where none did.
    """

    hosts: tuple[str, str]
    parts: pd.DataFrame
    waterfall: Waterfall | None
    sentence: str
    host_sentence: str = ""

    @property
    def moved_most(self) -> str | None:
        """The part with the largest change, to examine first."""
        return None if self.waterfall is None else moved_most(self.parts)


@dataclass(frozen=True)
class Within:
    """The changes within one part of the step; without a `waterfall`, `sentence` explains why there is none."""

    part: str
    waterfall: Waterfall | None
    sentence: str


def attribution(comparison: Comparison, candidate: Run) -> Attribution:
    """How the average step of a comparison's candidate differs from the baseline's, on its chosen host.

    Of several hosts, see `attributed_hosts`.
    """
    hosts = attributed_hosts(comparison, candidate)
    means = step_means_us(comparison, candidate)
    parts = with_other_hosts(part_means(*attributed_steps(comparison, candidate)), means)
    of_hosts = host_sentence(comparison, candidate)
    if why := _why_none(comparison.baseline, candidate):
        return Attribution(hosts, parts, None, why, of_hosts)
    if not has_both(parts):
        why = "No breakdown: a run has no included step."
        return Attribution(hosts, parts, None, why, of_hosts)
    waterfall = step_waterfall(parts)
    if comparison.baseline.content_id == candidate.content_id:
        same = "Both runs are the same capture: no part of the step differs."
        return Attribution(hosts, parts, waterfall, same, of_hosts)
    sentence = caution(comparison, candidate) + step_sentence(parts)
    return Attribution(hosts, parts, waterfall, sentence, of_hosts)


def step_means_us(comparison: Comparison, candidate: Run) -> tuple[float, float]:
    """The mean steps of the two runs themselves, without their replicates; NaN without steps."""
    hosts = comparison.host, comparison.host_of(candidate)
    ours, theirs = (mean_step_us(run, host) for run, host in zip((comparison.baseline, candidate), hosts, strict=True))
    return ours, theirs


def caution(comparison: Comparison, candidate: Run) -> str:
    """A prefix for sentences on differences if the step time has no significant change; else empty."""
    verdict = comparison.verdict[candidate.id]
    if verdict.is_claim or comparison.baseline.content_id == candidate.content_id:
        return ""
    why = _WITHOUT_CLAIM.get(verdict.word, "did not change significantly")
    return f"The step time {why}, so the following may be chance. "


def attributed_steps(comparison: Comparison, candidate: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The steps of baseline and candidate with their parts, one row per step, on the compared hosts."""
    ours, theirs = attributed_hosts(comparison, candidate)
    return comparison.baseline.table("steps", host=ours), candidate.table("steps", host=theirs)


def within(comparison: Comparison, candidate: Run, part: str) -> Within:
    """The changes within one of `schema.STEP_PARTS`, by its ops or launches. Both runs must have steps."""
    runs, hosts = (comparison.baseline, candidate), attributed_hosts(comparison, candidate)
    ours, theirs = (host_steps(run, host) for run, host in zip(runs, hosts, strict=True))
    means = part_means(ours.steps, theirs.steps)
    diff = comparison.table("op_stats")
    pairs = diff[diff["candidate"] == candidate.id]
    moves = (
        _launch_moves(ours, theirs) if part == "kernel_launch_us" else op_moves(pairs, ours.ops(part), theirs.ops(part))
    )
    if moves is None or moves.empty:
        return Within(part, None, "The profiles have no ops for this part of the step.")
    waterfall = part_waterfall(means.iloc[STEP_PARTS.index(part)], moves)
    sentence = caution(comparison, candidate) + part_sentence(part, waterfall, moves)
    if part == "input_us":
        sentence += _function_sentence(moves, ours, theirs)
    return Within(part, waterfall, sentence)


def _launch_moves(ours: HostSteps, theirs: HostSteps) -> pd.DataFrame | None:
    launches = ours.launches, theirs.launches
    if min(launches) <= 0:
        return None
    each = [side.mean_us("kernel_launch_us") / n for side, n in zip((ours, theirs), launches, strict=True)]
    return factor_moves(launches, each, ("Number of launches", "Time per launch while no device is busy"))


def _function_sentence(moves: pd.DataFrame, ours: HostSteps, theirs: HostSteps) -> str:
    """A sentence on the op that caused the largest change of an iterator's function; empty if there is none."""
    first = moves.iloc[0]
    before, after = (side.function_ops(str(first["name"])) for side in (ours, theirs))
    delta = after.sub(before, fill_value=0.0)
    delta = delta[delta * float(first["delta_us"]) > 0]
    if delta.empty:
        return ""
    largest = int(delta.abs().argmax())
    return inner_op_sentence(str(delta.index[largest]), float(delta.iloc[largest]))


def _why_none(*runs: Run) -> str:
    without = list(dict.fromkeys(f"`{run.name.replace('`', chr(39))}`" for run in runs if not run.info.has_steps))
    if not without:
        return ""
    untimed = next((run.why_untimed for run in runs if run.why_untimed), "")
    if untimed:
        return f"No breakdown: {untimed}."
    call = step_marker_call(run.info for run in runs)
    return (
        f"No breakdown: {' and '.join(without)} {'has' if len(without) == 1 else 'have'} no step markers, so there is "
        f"no step time to break down. Record again with each step inside `{call}`."
    )
