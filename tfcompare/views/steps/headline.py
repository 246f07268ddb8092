"""The headline sentence on the change of the step time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfcompare.compare.comparability import differing_examples
from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.pair import Pair
from tfcompare.compare.per_device import computing_devices
from tfcompare.compare.stats.verdict import IDENTICAL, SAME, UNCLEAR, UNTESTED
from tfcompare.compare.steps.iterations import ALIKE
from tfcompare.compare.steps.step_kinds import counts_of, is_other_mix
from tfcompare.compare.steps.step_time_verdict import JAX_STEP, knows_step_time, step_marker_call, step_time_us
from tfcompare.compare.steps.trade_off import trade_off
from tfcompare.schema import DEVICE, SIDES
from tfcompare.text import as_code, capitalized
from tfcompare.units import format_percent_change, format_ratio, format_time_us
from tfcompare.views.pair_words import DIFFERENT_PROGRAMS, time_in_common
from tfcompare.views.steps.causes import cause
from tfcompare.views.steps.certain import have_equal_programs
from tfcompare.views.steps.trade_off_words import trade_off_sentence
from tfcompare.views.steps.words import clause, rates, row_of

if TYPE_CHECKING:
    from tfcompare.compare.stats.verdict import Verdict
    from tfcompare.compare.steps.step_kinds import StepKind
    from tfcompare.run import RunInfo

IN_MULTIPLES_FROM = 1.5
"""From here on the change of a time reads better as a factor than as a percentage."""
_FEW_STEPS = 3
_LEAST_MATCHED = 0.5
"""Of other work, the time of each device says nothing: most of both runs' time is in ops that both have."""


@dataclass(frozen=True)
class Headline:
    """What a comparison says of step times, in Markdown: a `clause` with a small first letter and without a full stop,
    and the sentences that follow, that on a `trade_off` first. `predicate` is the clause without its subject where that
    is the candidate's name and the clause is a claim; `is_on_all_steps`: it is on the mean of all steps of both."""

    clause: str
    others: tuple[str, ...] = ()
    predicate: str = ""
    trade_off: str = ""
    is_on_all_steps: bool = False

    @property
    def text(self) -> str:
        """All of it, as sentences."""
        return " ".join(filter(None, [f"{capitalized(self.clause)}.", self.trade_off, *self.others]))


def headline(pair: Pair, names: tuple[str, str] | None = None) -> Headline:
    """What changed, and what the candidate does otherwise; `names` are what the runs are called, by default
    `Pair.names`."""
    ours, theirs = map(as_code, names or pair.names)
    if pair.are_unrelated:
        return Headline(DIFFERENT_PROGRAMS, (time_in_common(pair, (ours, theirs)),))
    found = _of_step_times(pair, (ours, theirs))
    is_claim = pair.headline_verdict.is_claim
    beside = [cause(pair, (ours, theirs), is_subject=is_claim, with_programs=not found.trade_off)]
    if found.is_on_all_steps:
        before, after = (row_of(side.run, side.host) for side in pair.sides)
        beside.append(clause((before, after), (ours, theirs)))
    said, predicate = ("; ".join(filter(None, [text, *beside])) for text in (found.clause, found.predicate))
    return replace(found, clause=said, predicate=predicate if found.predicate else "")


def _of_step_times(pair: Pair, names: tuple[str, str]) -> Headline:
    """What changed of the step times, with a trade-off."""
    ours, theirs = names
    named = zip((ours, theirs), pair.runs, strict=True)
    untimed = [f"{name}: {run.why_untimed}." for name, run in named if run.why_untimed]
    if untimed and pair.verdict != IDENTICAL:
        throughput = rates(*(side.window for side in pair.sides))
        beside = [f"Throughput: {throughput}."] if throughput else []
        return Headline("step times cannot be compared", (*beside, *untimed))
    times = step_time_us(pair.sides[0]), step_time_us(pair.sides[1])
    infos = pair.baseline.info, pair.candidate.info
    if lead := leading_clause(pair, (ours, theirs)):
        return Headline(lead)
    found = trade_off(pair)
    kind_of_headline = "" if pair.main_kind is None else pair.main_kind.name
    sentence = "" if found is None else trade_off_sentence(pair, found, theirs, timed=kind_of_headline)
    if pair.main_kind is not None:
        told = "" if found is None else found.kind
        return replace(kinds_headline(pair.step_kinds, infos, times, (ours, theirs), told), trade_off=sentence)
    (before, host), (after, its_host) = ((side.run, side.host) for side in pair.sides)
    examples = differing_examples(before, after, (host, its_host)) if pair.iterations == ALIKE else None
    kind = before.choice.kind if before.choice.kind == after.choice.kind else None
    work = work_of_steps(pair.iterations, (ours, theirs))
    changed = step_time_headline(infos, times, (ours, theirs), pair.verdict, examples, kind, work)
    return replace(changed, trade_off=sentence)


def doubt(pair: Pair) -> str:
    """Why the headline is not a verdict on the program, in Markdown, to follow it; empty if it is one."""
    if pair.are_unrelated:
        return ""
    if all(knows_step_time(run.info) for run in pair.runs):
        verdict = pair.headline_verdict
        sentences = [f"Not tested: {verdict.reason}."] if verdict.word == UNTESTED else []
        return " ".join([*sentences, *([f"{capitalized(verdict.caveat)}."] if verdict.caveat else [])])
    ours, theirs = map(as_code, pair.names)
    if not leading_clause(pair, (ours, theirs)):
        return ""
    infos = {ours: pair.baseline.info, theirs: pair.candidate.info}
    return f"{_no_step_times({name: info for name, info in infos.items() if not knows_step_time(info)})}."


def leading_clause(pair: Pair, names: tuple[str, str]) -> str:
    """Markdown such as "`jit_f` takes 2.40 ms per execution in B, 3.10 ms in A (−22.6 %), on 8 devices and 1"

    Of the programs that both runs ran, the longest; without any, the time that ops take of each device, if the runs
    have most of it in common and computed on different numbers of devices; else nothing, as for runs that both have
    steps and for copies of one capture. `names` are those of baseline and candidate in Markdown.
    """
    if all(knows_step_time(run.info) for run in pair.runs) or pair.verdict == IDENTICAL:
        return ""
    ours, theirs = (computing_devices(side.run, side.host) for side in pair.sides)
    devices = f", on {theirs:,} device{'s' * (theirs > 1)} and {ours:,}" if ours != theirs else ""
    program = pair.longest_program
    if program is None and not devices:
        return ""
    if program is None:
        before, after = _time_of_each_device(pair)
        what, unit = "ops take", "of each device"
    else:
        before, after = program.baseline_us, program.candidate_us
        others = f", the longest of {program.of:,} programs," if program.of > 1 else ""
        same = "the same " if have_equal_programs(pair) else ""
        what, unit = f"{same}`{program.name}`{others} takes", "per execution"
    if not (before > 0 and after > 0):
        return ""
    ratio = after / before
    is_small = 1 / IN_MULTIPLES_FROM < ratio < IN_MULTIPLES_FROM
    change = format_percent_change(ratio) if is_small else format_ratio(ratio)
    times = f"{format_time_us(after)} {unit} in {names[1]}, {format_time_us(before)} in {names[0]}"
    return f"{what} {times} ({change}){devices}"


def _time_of_each_device(pair: Pair) -> tuple[float, float]:
    """The self time of all ops on devices, in µs, which is of each device where their numbers differ; 0 if most of it
    is in ops of one run."""
    diff = without_idle(pair.diff())
    ops = diff[diff["host_or_device"] == DEVICE]
    times = ops[[f"self_time_us_{side}" for side in SIDES]].astype("float64").fillna(0.0)
    if (times[ops["status"] == MATCHED].sum() < _LEAST_MATCHED * times.sum()).any():
        return 0.0, 0.0
    before, after = (float(ops[f"self_time_us_{side}"].sum()) for side in SIDES)
    return before, after


def step_time_headline(
    infos: tuple[RunInfo, RunInfo],
    times_us: tuple[float, float],
    names: tuple[str, str],
    verdict: Verdict,
    examples: tuple[float, float] | None = None,
    kind: str | None = None,
    work: str = "",
) -> Headline:
    """On the step times of both runs and the change between them.

    `times_us` are the step times and `names` the displayed names in Markdown, baseline first; `verdict` is the verdict
    on the step times; `examples` are those of a step, where they differ; `kind` is that of the steps, if one was
    chosen; `work` is what `work_of_steps` says: the times are then those of iterations. A change is stated only if the
    verdict is a claim.
    """
    ours, theirs = names
    if verdict == IDENTICAL:
        both = "both runs are the same capture" if ours == theirs else f"{theirs} is the same capture as {ours}"
        return Headline(f"{both}, byte for byte")
    timed = zip((ours, theirs), infos, times_us, strict=True)
    without = {name: info for name, info, time in timed if not (knows_step_time(info) and time > 0)}
    if without:
        return Headline(_no_step_times(without))
    if verdict.is_claim and examples is not None:
        predicate = f"{_examples_and_time(examples, times_us, ours, verdict)}: {_times(times_us)}"
        found = Headline(f"{theirs} {predicate}", predicate=predicate)
    elif work:
        found = _change(times_us, names, verdict, work=work)
    elif verdict.word == UNTESTED and all(info.steps_included == 1 for info in infos):
        found = Headline(_of_one_step(*times_us, names), (how_to_record_more(infos),))
    else:
        found = _change(times_us, names, verdict, of=kind or "")
    return replace(found, is_on_all_steps=not work, others=(*found.others, *_reservations(*infos, names)))


def kinds_headline(
    kinds: Sequence[StepKind],
    infos: tuple[RunInfo, RunInfo],
    times_us: tuple[float, float],
    names: tuple[str, str],
    without: str = "",
) -> Headline:
    """As `step_time_headline`, for steps of several kinds: on the first of `kinds` that both runs have, then on the
    others that changed, except `without`, or that one run lacks, then the time of all steps."""
    first = next(kind for kind in kinds if all(kind.counts))
    found = _change(first.times_us, names, first.verdict, of=first.name)
    others = list(found.others)
    for other in (kind for kind in kinds if kind is not first):
        missing = [name for name, count in zip(names, other.counts, strict=True) if not count]
        if missing:
            others.append(f"No steps of {as_code(other.name)} in {missing[0]}.")
        elif other.verdict.is_claim and other.name != without:
            others.append(_change(other.times_us, names, other.verdict, of=other.name).text)
    mixed = ", in another mix of kinds" if is_other_mix(*counts_of(kinds)) else ""
    others.append(f"All steps together: {_times(times_us)}{mixed}.")
    return Headline(found.clause, (*others, *_reservations(*infos, names)))


def work_of_steps(iterations: tuple[int, int], names: tuple[str, str]) -> str:
    """`each step of B does 8 times the work of one of A`, for steps of so many iterations; empty if both have one."""
    if max(iterations) == 1:
        return ""
    (few, other), (many, name) = sorted(zip(iterations, names, strict=True), key=lambda one: one[0])
    return f"each step of {name} does {many // few} times the work of one of {other}"


def _change(
    times_us: tuple[float, float],
    names: tuple[str, str],
    verdict: Verdict,
    *,
    of: str = "",
    work: str = "",
) -> Headline:
    """What the verdict says of two step times: of steps of the kind `of` where there are several, or of iterations
    where `work_of_steps` says that steps do unlike `work`."""
    ours, theirs = names
    times, per = _times(times_us), " per step"
    of_kind = f" for steps of {as_code(of)}" if of else ""
    lead, unclear, untested = "", f"inconclusive{of_kind}", f"difference not tested{of_kind}"
    if work:
        times, per, lead = " vs ".join(map(format_time_us, times_us[::-1])), "", f"{work}; per iteration, "
        unclear, untested = f"{lead}the difference is inconclusive", f"{lead}the difference was not tested"
    elif of:
        lead = f"in steps of {as_code(of)}, "
    if verdict.is_claim:
        predicate = f"{faster_or_slower(*times_us, per=per)} {ours} ({_how_sure(*times_us, verdict)}): {times}"
        return Headline(f"{lead}{theirs} {predicate}", predicate="" if lead else predicate)
    ends = f"{format_ratio(verdict.low)}–{format_ratio(verdict.high)}"
    interval = f"The 95 % confidence interval of the ratio between captures is {ends}."
    if verdict.word == SAME:
        return Headline(f"{lead}{theirs} is as fast as {ours}: {times}", (interval,))
    if verdict.word == UNCLEAR:
        how = () if verdict.sensitivity is None else (verdict.sensitivity.what_would_show(),)
        return Headline(f"{unclear}: {theirs} vs {ours}, {times}", (interval, *how))
    return Headline(f"{untested}: {theirs} vs {ours}, {times}")


def loop_change(
    periods_us: tuple[float, float], between_us: tuple[float, float], names: tuple[str, str], verdict: Verdict
) -> str:
    """What a claim on the time from step to step says of two loops, and how much of that is between steps, as a clause;
    each pair has the baseline's first."""
    ours, theirs = names
    before, after = periods_us
    factor, low, high = after / before, verdict.low, verdict.high
    if factor < 1:
        factor, low, high = 1 / factor, 1 / high, 1 / low
    sure = ", ".join(filter(None, [f"{format_ratio(low)}–{format_ratio(high)}", _captures(verdict)]))
    change = f"{format_ratio(factor)} {'slower' if after > before else 'faster'} than {ours}'s ({sure})"
    times, between = (" vs ".join(map(format_time_us, reversed(both))) for both in (periods_us, between_us))
    return f"{theirs}'s loop is {change}: {times} from step to step ({between} between steps)"


def _times(times_us: tuple[float, float]) -> str:
    """`8.00 ms vs 9.10 ms per step`, candidate first."""
    before, after = times_us
    return f"{format_time_us(after)} vs {format_time_us(before)} per step"


def _of_one_step(before: float, after: float, names: tuple[str, str]) -> str:
    """What two runs of one step each show."""
    ours, theirs = names
    factor = max(before, after) / min(before, after)
    word = "longer" if after > before else "shorter"
    much = f"{_two_digits(factor)}× {word} than" if round(factor, 2) > 1 else "as long as"
    times = f"{format_time_us(after)} vs {format_time_us(before)}"
    return f"{theirs}'s one step is {much} {ours}'s (1 step each: not tested): {times}"


def how_to_record_more(infos: Iterable[RunInfo]) -> str:
    """How to record enough steps for a verdict."""
    call = step_marker_call(infos)
    if call == JAX_STEP:
        return f"To record more: 20 steps or more, each inside `{call}`."
    return "To record more: `TensorBoard(profile_batch=(10, 40))`."


def _examples_and_time(of_step: tuple[float, float], times_us: tuple[float, float], name: str, verdict: Verdict) -> str:
    """`handles 2× the examples of A in 1.2× the time (1.1×–1.3×, one capture each), 1.7× as many per second of its
    steps`, for steps of different batch sizes; `name` is the baseline's."""
    examples, time = of_step[1] / of_step[0], times_us[1] / times_us[0]
    interval = f"{_two_digits(verdict.low)}×–{_two_digits(verdict.high)}×"
    return (
        f"handles {examples:.3g}× the examples of {name} in {_two_digits(time)}× the time "
        f"({', '.join(filter(None, [interval, _captures(verdict)]))}), {_two_digits(examples / time)}× as many per "
        "second of its steps"
    )


def _how_sure(before: float, after: float, verdict: Verdict) -> str:
    """`14×–26×, one capture each`: the interval in the words of `faster_or_slower`, and what it rests on."""
    is_multiple = max(before / after, after / before) >= IN_MULTIPLES_FROM
    ratios = verdict.low, verdict.high
    if is_multiple:
        ends = sorted(1 / ratio if after < before else ratio for ratio in ratios)
    else:
        ends = sorted(abs(ratio - 1) * 100 for ratio in ratios)
    low, high = map(_two_digits, ends)
    if low == high:
        low, high = (f"{end:.3g}" for end in ends)
    interval = f"{low}×–{high}×" if is_multiple else f"{low}–{high} %"
    return ", ".join(filter(None, [interval, _captures(verdict)]))


def _captures(verdict: Verdict) -> str:
    """`one capture each`, or how many; empty where nothing was tested."""
    if verdict.sensitivity is None:
        return ""
    ours, theirs = verdict.sensitivity.captures
    if ours != theirs:
        return f"{ours} and {theirs} captures"
    return f"{ours} captures each" if ours > 1 else "one capture each"


def _reservations(baseline: RunInfo, candidate: RunInfo, names: tuple[str, str]) -> list[str]:
    """Possible causes of the difference other than the program."""
    differing = [
        f"{what} ({ours} and {theirs})"
        for what, ours, theirs in (
            ("devices", baseline.device_type, candidate.device_type),
            ("frameworks", baseline.framework, candidate.framework),
        )
        if ours and theirs and ours != theirs
    ]
    named = " and ".join(differing)
    out = [f"They ran on different {named}, which alone can explain the difference."] if differing else []
    few = [name for name, info in zip(names, (baseline, candidate), strict=True) if info.steps_included < _FEW_STEPS]
    if few and baseline.steps_included + candidate.steps_included > 2:  # else the sentence before says it
        out.append(f"{' and '.join(few)} {'have' if len(few) > 1 else 'has'} fewer than {_FEW_STEPS} steps.")
    return out


def faster_or_slower(before: float, after: float, *, per: str = " per step") -> str:
    """`is 14× faster than`, `is 2.3× slower than`, `takes 12 % less time per step than`, for two times."""
    change = _change_in_words(before, after)
    return f"is {change} than" if "×" in change else f"takes {change}{per} than"


def short_change(before: float, after: float) -> str:
    """`14× faster`, `2.3× slower`, `12 % less time` for two times: the words of `faster_or_slower` in a table."""
    return "0 %" if abs(after / before - 1) < 0.0005 else _change_in_words(before, after)


def _change_in_words(before: float, after: float) -> str:
    factor, word = (before / after, "faster") if after < before else (after / before, "slower")
    if factor >= IN_MULTIPLES_FROM:
        return f"{_two_digits(factor)}× {word}"
    return f"{_two_digits(abs(after / before - 1) * 100)} % {'less' if after < before else 'more'} time"


def _no_step_times(runs: Mapping[str, RunInfo]) -> str:
    """A clause on runs without steps, by their names in Markdown, and how to get step times."""
    have = "have" if len(runs) > 1 else "has"
    how = how_to_mark_steps(runs.values())
    return f"{' and '.join(runs)} {have} no step markers, so step times cannot be compared; {how}"


def how_to_mark_steps(infos: Iterable[RunInfo]) -> str:
    """How to get step times of runs without step markers, as a clause."""
    return (
        f"record again with each step inside `{step_marker_call(infos)}`, or choose the host event that begins each "
        "step (“Steps begin with” in the sidebar, `--step-marker` on the command line)"
    )


def _two_digits(number: float) -> str:
    rounded = float(f"{number:.1e}")
    decimals = max(0, 1 - math.floor(math.log10(rounded)))
    return f"{rounded:,.{decimals}f}" if decimals <= 4 else "less than 0.0001"
