"""Which host files were captured together, and so belong to one run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath

from tfcompare.sources.logdir.explain import is_run_folder
from tfcompare.sources.logdir.found_run import FoundRun, HostFile
from tfcompare.sources.logdir.naming import stamp_time
from tfcompare.sources.logdir.outline import Outline, outline

_STAMPS_APART_S = 60
"""Folders of hosts that were captured together bear stamps that differ by seconds, as their clocks and starts do."""


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
            out.append(_one_run(group))
    return out


def _one_run(group: Sequence[FoundRun]) -> FoundRun:
    files = sorted((file for run in group for file in run.files), key=lambda file: file.host)
    problems = tuple(dict.fromkeys(problem for run in group for problem in run.problems))
    return replace(group[0], files=tuple(files), problems=problems)
