"""Verdicts as words, signs and colours."""

from __future__ import annotations

from dataclasses import dataclass

from tfcompare.charts import style
from tfcompare.compare.stats.verdict import (
    FASTER,
    SAME,
    SINGLE,
    SLOWER,
    UNCLEAR,
    UNTESTED,
    Verdict,
    wording,
)

SIGNS = {FASTER: "▼", SLOWER: "▲", SAME: "=", UNCLEAR: "?", UNTESTED: "–"}
"""Sign before each verdict, so that colour is not the only distinction."""

_COLOURS = {FASTER: style.BETTER, SLOWER: style.WORSE}
_LIKELY_COLOURS = {FASTER: style.LIKELY_BETTER, SLOWER: style.LIKELY_WORSE}


@dataclass(frozen=True)
class Judged:
    """A verdict, and the `name` of what it is about."""

    name: str
    verdict: Verdict


def word_of(verdict: Verdict) -> str:
    """The verdict as text, such as `▼ likely faster`."""
    return text_of(verdict.word, verdict.evidence)


def text_of(word: str, evidence: object) -> str:
    """A verdict with its sign, such as `▼ likely faster`; `evidence` may be missing."""
    return f"{SIGNS[word]} {wording(word, str(evidence))}"


def colour_of(word: str, evidence: object) -> str:
    """The colour of a verdict: weaker if from single captures, neutral if neither better nor worse."""
    return (_LIKELY_COLOURS if evidence == SINGLE else _COLOURS).get(word, style.NEUTRAL)


def colours_of_change(verdict: Verdict) -> tuple[str, str]:
    """The colours of less and of more time under an overall `verdict`; both neutral if it claims no change."""
    if not verdict.is_claim:
        return style.NEUTRAL, style.NEUTRAL
    return colour_of(FASTER, verdict.evidence), colour_of(SLOWER, verdict.evidence)
