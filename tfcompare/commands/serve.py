"""Open the dashboard in a browser, served on this machine only.

PATHs are files, run folders, logdirs or their parents, or URLs of these. Without PATHs and a store, the sample runs
are shown. Runs in a store open without their profiles.
"""

from __future__ import annotations

import argparse
import errno
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from tfcompare.errors import NoSuchPlace, TfcompareError
from tfcompare.sources.remote.places import parse
from tfcompare.text import is_url

SUMMARY = "open the dashboard"
FIRST_PORT, LAST_PORT = 8501, 65535
EXAMPLES = "examples:\n  tfcompare serve\n  tfcompare serve logs/before logs/after --port 8600\n"
EXAMPLES += "  tfcompare serve --store s3://bucket/store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    meaning = "where to look for runs"
    parser.add_argument("paths", metavar="PATH", nargs="*", type=lambda p: p if is_url(p) else Path(p), help=meaning)
    add_port(parser)
    meaning = "open no path outside DIR that is typed or in a link; can be given several times"
    parser.add_argument("--root", metavar="DIR", dest="roots", action="append", type=Path, default=[], help=meaning)
    meaning = "also show the runs in this store (filled by `tfcompare ingest`)"
    parser.add_argument("--store", metavar="URL", help=meaning)
    meaning = "allow capturing from any browser, not only on this machine"
    parser.add_argument("--allow-capture", action="store_true", help=meaning)


def add_port(parser: argparse.ArgumentParser) -> None:
    """Declare `--port`."""
    meaning = f"port to listen on (default: the first free from {FIRST_PORT})"
    parser.add_argument("--port", metavar="N", type=port_number, help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Replace this process with the server; returns only if that fails."""
    for path in arguments.paths:
        if isinstance(path, str):
            parse(path)
        elif not path.exists():
            raise NoSuchPlace(f"{path}: no such file or folder")
    for root in arguments.roots:
        if not root.is_dir():
            raise NoSuchPlace(f"{root}: is not a folder; --root takes a folder that contains runs")
    if arguments.store is not None:
        from tfcompare.store.run_store import Store

        Store(arguments.store).check()
    if arguments.port is not None:
        check_port(arguments.port)
    given = vars(arguments)
    options = {name: given[name] for name in ("roots", "allow_capture", "store")}
    command = command_line(arguments.paths, arguments.port, **options)
    sys.stdout.flush()
    os.execv(command[0], command)


def command_line(
    paths: Sequence[str | Path],
    port: int | None,
    *,
    roots: Sequence[Path] = (),
    allow_capture: bool = False,
    store: str | None = None,
) -> list[str]:
    """The command that starts Streamlit on the app, which finds `.streamlit/config.toml` next to `app.py` itself."""
    from tfcompare.settings import app_folder

    # -P: modules in the current folder must not shadow ours.
    start = Path(__file__).parents[1] / "ui" / "frame" / "start.py"
    command = [sys.executable, "-P", str(start), "run", str(app_folder() / "app.py")]
    if port is not None:
        command += ["--server.port", str(port)]
    places = [f"./{p}" if str(p).startswith("-") else str(p) for p in paths]
    options = [word for root in roots for word in ("--root", str(root.absolute()))]
    options += ["--allow-capture"] if allow_capture else []
    if store is not None:
        from tfcompare.store.files import full_address

        options += ["--store", full_address(store)]
    return [*command, "--", *options, *places]


def check_port(port: int) -> None:
    """Raise a helpful `TfcompareError` if the port cannot be listened on; Streamlit's own error suggests no remedy."""
    address = os.environ.get("STREAMLIT_SERVER_ADDRESS", "localhost")
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        if os.name == "posix":  # on Windows it would let two programs share a port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                return  # a problem of the address, which Streamlit reads from more places than we do
            why = "is in use by another program" if error.errno == errno.EADDRINUSE else "requires more permissions"
            remedy = f"choose another with --port, or leave it out for the first free port from {FIRST_PORT}"
            raise TfcompareError(f"port {port} {why}; {remedy}") from error


def port_number(text: str) -> int:
    """The port that an option gives. Raises `ArgumentTypeError` for what is none."""
    if not (text.isdecimal() and int(text) <= LAST_PORT):
        raise argparse.ArgumentTypeError(f"must be a number up to {LAST_PORT}; not {text!r}")
    return int(text)
