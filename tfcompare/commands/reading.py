"""Loading runs for a command, with a word to the user where it takes long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfcompare.commands.output import note

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
    runs = [load(run) for run in found]
    for run in runs:
        for remark in run.remarks:
            note(f"note: {run.name}: {remark}")
    return runs


def say_if_compiling() -> None:
    """Tell the user when reading the first profile will have to compile the reader."""
    from tfcompare.xspace import compilation

    if compilation.needs_compilation():
        note(f"compiling the reader, once: about {compilation.EXPECTED_SECONDS} seconds")
