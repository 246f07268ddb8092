"""Options on what verdicts rest on: more recordings of either program, and how far such recordings are apart."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfcompare.commands.output import note
from tfcompare.commands.reading import stored_runs, tell_fetching
from tfcompare.errors import TfcompareError
from tfcompare.remote.places import shown

if TYPE_CHECKING:
    from tfcompare.run import Run

_PERCENT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*")


def add_judging(parser: argparse.ArgumentParser) -> None:
    """Declare `--baseline-repeat`, `--candidate-repeat` and `--spread`."""
    for side in ("baseline", "candidate"):
        parser.add_argument(
            f"--{side}-repeat",
            metavar="PATH",
            nargs="+",
            action="extend",
            default=[],
            help=f"more recordings of the {side}'s program, all runs at and below each PATH: times are then judged by "
            "all of them, from 3 recordings a side on by the spread that is measured between them",
        )
    parser.add_argument(
        "--spread",
        metavar="PERCENT",
        help="how far recordings of one program are apart, as a standard deviation, such as 3%% (default: what is "
        "declared for the device)",
    )


def spread_of(arguments: argparse.Namespace) -> float | None:
    """0.03 of `--spread 3%`; raises `TfcompareError` for what is no percentage."""
    if arguments.spread is None:
        return None
    match = _PERCENT.fullmatch(arguments.spread)
    if match is None:
        raise TfcompareError(f"--spread {arguments.spread!r}: expected a percentage, such as 3%")
    return float(match[1]) / 100


def load_repeats(arguments: argparse.Namespace, baseline: Run, candidates: Sequence[Run]) -> dict[str, tuple[Run, ...]]:
    """The repeats that count, by the id of the run that they repeat; what does not count, or cannot be read, is told.

    Those of a candidate are of the first. Raises `TfcompareError` where a PATH holds no run that can be read.
    """
    if not arguments.baseline_repeat and not arguments.candidate_repeat:
        return {}
    from tfcompare.compare.repeats import vetted
    from tfcompare.logdir.places import is_same

    repeats = {}
    for run, places in ((baseline, arguments.baseline_repeat), (candidates[0], arguments.candidate_repeat)):
        repeats[run.id] = [
            more
            for more in _load_all(places, arguments.store, arguments.step_marker)
            if not is_same(more.path, run.path)
        ]
    found = vetted((baseline, *candidates), repeats)
    for sentence in found.refused:
        note(f"note: {sentence}")
    return found.repeats


def _load_all(places: Sequence[str], store: str | None, step_marker: str | None) -> list[Run]:
    from tfcompare.logdir import find_runs
    from tfcompare.run import load

    if not places:
        return []
    runs: list[Run] = []
    for found in find_runs(*places) if store is None else stored_runs(store, places):
        try:
            runs.append(load(found, step_marker=step_marker, fetching=tell_fetching(found.name)))
        except TfcompareError as error:
            note(f"note: left out: {error}")
    if not runs:
        raise TfcompareError(f"{', '.join(map(shown, places))}: none of the runs there can be read")
    return runs
