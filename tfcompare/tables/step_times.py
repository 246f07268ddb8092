"""Step times: the steps of a run and of its hosts, what ran in each, and the time between steps."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tfcompare.schema.arrays import Floats
from tfcompare.tables.frames import frame_bytes

_US_PER_S = 1e6
_FEW_STEPS = 9  # fewer are not judged
_COLUMNS = ["step", "duration_us", "included", "stray"]
_BYTES_OF_NUMBER = 8
"""Also of a text's position."""


def run_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Columns `step`, `duration_us`, `included`, `stray`: one row per step of the run, as long as on its slowest host.
    Where the time of any host is unknown, that of the step is.

    `steps` has the columns of `schema.STEPS`. Steps of several hosts are matched by `common_step_ids`, and are in the
    order of their starts, counted from the median start of those that all hosts have: captures of hosts begin at
    different steps. A step is included if every host that has it includes it.
    """
    hosts = steps["host"].nunique()
    if hosts < 2:
        order = np.lexsort((steps["step"].to_numpy(), steps["start_us"].to_numpy()))
        return pd.DataFrame({name: steps[name].to_numpy()[order] for name in _COLUMNS})
    ids = common_step_ids(steps).rename("step")
    on_all = ids.groupby(ids).transform("size") == hosts
    origin = steps["start_us"].where(on_all).groupby(steps["host"]).transform("median")
    rows = steps.assign(start_us=steps["start_us"] - origin, is_lost=steps["duration_us"].isna()).groupby(ids)
    how = {"duration_us": "max", "is_lost": "any", "included": "all", "stray": "any", "start_us": "median"}
    of_run = rows.agg(how)
    of_run["duration_us"] = of_run["duration_us"].mask(of_run["is_lost"])
    return of_run.sort_values("start_us", kind="stable").reset_index()[_COLUMNS]


def are_on_all_hosts(steps: pd.DataFrame) -> pd.Series:
    """Whether the step of each row is on every host, as captures of hosts begin and end at different steps: how long
    another one was is unknown. All are, if only few are on every host: then hosts may do other work.

    `steps` is as for `run_steps`.
    """
    hosts = steps["host"].nunique()
    if hosts < 2:
        return pd.Series(True, steps.index)
    ids = common_step_ids(steps)
    is_common = ids.groupby(ids).transform("size") == hosts
    few = min(_FEW_STEPS, steps.groupby("host").size().max() / 2)
    return is_common | (is_common.sum() / hosts < few)


def on_slowest_host(steps: pd.DataFrame) -> pd.DataFrame:
    """One row for each step of a run, in order: that of the host it took longest on, parts of the step included.

    `steps` is the table of all hosts, or of one. Returns its columns; `step` and `included` are the run's. The first
    host in order of their names, where several took equally long.
    """
    if steps.empty:
        return steps
    longest = (
        steps.assign(step=common_step_ids(steps))
        .sort_values(["duration_us", "host"], ascending=[False, True], kind="stable")
        .drop_duplicates("step")
    )
    of_run = run_steps(steps)[["step", "included", "stray"]]
    return of_run.merge(longest.drop(columns=["included", "stray"]), on="step")[steps.columns.to_list()]


def common_step_ids(steps: pd.DataFrame) -> pd.Series:
    """An id for each step that is the same on every host: its number, or its position where hosts number differently.

    `steps` are all steps of a run, so that those of a host have their places.
    """
    return steps["step"] if numbered_alike(steps) else steps.groupby("host").cumcount()


def positions_in_run(steps: pd.DataFrame) -> pd.Series:
    """The position of the step of each row among the steps of the run, counted from 1: what texts and charts call it.

    `steps` is as for `run_steps`; the result has its index.
    """
    order = run_steps(steps)["step"]
    return common_step_ids(steps).map(dict(zip(order, range(1, len(order) + 1), strict=True))).astype("int64")


def ranges_of_hosts(steps: pd.DataFrame, first: int | None, last: int | None) -> dict[str, tuple[int, int]]:
    """The positions of each host's own steps that are those from `first` to `last` of the run, both inclusive and None
    for an open end; not of hosts without such a step.

    `steps` is as for `run_steps`.
    """
    in_run, own = positions_in_run(steps), steps.groupby("host").cumcount() + 1
    is_in_range = (in_run >= (first or 1)) & (in_run <= (last or len(steps)))
    ends = own[is_in_range].groupby(steps["host"]).agg(["min", "max"])
    return {str(host): (int(low), int(high)) for host, low, high in ends.itertuples()}


def position_of(steps: pd.DataFrame, step: int, host: str | None = None) -> int:
    """The position of one step among those of the run, counted from 1: by its number on a host, or else by what
    `run_steps` calls it. `steps` is as for `run_steps`, of all hosts."""
    ids = common_step_ids(steps) if host is None else steps["step"].where(steps["host"] == host)
    return int(positions_in_run(steps)[ids == step].iloc[0])


def host_starts_and_end(steps: pd.DataFrame) -> tuple[Floats, float]:
    """The start of each step and the end of the last, in µs: of the host span if known, as of what the host does.

    `steps` are those of one host.
    """
    start = steps["host_start_us"].fillna(steps["start_us"])
    end = (start + steps["host_span_us"].fillna(steps["duration_us"])).max()
    return start.to_numpy(dtype=np.float64), float(end)


def numbered_alike(steps: pd.DataFrame) -> bool:
    """Whether every host has most of the step numbers of the host with the fewest steps."""
    if steps["host"].nunique() < 2:
        return True
    once = steps[["host", "step"]].drop_duplicates()
    common = (once.groupby("step").size() == once["host"].nunique()).sum()
    return bool(common * 2 >= once.groupby("host").size().min())


@dataclass(frozen=True, eq=False)
class StepCells:
    """A table in two parts: the key columns of its rows, and the values of each row in each step.

    `keys` has one row per table row. `cells` has the columns `row` (a position in `keys`), `step` (its number), and
    `occurrences` and `time_us`, or `wall_time_us`: one row per step in which the table row ran.
    """

    keys: pd.DataFrame
    cells: pd.DataFrame

    @cached_property
    def memory_bytes(self) -> int:
        """Memory used by both parts, in bytes."""
        return frame_bytes(self.keys) + frame_bytes(self.cells)

    @property
    def joined_bytes(self) -> int:
        """Roughly the memory that `frame` would take, in bytes: the texts of a row are repeated in each step."""
        length = np.zeros(len(self.keys), np.int64)
        for name in self.keys:
            if self.keys[name].dtype == "str":
                length += self.keys[name].str.len().to_numpy(np.int64)
        numbers = _BYTES_OF_NUMBER * (len(self.keys.columns) + len(self.cells.columns)) * len(self.cells)
        return int(length[self.cells["row"].to_numpy()].sum()) + numbers

    def frame(self) -> pd.DataFrame:
        """Keys and cells joined into one frame."""
        keys = self.keys.iloc[self.cells["row"].to_numpy()].reset_index(drop=True)
        return pd.concat([keys, self.cells.drop(columns="row").reset_index(drop=True)], axis=1)

    def of_steps(self, steps: Collection[int]) -> StepCells:
        """The cells of these steps, by number."""
        return StepCells(self.keys, self.cells[self.cells["step"].isin(steps)])

    def sums(self, name: str) -> pd.DataFrame:
        """The keys that have cells, with the sum of that column of the cells over all steps."""
        row = self.cells["row"].to_numpy()
        has_cells = np.bincount(row, minlength=len(self.keys)) > 0
        return self.keys.assign(**{name: np.bincount(row, self.cells[name], len(self.keys))})[has_cells]


@dataclass(frozen=True, eq=False)
class Window:
    """The steps of one host from the start of the first to that of the last, excluded ones too, or a chosen kind.

    `periods_us` has an element for each step but the last: from its start to that of the next; the other arrays have
    one for each of these whose time is known. `timed_us`: its period. `gaps_us`: how much of that is in no step.
    `overlaps_us`: how long the step goes on after the start of the next.
    """

    periods_us: Floats
    timed_us: Floats
    gaps_us: Floats
    overlaps_us: Floats

    def per(self, iterations: int) -> Window:
        """With times per iteration, of which each step has so many."""
        times = self.periods_us, self.timed_us, self.gaps_us, self.overlaps_us
        return self if iterations == 1 else Window(*(of / iterations for of in times))

    @property
    def period_us(self) -> float:
        """The mean time from step to step."""
        return float(self.periods_us.mean())

    @property
    def between_us(self) -> float:
        """Time between steps, per step; NaN without any step of known time."""
        return float(self.gaps_us.mean()) if len(self.gaps_us) else math.nan

    @property
    def share(self) -> float:
        """The share of the window that is in no step."""
        whole = float(self.timed_us.sum())
        return float(self.gaps_us.sum()) / whole if whole > 0 else math.nan

    @property
    def overlap_us(self) -> float:
        """How long a step goes on after the start of the next, on average."""
        return float(self.overlaps_us.mean()) if len(self.overlaps_us) else math.nan

    @property
    def steps_per_s(self) -> float:
        """The throughput in the window, in steps per second."""
        return _US_PER_S / self.period_us if self.period_us > 0 else math.nan


def window(steps: pd.DataFrame, is_chosen: pd.Series | None = None) -> Window | None:
    """The window of the steps of one host (columns `start_us`, `duration_us`), or of the chosen ones; None for fewer
    than two."""
    if len(steps) < 2 or (is_chosen is not None and is_chosen.sum() < 2):
        return None
    order = np.argsort(steps["start_us"].to_numpy(np.float64), kind="stable")
    start, duration = (steps[name].to_numpy(np.float64)[order] for name in ("start_us", "duration_us"))
    end = start + duration
    periods = np.diff(start)
    gaps = np.maximum(start[1:] - np.fmax.accumulate(end)[:-1], 0.0)
    overlaps = np.maximum(end[:-1] - start[1:], 0.0)
    chosen = np.ones(len(periods), np.bool_) if is_chosen is None else is_chosen.to_numpy()[order][:-1]
    timed = chosen & ~np.isnan(end[:-1])
    return Window(periods[chosen], periods[timed], gaps[timed], overlaps[timed])
