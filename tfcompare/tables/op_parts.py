"""Op time in its smallest parts, of all hosts of a run together; see `frames.ops.op_parts`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.frames.combinations import any_of, combinations, distinct, sums
from tfcompare.frames.ops.op_parts import NO_STEP, SUMMED

Int64 = npt.NDArray[np.int64]

_TEXTS = ["device", "host_or_device", "op_type", "op_name", "part"]
_MERGE_ROWS = 1 << 18

NO_WALL: pd.DataFrame = pd.DataFrame(
    {
        "part": pd.Series(dtype="int32"),
        "step": pd.Series(dtype="int64"),
        "step_part": pd.Series(dtype="int8"),
        "stage": pd.Series(dtype="int32"),
        "wall_time_ps": pd.Series(dtype="float64"),
    }
)


@dataclass(frozen=True, eq=False)
class OpParts:
    """The parts of ops, and the time of each in each step.

    `parts` has the columns device (the plane's name), host_or_device, op_type, op_name, part, `ORDER_COLUMNS`, and
    shapes (`op_shapes.with_shapes`). `cells` has the columns part (a row of `parts`), step (its number, `NO_STEP`
    outside all steps), occurrences, total_time_ps, self_time_ps, is_eager. `wall` has the columns part, step, step_part
    (a position in `schema.STEP_PARTS`), stage (the row in `parts` of the tf.data iterator that the op worked for, −1
    for none) and wall_time_ps, the op's share of that part of the step.
    """

    parts: pd.DataFrame
    cells: pd.DataFrame
    wall: pd.DataFrame = field(default_factory=lambda: NO_WALL)

    def over_all_steps(self) -> OpParts:
        """The same parts summed over all steps and the time outside them: one cell per part."""
        code = self.cells["part"].to_numpy()
        part, code = distinct(code, len(self.parts))
        cells = {name: sums(code, self.cells[name].to_numpy(), len(part)) for name in SUMMED}
        is_eager = any_of(code, self.cells["is_eager"].to_numpy(), len(part))
        totals = pd.DataFrame({"part": part, "step": NO_STEP, **cells, "is_eager": is_eager})
        of_parts = self.wall.groupby("part")["wall_time_ps"].sum().reset_index()
        return OpParts(self.parts, totals, of_parts.assign(step=NO_STEP, step_part=-1, stage=-1)[list(NO_WALL)])

    def on_device(self, device: str) -> OpParts:
        """The parts of one device."""
        parts, cells, wall = self.parts, self.cells, self.wall
        is_chosen = (parts["device"] == device).to_numpy()
        return OpParts(parts, cells[is_chosen[cells["part"]]], wall[is_chosen[wall["part"]]])


def merge_hosts(
    parts_of_hosts: Sequence[pd.DataFrame], cells: Iterable[pd.DataFrame], wall: Iterable[pd.DataFrame]
) -> OpParts:
    """The parts of all hosts, added up where all their texts are equal; of several hosts, an op on the host side is
    known by its name alone, of whatever type. `cells` and `wall` are those of each host, read one after the other."""
    if len(parts_of_hosts) == 1:
        return OpParts(parts_of_hosts[0], *cells, *wall)
    every = pd.concat(parts_of_hosts, ignore_index=True)
    firsts, row = combinations(*(pd.factorize(every[name])[0] for name in _TEXTS))
    ends = np.cumsum([len(parts) for parts in parts_of_hosts])
    parts = every.iloc[firsts].reset_index(drop=True)
    del every
    on_host = parts["host_or_device"] == schema.HOST
    first_type = parts[on_host].groupby("op_name", sort=False)["op_type"].first()
    op_type = parts["op_type"].where(~on_host, parts["op_name"].map(first_type))
    rows = list(np.split(row, ends[:-1]))
    return OpParts(parts.assign(op_type=op_type), _sum_cells(cells, rows), _sum_wall(wall, rows))


def _sum_wall(wall: Iterable[pd.DataFrame], rows: Sequence[Int64]) -> pd.DataFrame:
    """The wall times of all hosts; `rows`: for each host, which parts its own ones are."""
    keys = [name for name in NO_WALL if name != "wall_time_ps"]
    found = [
        times.assign(part=row[times["part"]], stage=np.append(row, -1)[times["stage"]])
        for times, row in zip(wall, rows, strict=True)
    ]
    return pd.concat(found, ignore_index=True).groupby(keys)["wall_time_ps"].sum().reset_index()


def _sum_cells(cells: Iterable[pd.DataFrame], rows: Sequence[Int64]) -> pd.DataFrame:
    """The cells of all hosts, one for each part and step; `rows`: for each host, which parts its own ones are.

    Merges a few hosts at a time, since all their cells together would take far more memory than the result.
    """
    found, waiting, count = _NO_CELLS, list[pd.DataFrame](), 0
    for cells_of_host, row in zip(cells, rows, strict=True):
        waiting.append(cells_of_host.assign(part=row[cells_of_host["part"]]))
        count += len(waiting[-1])
        if count > max(_MERGE_ROWS, len(found)):
            found, waiting, count = _sum_by_part_and_step([found, *waiting]), [], 0
    return _sum_by_part_and_step([found, *waiting])


def _sum_by_part_and_step(several: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The cells of several frames, summed by part and step."""
    column = {name: np.concatenate([cells[name].to_numpy() for cells in several]) for name in _NO_CELLS}
    step, parts = column["step"], int(column["part"].max(initial=-1)) + 1
    low = int(step.min(initial=0))
    numbers, position = distinct(step - low, int(step.max(initial=0)) - low + 1)
    keys, code = distinct(column["part"] * len(numbers) + position, parts * len(numbers))
    return pd.DataFrame(
        {
            "part": keys // len(numbers),
            "step": numbers[keys % len(numbers)] + low,
            **{name: sums(code, column[name], len(keys)) for name in SUMMED},
            "is_eager": any_of(code, column["is_eager"], len(keys)),
        },
        copy=False,
    )


_NO_CELLS = pd.DataFrame(
    {
        "part": pd.Series(dtype="int64"),
        "step": pd.Series(dtype="int64"),
        "occurrences": pd.Series(dtype="int64"),
        "total_time_ps": pd.Series(dtype="int64"),
        "self_time_ps": pd.Series(dtype="int64"),
        "is_eager": pd.Series(dtype="bool"),
    }
)
