"""A recording to be written: its planes, the names they use, and the events of a few steps that all others vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

# How a stat's value is written: the field number in XStat. `UINT64` becomes `INT64` where it fits, as in real files.
DOUBLE, UINT64, INT64, REF = 2, 3, 4, 7

NUMBERED = "#"
"""The name of an event that is called as its step is numbered: 0, 1, …"""
FIRST_NUMBERED_ID = 1 << 20

_MASK = (1 << 64) - 1


class Changing(NamedTuple):
    """A stat that is `value` in the first step and grows by `growth`, modulo 2^64, with each."""

    value: int
    growth: int
    kind: int = INT64


class Clock(Enum):
    """A stat that says when the event began by the device's own clock, or how long it took by it."""

    BEGIN = 1
    DURATION = 2


StatValue = int | float | str | Changing | Clock
Values = dict[str, StatValue]
Constant = int | float | str | bytes


class Names:
    """Names with ids from 1 on, in the order of first use."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.ids.setdefault(name, len(self.ids) + 1)


class Described(NamedTuple):
    """What a file says of all events of a name."""

    display_name: str
    stats: dict[str, Constant]


@dataclass(frozen=True)
class Plane:
    """A host or device: its threads or streams, and the names it uses; `is_numbered`: has events `NUMBERED`."""

    name: str
    lines: tuple[str, ...]
    stats: dict[str, Constant] = field(default_factory=dict)
    described: dict[str, Described] = field(default_factory=dict)
    is_numbered: bool = False
    event_names: Names = field(default_factory=Names)
    stat_names: Names = field(default_factory=Names)


@dataclass(frozen=True)
class Step:
    """The events of one step as columns, line by line and in time order within each; stats in the order of events.

    `name_growth`: 1 where the event's name is the step's number. `clock_begin`, `clock_duration`: the stats that are
    `Clock`s.
    """

    line: Int64
    name: Int64
    name_growth: Int64
    begin_ns: Int64
    end_ns: Int64
    stat_first: Int64
    stat_name: Int64
    stat_kind: Int64
    stat_value: Int64
    stat_growth: Int64
    clock_begin: Int64
    clock_duration: Int64
    length_ns: int


@dataclass(frozen=True)
class Recording:
    """Planes, whose lines are numbered through, and the steps that the recording repeats with variations."""

    planes: tuple[Plane, ...]
    steps: tuple[Step, ...]


class _Stat(NamedTuple):
    name: int
    kind: int
    value: int
    growth: int
    clock: int


class StepBuilder:
    """Collects the events of one step in any order."""

    def __init__(self, planes: Sequence[Plane]) -> None:
        self._plane = [plane for plane in planes for _ in plane.lines]
        self._events: list[tuple[int, int, int, int, int]] = []
        self._stats: list[list[_Stat]] = []

    def add(self, line: int, name: str, begin_ns: int, end_ns: int, /, **stats: StatValue) -> None:
        """An event on that line."""
        plane, growth = self._plane[line], int(name == NUMBERED)
        key = FIRST_NUMBERED_ID if growth else plane.event_names[name]
        self._events.append((line, begin_ns, end_ns, key, growth))
        self._stats.append([_stat(plane.stat_names, name, value) for name, value in stats.items()])

    def build(self, length_ns: int) -> Step:
        """The step, so long, with all that was added."""
        order = sorted(
            range(len(self._events)), key=lambda i: (self._events[i][0], self._events[i][1], -self._events[i][2])
        )
        line, begin, end, name, name_growth = np.array([self._events[i] for i in order], np.int64).T.copy()
        stats = [self._stats[i] for i in order]
        first = np.cumsum([0, *(len(s) for s in stats)]).astype(np.int64)
        rows = np.array([stat for of_event in stats for stat in of_event], np.int64).reshape(-1, len(_Stat._fields))
        stat_name, kind, value, growth, clock = rows.T.copy()
        clocks = [np.flatnonzero(clock == which.value).astype(np.int64) for which in Clock]
        return Step(
            line, name, name_growth, begin, end, first, stat_name, kind, value, growth, clocks[0], clocks[1], length_ns
        )


def _stat(names: Names, name: str, value: StatValue) -> _Stat:
    growth = clock = bits = 0
    kind = INT64
    if isinstance(value, str):
        kind, bits = REF, names[value]
    elif isinstance(value, float):
        kind, bits = DOUBLE, int(np.float64(value).view(np.int64))
    elif isinstance(value, Changing):
        kind, bits, growth = value.kind, value.value, value.growth
    elif isinstance(value, Clock):
        kind, clock = UINT64, value.value
    else:
        bits = value
    return _Stat(names[name], kind, _as_signed(bits), _as_signed(growth), clock)


def _as_signed(bits: int) -> int:
    bits &= _MASK
    return bits - (1 << 64) if bits >> 63 else bits
