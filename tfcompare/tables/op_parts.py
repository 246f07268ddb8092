"""Op time in its smallest parts, of all hosts of a run together; see `frames.ops.op_parts`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema
from tfcompare.frames import HostTables
from tfcompare.frames.grouping import any_of, combinations, distinct, sums
from tfcompare.frames.ops.op_parts import NO_STEP, SUMMED
from tfcompare.schema.arrays import Int64
from tfcompare.tables.frames import arrays_of, frame_bytes, frame_of

Columns = dict[str, npt.NDArray[Any]]

OP = ["host_or_device", "op_type", "op_name"]
"""What tells ops apart."""
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

    @cached_property
    def memory_bytes(self) -> int:
        """Memory used by the frames, in bytes."""
        return frame_bytes(self.parts) + frame_bytes(self.cells) + frame_bytes(self.wall)

    @property
    def ops(self) -> pd.DataFrame:
        """The ops of all parts, with the columns `OP`, by which they are sorted."""
        return self._grouped[0]

    @property
    def op_of_part(self) -> Int64:
        """The op of each part, as a row of `ops`."""
        return self._grouped[1]

    @cached_property
    def _grouped(self) -> tuple[pd.DataFrame, Int64]:
        names = pa.table({name: pa.array(self.parts[name]) for name in OP})
        firsts, op = combinations(*(_codes(column.combine_chunks().dictionary_encode()) for column in names.columns))
        order = pc.sort_indices(names.take(firsts), sort_keys=[(name, "ascending") for name in OP]).to_numpy()
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return self.parts[OP].iloc[firsts[order]].reset_index(drop=True), place[op]

    def on_device(self, device: str) -> OpParts:
        """The parts of one device."""
        parts, cells, wall = self.parts, self.cells, self.wall
        is_chosen = (parts["device"] == device).to_numpy()
        return OpParts(parts, cells[is_chosen[cells["part"]]], wall[is_chosen[wall["part"]]])


def merge_hosts(
    hosts: Sequence[HostTables], cells: str, wall: str, common_steps: Callable[[str, Int64], Int64] | None = None
) -> OpParts:
    """The parts of all hosts, added up where all their texts are equal; of several hosts, an op on the host side is
    known by its name alone, of whatever type.

    `cells` and `wall` are the names of the tables with their times: `op_cells` and `op_wall` by step, or the totals,
    whose wall times are those of no step. `common_steps` gives the steps of the run for a host's steps, where hosts
    number them differently.
    """
    tables = [host.table("op_parts") for host in hosts]
    every = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    firsts = row = np.arange(len(every))
    if len(hosts) > 1:
        firsts, row = combinations(*(_codes(every[name].combine_chunks()) for name in _TEXTS))
    parts = frame_of("op_parts", every.take(firsts) if len(hosts) > 1 else every)
    if len(hosts) > 1:
        on_host = parts["host_or_device"] == schema.HOST
        first_type = parts[on_host].groupby("op_name", sort=False)["op_type"].first()
        parts = parts.assign(op_type=parts["op_type"].where(~on_host, parts["op_name"].map(first_type)))
    rows = np.split(row, np.cumsum([len(table) for table in tables])[:-1])

    def columns(name: str) -> Iterator[Columns]:
        for host, own in zip(hosts, rows, strict=True):
            found = arrays_of(host.table(name))
            if common_steps is not None and "step" in found:
                found["step"] = common_steps(host.host, found["step"])
            stage = {"stage": np.append(own, -1)[found["stage"]]} if "stage" in found else {}
            yield found | {"part": own[found["part"]]} | stage

    if len(hosts) == 1:
        (of_cells,), (of_wall,) = columns(cells), columns(wall)
        return OpParts(parts, _frame(of_cells), _wall_frame(of_wall))
    return OpParts(parts, _sum_cells(columns(cells)), _sum_wall(columns(wall)))


def _codes(texts: pa.DictionaryArray) -> Int64:
    codes: Int64 = texts.indices.to_numpy().astype(np.int64)
    return codes


def _frame(columns: Columns) -> pd.DataFrame:
    return pd.DataFrame(columns, copy=False)


def _wall_frame(columns: Columns) -> pd.DataFrame:
    """The columns of `NO_WALL`: totals belong to no step."""
    none = {name: np.full(len(columns["part"]), NO_STEP) for name in ("step", "step_part", "stage")}
    every = none | columns
    return _frame({name: every[name] for name in map(str, NO_WALL)})


def _sum_wall(wall: Iterable[Columns]) -> pd.DataFrame:
    """The wall times of all hosts, of the parts of the run."""
    every = list(wall)
    column = {name: np.concatenate([columns[name] for columns in every]) for name in every[0]}
    time_ps = column.pop("wall_time_ps")
    firsts, code = combinations(*column.values())
    summed = {name: values[firsts] for name, values in column.items()}
    return _wall_frame(summed | {"wall_time_ps": np.bincount(code, time_ps, len(firsts))})


def _sum_cells(cells: Iterable[Columns]) -> pd.DataFrame:
    """The cells of all hosts, one for each part of the run and step.

    Merges a few hosts at a time, since all their cells together would take far more memory than the result.
    """
    found, waiting, count = _NO_CELLS, list[Columns](), 0
    for of_host in cells:
        waiting.append(of_host)
        count += len(of_host["part"])
        if count > max(_MERGE_ROWS, len(found["part"])):
            found, waiting, count = _sum_by_part_and_step([found, *waiting]), [], 0
    return _frame(_sum_by_part_and_step([found, *waiting]))


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
