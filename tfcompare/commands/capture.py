"""Capture a profile of running programs through their profiler servers.

One line in the program starts the server: tf.profiler.experimental.server.start(6009), or
jax.profiler.start_server(6009). Several workers become one run with several hosts. ADDRESS is

  host:port        one worker; also grpc://host:port
  dns:name:port    all addresses that DNS has for the name
  tpu:name         all workers of a Cloud TPU; also tpu:zone/name, tpu:project/zone/name

A TPU's name is resolved by gcloud, and its workers are reached in the TPU's network, at port 8466 unless :port follows.
What each address returned is reported; those that do not answer are left out. The run gets a folder of its own in
LOGDIR, which is created if it does not exist; the path of that folder is printed. The load of the machine is stored
with the run.

With --repeat 3, three captures are taken one after the other and stored in run-1, run-2 and run-3. The path of the
folder that contains them is printed; `check` and `diff` use them as replicates. All of them are from one process.
Processes differ more than captures of one process, so restart the program between captures if you can.

Exit status: 0 captured, 2 nothing was captured.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare.commands.shared.output import note, print_path
from tfcompare.commands.shared.progress import Reading
from tfcompare.errors import TfcompareError
from tfcompare.units import format_ms

if TYPE_CHECKING:
    from tfcompare.sources.capture.recording import Progress, Request

MAX_REPEATS = 100
SUMMARY = "capture a profile of running programs"
EXAMPLES = """examples:
  tfcompare capture localhost:6009 logs/now --duration-ms 2000
  tfcompare capture worker0:6009 worker1:6009 logs --name bigger_batch --retries 10
  tfcompare capture tpu:us-central1-a/my-tpu logs/now
  tfcompare diff logs/before "$(tfcompare capture localhost:6009 logs/now)"
  tfcompare check logs/before "$(tfcompare capture localhost:6009 logs/now --repeat 3)\""""

_LENGTH = (("--duration-ms", "N", 2000, "length of the capture"), ("--repeat", "N", 1, "number of captures"))
_HOST_LEVELS = "detail on the host: 0 nothing, 1 user annotations only, 2 also ops, 3 also inexpensive ops"
_PYTHON_LEVELS = "1: trace all Python function calls, which slows down the program"
_DETAILS = (
    ("--host-tracer-level", "L", 2, _HOST_LEVELS),
    ("--device-tracer-level", "L", 1, "0: no devices, 1: all devices"),
    ("--python-tracer-level", "L", 0, _PYTHON_LEVELS),
    ("--retries", "N", 3, "number of further attempts if nothing was captured"),
    ("--delay-ms", "N", 0, "pause before each attempt"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("addresses", metavar="ADDRESS", nargs="+", help="address of a profiler server, or a name")
    parser.add_argument("logdir", metavar="LOGDIR", help="folder to store the run in")
    _add_numbers(parser, _LENGTH)
    meaning = "store the run below LOGDIR/NAME (default: below LOGDIR)"
    parser.add_argument("--name", metavar="NAME", default="", help=meaning)
    _add_numbers(parser, _DETAILS)


def _add_numbers(parser: argparse.ArgumentParser, options: Sequence[tuple[str, str, int, str]]) -> None:
    for option, metavar, default, meaning in options:
        meaning = f"{meaning} (default: %(default)s)"
        parser.add_argument(option, metavar=metavar, type=int, default=default, help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Capture a run, read it, and print the path of its folder."""
    from tfcompare.sources.capture.addresses import parse_addresses
    from tfcompare.sources.capture.recording import Request, check_name

    request = Request(
        parse_addresses(arguments.addresses),
        duration_ms=arguments.duration_ms,
        host_level=arguments.host_tracer_level,
        device_level=arguments.device_tracer_level,
        python_level=arguments.python_tracer_level,
        retries=arguments.retries,
        delay_ms=arguments.delay_ms,
    )
    name = check_name(arguments.name) if arguments.name else ""
    if not 1 <= arguments.repeat <= MAX_REPEATS:
        raise TfcompareError(f"--repeat {arguments.repeat}: expected a number from 1 to {MAX_REPEATS}")
    folder = _folder(arguments.logdir)
    if arguments.repeat == 1:
        print_path(_record(request, folder, name))
        return 0
    for number in range(1, arguments.repeat + 1):
        _record(request, folder / name, f"run-{number}")
    print_path(folder / name)
    return 0


def _record(request: Request, folder: Path, name: str) -> Path:
    """Capture a run now; returns its folder."""
    from tfcompare.loading import read
    from tfcompare.sources.capture.recording import record
    from tfcompare.sources.logdir import find_run

    def tell(now: Progress) -> None:
        note(f"{now.sentence}, {now.seconds:.1f} s" if now.seconds else now.sentence)

    recorded = record(request, folder, name, tell=tell)
    for missing in recorded.left_out:
        note(f"not in the run: {missing}")
    run = read(find_run(recorded.path), progress=Reading())
    if len(recorded.size_bytes) + len(recorded.left_out) > 1:
        steps = Counter(run.table("steps")["host"]) if run.info.has_steps else {}
        for address, result in recorded.captured(steps).items():
            note(f"{address} {result}")
    info = run.info
    hosts = f"{info.hosts} hosts" if info.hosts > 1 else "1 host"
    if info.has_steps:
        length = f"{format_ms(info.step_time_ms_mean)} on average" if info.has_step_times else "unknown time"
        note(f"captured {hosts}, {info.step_count:,} steps of {length}")
    else:
        note(f"captured {hosts}; no step markers were found (docs/recording.md explains how to add them)")
    return recorded.path


def _folder(text: str) -> Path:
    """The folder for the run. Raises `TfcompareError` if it is an address, URL or file, most likely by mistake."""
    from tfcompare.sources.capture.addresses import BadAddress, parse_addresses

    path = Path(text)
    if "://" in text:
        raise TfcompareError(f"{text}: expected LOGDIR, a folder on this machine, but this is a URL")
    if not path.exists():
        try:
            parse_addresses([text])
        except BadAddress:
            return path
        raise TfcompareError(f"{text}: expected LOGDIR, the folder to store the run in, but this is an address")
    if not path.is_dir():
        raise TfcompareError(f"{text}: expected LOGDIR, the folder to store the run in, but this is a file")
    return path
