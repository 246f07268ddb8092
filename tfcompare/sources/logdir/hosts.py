"""The host files of a run, which belong together, and their outlines."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from typing import BinaryIO

from tfcompare.sources.logdir.check import field_head, varint
from tfcompare.sources.logdir.explain import is_run_folder
from tfcompare.sources.logdir.files import open_untouched
from tfcompare.sources.logdir.found_run import FoundRun, HostFile
from tfcompare.sources.logdir.naming import stamp_time

_STAMPS_APART_S = 60
"""Folders of hosts that were captured together bear stamps that differ by seconds, as their clocks and starts do."""
_MOST_UNPACKED_BYTES = 256 << 20
"""Of a gzip file no more is unpacked: its environment is then unknown."""
_CLOCKS_APART_NS = 100_000_000
"""How far the clocks of two hosts may be apart: NTP keeps them within this."""
_MOST_PLANES = 10_000
"""A profile has a plane for each device and a few more: beyond this the file is not looked at any further."""
_LONGEST_HEAD = 512
"""Bytes at the beginning of a plane that hold its id and name."""
_LARGEST_ENVIRONMENT = 1 << 20
_ENVIRONMENT = b"Task Environment"
_DEVICE = re.compile(rb"/device:(GPU|TPU):")
_PLANES = _ID = 1
_NAME = 2
_STAT_METADATA, _STATS = 5, 6


def captured_together(files: Sequence[HostFile]) -> list[tuple[HostFile, ...]]:
    """The files as groups that may each be the hosts of one run, in the order of their first files.

    Files are of one group if their captures overlap and their devices are of one kind. Files that carry no time belong
    to the only group of their kind; if there are several, they are a group of their own.
    """
    by_kind: defaultdict[frozenset[str], list[tuple[HostFile, Outline]]] = defaultdict(list)
    for file in files:
        found = outline(file.path)
        by_kind[found.devices].append((file, found))
    groups: list[list[HostFile]] = []
    for of_kind in by_kind.values():
        timed = sorted((each for each in of_kind if each[1].has_time), key=lambda each: each[1].start_ns)
        untimed = [file for file, found in of_kind if not found.has_time]
        overlapping: list[list[HostFile]] = []
        span = Outline()
        for file, found in timed:
            if overlapping and span.overlaps(found):
                overlapping[-1].append(file)
                span = replace(span, stop_ns=max(span.stop_ns, found.stop_ns))
            else:
                overlapping.append([file])
                span = found
        if len(overlapping) == 1:
            overlapping[0] += untimed
        elif untimed:
            overlapping.append(untimed)
        groups += overlapping
    place = {file.host: number for number, file in enumerate(files)}
    inside = [tuple(sorted(group, key=lambda file: place[file.host])) for group in groups]
    return sorted(inside, key=lambda group: place[group[0].host])


def joinable(found: Sequence[FoundRun]) -> list[tuple[FoundRun, ...]]:
    """Runs that may be hosts of one run, by their order: captured at the same time, into folders of their own.

    They are local, beside each other in `plugins/profile`, named by stamps that differ by seconds, of different hosts
    and of one kind of device, and their captures overlap.
    """
    beside: defaultdict[PurePath, list[FoundRun]] = defaultdict(list)
    for run in found:
        is_here = isinstance(run.path, Path) and run.is_readable and not run.is_stored
        if is_here and is_run_folder(run.path) and stamp_time(run.path.name) is not None:
            beside[run.path.parent].append(run)
    groups: list[list[FoundRun]] = []
    look = cache(outline)  # a run is compared with each host of a group
    for runs in beside.values():
        here: list[list[FoundRun]] = []
        for run in sorted(runs, key=lambda run: (run.recorded, run.id)):
            near = [group for group in here if (run.recorded - group[0].recorded).total_seconds() <= _STAMPS_APART_S]
            group = next((group for group in near if _is_of(group, run, look)), None)
            if group is None:
                here.append([run])
            else:
                group.append(run)
        groups += here
    return [tuple(group) for group in groups if len(group) > 1]


def _is_of(group: Sequence[FoundRun], run: FoundRun, look: Callable[[Path], Outline]) -> bool:
    hosts = {host for other in group for host in other.host_names}
    if hosts & set(run.host_names):
        return False
    ours, *theirs = (look(each.files[0].path) for each in (run, *group))
    return all(ours.has_time and one.has_time and ours.overlaps(one) and ours.devices == one.devices for one in theirs)


def joined(found: Sequence[FoundRun]) -> list[FoundRun]:
    """The runs with each group of `joinable` as one, which has the identity and place of the earliest."""
    first_of = {run.id: group for group in joinable(found) for run in group}
    out = []
    for run in found:
        group = first_of.get(run.id)
        if group is None:
            out.append(run)
        elif run is group[0]:
            files = sorted((file for one in group for file in one.files), key=lambda file: file.host)
            problems = dict.fromkeys(problem for one in group for problem in one.problems)
            out.append(replace(run, files=tuple(files), problems=tuple(problems)))
    return out


@dataclass(frozen=True)
class Outline:
    """`start_ns` and `stop_ns`: when profiling began and ended (Unix time), 0 if the file does not say.

    `devices` are the kinds of devices that it has planes of: `GPU`, `TPU`; none on a CPU alone.
    """

    start_ns: int = 0
    stop_ns: int = 0
    devices: frozenset[str] = frozenset()

    @property
    def has_time(self) -> bool:
        """Whether both times are known."""
        return 0 < self.start_ns <= self.stop_ns

    def overlaps(self, other: Outline) -> bool:
        """Whether both were profiled at some common time, as far as is known: True if either has no times."""
        if not (self.has_time and other.has_time):
            return True
        return max(self.start_ns, other.start_ns) <= min(self.stop_ns, other.stop_ns) + _CLOCKS_APART_NS


def outline(path: Path) -> Outline:
    """The outline of the profile at `path`; of a damaged or unreadable file, what was found up to there."""
    times: dict[bytes, int] = {}
    devices = set()
    try:
        with os.fdopen(open_untouched(path), "rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            for name, plane in _planes(gzip.GzipFile(fileobj=file) if is_gzip else file):
                if found := _DEVICE.match(name):
                    devices.add(found[1].decode())
                elif plane and not times:  # a second environment is no profiler's
                    times = _integers(plane)
    except (OSError, EOFError, ValueError, zlib.error):
        pass
    return Outline(times.get(b"profile_start_time", 0), times.get(b"profile_stop_time", 0), frozenset(devices))


def _planes(file: BinaryIO | gzip.GzipFile) -> Iterator[tuple[bytes, bytes]]:
    """(name, contents) of each plane; the contents only of the task's environment."""
    end = 0
    for _ in range(_MOST_PLANES):
        if isinstance(file, gzip.GzipFile) and end > _MOST_UNPACKED_BYTES:
            return
        file.seek(end)
        field, length, begin = field_head(file.read(_LONGEST_HEAD), 0)
        begin, end = end + begin, end + begin + length
        if field == _PLANES:
            file.seek(begin)
            head = file.read(min(length, _LONGEST_HEAD))
            name = next((value for number, value in _fields(head) if number == _NAME), b"")
            if name == _ENVIRONMENT and length <= _LARGEST_ENVIRONMENT:
                yield name, head + file.read(length - len(head))
            else:
                yield name, b""


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, value) of each field that is complete."""
    at = 0
    while at < len(data):
        number, length, at = field_head(data, at)
        if at + length > len(data):
            return
        yield number, data[at : at + length]
        at += length


def _integers(plane: bytes) -> dict[bytes, int]:
    """The plane's stats that are integers, by name."""
    names: dict[int, bytes] = {}
    values: dict[int, int] = {}
    for number, content in _fields(plane):
        if number == _STAT_METADATA:
            entry = dict(_fields(dict(_fields(content)).get(2, b"")))
            names[_integer(entry.get(_ID))] = entry.get(_NAME, b"")
        elif number == _STATS:
            stat = dict(_fields(content))
            integer = stat.get(3, stat.get(4))
            if integer is not None:
                values[_integer(stat.get(_ID))] = _integer(integer)
    return {names[key]: value for key, value in values.items() if key in names}


def _integer(data: bytes | None) -> int:
    return varint(data, 0)[0] if data else 0
