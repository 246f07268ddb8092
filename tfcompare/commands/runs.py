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
from tfcompare.commands.shared.output import add_format, emit, note, print_blocks, rows_for_reading
from tfcompare.commands.shared.progress import Reading, notes, progress
from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.sources.remote.places import shown
from tfcompare.text import more_rows, some_of, text_of
from tfcompare.units import MISSING, format_bytes, format_count, format_ms

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run
    from tfcompare.sources.logdir import FoundRun
    from tfcompare.views.blocks import Facts

_MAX_NAMED = 6

SUMMARY = "list runs"
EXAMPLES = "examples:\n  tfcompare runs logs/\n  tfcompare runs logs/a logs/b --format json\n"
EXAMPLES += "  tfcompare runs s3://bucket/logs\n  tfcompare runs --store s3://bucket/store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", metavar="PATH", nargs="*", help="where to look for runs")
    meaning = "download runs behind URLs to list their steps and devices"
    parser.add_argument("--fetch", action="store_true", help=meaning)
    add_store(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the runs. Raises `TfcompareError` if none of them can be read."""
    from tfcompare.loading import cache_problems, stored_runs
    from tfcompare.sources.logdir import find_runs
    from tfcompare.sources.logdir.hosts import joinable
    from tfcompare.views.run_listing import READ, listing

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
    if arguments.format == "table":
        print_blocks([_facts(frame, rows_for_reading(arguments))], arguments)
        remarked = frame[frame["remarks"] != ""]
        for remark, affected in remarked.groupby("remarks", sort=False)["name"]:
            print(f"\n{some_of(map(text_of, affected), _MAX_NAMED)}: {text_of(str(remark))}")
    else:
        emit(frame.drop(columns=["step_times_ms"]), arguments)
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


def _facts(frame: pd.DataFrame, most: int) -> Facts:
    """The first runs as rows; what says least about them is left out first where there is no room."""
    from tfcompare.views.blocks import Facts

    first = frame.head(most)
    columns = {
        "run": first["name"],
        "recorded": first["recorded"].dt.strftime("%Y-%m-%d %H:%M:%S"),
        "hosts": first["hosts"].map(format_count),
        "device": first["device"],
        "steps": first["steps"].map(format_count),
        "step time": first["step_time_ms_mean"].map(format_ms),
        "size": first["size_bytes"].map(format_bytes),
        "path": first["path"],
    }
    optional = [6, 2, 7, 1]
    if frame["tags"].ne("").any():
        columns["tags"], optional = first["tags"], [8, *optional]
    texts = (cells.fillna(MISSING).replace("", MISSING) for cells in columns.values())
    note = f"{more_rows(len(frame) - most)} (--limit 0 shows all)" if len(frame) > most else ""
    return Facts(list(columns), list(zip(*texts, strict=True)), (2, 4, 5, 6), optional=optional, note=note)
