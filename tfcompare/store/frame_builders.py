"""Builds the frames of a profile: in this process, or in a child process with limits on memory and time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tfcompare.child import Children, Exceeded
from tfcompare.errors import TooLarge
from tfcompare.frames import HostTables, build
from tfcompare.frames.profile_reader import FrameBuilder, build_here
from tfcompare.schema import Group
from tfcompare.settings import ReadLimits
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.store.packing import pack, unpack
from tfcompare.text import text_of
from tfcompare.xspace import parse, read
from tfcompare.xspace.reader import needs_compilation

READERS = 2
"""The number of profiles that child processes read at the same time for one client. One more is read if another client
asks, so that no client, whatever its files are, keeps all others waiting; others wait, see `FairSemaphore`."""


@dataclass(frozen=True)
class BoundedBuilder:
    """Builds frames in child processes that cannot exceed `limits`; see `FrameBuilder`.

    The frames come as a pack: a fraction of the memory of loaded tables, and ready for the cache. `client`: who
    asks, see `FairSemaphore`.
    """

    processes: Children
    limits: ReadLimits
    client: Hashable = None

    def __call__(self, path: Path, host: str, choice: StepChoice, group: Group = "core") -> HostTables:
        """See `FrameBuilder`."""
        memory_bytes, seconds = self.limits.memory_bytes, self.limits.seconds
        limited = partial(self.processes.call, memory_bytes=memory_bytes, seconds=seconds, client=self.client)
        try:
            return unpack(limited(_pack, path, host, choice, group), group=group)
        except Exceeded as exceeded:
            limits = f"{memory_bytes >> 20:,} MB (TFCOMPARE_READ_MB) and {seconds:g} s (TFCOMPARE_READ_S)"
            why = f"{exceeded}; a file may take {limits}: raise the limit if the file is genuine"
            raise TooLarge(text_of(str(path)), why) from None


@cache
def reader_within(limits: ReadLimits | None) -> FrameBuilder:
    """The reader of profiles within these limits, in child processes that are started when they are needed and stay;
    without limits, in this process."""
    return BoundedBuilder(reading_processes(), limits) if limits is not None else build_here


def reading_processes() -> Children:
    """Child processes for `BoundedBuilder`."""
    return Children(READERS + 1, _prepare, per_client=READERS, compiles=needs_compilation)


def _pack(path: Path, host: str, choice: StepChoice, group: Group) -> bytes:
    profile = read(path)
    tables = build(profile.space, host, profile.digest, choice, group=group)
    del profile
    return pack(tables)


def _prepare() -> None:
    """Load the compiled loops, and what writing a pack needs."""
    pack(build(parse(b"\x0a\x00"), "", "", OWN_STEPS))
