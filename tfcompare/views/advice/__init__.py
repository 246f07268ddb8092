"""Advice on what to try next in the candidate, by rules over both runs' tables.

Each rule examines the `Facts` of one run and gives no advice without evidence; every number in its text is part of its
evidence. Each family of rules has a file: input, compilation, host, device, kernels, XLA programs, model, memory.
`worth_trying` has suggestions that no profile can judge.
"""

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
from tfcompare.views.advice.facts import FEWEST_STEPS, Facts, facts_of
from tfcompare.views.advice.model import WORTH_IT, Advice, Evidence, Findings, Rule, evidence
from tfcompare.views.advice.worth_trying import Suggestion, worth_trying

__all__ = ["RULES", "Advice", "Evidence", "Facts", "Findings", "Suggestion", "advise_on", "facts_of"]

_FAMILIES = (
    *(python_rules, input_rules, compile_rules, host_rules, device_rules, kernel_rules),
    *(xla_rules, model_rules, memory_rules),
)
RULES: dict[str, Rule] = {rule.__name__: rule for family in _FAMILIES for rule in family.RULES}
"""All rules by name. Advice with equal savings is sorted in this order."""


def advise_on(baseline: Facts, candidate: Facts) -> Findings:
    """Advice on what to try next in the candidate, with the baseline's numbers beside its own.

    A rule's finding counts if it saves enough and, except for memory, is based on enough steps.
    """
    advice = []
    for name, rule in RULES.items():
        found = rule(candidate) if candidate.has_enough_steps or rule in memory_rules.RULES else None
        if found is not None and not 0 < found.saves < WORTH_IT:
            seen = evidence(found.figures, candidate, baseline)
            advice.append(Advice(name, found.title, found.text, seen, found.link, found.saves))
    advice.sort(key=lambda one: -one.saves)
    if candidate.has_enough_steps:
        return Findings(tuple(advice), "", worth_trying(candidate, {one.rule for one in advice}))
    if not candidate.info.has_step_times:
        return Findings(tuple(advice), "Advice on times needs the time of steps, which is unknown here.")
    included = f"{FEWEST_STEPS} included steps, and this run has {len(candidate.steps)}"
    return Findings(tuple(advice), f"Advice on times needs {included}. Profile more steps.")
