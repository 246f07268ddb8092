"""List the runs below each PATH with their devices, steps and sizes, including unreadable runs with the reason.

PATHs are files, run folders, logdirs or their parents, or URLs of these; with --store, ids of runs or folders of runs
in that store, or nothing for all of them. Capture times are in UTC. Runs behind a URL are listed without downloading
them, unless they are cached.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfcompare.commands.shared.options import add_store
from tfcompare.commands.shared.output import add_format, emit, note
from tfcompare.commands.shared.progress import Reading, notes, progress
from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.render.text_table import TextColumn, column_scale, number_column, text_column
from tfcompare.sources.remote.places import shown
from tfcompare.text import some_of, text_of
from tfcompare.units import format_bytes

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run
    from tfcompare.sources.logdir import FoundRun

_MAX_NAMED = 6

SUMMARY = "list runs"
EXAMPLES = "examples:\n  tfcompare runs logs/\n  tfcompare runs logs/a logs/b --format json\n"
EXAMPLES += "  tfcompare runs s3://bucket/logs\n  tfcompare runs --store s3://bucket/store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", metavar="PATH", nargs="*", help="where to look for runs")
    parser.add_argument(
        "--fetch", action="store_true", help="download runs behind URLs to list their steps and devices"
    )
    add_store(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the runs. Raises `TfcompareError` if none of them can be read."""
    from tfcompare.loading import cache_problems, stored_runs
    from tfcompare.sources.logdir import find_runs, joinable
    from tfcompare.tools.runs.listing import READ, listing

    found: list[FoundRun] = []
    if arguments.store is None:
        found += find_runs(*arguments.paths, join=arguments.join)
    else:
        stored, problems = stored_runs(arguments.store, arguments.paths)
        notes(problems)
        found += stored
        if not found:
            raise NoRuns(f"{shown(arguments.store)}: lists no runs; `tfcompare ingest PATH --store …` adds them")
    elsewhere = [f for f in found if not arguments.fetch and f.bytes_at_hand < f.size_bytes]
    here = [f for f in found if f.summary is None and (arguments.fetch or f.bytes_at_hand >= f.size_bytes)]
    frame = listing(found, _read_all(here))
    emit(frame.drop(columns=["step_times_ms"]), arguments, _as_text)
    if arguments.format == "table":
        _print_remarks(frame)
    notes(cache_problems())
    for group in joinable(found):
        names = ", ".join(text_of(run.name) for run in group)
        note(f"note: {names} were captured at the same time on different hosts: --join makes them one run")
    if elsewhere:
        size = format_bytes(sum(f.size_bytes for f in elsewhere))
        note(f"note: {len(elsewhere)} of {len(found)} runs are listed without reading them (--fetch downloads {size})")
    elif len(frame) and not (frame["state"] == READ).any():
        raise TfcompareError(f"none of the {len(frame)} runs can be read; the listing says why")
    return 0


def _read_all(found: Sequence[FoundRun]) -> dict[str, Run | TfcompareError]:
    from tfcompare.loading import read

    readable, reading = [f for f in found if f.is_readable], Reading()
    outcomes: dict[str, Run | TfcompareError] = {}
    for count, one in enumerate(readable, start=1):
        progress(f"reading {count} of {len(readable)}: {one.name}")
        try:
            outcomes[one.id] = read(one, progress=reading)
        except TfcompareError as error:
            outcomes[one.id] = error
    progress("")
    return outcomes


def _as_text(frame: pd.DataFrame) -> list[TextColumn]:
    step_time = column_scale("ms", frame["step_time_ms_mean"])
    size = column_scale("bytes", frame["size_bytes"])
    return [
        text_column("run", frame["name"]),
        text_column("recorded", frame["recorded"].dt.strftime("%Y-%m-%d %H:%M:%S"), rank=1),
        number_column("hosts", frame["hosts"], 0, rank=3),
        text_column("device", frame["device"]),
        number_column("steps", frame["steps"], 0),
        number_column(
            f"step time ({step_time.unit})", frame["step_time_ms_mean"] * step_time.factor, step_time.decimals
        ),
        *([text_column("tags", frame["tags"], rank=5)] if frame["tags"].ne("").any() else []),
        number_column(f"size ({size.unit})", frame["size_bytes"] * size.factor, size.decimals, rank=4),
        text_column("path", frame["path"], rank=2),
    ]


def _print_remarks(frame: pd.DataFrame) -> None:
    """Print each remark once, with the runs it applies to."""
    remarked = frame[frame["remarks"] != ""]
    for remark, names in remarked.groupby("remarks", sort=False)["name"]:
        print(f"\n{some_of(map(text_of, names), _MAX_NAMED)}: {text_of(str(remark))}")
