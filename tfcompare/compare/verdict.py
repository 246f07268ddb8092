"""Whether a difference is real: so far only what can be told without statistics."""

from __future__ import annotations

from dataclasses import dataclass

SAME = "same"
UNTESTED = "untested"
LESS = "less"
MORE = "more"


@dataclass(frozen=True)
class Verdict:
    """A word (`same`, `untested`) and, in one phrase, why."""

    word: str
    reason: str


IDENTICAL = Verdict(SAME, "identical file")
NOT_TESTED = Verdict(UNTESTED, "tfcompare does not test differences yet: the figures stand side by side, unjudged")


def verdict_on_step_time(*, identical: bool) -> Verdict:
    """`same` for two recordings with the same bytes, else `untested`."""
    return IDENTICAL if identical else NOT_TESTED
