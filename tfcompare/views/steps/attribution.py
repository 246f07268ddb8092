"""Attributes the change of a candidate's step time to parts of the step, and the change of a part to its ops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tfcompare.compare.attribution import (
    AROUND_OPS,
    FACTOR,
    Waterfall,
    all_moves,
    annotation_moves,
    attributed_hosts,
    factor_moves,
    has_both,
    moved_most,
    op_moves,
    part_means,
    part_waterfall,
    step_waterfall,
    with_other_hosts,
)
from tfcompare.compare.groups.fused_rows import row_name_as_code
from tfcompare.compare.stats.verdict import UNCLEAR, UNTESTED
from tfcompare.compare.steps.step_time_verdict import step_marker_call, step_time_us
from tfcompare.schema import SIDES, STEP_PARTS
from tfcompare.schema.ops import FUNCTION
from tfcompare.text import as_code
from tfcompare.units import format_time_us
from tfcompare.views.hosts.words import host_sentence
from tfcompare.views.input.figures import on_part
from tfcompare.views.steps.attribution_words import (
    PART_WORDS,
    inner_op_sentence,
    named_parts,
    part_sentence,
    step_budget,
)
from tfcompare.views.steps.certain import MOST_NAMED, certain_ops
from tfcompare.views.steps.figures import Gap, HostSteps, host_steps_of, steps_of_captures, usual_gap

IDLE = "idle_us"
INPUT = "input_us"
_NAME_LETTERS = 48
"""Of an op in the budget, which is a sentence of several."""
_WORTH_NAMING = 0.25
"""The share of a part's change from which on an op or a gap is named as its place."""
_NEARLY_ALL = 0.95
"""The share of a part's change from which on its place is named without "above all"."""
_WITHOUT_CLAIM = {UNCLEAR: "has no conclusive change", UNTESTED: "was not tested"}

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side
    from tfcompare.compare.stats.verdict import Verdict
    from tfcompare.compare.steps.iterations import Iterations
    from tfcompare.run import Run


@dataclass(frozen=True)
class Cause:
    """Where much of the change of a part of the step is: an op, an annotation or Python function outside of ops, or an
    idle gap of a side (0 for the baseline)."""

    part: str
    delta_us: float
    words: str
    op_name: str = ""
    around: str = ""
    gap: Gap | None = None
    side: int = 0


@dataclass(frozen=True)
class Attribution:
    """A pair's average steps, part by part, of one host of each run.

    `hosts`: baseline's and candidate's; `parts` as `compare.attribution.part_means` gives them, with
    what other hosts add. `waterfall` is None where a run has no steps; `sentence` then says so. `host_sentence`: who is
    the slowest of several hosts, empty for one; `causes`: where much of the change of a part is; `certain`: the parts
    with the largest changes that are significant by themselves, where that of the step time is unclear. `moved_most` is
    the part that changed the most, None where none did.
    """

    hosts: tuple[str, str]
    parts: pd.DataFrame
    waterfall: Waterfall | None
    sentence: str
    host_sentence: str = ""
    causes: tuple[Cause, ...] = ()
    certain: tuple[tuple[str, Verdict], ...] = ()

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


def attribution_of(pair: Pair) -> Attribution:
    """`attribution`, kept with the pair."""
    return pair.cached("attribution", partial(attribution, pair))


def attribution(pair: Pair) -> Attribution:
    """How the average step of a candidate differs from the baseline's, on its chosen host.

    Of several hosts, see `attributed_hosts`.
    """
    hosts = attributed_hosts(pair)
    means = step_time_us(pair.sides[0]), step_time_us(pair.sides[1])
    parts = with_other_hosts(part_means(*map(steps_of_captures, _attributed_sides(pair))), means)
    of_hosts = host_sentence(pair)
    if pair.are_unrelated:
        return Attribution(hosts, parts, None, "No breakdown: the programs are different.", of_hosts)
    if why := _why_none(*pair.runs) or ("" if has_both(parts) else "No breakdown: a run has no included step."):
        return Attribution(hosts, parts, None, why, of_hosts)
    waterfall = step_waterfall(parts)
    if pair.is_identical:
        same = "Both runs are the same capture: no part of the step differs."
        return Attribution(hosts, parts, waterfall, same, of_hosts)
    causes = tuple(_causes(pair, parts))
    several = pair.host is None and len(pair.candidate.host_names) > 1
    where = f"On {as_code(hosts[1])}: " if several else ""
    certain = tuple(_certain(pair, parts, hosts))
    doubt = caution(pair, [part for part, _ in certain])
    sentence = doubt + where + step_budget(parts, {one.part: one.words for one in causes})
    return Attribution(hosts, parts, waterfall, sentence, of_hosts, causes, certain)


def _certain(pair: Pair, parts: pd.DataFrame, hosts: tuple[str, str]) -> Iterator[tuple[str, Verdict]]:
    """The parts that the budget names whose change is significant, if that of the step time is unclear."""
    if pair.verdict.word == UNCLEAR:
        for part in filter(STEP_PARTS.__contains__, named_parts(parts).index):
            found = on_part(pair, part, hosts)
            if found.is_claim and found.evidence:
                yield part, found


def caution(pair: Pair, certain: Sequence[str] = ()) -> str:
    """A prefix for sentences on differences if the step time has no significant change; else empty.

    `certain`: the parts whose own change is significant. Ops whose own change is are named as well.
    """
    verdict = pair.verdict
    if verdict.is_claim or pair.is_identical:
        return ""
    why = _WITHOUT_CLAIM.get(verdict.word, "did not change significantly")
    named = [*(PART_WORDS[part] for part in certain), *(one.name for one in certain_ops(pair)[:MOST_NAMED])]
    but = f", except for {' and '.join(named)}" if named else ""
    time = "The step time" if pair.main_kind is None else "The time of all kinds of steps together"
    return f"{time} {why}, so the following may be chance{but}. "


def attributed_steps(pair: Pair) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The steps of baseline and candidate with their parts, one row per step, on the compared hosts, of the capture
    that stands for all."""
    ours, theirs = attributed_hosts(pair)
    return pair.baseline.table("steps", host=ours), pair.candidate.table("steps", host=theirs)


def _causes(pair: Pair, parts: pd.DataFrame) -> Iterator[Cause]:
    """The op, or the idle gap, with a good part of the change of each part that the budget names."""
    sides = _host_steps(pair)
    for part, delta_us in named_parts(parts).items():
        if part == IDLE:
            gaps = _usual_gaps(pair)
            side = int(delta_us > 0)
            gap, other = gaps[side], gaps[1 - side]
            if gap is not None:
                same = other is not None and (other.op_before, other.op_after) == (gap.op_before, gap.op_after)
                # Whether gaps recur in a step is unknown: its own at least once, the other's at most in every iteration
                more_us = gap.length_us / pair.iterations[side] - (other.length_us if same and other else 0.0)
                if more_us >= _WORTH_NAMING * abs(delta_us):
                    yield Cause(part, delta_us, gap.before, gap=gap, side=side)
        elif part in STEP_PARTS:
            moves = _moves(pair, part, *sides)
            if moves is not None and len(moves) and float(moves["delta_us"].iloc[0]) / delta_us >= _WORTH_NAMING:
                name, is_op = str(moves["name"].iloc[0]), moves["kind"].iloc[0] != FACTOR
                op_type = str(moves["detail"].iloc[0])
                what = row_name_as_code(name, op_type, _NAME_LETTERS) if is_op else f"the {name.lower()}"
                if op_type in AROUND_OPS:
                    is_most = float(moves["delta_us"].iloc[0]) / delta_us >= _NEARLY_ALL
                    yield Cause(str(part), delta_us, f"in {what}" if is_most else f"(above all in {what})", around=name)
                    continue
                inner = _function_op(moves, *sides) if part == INPUT else None
                if inner is not None and inner[1] / delta_us >= _WORTH_NAMING:
                    what = f"{as_code(inner[0], _NAME_LETTERS)} in {what}"
                yield Cause(str(part), delta_us, f"(above all {what})", name if is_op else "")


def _host_steps(pair: Pair) -> tuple[HostSteps, HostSteps]:
    """The average step of the compared host of the baseline, and of the candidate."""
    ours, theirs = map(host_steps_of, _attributed_sides(pair))
    return ours, theirs


def _attributed_sides(pair: Pair) -> tuple[Side, Side]:
    """The captures of baseline and candidate on the hosts whose steps are attributed."""
    hosts = attributed_hosts(pair)
    ours, theirs = (side.on(host) for side, host in zip(pair.sides, hosts, strict=True))
    return ours, theirs


def getting_input(pair: Pair) -> list[tuple[pd.Series, float]]:
    """(as `HostSteps.getting_input`, the mean step time in µs) of each side, on the hosts that are attributed."""
    return [(one.getting_input, float(one.steps["duration_us"].mean())) for one in _host_steps(pair)]


def _usual_gaps(pair: Pair) -> list[Gap | None]:
    """The gap of most steps on each side, in the capture that stands for all."""
    steps = attributed_steps(pair)
    included = [rows[rows["included"].astype(bool)] for rows in steps]
    return [usual_gap(run, rows) for run, rows in zip(pair.runs, included, strict=True)]


def _moves(pair: Pair, part: str, ours: HostSteps, theirs: HostSteps) -> pd.DataFrame | None:
    """The changes of the ops, or of number and time of launches, in a part of the step; None where there are none."""
    if part == "kernel_launch_us":
        launches = ours.launches, theirs.launches
        if min(launches) <= 0:
            return None
        each = [side.mean_us(part) / count for side, count in zip((ours, theirs), launches, strict=True)]
        return factor_moves(launches, each, ("Number of launches", "Time per launch while no device is busy"))
    around = [side.annotations(part) for side in (ours, theirs)]
    kinds = [[run.table("host_annotations")["kind"] for run in side.runs] for side in pair.sides]
    traced = [any((kind == FUNCTION).any() for kind in of_side) for of_side in kinds]
    if not all(traced):  # a profiler that traces no functions says nothing about them
        around = [rows[rows["op_type"] != FUNCTION] for rows in around]
    return all_moves(op_moves(pair.diff(), ours.ops(part), theirs.ops(part)), annotation_moves(*around))


def within(pair: Pair, part: str) -> Within:
    """The changes within one of `schema.STEP_PARTS`, by its ops or launches. Both runs must have steps."""
    ours, theirs = _host_steps(pair)
    if part == IDLE:
        return Within(part, None, _gaps_sentence(_usual_gaps(pair), pair.iterations))
    means = part_means(ours.steps, theirs.steps)
    moves = _moves(pair, part, ours, theirs)
    if moves is None or moves.empty:
        return Within(part, None, "The profiles have no ops for this part of the step.")
    waterfall = part_waterfall(means.iloc[STEP_PARTS.index(part)], moves)
    sentence = caution(pair) + part_sentence(part, waterfall, moves)
    if part == INPUT and (inner := _function_op(moves, ours, theirs)) is not None:
        sentence += inner_op_sentence(*inner)
    return Within(part, waterfall, sentence)


def _gaps_sentence(gaps: Sequence[Gap | None], iterations: Iterations) -> str:
    steps = [f" in a step of {count} iterations," if count > 1 else "" for count in iterations]
    texts = [
        f"{format_time_us(gap.length_us)}{step} {gap.place} ({side})"
        for gap, step, side in zip(gaps, steps, SIDES, strict=True)
        if gap is not None
    ]
    longest = f" The longest gap of most steps: {'; '.join(texts)}." if texts else ""
    return f"No op runs in idle time.{longest}"


def _function_op(moves: pd.DataFrame, ours: HostSteps, theirs: HostSteps) -> tuple[str, float] | None:
    """The op that changed most in the function of the iterator that moved most, and by how many µs; None if none did
    in the iterator's direction."""
    first = moves.iloc[0]
    before, after = (side.function_ops(str(first["name"])) for side in (ours, theirs))
    delta = after.sub(before, fill_value=0.0)
    delta = delta[delta * float(first["delta_us"]) > 0]
    if delta.empty:
        return None
    largest = int(delta.abs().argmax())
    return str(delta.index[largest]), float(delta.iloc[largest])


def _why_none(*runs: Run) -> str:
    without = list(dict.fromkeys(f"`{run.name.replace('`', chr(39))}`" for run in runs if not run.info.has_step_times))
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
