"""Reads and writes manual matches as text: in a page's URL and in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from tfcompare.compare.matching.manual import LEVELS, ManualChoice, Name, effective
from tfcompare.errors import TfcompareError
from tfcompare.schema import SIDES

MOST_CHOICES, MOST_LETTERS = 50, 4000
"""The limits of a URL: programs that forward longer ones may truncate them."""

ELSEWHERE = "kept by the session"
"""Placeholder in a URL for choices that exceed its limits."""

MOST_IN_A_FILE = 10_000
_FORMAT = "tfcompare pairs"
_PAIR, _PART = "pair", "part"


class ChoicesOfPair(NamedTuple):
    """The choices for two runs, given by their ids. They also apply, mirrored, if the two runs are swapped."""

    baseline: str
    candidate: str
    choices: tuple[ManualChoice, ...]


SessionChoices = tuple[ChoicesOfPair, ...]
"""All choices of a session."""


def choices_for(kept: SessionChoices, baseline: str | None, candidate: str) -> tuple[ManualChoice, ...]:
    """The choices for these two runs."""
    found: list[ManualChoice] = []
    for ours, theirs, choices in kept:
        if (ours, theirs) == (baseline, candidate):
            found += choices
        elif (theirs, ours) == (baseline, candidate):
            found += [choice.mirrored for choice in choices]
    return effective(found)


def with_choices(
    kept: SessionChoices, baseline: str, candidate: str, choices: Iterable[ManualChoice]
) -> SessionChoices:
    """`kept` with the choices for these two runs replaced by `choices`."""
    others = [runs for runs in kept if {runs.baseline, runs.candidate} != {baseline, candidate}]
    holding = effective(choices)
    return (*others, ChoicesOfPair(baseline, candidate, holding)) if holding else tuple(others)


def to_address(kept: SessionChoices) -> list[str]:
    """The values of the query parameter, one per pair of runs; just `ELSEWHERE` if the choices exceed the limits."""
    values = []
    for baseline, candidate, choices in kept:
        each = (["=" if choice.is_pair else "!", *choice.baseline, *choice.candidate] for choice in choices)
        values.append(json.dumps([baseline, candidate, *each], ensure_ascii=False, separators=(",", ":")))
    return values if fits_an_address(kept, values) else [ELSEWHERE]


def fits_an_address(kept: SessionChoices, values: Sequence[str] | None = None) -> bool:
    """Whether a link can hold all choices."""
    if values is None:
        return to_address(kept) != [ELSEWHERE]
    few = sum(len(runs.choices) for runs in kept) <= MOST_CHOICES
    return few and sum(len(quote(value)) for value in values) <= MOST_LETTERS


def from_address(values: Sequence[str]) -> SessionChoices | None:
    """Parses the values of `to_address`; None if they are `ELSEWHERE` or invalid."""
    if len("".join(values)) > MOST_LETTERS:
        return None
    kept: SessionChoices = ()
    for value in values:
        try:
            content = json.loads(value)
            json.dumps(content, ensure_ascii=False).encode()  # half a surrogate pair is no text
            match content:
                case [str(baseline), str(candidate), *choices]:
                    kept = (*kept, ChoicesOfPair(baseline, candidate, effective(map(_choice_of_list, choices))))
                case _:
                    return None
        except (ValueError, RecursionError):
            return None
    return kept


def to_file(runs: ChoicesOfPair) -> str:
    """The choices for two runs as JSON; the runs' ids identify the two sides."""
    choices = [
        {
            "choice": _PAIR if choice.is_pair else _PART,
            **dict(zip(("baseline_op", "baseline_kernel"), choice.baseline, strict=False)),
            **dict(zip(("candidate_op", "candidate_kernel"), choice.candidate, strict=False)),
        }
        for choice in runs.choices
    ]
    content = {"format": _FORMAT, "baseline": runs.baseline, "candidate": runs.candidate, "choices": choices}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def from_file(text: str, where: str) -> ChoicesOfPair:
    """Parses the text of `to_file`; raises `TfcompareError` naming `where` and the invalid choice."""
    try:
        content = json.loads(text)
        json.dumps(content, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise TfcompareError(f"{where}: expected JSON as tfcompare saves pairs, found none: {error}") from None
    match content:
        case {"format": "tfcompare pairs", "baseline": str(baseline), "candidate": str(candidate), "choices": [*found]}:
            pass
        case _:
            raise TfcompareError(
                f'{where}: expected {{"format": "{_FORMAT}", "baseline": …, "candidate": …, "choices": […]}}, as '
                "tfcompare saves pairs"
            )
    if len(found) > MOST_IN_A_FILE:
        raise TfcompareError(f"{where}: holds {len(found):,} choices; at most {MOST_IN_A_FILE:,} are read")
    choices = [_choice_of_object(choice, f"{where}: choice {number}") for number, choice in enumerate(found, 1)]
    return ChoicesOfPair(baseline, candidate, effective(choices))


def _choice_of_object(choice: Any, where: str) -> ManualChoice:
    names: list[Name] = []
    if isinstance(choice, dict) and choice.get("choice") in (_PAIR, _PART):
        for side in SIDES:
            parts = [choice[key] for key in (f"{side}_op", f"{side}_kernel") if key in choice]
            names.append(tuple(parts) if all(isinstance(part, str) for part in parts) else ())
    if len(names) != 2 or not names[0] or len(names[0]) != len(names[1]):
        raise TfcompareError(
            f'{where}: expected "choice" ("{_PAIR}" or "{_PART}"), "baseline_op" and "candidate_op", and for a kernel '
            'also "baseline_kernel" and "candidate_kernel", all of them text'
        )
    return ManualChoice(choice["choice"] == _PAIR, names[0], names[1])


def _choice_of_list(choice: Any) -> ManualChoice:
    """Parses one choice; raises `ValueError` if it is invalid."""
    match choice:
        case [("=" | "!") as sign, *names] if all(isinstance(name, str) for name in names):
            half = len(names) // 2
            if len(names) == 2 * half and half in map(len, LEVELS):
                return ManualChoice(sign == "=", tuple(names[:half]), tuple(names[half:]))
    raise ValueError(f"not a choice: {choice!r}")
