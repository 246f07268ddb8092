"""The kinds of steps that a capture holds, such as training and evaluation, each with its own time and verdict."""

from __future__ import annotations

from collections.abc import Iterator

from tfcompare.charts.verdicts import text_of, tone_of
from tfcompare.compare.pair import Pair
from tfcompare.compare.step_kinds import StepKind, counts_of, is_other_mix
from tfcompare.units import MISSING, format_ratio, format_time_us, ratio_of
from tfcompare.views.blocks import Block, Facts, Finding, Link, Links, Text

_HELP = (
    "A step's kind is the name of its marker, such as train or eval, where there are several; else the compiled "
    "programs that ran in it. The headline is on the kind with most time that both runs have. Ops, kernels and "
    "instructions are per step of one mix of kinds on both sides, and judged in the kind in which they take most time; "
    "all other figures are of all included steps together, unless one kind is chosen (“Kind of step” in the sidebar, "
    "`--step-kind`)."
)


def blocks(pair: Pair) -> Iterator[Block]:
    """A row for each kind, that with most time first, and what it means; nothing where all steps are of one kind."""
    found = pair.step_kinds
    if not found:
        return
    if not pair.is_single:
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
            cells.append([
                one.name, " / ".join(counts), *times, format_ratio(ratio_of(*one.times_us)), interval,
                text_of(verdict.word, verdict.evidence),
            ])  # fmt: skip
            tones.append(tone_of(verdict.word, verdict.evidence))
        findings.append(_finding(pair, one))
    header = ["Kinds of steps, mean time", "Steps", *pair.headings]
    if not pair.is_single:
        header += ["Ratio", "95 % CI", "Verdict"]
    yield Facts(header, cells, range(1, min(len(header), 6)), tones, optional=(5, 1), findings=findings, help=_HELP)
    yield Links([Link(f"Only steps of {one.name}", "overview", {"step_kind": one.name}) for one in found])


def _sentence(found: list[StepKind], *, has_common: bool) -> str:
    """`The steps are of 2 kinds, in another mix on each side, so the time of all of them says little. Ops and kernels
    are compared in the same mix.`"""
    if not is_other_mix(*counts_of(found)):
        return f"The steps are of {len(found)} kinds."
    mixed = "in another mix on each side, so the time of all of them says little"
    ops = " Ops and kernels are compared in the same mix." if has_common else ""
    return f"The steps are of {len(found)} kinds, {mixed}.{ops}"


def _finding(pair: Pair, one: StepKind) -> Finding:
    verdict = one.verdict
    ours, theirs = one.times_us
    return Finding(
        f"step_kind:{one.name}", one.name, "µs", float("nan") if pair.is_single else ours, theirs,
        word="" if pair.is_single else verdict.word, evidence=verdict.evidence,
        interval=(verdict.low, verdict.high) if verdict.has_interval else None, more="timeline",
        is_alone=pair.is_single,
    )  # fmt: skip
