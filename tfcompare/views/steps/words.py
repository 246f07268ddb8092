"""Sentences on single steps: slow, stray and lost ones, the time between steps, and kinds of steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.pair import Pair
from tfcompare.compare.stats.verdict import verdict_on_size
from tfcompare.compare.steps.peak_memory import ALLOCATED, PLANNED, peak_memory_of_steps
from tfcompare.compare.steps.step_kinds import StepKind, counts_of, is_other_mix, slow_steps_are_a_kind
from tfcompare.tables.slow_steps import BEYOND_SECOND
from tfcompare.tables.step_times import Window, position_of, run_steps
from tfcompare.text import as_code
from tfcompare.units import (
    MISSING,
    format_bytes,
    format_count,
    format_delta,
    format_percent,
    format_ratio,
    format_time_us,
    format_value,
    ratio_of,
)
from tfcompare.views.blocks import Beside, Block, Facts, Finding, Link, Links, Text
from tfcompare.views.steps.attribution_words import PART_WORDS, code
from tfcompare.views.steps.figures import between_steps_changed, dispatch_us
from tfcompare.views.verdict_marks import text_of, tone_of

if TYPE_CHECKING:
    from tfcompare.run import Run

_WORTH_SAYING = 0.05
"""The share of the step time that slow steps must add to be mentioned in the headline."""
_BETWEEN_WORTH_SAYING = 0.1
"""The share of the window above which time between steps is mentioned even if it did not change."""
_OVERLAP_WORTH_SAYING = 0.01
"""The share of the period from which step time × throughput is visibly more than 1."""
_MEMORY_HELP = (
    f"{PLANNED}: the largest peak of device memory that XLA planned for a program that runs in steps of the kind. "
    f"{ALLOCATED.capitalize()}: the most that any memory has in use after an allocation in these steps."
)
_HELP = (
    "A step's kind is the name of its marker, such as train or eval, where there are several; else the compiled "
    "programs that ran in it. The headline is on the kind with most time that both runs have. Ops, kernels and "
    "instructions are per step of one mix of kinds on both sides, and judged in the kind in which they take most time; "
    "all other figures are of all included steps together, unless one kind is chosen (“Kind of step” in the sidebar, "
    "`--step-kind`)."
)


def row_of(run: Run, host: str | None) -> pd.Series | None:
    """The row of a run, or of one of its hosts; None without included steps."""
    rows = run.table("slow_steps", host=host)
    return None if rows.empty else rows.iloc[0]


def clause(rows: tuple[pd.Series | None, pd.Series | None], names: tuple[str, str]) -> str:
    """A clause on the slow steps of baseline and candidate, to end the headline; empty if they add little to the step
    time of either. `names` are in Markdown."""
    ours, theirs = (row if row is not None and _adds(row) >= _WORTH_SAYING else None for row in rows)
    if theirs is None:
        return "" if ours is None else _takes(ours, names[0])
    return _takes(theirs, names[1]) + ("" if ours is None else f" ({names[0]}: {_count(ours)})")


def sentences(run: Run, host: str | None, name: str) -> list[str]:
    """Markdown sentences on the slow steps and the stray of a run that is called `name` (in Markdown); not on slow
    steps that are those of another kind."""
    row = row_of(run, host)
    if row is None:
        return []
    steps = run.table("steps", host=host)
    of_run = run_steps(steps)
    others_us = of_run.loc[of_run["included"] & ~of_run["stray"], "duration_us"].max()
    is_stray_here = row["stray_us"] > BEYOND_SECOND * others_us  # a stray of the run may be none of the host
    is_counted = run.choice.counts_stray
    found = []
    is_stray_alone = is_counted and is_stray_here and row["slow_steps"] == 1
    if row["slow_steps"] and not is_stray_alone and not slow_steps_are_a_kind(run, host):
        found.append(_slow_sentence(row, name))
    if pd.notna(row["stray_step"]):
        step = f"Step {position_of(run.table('steps'), row['stray_step'], host)} of {name}"
        if is_stray_here:
            what = "is far longer than all others" if is_counted else "is excluded as a stray"
            times = f"{format_time_us(row['stray_us'])} instead of {format_time_us(row['usual_step_us'])}"
            found.append(f"{step} {what}: {times}{_cause(row, 'stray_')}.")
        elif not is_counted:
            found.append(f"{step} is excluded: it is a stray on another host.")
    return found


def _slow_sentence(row: pd.Series, name: str) -> str:
    """How many steps of the run called `name` (in Markdown) are slow, and what they do more."""
    share = format_percent(row["slow_share"])
    regular = f", {_every(row)}," if pd.notna(row["every"]) else ""
    times = f"{format_time_us(row['slow_step_us'])} instead of {format_time_us(row['usual_step_us'])}"
    are = "is" if row["slow_steps"] == 1 else "are"
    return f"{_count(row)} of {name}{regular} {are} slow: {times}, {share} of the time{_cause(row, '')}."


def _takes(row: pd.Series, name: str) -> str:
    slow, others = format_time_us(row["slow_step_us"]), format_time_us(row["usual_step_us"])
    if pd.notna(row["every"]) and row["every"] > 1:
        return f"{_every(row)} step of {name} takes {slow}, the others {others}"
    takes = "takes" if row["slow_steps"] == 1 else "take"
    return f"{_count(row)} of {name} {takes} {slow}, the others {others}"


def _count(row: pd.Series) -> str:
    return f"{row['slow_steps']:,} of {row['steps']:,} steps"


def _every(row: pd.Series) -> str:
    """`every 5th`, or `one after another`."""
    every = int(row["every"])
    ending = "th" if every % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(every % 10, "th")
    return f"every {every:,}{ending}" if every > 1 else "one after another"


def _cause(row: pd.Series, of: str) -> str:
    """`; 97 % of the extra is input, 95 % in …`, empty if no part has much of it. `of` is the prefix of the columns."""
    if not (part := row[f"{of}part"]):
        return ""
    op_name = str(row[f"{of}op_name"])
    op = f", {_amount(row[f'{of}op_share'])} in {code(op_name)}" if op_name else ""
    return f"; {_amount(row[f'{of}part_share'])} of the extra is {PART_WORDS[part]}{op}"


def _amount(share: float) -> str:
    return "all" if share >= 0.995 else format_percent(share)


def _adds(row: pd.Series) -> float:
    """The share of the step time that slow steps add."""
    step_us = float(row["usual_step_us"] + row["slow_excess_us"])
    return float(row["slow_excess_us"]) / step_us if step_us > 0 else 0.0


def lost_steps(runs: Mapping[str, Run]) -> list[str]:
    """Markdown sentences on the steps that runs, by what they are called, did not record as a whole."""
    return [
        f"{run.lost_steps:,} of {run.info.step_count:,} steps of {as_code(name)} were not recorded as a whole, and do "
        "not count."
        for name, run in runs.items()
        if run.lost_steps
    ]


def slow_steps(pair: Pair, runs: Mapping[str, Run]) -> list[str]:
    """Markdown sentences on the slow steps and the strays of runs by what they are called."""
    return [one for name, run in runs.items() for one in sentences(run, pair.host_of(run), as_code(name))]


def between_steps_sentence(pair: Pair) -> str:
    """A sentence on the time between steps if it is a large part of either run or has changed; else empty."""
    ours, theirs = (side.window for side in pair.sides)
    return time_between_steps(ours, theirs, has_changed=between_steps_changed(pair))


def time_between_steps(baseline: Window | None, candidate: Window | None, *, has_changed: bool) -> str:
    """A sentence on the time between steps if it `has_changed` or is a large part of the window, and one on overlapping
    steps; empty for neither."""
    return " ".join(filter(None, [_between(baseline, candidate, has_changed), _overlap(baseline, candidate)]))


def _between(baseline: Window | None, candidate: Window | None, has_changed: bool) -> str:
    baseline, candidate = (None if of is None or math.isnan(of.share) else of for of in (baseline, candidate))
    known = [found for found in (baseline, candidate) if found is not None]
    if not (has_changed or any(found.share > _BETWEEN_WORTH_SAYING for found in known)):
        return ""
    if baseline is None or candidate is None:
        side = "candidate" if baseline is None else "baseline"
        return f"Time between steps in the {side}: {_amount_between(known[0])} per step, in no step time."
    amounts = f"{_amount_between(candidate)}, baseline {_amount_between(baseline)}, per step"
    return f"Between steps: {amounts}. This time is in no step time."


def rates(baseline: Window | None, candidate: Window | None) -> str:
    """`333 vs 323 steps/s`, candidate first, where step times are unknown; empty unless both are known."""
    if baseline is None or candidate is None:
        return ""
    return f"{format_count(candidate.steps_per_s)} vs {format_value(baseline.steps_per_s, 'steps/s')}"


def _amount_between(found: Window) -> str:
    return f"{format_time_us(found.between_us)} ({format_percent(found.share)})"


def _overlap(baseline: Window | None, candidate: Window | None) -> str:
    """That steps overlap, so that step time × throughput is more than 1."""
    overlaps = [
        f"{format_time_us(found.overlap_us)} ({format_percent(found.overlap_us / found.period_us)}) in the {side}"
        for side, found in (("candidate", candidate), ("baseline", baseline))
        if found is not None and found.overlap_us >= _OVERLAP_WORTH_SAYING * found.period_us > 0
    ]
    return f"Steps overlap: each goes on after the next has begun, for {' and '.join(overlaps)}." if overlaps else ""


def dispatch_sentence(pair: Pair) -> str:
    """A sentence on the host's dispatch time per step if steps are timed on the device; else empty."""
    ours, theirs = (side.mean_per_step(dispatch_us) for side in pair.sides)
    if math.isnan(theirs):
        return ""
    before = f", baseline {format_time_us(ours)}" if not math.isnan(ours) else ""
    return (
        "Steps are timed by the work that they launched, which goes on after it was dispatched: dispatching takes "
        f"{format_time_us(theirs)}{before} per step."
    )


def blocks(pair: Pair) -> Iterator[Block]:
    """A row for each kind, that with most time first, and what it means; the peak memory of each that both runs have,
    where it is known. Nothing where all steps are of one kind."""
    found = pair.step_kinds
    if not found:
        return
    if not pair.is_single and is_other_mix(*counts_of(found)):
        yield Text(_sentence(found, has_common=pair.common_kinds is not None))
    cells, findings, tones = [], [], []
    for one in found:
        times = [
            format_time_us(time) if count else MISSING for count, time in zip(one.counts, one.times_us, strict=True)
        ]
        counts = [f"{count:,}" for count in one.counts]
        if pair.is_single:
            cells.append([one.name, counts[0], times[0]])
        else:
            verdict = one.verdict
            interval = f"{format_ratio(verdict.low)}–{format_ratio(verdict.high)}" if verdict.has_interval else MISSING
            ratio, word = format_ratio(ratio_of(*one.times_us)), text_of(verdict.word, verdict.evidence)
            cells.append([one.name, " / ".join(counts), *times, ratio, interval, word])
            tones.append(tone_of(verdict.word, verdict.evidence))
        findings.append(_finding(pair, one))
    header = ["Kinds of steps, mean time", "Steps", *pair.headings]
    if not pair.is_single:
        header += ["Ratio", "95 % CI", "Verdict"]
    numbers = range(1, min(len(header), 6))
    table = Facts(header, cells, numbers, tones, optional=(5, 1), findings=findings, help=_HELP)
    memory = list(_memory(pair, found))
    yield Beside([[table], memory]) if memory else table
    yield Links([Link(f"Only steps of {one.name}", "overview", {"step_kind": one.name}) for one in found])


def _memory(pair: Pair, kinds: list[StepKind]) -> Iterator[Block]:
    """The peak memory in the steps of each kind, with what was measured."""
    cells, findings = [], []
    for one in kinds:
        if (memory := peak_memory_of_steps(pair, one.name)) is None:
            continue
        ours, theirs = memory.peaks
        label, sizes = f"{one.name}, {memory.measured}", [*map(format_bytes, memory.peaks)]
        change = [format_delta(theirs - ours, "bytes"), format_ratio(ratio_of(ours, theirs))]
        cells.append([label, sizes[0]] if pair.is_single else [label, *sizes, *change])
        before, word = (math.nan, "") if pair.is_single else (ours, verdict_on_size(ours, theirs))
        key = f"step_kind_memory:{one.name}"
        findings.append(Finding(key, label, "bytes", before, theirs, word, more="memory", is_alone=pair.is_single))
    if cells:
        header = ["Kinds of steps, peak memory", *pair.headings, *([] if pair.is_single else ["Change", "Ratio"])]
        yield Facts(header, cells, range(1, len(header)), findings=findings, help=_MEMORY_HELP)


def _sentence(found: list[StepKind], *, has_common: bool) -> str:
    """`The steps are of 2 kinds, in another mix on each side, so the time of all of them says little. Ops and kernels
    are compared in the same mix.`"""
    mixed = "in another mix on each side, so the time of all of them says little"
    ops = " Ops and kernels are compared in the same mix." if has_common else ""
    return f"The steps are of {len(found)} kinds, {mixed}.{ops}"


def _finding(pair: Pair, one: StepKind) -> Finding:
    verdict, (ours, theirs) = one.verdict, one.times_us
    word, before = ("", math.nan) if pair.is_single else (verdict.word, ours)
    interval = (verdict.low, verdict.high) if verdict.has_interval else None
    key, rests_on = f"step_kind:{one.name}", verdict.evidence
    return Finding(key, one.name, "µs", before, theirs, word, rests_on, interval, "timeline", pair.is_single)
