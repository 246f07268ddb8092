"""What to try next in the candidate, and what got better since the baseline: rules over both runs' tables.

Each rule looks at one run's `Facts` and stays silent without evidence; every number in its text is one of its evidence.
Families of rules, one file each: input, host, device, kernels, model, memory. `changes` says what moved.
"""

from tfcompare.tools.advice.advise import advise, advise_on
from tfcompare.tools.advice.facts import Facts, facts_of, with_repeats
from tfcompare.tools.advice.model import Advice, Change, Evidence, Findings

__all__ = ["Advice", "Change", "Evidence", "Facts", "Findings", "advise", "advise_on", "facts_of", "with_repeats"]
