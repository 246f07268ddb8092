"""Every rule asked about a candidate, and what changed since the baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfcompare.advice import device_rules, host_rules, input_rules, kernel_rules, memory_rules, model_rules
from tfcompare.advice.changes import STEP, changes
from tfcompare.advice.facts import Facts, facts_of
from tfcompare.advice.model import Advice, Findings, Rule, Side, evidence
from tfcompare.input_bound import in_time

if TYPE_CHECKING:
    from tfcompare.run import Run

RULES: dict[str, Rule] = {
    rule.__name__: rule
    for family in (input_rules, host_rules, device_rules, kernel_rules, model_rules, memory_rules)
    for rule in family.RULES
}
"""Every rule by its name. Of advice that could save equally much, that of the first rule comes first."""


def advise(baseline: Run, candidate: Run, hosts: tuple[str | None, str | None] = (None, None)) -> Findings:
    """What to try next in the candidate, and what got better and worse since the baseline.

    `hosts`: one host of baseline and candidate to look at, None for all. Raises `Unknown` for a host that is none.
    """
    return advise_on(facts_of(baseline, hosts[0]), facts_of(candidate, hosts[1]))


def advise_on(baseline: Facts, candidate: Facts) -> Findings:
    """The same from facts that are at hand."""
    advice = [found for name, rule in RULES.items() if (found := _asked(name, rule, baseline, candidate))]
    advice.sort(key=lambda found: -found.saves)
    improvements, regressions = changes(baseline, candidate)
    moved = {change.figure for change in (*improvements, *regressions)}
    if moved & {STEP, "input_us"}:
        advice = [_with_what_changed(found, baseline, candidate) for found in advice]
    return Findings(tuple(advice), improvements, regressions)


def _asked(name: str, rule: Rule, baseline: Facts, candidate: Facts) -> Advice | None:
    found = rule(candidate)
    if found is None:
        return None
    side: Side = "candidate" if rule(baseline) is None else "both"
    seen = evidence(found.figures, candidate, baseline)
    return Advice(name, found.title, found.text, seen, found.link, side, found.saves)


def _with_what_changed(advice: Advice, baseline: Facts, candidate: Facts) -> Advice:
    """Where the candidate has become input bound: whether a step waits longer, or the rest of it got shorter."""
    if advice.rule != "input_bound" or advice.side == "both":
        return advice
    return replace(advice, text=f"{advice.text} {in_time(baseline.wait, candidate.wait)}".rstrip())
