"""What looking into a place brings to light, before all runs of all places get their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import PurePath

from tfcompare.sources.logdir import explain
from tfcompare.sources.logdir.files import host_of, text_of
from tfcompare.sources.logdir.found import FoundRun, HostFile
from tfcompare.sources.logdir.naming import Address, stamp_time
from tfcompare.sources.logdir.places import Place
from tfcompare.sources.logdir.walk import Identity

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Find:
    """A run without its name, and what that is made from."""

    run: FoundRun
    address: Address


@dataclass(frozen=True)
class Taken:
    """The folders that were looked into and the host files that are some run's, on this machine and on others."""

    folders: set[Identity] = field(default_factory=set)
    files: set[tuple[Identity, str]] = field(default_factory=set)
    remote: set[PurePath] = field(default_factory=set)


def find_at(
    place: Place,
    path: PurePath,
    files: tuple[HostFile, ...],
    problems: tuple[str, ...],
    newest_ns: Callable[[], int],
) -> Find:
    """A run at `path` in `place`, of the time that its folder's name tells, else of its newest file's."""
    names = [text_of(name) for name in path.parts]
    below = names[len(place.path.parts) :]
    own_id = "/".join([place.prefix, *below] if place.prefix else below) or "/"
    folder = path if place.is_folder else path.parent
    stamp = stamp_time(folder.name)
    recorded, source = (stamp, "folder name") if stamp else (_time(newest_ns()), "file time")
    run = FoundRun(own_id, "", path, files, problems, recorded, source)
    if not place.is_folder:
        names[-1] = host_of(path.name)
    is_part_of_run = not place.is_folder and explain.is_run_folder(folder)
    return Find(run, Address(own_id, tuple(names[1:]), own_id.count("/") + 1, is_part_of_run))


def _time(ns: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:  # a damaged file system may date a file beyond the year 9999
        return _EPOCH
