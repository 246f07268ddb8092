"""Stores the load of the machine during a capture in a small file next to the profile.

Uses only the standard library, so that a training program can import it too.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_NAME = "tfcompare_load.json"

_LARGEST_FILE_BYTES = 10_000


@dataclass(frozen=True)
class MachineLoad:
    """The one-minute load average before and after a capture, and the number of cores."""

    cores: int
    before: float
    after: float

    @property
    def is_busy(self) -> bool:
        """Whether more threads wanted to run than there are cores, before or after the capture."""
        return max(self.before, self.after) > self.cores

    def __str__(self) -> str:
        return f"load average {self.before:.1f} before and {self.after:.1f} after, {self.cores} cores"


def load_average() -> float | None:
    """The load average over the last minute; None if the system has none (Windows)."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def write_load(folder: Path, before: float | None) -> None:
    """Write the load next to the profile in `folder`; `before` is the load average before the capture."""
    after = load_average()
    if before is not None and after is not None:
        load = MachineLoad(os.cpu_count() or 1, round(before, 2), round(after, 2))
        (folder / FILE_NAME).write_text(json.dumps(asdict(load)) + "\n", encoding="utf-8")


@contextmanager
def recorded_load(logdir: str | Path) -> Iterator[None]:
    """Wraps a capture into `logdir`: writes the machine's load next to each profile captured meanwhile."""
    there, before = {file.parent for file in profiles_below(logdir)}, load_average()
    yield
    for folder in {file.parent for file in profiles_below(logdir)} - there:
        write_load(folder, before)


def profiles_below(logdir: str | Path) -> list[Path]:
    """The profiles at any depth below a folder."""
    return [file for pattern in ("*.xplane.pb", "*.xplane.pb.gz") for file in Path(logdir).rglob(pattern)]


def read_load(folder: Path) -> MachineLoad | None:
    """The load stored next to the profile in `folder`; None without such a file, or if it is invalid."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a link may lead anywhere, a pipe would wait
    try:
        with os.fdopen(os.open(folder / FILE_NAME, os.O_RDONLY | flags), "rb") as file:
            data = file.read(_LARGEST_FILE_BYTES + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
        content = json.loads(data[:_LARGEST_FILE_BYTES])
        return MachineLoad(int(content["cores"]), float(content["before"]), float(content["after"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
