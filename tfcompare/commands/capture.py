"""Record a run from programs that are running, each of which has a profiler server.

One line in the program starts it: tf.profiler.experimental.server.start(6009), or jax.profiler.start_server(6009).
ADDRESS is host:port or grpc://host:port. Several workers give one run with several hosts. LOGDIR is a folder, made
where there is none; the run's own folder in it is printed. Addresses that do not answer are named, and the others
recorded. The machine's load is stored beside the run. With --repeat 3, three captures are recorded one after the other
into run-1, run-2 and run-3, and the folder that holds them is printed: `check` and `diff` take it as replicates. They
are of one process, and processes differ more than captures of one: restart the program between captures where you can.
Exit status: 0 recorded, 2 nothing was recorded.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare.commands.output import note, print_path
from tfcompare.commands.reading import note_if_compiling
from tfcompare.errors import TfcompareError
from tfcompare.units import format_ms

if TYPE_CHECKING:
    from tfcompare.sources.capture import Progress, Request

MAX_REPEATS = 100
SUMMARY = "record a run from programs that are running"
EXAMPLES = """examples:
  tfcompare capture localhost:6009 logs/now --duration-ms 2000
  tfcompare capture worker0:6009 worker1:6009 logs --name bigger_batch --retries 10
  tfcompare diff logs/before "$(tfcompare capture localhost:6009 logs/now)"
  tfcompare check logs/before "$(tfcompare capture localhost:6009 logs/now --repeat 3)\""""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("addresses", metavar="ADDRESS", nargs="+", help="where a profiler server listens")
    parser.add_argument("logdir", metavar="LOGDIR", help="the folder that the run is recorded into")
    parser.add_argument(
        "--duration-ms", metavar="N", type=int, default=2000, help="how long to record (default: %(default)s)"
    )
    parser.add_argument(
        "--repeat", metavar="N", type=int, default=1, help="record so many captures (default: %(default)s)"
    )
    parser.add_argument("--name", metavar="NAME", default="", help="a folder of that name in LOGDIR gets the run")
    parser.add_argument(
        "--host-tracer-level",
        metavar="L",
        type=int,
        default=2,
        help="0: nothing of the host, 1: what the program traces itself, 2: also its ops, 3: also the cheap ones "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--device-tracer-level", metavar="L", type=int, default=1, help="0: no devices, 1: all (default: %(default)s)"
    )
    parser.add_argument(
        "--python-tracer-level",
        metavar="L",
        type=int,
        default=0,
        help="1: every call of a Python function, which slows the program down (default: %(default)s)",
    )
    parser.add_argument(
        "--retries",
        metavar="N",
        type=int,
        default=3,
        help="further attempts while nothing was recorded (default: %(default)s)",
    )
    parser.add_argument(
        "--delay-ms", metavar="N", type=int, default=0, help="pause before each attempt (default: %(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Record, read what was recorded, and print its folder."""
    from tfcompare.sources import capture

    request = capture.Request(
        capture.parse_addresses(arguments.addresses),
        duration_ms=arguments.duration_ms,
        host_level=arguments.host_tracer_level,
        device_level=arguments.device_tracer_level,
        python_level=arguments.python_tracer_level,
        retries=arguments.retries,
        delay_ms=arguments.delay_ms,
    )
    name = capture.check_name(arguments.name) if arguments.name else ""
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
    """Record a run now; returns its folder."""
    from tfcompare.sources import capture

    recorded = capture.record(request, folder, name, tell=_note_progress)
    for missing in recorded.left_out:
        note(f"not in the run: {missing}")
    note_if_compiling()
    note(_summary(recorded.path))
    return recorded.path


def _folder(text: str) -> Path:
    """The folder to record into. Raises `TfcompareError` if it is an address, URL or file, most likely by mistake."""
    from tfcompare.sources import capture

    path = Path(text)
    if "://" in text:
        raise TfcompareError(f"{text}: is a URL where LOGDIR was expected, a folder on this machine")
    if not path.exists():
        try:
            capture.parse_address(text)
        except capture.BadAddress:
            return path
        raise TfcompareError(f"{text}: is an address where LOGDIR was expected, the folder to record into")
    if not path.is_dir():
        raise TfcompareError(f"{text}: is a file where LOGDIR was expected, the folder to record into")
    return path


def _note_progress(progress: Progress) -> None:
    note(f"{progress.sentence}, {progress.seconds:.1f} s" if progress.seconds else progress.sentence)


def _summary(path: Path) -> str:
    from tfcompare.run import load

    run = load(path)
    info = run.info
    hosts = f"{info.hosts} hosts" if info.hosts > 1 else "1 host"
    if not info.has_steps:
        return f"recorded {hosts}; no steps are marked, see the README on how to mark them"
    return f"recorded {hosts}, {info.step_count:,} steps with a median of {format_ms(info.step_time_ms_median)}"
