"""Advice on what to try next in the candidate, by rules over both runs' tables.

Each rule examines the `Facts` of one run and gives no advice without evidence; every number in its text is part of its
evidence. Each family of rules has a file: input, compilation, host, device, kernels, XLA programs, model, memory.
`worth_trying` has suggestions that no profile can judge.
"""

from tfcompare.views.advice.advise import advise_on
from tfcompare.views.advice.facts import Facts, facts_of
from tfcompare.views.advice.model import Advice, Evidence, Findings
from tfcompare.views.advice.worth_trying import Suggestion

__all__ = ["Advice", "Evidence", "Facts", "Findings", "Suggestion", "advise_on", "facts_of"]
