"""Loading runs for a command, with a word to the user where it takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from tfcompare.commands.output import note
from tfcompare.commands.text_table import printable
from tfcompare.units import format_bytes

if TYPE_CHECKING:
    from tfcompare.run import Run


def load_runs(places: Sequence[str]) -> list[Run]:
    """The run at each place; raises `TfcompareError` where there is none, or several, or it cannot be read.

    All places are looked at before the first is read: a misspelt one is told at once.
    """
    from tfcompare.logdir import find_run
    from tfcompare.run import load

    found = [find_run(place) for place in places]
    say_if_compiling()
    runs = _told_apart([load(run, fetching=tell_fetching(run.name)) for run in found])
    for run in runs:
        for remark in run.remarks:
            note(f"note: {run.name}: {remark}")
    tell_of_kept_frames()
    return runs


def tell_of_kept_frames() -> None:
    """Say what is wrong with the frames that are kept on this machine: nothing else tells of it."""
    from tfcompare.reading import kept_here

    if (kept := kept_here()) is not None:
        kept.flush()
        for sentence in kept.said:
            note(f"note: {sentence}")


def _told_apart(runs: Sequence[Run]) -> list[Run]:
    """Runs of several places, whose ids may be equal: one that another run has already gives way to the path."""
    paths: dict[str, PurePath] = {}
    return [run if paths.setdefault(run.id, run.path) == run.path else replace(run, id=str(run.path)) for run in runs]


def tell_fetching(name: str) -> Callable[[int, int], None]:
    """What to call while a remote run is fetched: keeps a line on the terminal up to date."""

    def tell(here: int, total: int) -> None:
        is_done = here >= total
        progress("" if is_done else f"fetching {printable(name)}: {format_bytes(here)} of {format_bytes(total)}")

    return tell


def progress(message: str) -> None:
    """Replace the line that stands on the terminal, if there is one."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{message}", end="", file=sys.stderr, flush=True)


def say_if_compiling() -> None:
    """Tell the user when reading the first profile will have to compile the reader."""
    from tfcompare.xspace import compilation

    if compilation.needs_compilation():
        note(f"compiling the reader, once: about {compilation.EXPECTED_SECONDS} seconds")
