"""`check --against-series`: the last runs of a store that are captures of the candidate's kind, as the baseline."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfcompare.commands.shared.output import note
from tfcompare.commands.shared.reading import Reading, chosen_steps, load_runs, load_with, stored_runs
from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.sources.remote.places import shown
from tfcompare.text import some_of

if TYPE_CHECKING:
    from tfcompare.run import Run
    from tfcompare.store.stored_run import StoredRun

USUAL_RUNS = 10
_MOST_NAMED = 3


def add_against_series(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--against-series",
        metavar="STORE",
        help="compare a single run, given as the only argument, with the last runs of its program in this store: on "
        "the same device, and with the same `program` in their metadata or else the same folders' names, apart from "
        "dates, commits and counters",
    )
    parser.add_argument(
        "--series-tag",
        metavar="TAG",
        action="append",
        default=[],
        help="only runs with this tag, such as branch=main; can be given several times. If the run's folders are of no "
        "program in the store, all runs with these tags count, which must be of one program",
    )
    parser.add_argument(
        "--last", metavar="N", type=_at_least_1, default=USUAL_RUNS, help="how many of them (default: %(default)s)"
    )


def load_series(arguments: argparse.Namespace) -> list[tuple[Run, ...]]:
    """(the last run of the series with those before it as its replicates; the candidate).

    Raises `NoRuns` if the store has no run of its kind.
    """
    (candidate,) = load_runs([arguments.baseline], Reading(steps=chosen_steps(arguments), join=arguments.join))
    kind = _of_its_kind(candidate, arguments)
    start = candidate.info.start_time
    earlier = [run for run in kind if run.content_id != candidate.content_id and run.recorded < start]
    loaded: list[Run] = []
    for run in reversed(earlier):
        if len(loaded) == arguments.last:
            break
        try:
            loaded.append(load_with(run, chosen_steps(arguments)))
        except TfcompareError as error:
            note(f"note: left out: {error}")
    if not loaded:
        raise NoRuns(
            f"{shown(arguments.against_series)}: has no earlier run of the kind of {candidate.name}; give a tag "
            "that its runs have with --series-tag"
        )
    return [tuple(loaded), (candidate,)]


def _of_its_kind(candidate: Run, arguments: argparse.Namespace) -> list[StoredRun]:
    """The stored runs of the candidate's program, with all tags. Raises `NoRuns` if the tags leave several programs."""
    from tfcompare.sources.programs import device_words, programs_of, same_program
    from tfcompare.tools.runs.listing import device_text

    info, tags = candidate.info, set(arguments.series_tag)
    device = device_words(device_text(info.device_type, info.device_count), info.device_name)
    stored = [run for run in stored_runs(arguments.against_series) if run.is_readable]
    programs = programs_of(stored)
    tagged = [run for run in stored if tags <= set(run.metadata.texts) and programs[run.id].device == device]
    if (program := same_program(candidate.found, device, programs.values())) is not None:
        return [run for run in tagged if programs[run.id] == program]
    if not tags:
        return []
    if len(several := sorted({programs[run.id].text for run in tagged})) > 1:
        raise NoRuns(
            f"{shown(arguments.against_series)}: its runs with {', '.join(sorted(tags))} are of {len(several):,} "
            f"programs: {some_of(several, _MOST_NAMED)}; give a tag that only those of {candidate.name} have"
        )
    return tagged


def compared_with(runs: Sequence[Run]) -> str:
    """`the last 10 runs: run_19, run_18, run_17 and 7 more`."""
    return f"the last {len(runs):,} runs: {some_of([run.name for run in runs], _MOST_NAMED)}"


def _at_least_1(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
