"""Open the dashboard in a browser, served on this machine only.

PATHs are files, run folders, logdirs or parents of them; without any, the sample runs are shown.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tfcompare import settings
from tfcompare.errors import NoSuchPlace

SUMMARY = "open the dashboard"
EXAMPLES = "examples:\n  tfcompare serve\n  tfcompare serve logs/before logs/after --port 8600"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="where the runs are")
    parser.add_argument("--port", metavar="N", type=int, help="port to listen on (default: the first free from 8501)")


def run(arguments: argparse.Namespace) -> int:
    """Become the server; returns only where that fails."""
    for path in arguments.paths:
        if not path.exists():
            raise NoSuchPlace(f"{path}: no such file or folder")
    words = command_line(arguments.paths, arguments.port)
    sys.stdout.flush()
    os.execv(words[0], words)


def command_line(paths: Sequence[Path], port: int | None) -> list[str]:
    """The words that start Streamlit on the app; it finds `.streamlit/config.toml` beside `app.py` by itself."""
    # -P: a module in the folder that the user happens to stand in must not shadow one of ours.
    words = [sys.executable, "-P", "-m", "streamlit", "run", str(settings.app_folder() / "app.py")]
    if port is not None:
        words += ["--server.port", str(port)]
    places = [f"./{p}" if str(p).startswith("-") else str(p) for p in paths]
    return [*words, "--", *places]
