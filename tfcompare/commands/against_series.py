"""`check --against-series`: the last runs of a store that are captures of the candidate's kind, as the baseline."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tfcompare.commands.shared.options import question
from tfcompare.commands.shared.output import note
from tfcompare.commands.shared.progress import Reading, notes
from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.sources.remote.places import shown
from tfcompare.text import some_of

if TYPE_CHECKING:
    from tfcompare.loading import Captures, Question
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


def load_series(arguments: argparse.Namespace) -> tuple[Question, list[Captures]]:
    """(the question about the candidate; the last run of the series with those before it as its replicates, and the
    candidate with its own). Notes what is left out.

    Raises `NoRuns` if the store has no run of its kind.
    """
    from tfcompare.loading import read, runs_below, sides

    reading, more = Reading(), tuple(arguments.candidate_repeat)
    asked = replace(question(arguments, arguments.baseline), store=None, repeats=(more,), is_series=True)
    (own,), remarks = sides(asked, reading)
    notes(remarks)
    candidate = own[0]
    kind = _of_its_kind(candidate, arguments)
    start = candidate.info.start_time
    earlier = [run for run in kind if run.content_id != candidate.content_id and run.recorded < start]
    loaded: list[Run] = []
    for run in reversed(earlier):
        if len(loaded) == arguments.last:
            break
        try:
            loaded.append(read(run, asked.steps, progress=reading))
        except TfcompareError as error:
            note(f"note: left out: {error}")
    if not loaded:
        raise NoRuns(
            f"{shown(arguments.against_series)}: has no earlier run of the kind of {candidate.name}; give a tag "
            "that its runs have with --series-tag"
        )
    if arguments.baseline_repeat:
        given, remarks = runs_below(replace(asked, places=tuple(arguments.baseline_repeat)), reading)
        notes(remarks)
        loaded += given
    return asked, [tuple(loaded), own]


def _of_its_kind(candidate: Run, arguments: argparse.Namespace) -> list[StoredRun]:
    """The stored runs of the candidate's program, with all tags. Raises `NoRuns` if the tags leave several programs."""
    from tfcompare.loading import stored_runs
    from tfcompare.sources.programs import device_words, programs_of, same_program
    from tfcompare.views.run_listing import device_text

    info, tags = candidate.info, set(arguments.series_tag)
    device = device_words(device_text(info.device_type, info.device_count), info.device_name)
    runs, problems = stored_runs(arguments.against_series)
    notes(problems)
    stored = [run for run in runs if run.is_readable]
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
    latest = sorted(runs, key=lambda run: run.found.recorded, reverse=True)
    return f"the last {len(runs):,} runs: {some_of([run.name for run in latest], _MOST_NAMED)}"


def _at_least_1(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
