"""Captures a run from live profiler servers (`tf.profiler.experimental.server`, `jax.profiler.start_server`)."""

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from tfcompare.sources.capture.addresses import HOW_TO_START, Address, BadAddress, parse_address, parse_addresses
from tfcompare.sources.capture.recording import HOW_TO_INSTALL, Progress, record
from tfcompare.sources.capture.request import (
    DEVICE_LEVELS,
    HOST_LEVELS,
    LONGEST_MS,
    MOST_RETRIES,
    PYTHON_LEVELS,
    LeftOut,
    NothingRecorded,
    Recorded,
    Request,
    Stopped,
    check_name,
)

__all__ = [
    "DEVICE_LEVELS",
    "HOST_LEVELS",
    "HOW_TO_INSTALL",
    "HOW_TO_START",
    "LONGEST_MS",
    "MOST_RETRIES",
    "PYTHON_LEVELS",
    "Address",
    "BackgroundRecording",
    "BadAddress",
    "LeftOut",
    "NothingRecorded",
    "Progress",
    "Recorded",
    "Request",
    "Stopped",
    "check_name",
    "parse_address",
    "parse_addresses",
    "record",
]


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
