"""Assigns events to step markers, and finds the ops that ran eagerly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tfcompare.frames.executions import NO_EXECUTIONS, Executions
from tfcompare.frames.links import Links, has_loops, link, nearest_source_value, spread_groups
from tfcompare.frames.planes import host_plane
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace

_TRACE_CONTEXT = "TraceContext"
_IMPLICIT_ROOTS = ("FunctionRun", "SessionRun", "RunGraph", "ExecutorState::Process")
TF_DATA_RUNS = (
    "InstantiatedCapturedFunction::Run",
    "InstantiatedCapturedFunction::RunWithBorrowedArgs",
    "InstantiatedCapturedFunction::RunInstantiated",
    "InstantiatedCapturedFunction::RunAsync",
)
_OLD_MARKER = re.compile(r"(train|test|eval|predict)[ _]\d+")
_MARKER = re.compile(r"(train|test|TraceContext)[^/]*", re.DOTALL)
_NUMBER_AT_END = re.compile(r"(^|[ _])\d+$")
_EAGER_EXECUTE = "EagerExecute"
_EAGER_OP, _FUNCTION = 1, 2  # what an event runs under

Rows = TypeVar("Rows", Int32, Int64)

STORED = "stored groups"
FLAGGED = "step markers"
UNFLAGGED = "unflagged step markers (step_num)"
OLD = "old-style step markers (train N)"
NAMED = "chosen marker"


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every event, −1 for none.

    `markers` are the rows of the explicit step markers that started a group, `step_number` the number of each. `source`
    is the kind of those markers, empty if there are none. `executions` are those of XLA programs on the host's threads.
    """

    group: Int32
    markers: Int64
    step_number: Int64
    source: str
    executions: Executions = NO_EXECUTIONS


def names_matching(space: XSpace, pattern: re.Pattern[str]) -> Bools:
    """Whether the full name of each event metadata entry matches."""
    return np.array([pattern.fullmatch(name) is not None for name in space.metadata_names], np.bool_)


def group_events(space: XSpace, links: Links | None, marker: str | None) -> Groups:
    """Groups each step marker and implicit root with the events it caused.

    A `marker` named by the user takes precedence over the profile's own markers.
    """
    if links is None:
        links = link(space)
    is_implicit = space.events_named(*_IMPLICIT_ROOTS)
    explicit, source = _explicit_roots(space, is_implicit, marker)
    implicit = np.flatnonzero(is_implicit & ~explicit)
    ids, known = space.numbers_of("id", implicit)
    of_tf_data, are_known = space.numbers_of("id", space.rows_named(*TF_DATA_RUNS))
    is_tf_data_run = known & np.isin(ids, of_tf_data[are_known])  # by the step id of the run that started it
    roots = np.sort(np.concatenate([np.flatnonzero(explicit), implicit[~is_tf_data_run]]))
    levels = np.maximum(space.number_of("_r", roots, 1), 1)
    levels[space.events_named(_TRACE_CONTEXT)[roots]] = 2
    if source == NAMED:
        levels[explicit[roots]] = levels.max(initial=0) + 1
    order = np.lexsort((space.events.start_ps[roots], -levels))
    group, used_roots = spread_groups(links, roots[order], levels[order])
    markers = used_roots[explicit[used_roots]]
    markers = markers[np.argsort(space.events.start_ps[markers], kind="stable")]
    source = source if len(markers) else ""
    return Groups(group[: len(space.events)], markers, _step_numbers(space, markers), source, links.executions)


def stored_groups(space: XSpace) -> Groups | None:
    """The groups stored in a file that was grouped before it was written; None for other files."""
    rows, ids = space.numbers("group_id")
    if not len(rows):
        return None
    group = np.full(len(space.events), -1, np.int32)
    group[rows] = np.unique(ids, return_inverse=True)[1]
    host = host_plane(space)
    on_host = np.arange(len(group))[host.events if host is not None else slice(0)]
    markers = on_host[(space.has("step_name") & (group >= 0))[on_host]]
    markers = longest_of_each(space, markers, group[markers])
    markers = markers[np.argsort(space.events.start_ps[markers], kind="stable")]
    numbers = _numbers_in_names(space.strings("step_name").texts(markers))
    if numbers is None:
        numbers = _step_numbers(space, markers)
    return Groups(group, markers, numbers, STORED if len(markers) else "")


def longest_of_each(space: XSpace, rows: Rows, key: Int32 | Int64) -> Rows:
    """The longest event of each key, in the order of the keys; the earliest if several tie."""
    order = np.lexsort((-space.events.start_ps[rows], space.events.duration_ps[rows], key))
    longest: Rows = rows[order[np.diff(key[order], append=-1) != 0]]
    return longest


def marker_names(space: XSpace, groups: Groups) -> list[str]:
    """The name of each marker without the number of its step: `train` for `train 12`, unless another marker has the
    same name and number. That of the group counts where it is stored, or the `graph_type` of Keras, as in xprof."""
    recorded = space.strings("step_name" if groups.source == STORED else "graph_type").texts(groups.markers)
    events = space.metadata_names[space.events.metadata[groups.markers]].tolist()
    names = [name or event for name, event in zip(recorded.tolist(), events, strict=True)]
    times = Counter(names)
    without_number = [name if times[name] > 1 else _NUMBER_AT_END.sub("", name) for name in names]
    return [name or _NUMBER_AT_END.sub("", event) for name, event in zip(without_number, events, strict=True)]


def eager_events(space: XSpace, links: Links | None) -> Bools:
    """Whether each event ran in an eagerly executed op, rather than in a function (including those of tf.data). Files
    that were grouped before they were written store it as `is_eager`. With host-driven loops it is never set."""
    out = np.zeros(len(space.events), np.bool_)
    if links is None:
        rows, flags = space.numbers("is_eager")
        out[rows] = flags != 0
    elif not has_loops(space):
        sources = space.rows_named(_EAGER_EXECUTE, *TF_DATA_RUNS)
        is_of_one_op = space.events_named(_EAGER_EXECUTE)[sources] & (space.number_of("is_func", sources, -1) == 0)
        kind = np.where(is_of_one_op, _EAGER_OP, _FUNCTION).astype(np.int32)
        out = nearest_source_value(links, sources, kind)[: len(space.events)] == _EAGER_OP
    return out


def make_links(space: XSpace) -> Links | None:
    """The links of the file; None if it was grouped before it was written."""
    return link(space) if not len(space.numbers("group_id")[0]) else None


def host_events_named(space: XSpace, name: str) -> Bools:
    """Whether each event is a host event with that name."""
    out, host = np.zeros(len(space.events), np.bool_), host_plane(space)
    if host is not None:
        out[host.events] = space.events_named(name)[host.events]
    return out


def is_marker_name(space: XSpace) -> Bools:
    """Whether the name of each event metadata entry is a step marker's, regardless of its flags."""
    return names_matching(space, _MARKER)


def _explicit_roots(space: XSpace, is_implicit: Bools, marker: str | None) -> tuple[Bools, str]:
    """(which events are step markers, the kind of marker). Implicit roots are flagged as well, but are no markers."""
    if marker is not None:
        return host_events_named(space, marker), NAMED
    numbered = space.has("step_num")
    contexts = space.events_named(_TRACE_CONTEXT)
    rows, flags = space.numbers("_r")
    flagged = np.zeros(len(space.events), np.bool_)
    flagged[rows] = flags > 0
    flagged &= ~is_implicit
    if flagged.any() or contexts.any():
        if ((flagged | contexts) & numbered).any() or not numbered.any():
            return flagged | contexts, FLAGGED
        return flagged | contexts | numbered, UNFLAGGED
    if numbered.any():
        return numbered, UNFLAGGED
    return names_matching(space, _OLD_MARKER)[space.events.metadata], OLD


def _step_numbers(space: XSpace, markers: Int64) -> Int64:
    """The number of each marker: `step_num`, `iter_num`, or one in its name, else its position."""
    for stat in ("step_num", "iter_num"):
        numbers = space.number_of(stat, markers, -1)
        if len(markers) and (numbers >= 0).all():
            return distinct_numbers(numbers)
    in_names = _numbers_in_names(space.metadata_names[space.events.metadata[markers]])
    return np.arange(len(markers), dtype=np.int64) if in_names is None else in_names


def _numbers_in_names(names: Iterable[str]) -> Int64 | None:
    """The numbers at the end of these names; None unless every name has one."""
    digits = [re.search(r"(?<![0-9])([0-9]{1,18})$", name) for name in names]
    found = [int(d.group(1)) for d in digits if d]
    return distinct_numbers(np.array(found, np.int64)) if digits and len(found) == len(digits) else None


def distinct_numbers(numbers: Int64) -> Int64:
    """These step numbers; positions instead if two steps share a number."""
    return numbers if len(np.unique(numbers)) == len(numbers) else np.arange(len(numbers), dtype=np.int64)
