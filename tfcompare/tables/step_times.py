"""Step times of all hosts as arrays, one cell a host and step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.tables.frames import frame_bytes

_FEW_STEPS = 9  # fewer are not judged
_COLUMNS = ["step", "duration_us", "included", "stray"]
_BYTES_OF_NUMBER = 8
"""Also of a text's position."""


def run_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Columns `step`, `duration_us`, `included`, `stray`: one row per step of the run, as long as on its slowest host.
    Where the time of any host is unknown, that of the step is.

    `steps` has the columns of `schema.STEPS`. Steps of several hosts are matched by `common_step_ids`, and are in the
    order of their starts on one axis: captures of hosts begin at different steps. A step is included if every host that
    has it includes it.
    """
    if steps.empty:
        return pd.DataFrame(
            {
                "step": pd.Series(dtype="int64"),
                "duration_us": pd.Series(dtype="float64"),
                "included": pd.Series(dtype="bool"),
                "stray": pd.Series(dtype="bool"),
            }
        )
    if steps["host"].nunique() == 1:
        order = np.lexsort((steps["step"].to_numpy(), steps["start_us"].to_numpy()))
        return pd.DataFrame({name: steps[name].to_numpy()[order] for name in _COLUMNS})
    ids = common_step_ids(steps).rename("step")
    of_run = (
        steps.assign(start_us=_on_one_axis(steps, ids), is_lost=steps["duration_us"].isna())
        .groupby(ids)
        .agg(
            duration_us=("duration_us", "max"),
            is_lost=("is_lost", "any"),
            included=("included", "all"),
            stray=("stray", "any"),
            start_us=("start_us", "median"),
        )
    )
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


def _on_one_axis(steps: pd.DataFrame, ids: pd.Series) -> pd.Series:
    """The start of each step, counted from the median start of the steps that all hosts have; `ids` are the steps'."""
    on_all = ids.groupby(ids).transform("size") == steps["host"].nunique()
    middle = steps["start_us"].where(on_all).groupby(steps["host"]).transform("median")
    return steps["start_us"] - middle


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


def host_starts_and_end(steps: pd.DataFrame) -> tuple[npt.NDArray[np.float64], float]:
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

    `keys` has one row per table row. `cells` has the columns `row` (a position in `keys`), `step` (its number),
    `occurrences` and `time_us`, one row per step in which the table row ran.
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
