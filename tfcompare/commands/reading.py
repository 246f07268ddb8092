"""Loading runs for a command, with a word to the user where it takes long."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare.commands.output import note

if TYPE_CHECKING:
    from tfcompare.logdir import FoundRun
    from tfcompare.run import Run


def load_one(place: str | Path | FoundRun) -> Run:
    """The run at `place`; raises `TfcompareError` where there is none, or several, or it cannot be read."""
    from tfcompare.run import load

    return load(place)


def say_if_compiling() -> None:
    """Tell the user when reading the first profile will have to compile the reader."""
    from tfcompare.xspace.compilation import EXPECTED_SECONDS, needs_compilation

    if needs_compilation():
        note(f"compiling the reader, once: about {EXPECTED_SECONDS} seconds")
