"""Options on the evidence for verdicts: replicates of either program, and how much captures vary."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tfcompare.commands.shared.output import note
from tfcompare.commands.shared.reading import Reading, load_with, reading, stored_runs
from tfcompare.errors import TfcompareError
from tfcompare.schema import SIDES
from tfcompare.sources.remote.places import shown

if TYPE_CHECKING:
    from tfcompare.run import Run

_PERCENT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*")


def add_judging(parser: argparse.ArgumentParser) -> None:
    """Declare `--baseline-repeat`, `--candidate-repeat` and `--spread`."""
    for side in SIDES:
        parser.add_argument(
            f"--{side}-repeat",
            metavar="PATH",
            nargs="+",
            action="extend",
            default=[],
            help=f"replicates: all runs at and below each PATH, captured from the {side}'s program; verdicts on times "
            "use them, and with 3 or more captures per side the run-to-run variation is measured instead of assumed",
        )
    parser.add_argument(
        "--spread",
        metavar="PERCENT",
        help="run-to-run variation, as the standard deviation between captures of one program, such as 3%% (default: "
        "assumed by device)",
    )


def spread_of(arguments: argparse.Namespace) -> float | None:
    """`--spread` as a fraction: 0.03 for `3%`. Raises `TfcompareError` for anything but a percentage."""
    if arguments.spread is None:
        return None
    match = _PERCENT.fullmatch(arguments.spread)
    if match is None:
        raise TfcompareError(f"--spread {arguments.spread!r}: expected a percentage, such as 3%")
    return float(match[1]) / 100


def load_repeats(arguments: argparse.Namespace, groups: Sequence[Sequence[Run]]) -> dict[str, tuple[Run, ...]]:
    """The usable replicates, by the id of the run that they replicate; notes those that are not usable or readable.

    `groups` holds the baseline and each candidate, each with the captures found next to it. `--candidate-repeat` is for
    the first candidate. Raises `TfcompareError` if a PATH contains no readable run.
    """
    from tfcompare.sources.logdir.places import is_same

    repeats: dict[str, list[Run]] = {}
    for run, *captures in groups:
        repeats.setdefault(run.id, []).extend(captures)
    for (run, *_), places in zip(groups, (arguments.baseline_repeat, arguments.candidate_repeat), strict=False):
        named = _load_all(places, reading(arguments))
        repeats[run.id] += [more for more in named if not is_same(more.path, run.path)]
    return usable_repeats([run for run, *_ in groups], repeats)


def usable_repeats(compared: Sequence[Run], repeats: Mapping[str, Sequence[Run]]) -> dict[str, tuple[Run, ...]]:
    """The usable ones among the `repeats` of the compared runs, by the id of their run; notes why others are not."""
    from tfcompare.compare.repeats import accept_replicates

    found = accept_replicates(compared, repeats)
    for sentence in found.refused:
        note(f"note: {sentence}")
    return found.repeats


def _load_all(places: Sequence[str], how: Reading) -> list[Run]:
    from tfcompare.sources.logdir import find_runs

    if not places:
        return []
    runs: list[Run] = []
    for found in find_runs(*places, join=how.join) if how.store is None else stored_runs(how.store, places):
        try:
            runs.append(load_with(found, how.steps))
        except TfcompareError as error:
            note(f"note: left out: {error}")
    if not runs:
        raise TfcompareError(f"{', '.join(map(shown, places))}: none of the runs there can be read")
    return runs
