"""A user's request to capture a run, and its result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfcompare.errors import TfcompareError
from tfcompare.sources.capture.addresses import Address, Target
from tfcompare.sources.logdir.files import host_of, text_of
from tfcompare.units import format_bytes

LONGEST_MS = 600_000
MOST_RETRIES = 100
HOST_LEVELS, DEVICE_LEVELS, PYTHON_LEVELS = range(4), range(2), range(2)
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Request:
    """What to capture. `retries`: further attempts if nothing was captured; `delay_ms`: pause before each attempt.

    `grace_s`: how long a worker may take to return its profile after the capture ends. Raises `TfcompareError` for a
    value that is out of range.
    """

    addresses: tuple[Target, ...]
    duration_ms: int = 2_000
    host_level: int = 2
    device_level: int = 1
    python_level: int = 0
    retries: int = 3
    delay_ms: int = 0
    grace_s: float = 60.0

    def __post_init__(self) -> None:
        for what, value, allowed in (
            ("the duration in ms", self.duration_ms, range(1, LONGEST_MS + 1)),
            ("the host tracer level", self.host_level, HOST_LEVELS),
            ("the device tracer level", self.device_level, DEVICE_LEVELS),
            ("the Python tracer level", self.python_level, PYTHON_LEVELS),
            ("the number of retries", self.retries, range(MOST_RETRIES + 1)),
            ("the delay in ms", self.delay_ms, range(LONGEST_MS + 1)),
        ):
            if value not in allowed:
                raise TfcompareError(f"{what} must be from {allowed[0]:,} to {allowed[-1]:,}; not {value:,}")


@dataclass(frozen=True)
class LeftOut:
    """An address or name that is missing from a capture; `why` completes a sentence that begins with it."""

    address: Target
    why: str

    def __str__(self) -> str:
        return f"{self.address} {self.why}"


@dataclass(frozen=True)
class Recorded:
    """A captured run: its folder, the bytes of the profile from each address in it, and what is missing."""

    path: Path
    size_bytes: Mapping[Address, int]
    left_out: tuple[LeftOut, ...] = ()

    def captured(self, step_counts: Mapping[str, int]) -> dict[Address, str]:
        """What each address returned, such as "captured: 38 steps, 1.58 MB". `step_counts`: steps by host."""
        steps = {address: step_counts.get(host_of(address.file_name)) for address in self.size_bytes}
        return {
            address: f"captured: {f'{steps[address]:,}' if steps[address] else 'no'} steps, {format_bytes(size)}"
            for address, size in self.size_bytes.items()
        }


class NothingRecorded(TfcompareError):
    """No address returned a profile; nothing was stored."""

    def __init__(self, left_out: tuple[LeftOut, ...]) -> None:
        self.left_out = left_out
        super().__init__("nothing was recorded: " + "; ".join(map(str, left_out)))


class Stopped(TfcompareError):
    """The user stopped the capture; nothing was stored."""

    def __init__(self) -> None:
        super().__init__("the capture was stopped, and nothing was saved")


def check_name(name: str) -> str:
    """`name` if it is a valid folder name on every system; raises `TfcompareError` otherwise."""
    name = name.strip()
    if not re.fullmatch(r"\w[\w .+-]*", name) or name.endswith(".") or len(name) > _LONGEST_NAME:
        raise TfcompareError(
            f"{text_of(name[: 2 * _LONGEST_NAME])!r} cannot be the name of a run: letters, digits, blanks and . _ + - "
            f"are possible, with a letter or digit first, {_LONGEST_NAME} of them at most"
        )
    return name
