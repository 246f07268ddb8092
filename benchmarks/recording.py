"""A recording to be written: the names it uses, and the events of a few steps that all others are variations of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

# How a stat's value is written: the field number in XStat. `UINT64` becomes `INT64` where it fits, as in real files.
DOUBLE, UINT64, INT64, REF = 2, 3, 4, 7

_MASK = (1 << 64) - 1


class Changing(NamedTuple):
    """A stat that is `value` in the first step and grows by `growth`, modulo 2^64, with each."""

    value: int
    growth: int
    kind: int = INT64


StatValue = int | float | str | Changing
Values = dict[str, StatValue]


class Names:
    """Names with ids from 1 on, in the order of first use."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.ids.setdefault(name, len(self.ids) + 1)


@dataclass(frozen=True)
class Step:
    """The events of one step as columns, line by line and in time order within each; stats in the order of events."""

    line: Int64
    name: Int64
    begin_ns: Int64
    end_ns: Int64
    stat_first: Int64
    stat_name: Int64
    stat_kind: Int64
    stat_value: Int64
    stat_growth: Int64
    length_ns: int


@dataclass(frozen=True)
class Recording:
    """One plane: its lines, its names, and the steps that the recording repeats with variations."""

    plane: str
    lines: tuple[str, ...]
    event_names: Names
    stat_names: Names
    steps: tuple[Step, ...]


@dataclass
class StepBuilder:
    """Collects the events of one step in any order."""

    event_names: Names
    stat_names: Names
    events: list[tuple[int, int, int, int]] = field(default_factory=list)
    stats: list[list[tuple[int, int, int, int]]] = field(default_factory=list)

    def add(self, line: int, name: str, begin_ns: int, end_ns: int, /, **stats: StatValue) -> None:
        self.events.append((line, begin_ns, end_ns, self.event_names[name]))
        self.stats.append([self._stat(name, value) for name, value in stats.items()])

    def build(self, length_ns: int) -> Step:
        order = sorted(
            range(len(self.events)), key=lambda i: (self.events[i][0], self.events[i][1], -self.events[i][2])
        )
        line, begin, end, name = np.array([self.events[i] for i in order], np.int64).T.copy()
        stats = [self.stats[i] for i in order]
        first = np.cumsum([0, *(len(s) for s in stats)]).astype(np.int64)
        rows = [stat for of_event in stats for stat in of_event]
        stat_name, kind, value, growth = np.array(rows, np.int64).reshape(-1, 4).T.copy()
        return Step(line, name, begin, end, first, stat_name, kind, value, growth, length_ns)

    def _stat(self, name: str, value: StatValue) -> tuple[int, int, int, int]:
        growth = 0
        if isinstance(value, str):
            kind, bits = REF, self.stat_names[value]
        elif isinstance(value, float):
            kind, bits = DOUBLE, int(np.float64(value).view(np.int64))
        elif isinstance(value, Changing):
            kind, bits, growth = value.kind, value.value, value.growth
        else:
            kind, bits = INT64, value
        return self.stat_names[name], kind, _as_signed(bits), _as_signed(growth)


def _as_signed(bits: int) -> int:
    bits &= _MASK
    return bits - (1 << 64) if bits >> 63 else bits
