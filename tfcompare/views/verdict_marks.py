"""Verdicts as words, signs and colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfcompare.compare.diff import MATCHED, outcome
from tfcompare.compare.stats.verdict import (
    FASTER,
    LESS,
    MORE,
    SAME,
    SINGLE,
    SLOWER,
    UNCLEAR,
    UNTESTED,
    Verdict,
    wording,
)
from tfcompare.views import chart_style as style

SIGNS = {FASTER: "▼", SLOWER: "▲", LESS: "▼", MORE: "▲", SAME: "=", UNCLEAR: "?", UNTESTED: "–"}
"""Sign before each verdict, so that colour is not the only distinction."""

Tone = Literal["better", "worse", "likely-better", "likely-worse", "neutral"]
_TONES: dict[str, Tone] = {FASTER: "better", LESS: "better", SLOWER: "worse", MORE: "worse"}
_LIKELY_TONES: dict[str, Tone] = {FASTER: "likely-better", SLOWER: "likely-worse"}

TONE_COLOURS: dict[Tone, str] = {
    "better": style.BETTER,
    "worse": style.WORSE,
    "likely-better": style.LIKELY_BETTER,
    "likely-worse": style.LIKELY_WORSE,
}
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


def outcome_text(row: Mapping[Any, Any]) -> str:
    """What became of a row of a diff: `added`, `removed`, or its verdict with its sign; empty without a verdict."""
    text = outcome(row["status"], row["verdict"], row["evidence"])
    return f"{SIGNS[row['verdict']]} {text}" if text and row["status"] == MATCHED else text


def tone_of(word: object, evidence: object) -> Tone:
    """Whether a verdict is good news; weaker from single captures, `neutral` without a claim or a verdict."""
    likely = _LIKELY_TONES if evidence == SINGLE else {}
    return {**_TONES, **likely}.get(str(word), "neutral")


def colour_of(word: str, evidence: object) -> str:
    """The colour of a verdict: weaker if from single captures, neutral if neither better nor worse."""
    return (_LIKELY_COLOURS if evidence == SINGLE else _COLOURS).get(word, style.NEUTRAL)


def colours_of_change(verdict: Verdict) -> tuple[str, str]:
    """The colours of less and of more time under an overall `verdict`; both neutral if it claims no change."""
    if not verdict.is_claim:
        return style.NEUTRAL, style.NEUTRAL
    return colour_of(FASTER, verdict.evidence), colour_of(SLOWER, verdict.evidence)
