"""What a command is doing, on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from threading import Lock, Thread
from typing import TYPE_CHECKING

from tfcompare.commands.shared.output import note
from tfcompare.text import text_of
from tfcompare.units import format_bytes

if TYPE_CHECKING:
    from tfcompare.comparison import Comparison
    from tfcompare.frames.profile_reader import OnProgress
    from tfcompare.loading import Question
    from tfcompare.sources.logdir import FoundRun


class Reading:
    """Shows which run is downloaded, and says once, before the first profile, that the reader must be compiled.

    `needed_next`: modules that are imported meanwhile.
    """

    def __init__(self, needed_next: Sequence[str] = ()) -> None:
        self._needed_next = needed_next
        self._first = Lock()

    def __call__(self, found: FoundRun) -> OnProgress:
        """What to call with the progress of downloading this run."""
        if not found.is_stored and self._first.acquire(blocking=False):
            note_if_compiling()
            if self._needed_next:
                Thread(target=lambda: [*map(import_module, self._needed_next)], daemon=True).start()

        def update(here: int, total: int) -> None:
            is_done = here >= total
            progress("" if is_done else f"fetching {found.name}: {format_bytes(here)} of {format_bytes(total)}")

        return update


def answered(question: Question, shown_by: str = "tfcompare.comparison") -> Comparison:
    """The comparison that answers a question; shows progress, and prints what there is to know about the runs.
    `shown_by`: the module that shows it, imported while the first profile is read, as what intervals need is."""
    from tfcompare.loading import answer

    comparison, sentences = answer(question, Reading((shown_by, "scipy.special")))
    notes(sentences)
    return comparison


def notes(sentences: Iterable[str]) -> None:
    """Print what there is to know about the runs that were read."""
    for sentence in sentences:
        note(f"note: {sentence}")


def progress(message: str) -> None:
    """Replace the progress line on the terminal, if stderr is one."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text_of(message)}", end="", file=sys.stderr, flush=True)


def note_if_compiling() -> None:
    """Note that reading the first profile will take longer because the reader must be compiled."""
    from tfcompare.xspace import compilation, reader

    if why := compilation.why_uncached():
        note(f"note: {why}; name a folder of your own in NUMBA_CACHE_DIR")
    if reader.needs_compilation():
        note(f"compiling the reader, once: about {reader.EXPECTED_SECONDS} seconds")
