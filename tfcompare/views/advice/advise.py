"""Applies all rules to a candidate."""

from __future__ import annotations

from tfcompare.views.advice import (
    compile_rules,
    device_rules,
    host_rules,
    input_rules,
    kernel_rules,
    memory_rules,
    model_rules,
    python_rules,
    xla_rules,
)
from tfcompare.views.advice.facts import FEWEST_STEPS, Facts
from tfcompare.views.advice.model import WORTH_IT, Advice, Findings, Found, Rule, evidence
from tfcompare.views.advice.worth_trying import worth_trying

_FAMILIES = (
    *(python_rules, input_rules, compile_rules, host_rules, device_rules, kernel_rules),
    *(xla_rules, model_rules, memory_rules),
)
RULES: dict[str, Rule] = {rule.__name__: rule for family in _FAMILIES for rule in family.RULES}
"""All rules by name. Advice with equal savings is sorted in this order."""


def advise_on(baseline: Facts, candidate: Facts) -> Findings:
    """Advice on what to try next in the candidate, with the baseline's numbers beside its own."""
    advice = [found for name, rule in RULES.items() if (found := _asked(name, rule, baseline, candidate))]
    advice.sort(key=lambda found: -found.saves)
    caveat = _caveat(candidate)
    also = () if caveat else worth_trying(candidate, {one.rule for one in advice})
    return Findings(tuple(advice), caveat, also)


def _caveat(candidate: Facts) -> str:
    if candidate.has_enough_steps:
        return ""
    if not candidate.info.has_step_times:
        return "Advice on times needs the time of steps, which is unknown here."
    count = len(candidate.steps)
    return f"Advice on times needs {FEWEST_STEPS} included steps, and this run has {count}. Profile more steps."


def _asked(name: str, rule: Rule, baseline: Facts, candidate: Facts) -> Advice | None:
    found = _found(rule, candidate)
    if found is None:
        return None
    seen = evidence(found.figures, candidate, baseline)
    return Advice(name, found.title, found.text, seen, found.link, found.saves)


def _found(rule: Rule, facts: Facts) -> Found | None:
    """A rule's finding in a run, if it saves enough and, except for memory, is based on enough steps."""
    if rule not in memory_rules.RULES and not facts.has_enough_steps:
        return None
    found = rule(facts)
    return None if found is None or 0 < found.saves < WORTH_IT else found
