"""Op time in its smallest parts, of all hosts of a run together; see `frames.ops.op_parts`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema
from tfcompare.frames import HostTables, table_of_hosts
from tfcompare.frames.arrow import with_labels_once
from tfcompare.frames.grouping import any_of, combinations, distinct, sums
from tfcompare.frames.ops.op_parts import NO_STEP, SUMMED
from tfcompare.schema.arrays import Bools, Int64
from tfcompare.tables.frames import frame_bytes, frame_of, texts_of

Columns = dict[str, npt.NDArray[Any]]

OP = ["host_or_device", "op_type", "op_name"]
"""What tells ops apart."""
_TEXTS = ["device", "host_or_device", "op_type", "op_name", "part"]
_MERGE_ROWS = 1 << 18

_WALL = ("part", "step", "step_part", "stage", "wall_time_ps")


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of ops of one or more hosts, without their times.

    `frame` has the columns device (the plane's name), host_or_device, op_type, op_name, part, `ORDER_COLUMNS`, and
    shapes (`op_shapes.with_shapes`). `rows` are the rows there of those of the table `op_parts` of each host.
    """

    frame: pd.DataFrame
    rows: Sequence[Int64]

    @cached_property
    def ops(self) -> pd.DataFrame:
        """The ops of all parts, with the columns `OP`, by which they are sorted."""
        return pd.DataFrame({name: texts_of(self.names[name]) for name in OP})

    @property
    def names(self) -> pa.Table:
        """The same as an Arrow table."""
        return self._names_and_op[0]

    @property
    def op(self) -> Int64:
        """The op of each part, as a row of `ops`."""
        return self._names_and_op[1]

    @cached_property
    def _names_and_op(self) -> tuple[pa.Table, Int64]:
        names = pa.table({name: pa.array(self.frame[name]) for name in OP})
        firsts, op = combinations(*(_codes(column.combine_chunks().dictionary_encode()) for column in names.columns))
        distinct_names = names.take(firsts)
        order = pc.sort_indices(distinct_names, sort_keys=[(name, "ascending") for name in OP]).to_numpy()
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return distinct_names.take(order), place[op]

    @cached_property
    def memory_bytes(self) -> int:
        """Memory used by the frame and arrays, in bytes."""
        return frame_bytes(self.frame) + sum(row.nbytes for row in self.rows)


@dataclass(frozen=True, eq=False)
class OpTimes:
    """The parts of ops, and the time of each in each step, in columns of equal length.

    `cells` has the columns part (a row of `parts.frame`), step (its number, `NO_STEP` outside all steps), occurrences,
    total_time_ps, self_time_ps, is_eager. `wall` has the columns part, step, step_part (a position in
    `schema.STEP_PARTS`), stage (the row in `parts.frame` of the tf.data iterator that the op worked for, −1 for none)
    and wall_time_ps, the op's share of that part of the step.
    """

    parts: Parts
    cells: Columns
    wall: Columns

    @property
    def memory_bytes(self) -> int:
        """Memory used by the times, in bytes."""
        return sum(column.nbytes for columns in (self.cells, self.wall) for column in columns.values())

    def on_device(self, device: str) -> OpTimes:
        """The parts of one device."""
        is_chosen = (self.parts.frame["device"] == device).to_numpy()
        cells, wall = (rows_of(columns, is_chosen[columns["part"]]) for columns in (self.cells, self.wall))
        return OpTimes(self.parts, cells, wall)


def rows_of(columns: Columns, is_chosen: Bools) -> Columns:
    """Some of the rows."""
    return {name: values[is_chosen] for name, values in columns.items()}


def parts_of_hosts(hosts: Sequence[HostTables]) -> Parts:
    """The parts of all hosts: equal ones are one. Of several hosts, an op on the host side is known by its name alone,
    of whatever type."""
    every, rows = table_of_hosts("op_parts", hosts)
    if len(hosts) == 1:
        return Parts(frame_of("op_parts", every), [np.arange(len(every))])
    every = with_labels_once(every)
    firsts, row = combinations(*(_codes(every[name].combine_chunks()) for name in _TEXTS))
    parts = frame_of("op_parts", every.take(firsts))
    on_host = parts["host_or_device"] == schema.HOST
    first_type = parts[on_host].groupby("op_name", sort=False)["op_type"].first()
    parts = parts.assign(op_type=parts["op_type"].where(~on_host, parts["op_name"].map(first_type)))
    return Parts(parts, np.split(row, np.cumsum(rows)[:-1]))


def merge_hosts(
    parts: Parts,
    hosts: Sequence[HostTables],
    cells: str,
    wall: str,
    common_steps: Callable[[str, Int64], Int64] | None = None,
) -> OpTimes:
    """The times of the parts of all hosts (`parts_of_hosts`), added up.

    `cells` and `wall` are the names of the tables with their times: `op_cells` and `op_wall` by step, or the totals,
    whose wall times are those of no step. `common_steps` gives the steps of the run for a host's steps, where hosts
    number them differently.
    """

    def columns(name: str, low: int, high: int) -> Columns:
        """The table of that name of some of the hosts, of the parts of the run."""
        table, count = table_of_hosts(name, hosts[low:high])
        own = parts.rows[low:high]
        found = {column: table[column].to_numpy() for column in table.column_names}
        if common_steps is not None and "step" in found:
            of_hosts = zip(hosts[low:high], np.split(found["step"], np.cumsum(count)[:-1]), strict=True)
            found["step"] = np.concatenate([common_steps(host.host, steps) for host, steps in of_hosts])
        row = np.concatenate([*own, [-1]])
        first = np.repeat(np.cumsum([0, *map(len, own)])[:-1], count)
        stage = {}
        if "stage" in found:
            stage = {"stage": row[np.where(found["stage"] < 0, -1, first + found["stage"])]}
        return found | {"part": row[first + found["part"]]} | stage

    if len(hosts) == 1:
        return OpTimes(parts, columns(cells, 0, 1), _with_wall_columns(columns(wall, 0, 1)))
    batch = np.cumsum([host.rows(cells) for host in hosts]) // max(_MERGE_ROWS, 1)
    starts = np.flatnonzero(np.diff(batch, prepend=-1)).tolist()
    batches = zip(starts, [*starts[1:], len(hosts)], strict=True)  # hosts of about `_MERGE_ROWS` rows, or one of more
    return OpTimes(parts, _sum_cells(columns(cells, *at) for at in batches), _sum_wall(columns(wall, 0, len(hosts))))


def _codes(texts: pa.DictionaryArray) -> Int64:
    codes: Int64 = texts.indices.to_numpy().astype(np.int64)
    return codes


def _sum_wall(wall: Columns) -> Columns:
    """The wall times of all hosts, of the parts of the run."""
    time_ps = wall.pop("wall_time_ps")
    firsts, code = combinations(*wall.values())
    summed = {name: values[firsts] for name, values in wall.items()}
    return _with_wall_columns(summed | {"wall_time_ps": np.bincount(code, time_ps, len(firsts))})


def _with_wall_columns(columns: Columns) -> Columns:
    """The columns of `OpTimes.wall`: totals belong to no step."""
    none = {name: np.full(len(columns["part"]), NO_STEP) for name in ("step", "step_part", "stage")}
    every = none | columns
    return {name: every[name] for name in _WALL}


def _sum_cells(cells: Iterable[Columns]) -> Columns:
    """The cells of all hosts, one for each part of the run and step.

    Merges some hosts at a time, since all their cells together would take far more memory than the result.
    """
    found, waiting, count = _NO_CELLS, list[Columns](), 0
    for of_hosts in cells:
        waiting.append(of_hosts)
        count += len(of_hosts["part"])
        if count > max(_MERGE_ROWS, len(found["part"])):
            found, waiting, count = _sum_by_part_and_step([found, *waiting]), [], 0
    return _sum_by_part_and_step([found, *waiting])


def _sum_by_part_and_step(several: Sequence[Columns]) -> Columns:
    """The cells, summed by part and step."""
    column = {name: np.concatenate([cells[name] for cells in several]) for name in _NO_CELLS}
    step, parts = column["step"], int(column["part"].max(initial=-1)) + 1
    low = int(step.min(initial=0))
    numbers, position = distinct(step - low, int(step.max(initial=0)) - low + 1)
    keys, code = distinct(column["part"] * len(numbers) + position, parts * len(numbers))
    return {
        "part": keys // len(numbers),
        "step": numbers[keys % len(numbers)] + low,
        **{name: sums(code, column[name], len(keys)) for name in SUMMED},
        "is_eager": any_of(code, column["is_eager"], len(keys)),
    }


_NO_CELLS: Columns = {
    **{name: np.zeros(0, np.int64) for name in ("part", "step", *SUMMED)},
    "is_eager": np.zeros(0, np.bool_),
}
