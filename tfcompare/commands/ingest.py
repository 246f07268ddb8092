"""Add the runs below each PATH to a store, from which they open fast and without the profiles.

PATHs are files, run folders, logdirs or their parents, or URLs of these. The store is a folder or a URL that fsspec
can write to (s3://, gs://, …); without --store, it is this machine's cache. Only new and changed profiles are read.
Host files are read by processes on this machine, or by the workers of a Dask cluster, which need the same version of
tfcompare, access to the PATHs and the store, and their own credentials.

Exit status: 0 done, 1 some runs or host files could not be ingested, 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from tfcompare.commands.shared.output import at_least_1, note
from tfcompare.commands.shared.progress import note_if_compiling, progress
from tfcompare.errors import TfcompareError
from tfcompare.sources.logdir.metadata import parse_options
from tfcompare.sources.remote.places import parse, shown
from tfcompare.text import is_url
from tfcompare.units import format_bytes

if TYPE_CHECKING:
    from tfcompare.fleet.ingesting import Ingest, Summary
    from tfcompare.fleet.pools import Pool

SUMMARY = "add runs to a store, using several processes or machines"
EXAMPLES = """examples:
  tfcompare ingest logs/
  tfcompare ingest logs/ --store s3://bucket/store --workers 8
  tfcompare ingest logs/nightly --tag commit=abc123 --tag branch=main
  tfcompare ingest s3://bucket/logs --store s3://bucket/store --scheduler tcp://host:8786"""
DONE, SOME_FAILED = 0, 1
_TAG = (
    "metadata of the runs, such as commit=abc123 or tags=nightly, besides that in a tfcompare.json in their folder or "
    "logdir; can be given several times"
)
_UPDATE_INTERVAL_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", metavar="PATH", nargs="+", help="where to look for runs")
    parser.add_argument("--store", metavar="URL", help="the store, a folder or a URL (default: this machine's cache)")
    parser.add_argument("--tag", metavar="KEY=VALUE", action="append", default=[], help=_TAG)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, such as tcp://host:8786")
    meaning = "number of processes on this machine (default: one per core)"
    how.add_argument("--workers", metavar="N", type=at_least_1, help=meaning)
    meaning = "format of the summary (default: %(default)s)"
    parser.add_argument("--format", choices=("text", "json"), default="text", help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Ingest and print a summary; returns 1 if something could not be ingested."""
    from tfcompare.fleet.ingesting import ingest

    given = parse_options(arguments.tag)
    address = arguments.store or local_store()
    summary = ingest(arguments.paths, address, partial(_pool, arguments, address), _ProgressLine(), given)
    progress("")
    if arguments.format == "json":
        print(json.dumps(asdict(summary), ensure_ascii=False))
    else:
        _print(summary, address)
    return SOME_FAILED if summary.failures else DONE


def local_store() -> str:
    """The folder of the local store. Raises `TfcompareError` if it is turned off."""
    from tfcompare import settings

    folder = settings.from_environment().store_folder
    if folder is None:
        raise TfcompareError("the cache is turned off (TFCOMPARE_STORE=off); name a store with --store")
    return str(folder)


def _pool(arguments: argparse.Namespace, address: str) -> Pool:
    from tfcompare import settings
    from tfcompare.fleet.pools import Here, Processes

    if any(is_url(place) and parse(place).path.protocol == "memory" for place in (address, *arguments.paths)):
        return Here()  # memory:// is not shared with other processes
    if arguments.scheduler:
        from tfcompare.fleet.cluster import Cluster

        return Cluster(arguments.scheduler)
    note_if_compiling()
    return Processes(arguments.workers or os.cpu_count() or 1, settings.from_environment().read_limits)


class _ProgressLine:
    """Updates a progress line on the terminal."""

    def __init__(self) -> None:
        self._started = self._updated = monotonic()

    def __call__(self, done: Ingest) -> None:
        now = monotonic()
        if now - self._updated < _UPDATE_INTERVAL_S and done.files_done < done.files:
            return
        self._updated = now
        rate = done.bytes_done / max(now - self._started, 1e-3)
        progress(
            f"ingesting: {done.files_done:,} of {done.files:,} host files, {format_bytes(done.bytes_done)} of "
            f"{format_bytes(done.bytes)} ({format_bytes(rate)}/s)"
        )


def _print(summary: Summary, address: str) -> None:
    rate = summary.bytes_read / max(summary.seconds, 1e-3)
    print(
        f"{shown(address)}: {summary.runs_ingested:,} runs ingested, {summary.runs_unchanged:,} unchanged, "
        f"{summary.runs_failed:,} failed"
    )
    print(
        f"{summary.host_files:,} host files read ({format_bytes(summary.bytes_read)} into "
        f"{format_bytes(summary.pack_bytes)}) in {summary.seconds:.1f} s, {format_bytes(rate)}/s"
        + (f"; {summary.host_files_kept:,} more were up to date" if summary.host_files_kept else "")
    )
    sys.stdout.flush()
    for sentence in (*(f"note: {remark}" for remark in summary.notes), *summary.failures):
        note(sentence)
