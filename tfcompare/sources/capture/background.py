"""A capture in the background, which continues while the page that started it is redrawn or left."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from tfcompare.sources.capture.recording import Progress, record
from tfcompare.sources.capture.request import Recorded, Request


@dataclass(frozen=True)
class State:
    """The state of a capture: `sentence` describes it; `share` is the elapsed part of its time, None if unknown."""

    sentence: str
    share: float | None
    seconds_left: float


class BackgroundRecording:
    """Starts immediately. `future` holds what `record` returns or raises, once it is done."""

    def __init__(self, request: Request, logdir: Path, name: str) -> None:
        self.request, self.name = request, name
        self.future: Future[Recorded] = Future()
        self._progress, self._since = Progress("Starting"), time.monotonic()
        self._stop = threading.Event()
        # A daemon thread: the server does not wait for it to end.
        threading.Thread(target=self._work, args=(logdir,), daemon=True).start()

    @property
    def state(self) -> State:
        """The current state."""
        progress, seconds = self._progress, time.monotonic() - self._since
        if not progress.seconds:
            return State(progress.sentence, None, 0.0)
        return State(progress.sentence, min(seconds / progress.seconds, 1.0), max(progress.seconds - seconds, 0.0))

    def stop(self) -> None:
        """Stop it soon, without a run."""
        self._stop.set()

    def _work(self, logdir: Path) -> None:
        try:
            self.future.set_result(record(self.request, logdir, self.name, tell=self._tell, stop=self._stop))
        except BaseException as error:  # whoever asks for the result gets it
            self.future.set_exception(error)

    def _tell(self, progress: Progress) -> None:
        self._since, self._progress = time.monotonic(), progress
