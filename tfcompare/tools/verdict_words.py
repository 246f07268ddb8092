"""What to read after the headline of a comparison: what the verdict is based on, and what the step time leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.between_steps import rates, windows_of
from tfcompare.compare.headline import how_to_record_more, knows_step_time, step_marker_call
from tfcompare.compare.slow_step_words import sentences
from tfcompare.compare.stats.estimates import FEWEST_REPEATS, FEWEST_STEPS
from tfcompare.compare.stats.spread import UNDER_LOAD
from tfcompare.compare.stats.verdict import IDENTICAL, UNCLEAR, UNTESTED
from tfcompare.compare.without_steps import leading_sentence
from tfcompare.markdown import as_code, as_markdown
from tfcompare.text import capitalized

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run


def evidence(pair: Pair) -> str:
    """What the verdict on the step time rests on, in Markdown: the interval and the steps, whether the machine may have
    been busy, and what speaks against a claim."""
    found = pair.headline_verdict
    if found == IDENTICAL:
        return ""  # the headline says so
    caveat = f"**But {as_markdown(found.caveat)}.**" if found.caveat else ""
    return " ".join(filter(None, [f"{as_markdown(capitalized(found.reason))}.", _unknown_load(pair), caveat]))


def next_step(pair: Pair) -> str:
    """What to do to settle an inconclusive verdict on the step time, or to get one at all; else empty."""
    found = pair.headline_verdict
    if found.word == UNCLEAR and found.sensitivity:
        return found.sensitivity.what_would_show()
    infos = pair.baseline.info, pair.candidate.info
    if any(run.lost_steps for run in pair.runs):
        return "To lose no step: record fewer steps, or with fewer tracers, and wait for the device before it stops."
    few = found.word == UNTESTED and min(info.steps_included for info in infos) < FEWEST_STEPS
    return how_to_record_more(infos) if few else ""


def _unknown_load(pair: Pair) -> str:
    """That the runs may vary as those of a busy machine, where nobody knows its load and their variation is assumed."""
    found = pair.headline_verdict.sensitivity
    is_assumed = found is not None and min(found.captures) < FEWEST_REPEATS and pair.among.spread is None
    if not is_assumed or all(run.machine_load is not None for run in pair.runs):
        return ""
    return f"The machine's load is unknown; on a busy one, runs vary {UNDER_LOAD:.0f} times as much."


ELSEWHERE = (
    ", or choose the host event that begins each step (“Steps begin with” in the sidebar, `--step-marker` on the "
    "command line)"
)
"""How else to get step times."""


def without_step_times(pair: Pair, shown: Mapping[str, Run]) -> tuple[str, str]:
    """A headline on runs that lack step times, and how to get them, in Markdown.

    `shown` are the runs by the letters that they go by.
    """
    missing = {letter: run for letter, run in shown.items() if not knows_step_time(run.info)}
    consequence = "there is no step time" if pair.is_single else "step times cannot be compared"
    named = (f"{as_code(name)}: " if not pair.is_single else "" for name in missing)
    untimed = [f"{name}{run.why_untimed}" for name, run in zip(named, missing.values(), strict=True) if run.why_untimed]
    if untimed:
        throughput = "" if pair.is_single else rates(*windows_of(pair))
        beside = f"; throughput is {throughput}" if throughput else ""
        return capitalized(consequence) + beside, " ".join(f"{capitalized(sentence)}." for sentence in untimed)
    where = "" if pair.is_single else f" in {' and '.join(missing)}"
    how = f"ecord again with each step inside `{step_marker_call(run.info for run in missing.values())}`{ELSEWHERE}."
    first, *others = shown
    if others and (lead := leading_sentence(pair, (first, others[0]))):
        return lead.removesuffix("."), f"No verdict, since there are no step markers{where}: r{how}"
    return f"No step markers{where}, so {consequence}", f"R{how}"


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
