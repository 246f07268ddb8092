"""The tables of the hosts of a run as pandas frames, over all hosts or for one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.errors import Unknown
from tfcompare.frames import HostTables
from tfcompare.frames.memory_events import MemoryEvents
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.schema.arrays import Int64
from tfcompare.tables.frames import frame_bytes, frame_of_hosts
from tfcompare.tables.step_times import common_step_ids, numbered_alike

CommonSteps = Callable[[str, Int64], Int64]
T = TypeVar("T")

_NOT_CACHED = ("op_cells", "op_wall", "annotation_wall", "kernel_cells", "hlo_cells", "memory_events")
"""Tables that are by far the largest, and are made of those of the hosts each time."""


class MeasuredCache:
    """Frames, arrays and what knows its `memory_bytes`, by key: each is made once, and measured when asked. Others are
    small."""

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] = {}
        self._sizes: dict[Hashable, int] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, cached for `key`. Raises as `make` does."""
        if key not in self._results:
            self._results[key] = make()
        result: T = self._results[key]
        return result

    @property
    def memory_bytes(self) -> int:
        """How many bytes all results take."""
        for key, made in list(self._results.items()):
            if key not in self._sizes:
                self._sizes[key] = _bytes_of(made)
        return sum(list(self._sizes.values()))


def _bytes_of(made: Any) -> int:
    if isinstance(made, tuple):
        return sum(map(_bytes_of, made))
    if isinstance(made, pd.DataFrame):
        return frame_bytes(made)
    return int(made.nbytes if isinstance(made, np.ndarray | pd.Series) else getattr(made, "memory_bytes", 0))


@dataclass(frozen=True, eq=False)
class HostFrames:
    """The tables of all `hosts` of a run; `run_name` is for messages. `cache` is of what is derived from them, too."""

    run_name: str
    hosts: tuple[HostTables, ...]
    cache: MeasuredCache = field(default_factory=MeasuredCache, init=False, repr=False)

    def select(self, host: str | None) -> tuple[HostTables, ...]:
        """All hosts or one. Raises `Unknown` for an unknown host."""
        if host is None:
            return self.hosts
        if host not in self._by_name:
            raise Unknown(f"host of {self.run_name}", host, sorted(self._by_name))
        return (self._by_name[host],)

    def several_or_none(self, host: str | None) -> str | None:
        """The host, or None, which is all, if it is the only one: its figures are those of all. Raises as `select`."""
        return host if len(self.hosts) > 1 or self.select(host) != self.hosts else None

    @cached_property
    def _by_name(self) -> dict[str, HostTables]:
        return {one.host: one for one in self.hosts}

    def host_table(self, name: str, *, host: str | None = None) -> pd.DataFrame:
        """A table of `schema.HOST_TABLES` of all hosts or one, host by host, with a column `host`.

        Numbers that are rows of another table, such as `part`, are rows of that table of the same hosts. Callers must
        not modify it. Raises `Unknown` for an unknown host, a `TfcompareError` if the table cannot be read any more.
        """
        hosts = self.select(host)
        if name in _NOT_CACHED:
            return frame_of_hosts(name, hosts)
        table = self.cache.get(("host table", name), lambda: frame_of_hosts(name, self.hosts))
        if host is None or len(self.hosts) == 1:
            return table
        return frame_of_hosts(name, hosts) if schema.HOST_TABLES[name].rows_of else rows_where(table, host=host)

    def memory_events(self, *, host: str | None = None) -> list[tuple[str, MemoryEvents]]:
        """The name of each host, or of one, with what `memory_timeline` is made of, in less memory than it takes."""
        return [(one.host, MemoryEvents.from_table(one.table("memory_events"))) for one in self.select(host)]

    def timeline(self, host: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The tables `timeline_lanes` and `timeline_spans` of one host, with texts as categoricals."""
        (tables,) = self.select(host)
        lanes, spans = (tables.table(name).unify_dictionaries() for name in ("timeline_lanes", "timeline_spans"))
        return lanes.combine_chunks().to_pandas(), spans.combine_chunks().to_pandas()

    def cells_in_steps(self, name: str, *, host: str | None = None) -> pd.DataFrame:
        """`kernel_cells` or `hlo_cells` of all hosts or one, by the steps of the run."""
        cells, common_steps = self.host_table(name, host=host), self.common_steps
        if common_steps is not None and host is None:
            own = [common_steps(str(one), rows["step"].to_numpy()) for one, rows in cells.groupby("host", sort=False)]
            cells = cells.assign(step=np.concatenate([np.zeros(0, np.int64), *own]))
        return cells.drop(columns="host")

    @cached_property
    def common_steps(self) -> CommonSteps | None:
        """The steps of the run for those of a host, where hosts number them differently; `NO_STEP` for others."""
        steps = self.host_table("steps")
        if numbered_alike(steps):
            return None
        rows = steps.assign(place=common_step_ids(steps))
        place_of = {host: own.set_index("step")["place"] for host, own in rows.groupby("host")}

        def common_steps(host: str, step: Int64) -> Int64:
            if host not in place_of:
                return step
            return pd.Series(step).map(place_of[host]).fillna(NO_STEP).to_numpy(np.int64)

        return common_steps


def rows_where(table: pd.DataFrame, **values: str | None) -> pd.DataFrame:
    """The rows with these values of the columns `host` and `device`, where one is given."""
    for name, value in values.items():
        if value is not None and not (is_wanted := (table[name] == value).to_numpy()).all():
            table = table[is_wanted].reset_index(drop=True)
    return table
