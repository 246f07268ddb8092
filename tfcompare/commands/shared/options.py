"""The options that say which runs to take and how to compare them, declared once, and the question that they ask."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcompare.errors import TfcompareError
from tfcompare.schema import SIDES
from tfcompare.sources.step_choice import step_choice

if TYPE_CHECKING:
    from tfcompare.compare.matching.manual import ManualChoice
    from tfcompare.loading import Question

PER = ("step", "run", "device")
_PERCENT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*")

_CAPTURE = (
    "of several captures, those to show where they cannot be pooled, such as in the timeline (default: of each run the "
    "one nearest to the mean step)"
)
_JOIN = (
    "take runs beside each other for hosts of one run if they were captured at the same time on different hosts and "
    "their folders' stamps differ by seconds"
)
_STEPS = (
    "only the steps at these positions, from 1 and inclusive, such as 5:25, 5: or :25 (default: all steps; if there "
    "are more than five, the first and the last are excluded from figures)"
)
_STEP_MARKER = (
    "the host event that begins each step, for profiles without step markers; a step ends where the next begins"
)
_STEP_KIND = (
    "only the steps of this kind in figures per step, where a loop has several: the name of their marker, such as "
    "train, or of their compiled program (default: all)"
)
_STRAY = (
    "the one step of a run that is far longer than all others: excluded from figures, or counted like the others "
    "(default: %(default)s)"
)
_REPEAT = (
    "replicates: all runs at and below each PATH, captured from the {side}'s program; verdicts on times use them, and "
    "with 3 or more captures per side the run-to-run variation is measured instead of assumed"
)
_SPREAD = (
    "run-to-run variation, as the standard deviation between captures of one program, such as 3%% (default: assumed by "
    "device)"
)


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """Declare the runs, of which one may be alone, and the options of `add_options`."""
    parser.add_argument("baseline", metavar="BASELINE", help="the run to compare with, or the only run")
    parser.add_argument("candidates", metavar="CANDIDATE", nargs="*", help="the runs to compare with it")
    add_options(parser)


def add_options(parser: argparse.ArgumentParser, per: Sequence[str] = PER) -> None:
    """Declare the options of a comparison; `per` is what sums can be divided by."""
    parser.add_argument("--per", choices=per, default="step", help="what sums are divided by (default: %(default)s)")
    add_host(parser)
    add_judging(parser)
    several: dict[str, Any] = {"metavar": "NAME", "nargs": "+", "action": "extend", "default": []}
    parser.add_argument("--capture", help=_CAPTURE, **several)
    add_store(parser)
    add_steps(parser)
    meaning = "a file of manual matches between ops, saved by the dashboard"
    parser.add_argument("--pairs", metavar="FILE", type=Path, help=meaning)


def add_host(parser: argparse.ArgumentParser) -> None:
    """Declare `--host`."""
    parser.add_argument("--host", metavar="H", help="only this host (default: all hosts)")


def add_store(parser: argparse.ArgumentParser) -> None:
    """Declare `--store` and `--join`."""
    meaning = "read runs from this store, by the ids or names that `tfcompare runs --store URL` lists"
    parser.add_argument("--store", metavar="URL", help=meaning)
    parser.add_argument("--join", action="store_true", help=_JOIN)


def add_steps(parser: argparse.ArgumentParser) -> None:
    """Declare `--steps`, `--step-marker`, `--step-kind` and `--stray`."""
    parser.add_argument("--steps", metavar="FIRST:LAST", help=_STEPS)
    parser.add_argument("--step-marker", metavar="NAME", help=_STEP_MARKER)
    parser.add_argument("--step-kind", metavar="KIND", help=_STEP_KIND)
    parser.add_argument("--stray", choices=("exclude", "include"), default="exclude", help=_STRAY)


def add_judging(parser: argparse.ArgumentParser) -> None:
    """Declare `--baseline-repeat`, `--candidate-repeat` and `--spread`."""
    several: dict[str, Any] = {"metavar": "PATH", "nargs": "+", "action": "extend", "default": []}
    for side in SIDES:
        parser.add_argument(f"--{side}-repeat", help=_REPEAT.format(side=side), **several)
    parser.add_argument("--spread", metavar="PERCENT", help=_SPREAD)


def question(arguments: argparse.Namespace, *places: str) -> Question:
    """What the options of a command ask about runs at these places; those that it does not have are at their defaults.

    Raises `TfcompareError` for a malformed option, an unreadable file of pairs, and options that take a single
    candidate if there are several.
    """
    from tfcompare.loading import Question

    given, counts_stray = vars(arguments), arguments.stray == "include"
    steps = step_choice(arguments.step_marker, arguments.steps, counts_stray=counts_stray, kind=arguments.step_kind)
    repeats = [tuple(given.get(f"{side}_repeat") or ()) for side in SIDES]
    if len(places) > len(SIDES) and repeats[1]:
        raise TfcompareError(
            f"--candidate-repeat takes a single CANDIDATE, but {len(places) - 1} were given; compare them one by one"
        )
    return Question(
        places,
        repeats=tuple(repeats[: len(places)]),
        store=arguments.store,
        join=arguments.join,
        steps=steps,
        per=given.get("per", "step"),
        host=given.get("host"),
        captures=tuple(given.get("capture") or ()),
        spread=_spread(given.get("spread")),
        pairs=_pairs(given.get("pairs"), len(places) - 1),
    )


def comparison_question(arguments: argparse.Namespace) -> Question:
    """`question` on the runs of `add_comparison`."""
    return question(arguments, arguments.baseline, *arguments.candidates)


def _spread(text: str | None) -> float | None:
    """`--spread` as a fraction: 0.03 for `3%`. Raises `TfcompareError` for anything but a percentage."""
    if text is None:
        return None
    if (match := _PERCENT.fullmatch(text)) is None:
        raise TfcompareError(f"--spread {text!r}: expected a percentage, such as 3%")
    return float(match[1]) / 100


def _pairs(path: Path | None, candidates: int) -> tuple[tuple[ManualChoice, ...], ...]:
    """The manual matches in the file, for the only candidate; empty without a file."""
    from tfcompare.compare.matching.manual_text import from_file

    if path is None:
        return ()
    if candidates != 1:
        raise TfcompareError(f"--pairs takes a single CANDIDATE, but {candidates} were given; compare them one by one")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TfcompareError(f"{path}: expected a file of pairs, and could not read it: {error}") from None
    return (from_file(text, str(path)).choices,)


def words_of(arguments: argparse.Namespace) -> list[str]:
    """The runs and the options as they are typed; a run that was given twice once."""
    return [*dict.fromkeys([arguments.baseline, *arguments.candidates]), *options_of(arguments)]


def options_of(arguments: argparse.Namespace, *, places: bool = True) -> list[str]:
    """The options of `add_comparison` that differ from their defaults, as they are typed; without `places` no paths."""
    of_places = {"store": arguments.store, "pairs": arguments.pairs} if places else {}
    options = {name: getattr(arguments, name) for name in ("host", "spread", "steps", "step_marker", "step_kind")}
    options |= {"per": arguments.per if arguments.per != "step" else None}
    options |= {"stray": arguments.stray if arguments.stray != "exclude" else None}
    words = ["--join"] if arguments.join else []
    for option, value in {**of_places, **options}.items():
        words += [] if value is None else [f"--{option.replace('_', '-')}", str(value)]
    for side in SIDES if places else ():
        if repeats := getattr(arguments, f"{side}_repeat"):
            words += [f"--{side}-repeat", *repeats]
    return words
