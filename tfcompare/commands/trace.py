"""Write the timelines of runs to one file for Perfetto (ui.perfetto.dev) or chrome://tracing.

Each host and device of each RUN is a process whose name begins with the run's. Time 0 is the start of the typical step
of each run: the included step nearest to their mean. --align chooses another step, the first start of an op or event,
or the end of a step's first collective, where hosts wait for each other. In that case the hosts of a run are put on one
clock, estimated from the ends of their collectives. Without steps and --align, time 0 is the first event. Times are
exact to the picosecond.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tfcompare.commands.shared.options import add_host, add_steps, add_store, question
from tfcompare.commands.shared.progress import Reading, notes
from tfcompare.errors import TfcompareError
from tfcompare.units import format_bytes

SUMMARY = "write the timelines of runs to a file for Perfetto"
EXAMPLES = """examples:
  tfcompare trace logs/before logs/after -o trace.json.gz
  tfcompare trace logs/before logs/after -o trace.json.gz --align step:12 --from -500 --to 20000
  tfcompare trace logs/before -o trace.json --align op:MatMul
  tfcompare trace logs/workers -o trace.json.gz --align collective"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("places", metavar="RUN", nargs="+", help="the runs, one above the other")
    meaning = "the file to write: .json, or .json.gz"
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, required=True, help=meaning)
    meaning = "step:NUMBER, op:NAME, collective or collective:NUMBER (default: the typical step of each run)"
    parser.add_argument("--align", metavar="WHAT", help=meaning)
    add_host(parser)
    parser.add_argument("--from", dest="from_us", metavar="US", type=float, help="leave out what ends before, in µs")
    parser.add_argument("--to", dest="to_us", metavar="US", type=float, help="leave out what starts after, in µs")
    add_store(parser)
    add_steps(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and print what it holds."""
    from tfcompare.loading import first_captures
    from tfcompare.views.timeline.run_timeline import Alignment, timelines
    from tfcompare.views.timeline.trace import chrome_trace, to_trace

    if not arguments.out.name.endswith((".json", ".json.gz")):
        raise TfcompareError(f"{arguments.out}: expected a name that ends with .json or .json.gz")
    align = Alignment.from_text(arguments.align) if arguments.align else Alignment()
    loaded, remarks = first_captures(question(arguments, *arguments.places), Reading())
    notes(remarks)
    names = [one.name for one in loaded]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    window, hosts = (arguments.from_us, arguments.to_us), []
    for one, name in zip(loaded, names, strict=True):
        hosts += [to_trace(one, name, timeline, *window) for timeline in timelines(one, align, arguments.host)]
    _write(arguments.out, chrome_trace(hosts))
    spans = sum(len(host.timeline.spans) for host in hosts)
    runs = f"{len(loaded)} run{'s' if len(loaded) > 1 else ''}"
    print(f"{arguments.out}: {spans:,} spans of {runs}, {format_bytes(arguments.out.stat().st_size)}")
    return 0


def _write(path: Path, pieces: Iterable[str]) -> None:
    """Write the file whole or not at all."""
    partial = path.with_name(f"{path.name}.part")
    try:
        with (
            gzip.open(partial, "wt", encoding="utf-8", compresslevel=6)
            if path.suffix == ".gz"
            else partial.open("w", encoding="utf-8") as file
        ):
            file.writelines(pieces)
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
