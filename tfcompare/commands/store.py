"""Show the location and size of a store, shrink it, or clear it.

Without --store, it is this machine's cache. Profiles are never changed: after clearing the cache, they are read again
when needed. There is no confirmation prompt.
"""

from __future__ import annotations

import argparse
import json

from tfcompare.commands.ingest import local_store
from tfcompare.commands.shared.output import at_least_0
from tfcompare.commands.shared.progress import notes
from tfcompare.sources.remote.places import shown
from tfcompare.units import format_bytes

SUMMARY = "show the size of a store, shrink it, or clear it"
EXAMPLES = "examples:\n  tfcompare store\n  tfcompare store --clear\n"
EXAMPLES += "  tfcompare store --store s3://bucket/store --keep-mb 20000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--store", metavar="URL", help="the store, a folder or a URL (default: this machine's cache)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--clear", action="store_true", help="remove everything")
    meaning = "remove runs, the least recently used first, until N MB are left"
    how.add_argument("--keep-mb", metavar="N", type=at_least_0, help=meaning)
    meaning = "format of the output (default: %(default)s)"
    parser.add_argument("--format", choices=("text", "json"), default="text", help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Clear or shrink the store if asked to, and print its size."""
    from tfcompare.store.retention import clear, holdings, shrink
    from tfcompare.store.run_store import Outdated, Store

    store = Store(arguments.store or local_store())
    if arguments.store is not None:
        try:
            store.check()
        except Outdated:
            if not arguments.clear:
                raise
    removed_runs, removed_bytes = 0, 0
    if arguments.clear:
        removed_runs, removed_bytes = holdings(store)[0].runs, clear(store)
    elif arguments.keep_mb is not None:
        removed_runs, removed_bytes = shrink(store, arguments.keep_mb * 2**20)
    left, problems = holdings(store)
    notes(problems)
    if arguments.format == "json":
        record = {"store": shown(store.address), "runs": left.runs, "packs": left.packs, "bytes": left.bytes}
        print(json.dumps(record | {"removed_runs": removed_runs, "removed_bytes": removed_bytes}, ensure_ascii=False))
        return 0
    if arguments.clear or arguments.keep_mb is not None:
        print(f"{shown(store.address)}: removed {removed_runs:,} runs and {format_bytes(removed_bytes)}")
    print(
        f"{shown(store.address)}: holds {left.runs:,} runs and the tables of {left.packs:,} host files, "
        f"{format_bytes(left.bytes)}"
    )
    return 0
