"""What tests have processes do, in a module that these import in no time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tfcompare.errors import TfcompareError


class Picky(TfcompareError):
    """An error that does not survive pickling."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def work(task: Path | str) -> str:
    """Dies of `deadly`, complains of `bad`; of a path that is not there, makes it and dies."""
    if task == "deadly":
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "bad":
        raise Picky("it is ", "bad")
    if isinstance(task, Path) and not task.exists():
        task.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{task} done"


def sleep(pids: Path) -> None:
    """Takes an hour; leaves the number of its process in the folder first."""
    (pids / str(os.getpid())).touch()
    time.sleep(3600)
