"""Which events belong to which step marker, and which ops ran eagerly."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfcompare.frames.links import Links, has_loops, link, nearest_source, spread_groups
from tfcompare.frames.planes import host_plane
from tfcompare.xspace import XSpace

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_TRACE_CONTEXT = "TraceContext"
_IMPLICIT_ROOTS = ("FunctionRun", "SessionRun", "RunGraph", "ExecutorState::Process")
_TF_DATA_RUNS = (
    "InstantiatedCapturedFunction::Run",
    "InstantiatedCapturedFunction::RunWithBorrowedArgs",
    "InstantiatedCapturedFunction::RunInstantiated",
    "InstantiatedCapturedFunction::RunAsync",
)
_OLD_MARKER = re.compile(r"(train|test|eval|predict)[ _]\d+")
_MARKER = re.compile(r"(train|test|TraceContext)[^/]*", re.DOTALL)
_EAGER_EXECUTE = "EagerExecute"

STORED = "stored groups"
FLAGGED = "step markers"
UNFLAGGED = "unflagged step markers (step_num)"
OLD = "old-style step markers (train N)"
NAMED = "chosen marker"


@dataclass(frozen=True, eq=False)
class Groups:
    """`group` of every event (−1: none); `markers`: rows of the explicit step markers that began a group, each with a
    `step_number`; `source`: what kind of marker that was (empty where there is none)."""

    group: Int64
    markers: Int64
    step_number: Int64
    source: str


def matching(space: XSpace, pattern: re.Pattern[str]) -> Bools:
    """Whether each event's name matches in full; one look per name, not per event."""
    hit = np.array([pattern.fullmatch(name) is not None for name in space.metadata_names], np.bool_)
    return hit[space.events.metadata]


def group_events(space: XSpace, links: Links | None, marker: str | None) -> Groups:
    """Spread each step marker, and each implicit root, over what it led to. A `marker` that the user names goes before
    whatever the profile has."""
    if links is None:
        links = link(space)
    flags = space.number_of_each("_r", 0)
    by_nature = space.named(*_IMPLICIT_ROOTS)
    explicit, source = _explicit_roots(space, np.where(by_nature, 0, flags), marker)
    levels = np.where(flags > 0, flags, 1)
    levels[space.named(_TRACE_CONTEXT)] = 2
    implicit = np.flatnonzero(by_nature & ~explicit)
    roots = np.concatenate([np.flatnonzero(explicit), implicit[~_of_tf_data(space, implicit)]])
    roots.sort()
    roots = roots[np.lexsort((space.events.start_ps[roots], -levels[roots]))]
    group, taken = spread_groups(links, roots, levels[roots])
    markers = taken[explicit[taken]]
    markers = markers[np.argsort(space.events.start_ps[markers], kind="stable")]
    return Groups(group[: len(space.events)], markers, _step_numbers(space, markers), source if len(markers) else "")


def stored_groups(space: XSpace) -> Groups | None:
    """The groups of a file that was grouped before it was written; None for any other."""
    rows, ids = space.numbers("group_id")
    if not len(rows):
        return None
    group = np.full(len(space.events), -1, np.int64)
    group[rows] = np.unique(ids, return_inverse=True)[1]
    host = host_plane(space)
    named = space.has("step_name") & (group >= 0)
    on_host = np.zeros(len(group), np.bool_)
    if host is not None:
        on_host[host.events] = True
    markers = _longest_of_each(space, group, np.flatnonzero(named & on_host))
    numbers = _numbers_in(_step_names(space, markers))
    if numbers is None:
        numbers = _step_numbers(space, markers)
    return Groups(group, markers, numbers, STORED if len(markers) else "")


def _longest_of_each(space: XSpace, group: Int64, markers: Int64) -> Int64:
    """The longest of the markers of each group, the earliest of several as long, in time order."""
    start, duration = space.events.start_ps[markers], space.events.duration_ps[markers]
    order = markers[np.lexsort((-start, duration, group[markers]))]
    longest = order[np.append(np.diff(group[order]) != 0, True)] if len(order) else order
    return longest[np.argsort(space.events.start_ps[longest], kind="stable")]


def _step_names(space: XSpace, markers: Int64) -> list[str]:
    stored = space.strings("step_name")
    codes = stored.spread(len(space.events))[markers].tolist()
    return [stored.labels[code] if code >= 0 else "" for code in codes]


def eager_events(space: XSpace, links: Links | None) -> Bools:
    """Whether each event ran under an eager execution of an op: not under that of a function, tf.data's included.

    In files grouped before they were written, the stored `is_eager`; with host-driven loops, never.
    """
    stored = space.numbers("is_eager")
    if links is None:
        out = np.zeros(len(space.events), np.bool_)
        out[stored[0]] = stored[1] != 0
        return out
    if has_loops(space):
        return np.zeros(len(space.events), np.bool_)
    executions = space.named(_EAGER_EXECUTE)
    nearest = nearest_source(links, np.flatnonzero(executions | space.named(*_TF_DATA_RUNS)))[: len(space.events)]
    of_one_op = executions & (space.number_of_each("is_func", -1) == 0)
    is_eager: Bools = (nearest >= 0) & of_one_op[nearest]
    return is_eager


def make_links(space: XSpace) -> Links | None:
    """The links of a file that was not grouped before; None where what they would tell is stored in it."""
    return link(space) if not len(space.numbers("group_id")[0]) else None


def is_marker_name(space: XSpace) -> Bools:
    """Whether an event's name is one that step markers have, whatever flags it carries."""
    return matching(space, _MARKER)


def _explicit_roots(space: XSpace, flags: Int64, marker: str | None) -> tuple[Bools, str]:
    if marker is not None:
        return space.named(marker), NAMED
    numbered = space.has("step_num")
    contexts = space.named(_TRACE_CONTEXT)
    flagged = flags > 0
    if flagged.any() or contexts.any():
        if ((flagged | contexts) & numbered).any() or not numbered.any():
            return flagged | contexts, FLAGGED
        return flagged | contexts | numbered, UNFLAGGED
    if numbered.any():
        return numbered, UNFLAGGED
    return matching(space, _OLD_MARKER), OLD


def _of_tf_data(space: XSpace, rows: Int64) -> Bools:
    """Which of these executions of functions belong to tf.data: known by the step id of the run that started them."""
    ids, known = space.number_of_each("id", 0), space.has("id")
    started = np.unique(ids[space.named(*_TF_DATA_RUNS) & known])
    return known[rows] & np.isin(ids[rows], started)


def _step_numbers(space: XSpace, markers: Int64) -> Int64:
    """The number each marker carries (`step_num`, `iter_num`, or one in its name), else its position."""
    for stat in ("step_num", "iter_num"):
        rows, values = space.numbers(stat)
        known = np.full(len(space.events), -1, np.int64)
        known[rows] = values
        if len(markers) and (known[markers] >= 0).all():
            return distinct_numbers(known[markers])
    names = space.metadata_names[space.events.metadata[markers]]
    numbers = _numbers_in(names)
    return np.arange(len(markers), dtype=np.int64) if numbers is None else numbers


def _numbers_in(names: Iterable[str]) -> Int64 | None:
    """The numbers at the end of these names; None unless every one has one, and there is any."""
    digits = [re.search(r"(?<![0-9])([0-9]{1,18})$", name) for name in names]
    found = [int(d.group(1)) for d in digits if d]
    return distinct_numbers(np.array(found, np.int64)) if digits and len(found) == len(digits) else None


def distinct_numbers(numbers: Int64) -> Int64:
    """These step numbers, or positions where two steps would share one."""
    return numbers if len(np.unique(numbers)) == len(numbers) else np.arange(len(numbers), dtype=np.int64)
