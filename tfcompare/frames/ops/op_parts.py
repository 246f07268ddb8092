"""Op time in its smallest parts: per device, op and kernel, and step. `op_stats` and `op_steps` are sums of these.

A part is one op as one kernel (or HLO instruction of one program) ran it. xprof sums each part over devices and hosts
first, then groups parts by op: times add up, occurrences are those of the part that ran most often, since an op made of
three kernels that ran five times ran five times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.frames.combinations import combinations
from tfcompare.xspace.compilation import Array, compiled

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NO_STEP = -1

_TEXTS = ["device", "host_or_device", "op_type", "op_name", "part"]
PLACES = ["earliest", "latest"]
"""The first and last position of a part in the order in which the parts of a step began; −1 outside of all steps."""

ADDED = ["occurrences", "total_time_ps", "self_time_ps"]
_AT_ONCE = 1 << 18
_DENSE = 4  # a table of all combinations is taken if it has at most so many elements for each row
_FEW = 50_000  # numpy's own way takes less time for so few than linking a compiled loop


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
    """Parts, and what they took in each step.

    `parts`: columns device (the plane's name), host_or_device, op_type, op_name, part, those of `PLACES`, and shapes
    (`op_evidence.with_shapes`); `cells`: columns part (a row of
    `parts`), step (its number, `NO_STEP` outside of all), occurrences, total_time_ps, self_time_ps, is_eager; `wall`:
    columns part, step, step_part (a position in `schema.STEP_PARTS`), stage (the row of `parts` of the tf.data iterator
    that the op worked for, −1 for none) and wall_time_ps, the op's share of that part of the step.
    """

    parts: pd.DataFrame
    cells: pd.DataFrame
    wall: pd.DataFrame = field(default_factory=lambda: NO_WALL)

    def over_all_steps(self) -> OpParts:
        """The same with one cell for each part that has any, of what it took in all steps and outside of them."""
        code = self.cells["part"].to_numpy()
        part, code = distinct(code, len(self.parts))
        cells = {name: sums(code, self.cells[name].to_numpy(), len(part)) for name in ADDED}
        is_eager = any_of(code, self.cells["is_eager"].to_numpy(), len(part))
        totals = pd.DataFrame({"part": part, "step": NO_STEP, **cells, "is_eager": is_eager})
        of_parts = self.wall.groupby("part")["wall_time_ps"].sum().reset_index()
        return OpParts(self.parts, totals, of_parts.assign(step=NO_STEP, step_part=-1, stage=-1)[list(NO_WALL)])

    def on_device(self, device: str) -> OpParts:
        """The parts of one device."""
        parts, cells, wall = self.parts, self.cells, self.wall
        is_chosen = (parts["device"] == device).to_numpy()
        return OpParts(parts, cells[is_chosen[cells["part"]]], wall[is_chosen[wall["part"]]])


def frame_bytes(frame: pd.DataFrame) -> int:
    """What a frame takes in memory, its texts included."""
    return int(frame.memory_usage(deep=True).sum())


@dataclass(frozen=True, eq=False)
class OpEvents:
    """Events that ran an op, all on one plane, sorted as by `nesting.order_by_start`: `rows` are theirs in the XSpace,
    `part` is a row of `parts` (columns op_type, op_name, part), `step` the position of its step, −1 outside of all."""

    device: str
    host_or_device: str
    rows: Int32
    parts: pd.DataFrame
    part: Int32 | Int64
    step: Int32
    occurrences: Int64
    total_ps: Int64
    self_ps: Int64
    is_eager: Bools
    idle_ps: int

    def op_parts(self, step_numbers: Int64, start_ps: Int64) -> OpParts:
        """The parts that have events, by step; `step_numbers`: the number at each position. Without wall times.

        `start_ps`: when each event of the XSpace began.
        """
        width = len(step_numbers) + 1
        key = self.part.astype(np.int64)
        key *= width
        key += self.step
        key += 1
        cells, code = distinct(key, len(self.parts) * width)
        del key
        used, part = distinct(cells // width, len(self.parts))
        parts = self.parts.iloc[used].assign(device=self.device, host_or_device=self.host_or_device)
        parts = parts[_TEXTS].astype("str").reset_index(drop=True)
        begin = -largest(code, -start_ps[self.rows], len(cells))
        return OpParts(
            parts.assign(**_places(part, cells % width, begin, len(parts))),
            pd.DataFrame(
                {
                    "part": part,
                    "step": np.append(NO_STEP, step_numbers)[cells % width],
                    "occurrences": sums(code, self.occurrences, len(cells)),
                    "total_time_ps": sums(code, self.total_ps, len(cells)),
                    "self_time_ps": sums(code, self.self_ps, len(cells)),
                    "is_eager": any_of(code, self.is_eager, len(cells)),
                },
                copy=False,
            ),
        )


def _places(part: Int64, step: Int64, begin: Int64, size: int) -> dict[str, Int64]:
    """The columns `PLACES` of so many parts, from where each part began in each step; step 0 is outside of all, and
    counts where there is no other."""
    inside = np.flatnonzero((step > 0) | (not step.any()))
    order = inside[np.lexsort((begin[inside], step[inside]))]
    of_step = step[order]
    place = np.arange(len(order)) - np.searchsorted(of_step, of_step)
    latest = largest(part[order], place, size)
    earliest = -largest(part[order], -place, size)
    return dict(zip(PLACES, (np.where(latest < 0, -1, earliest), np.maximum(latest, -1)), strict=True))


def together(several: Iterable[OpParts]) -> OpParts:
    """The parts of several planes of one host."""
    every = list(several)
    if len(every) == 1:
        return every[0]
    first = np.cumsum([0, *(len(p.parts) for p in every)])
    nothing = pd.DataFrame({name: pd.Series(dtype="str") for name in _TEXTS})
    cells = [p.cells.assign(part=p.cells["part"] + offset) for p, offset in zip(every, first, strict=False)]
    return OpParts(
        pd.concat([nothing, *(p.parts for p in every)], ignore_index=True),
        pd.concat(cells, ignore_index=True) if cells else _NO_CELLS,
    )


def of_hosts(
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
    return OpParts(parts.assign(op_type=op_type), _added_up(cells, rows), _wall_of_hosts(wall, rows))


def _wall_of_hosts(wall: Iterable[pd.DataFrame], rows: Sequence[Int64]) -> pd.DataFrame:
    """The wall times of all hosts; `rows`: for each host, which parts its own ones are."""
    keys = [name for name in NO_WALL if name != "wall_time_ps"]
    found = [
        times.assign(part=row[times["part"]], stage=np.append(row, -1)[times["stage"]])
        for times, row in zip(wall, rows, strict=True)
    ]
    return pd.concat(found, ignore_index=True).groupby(keys)["wall_time_ps"].sum().reset_index()


def _added_up(cells: Iterable[pd.DataFrame], rows: Sequence[Int64]) -> pd.DataFrame:
    """The cells of all hosts, one for each part and step; `rows`: for each host, which parts its own ones are.

    A few hosts at a time: all their cells at once would be far more than what comes out.
    """
    found, waiting, count = _NO_CELLS, list[pd.DataFrame](), 0
    for cells_of_host, row in zip(cells, rows, strict=True):
        waiting.append(cells_of_host.assign(part=row[cells_of_host["part"]]))
        count += len(waiting[-1])
        if count > max(_AT_ONCE, len(found)):
            found, waiting, count = _by_part_and_step([found, *waiting]), [], 0
    return _by_part_and_step([found, *waiting])


def _by_part_and_step(several: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """These cells, added up where part and step are the same."""
    column = {name: np.concatenate([cells[name].to_numpy() for cells in several]) for name in _NO_CELLS}
    step, parts = column["step"], int(column["part"].max(initial=-1)) + 1
    low = int(step.min(initial=0))
    numbers, position = distinct(step - low, int(step.max(initial=0)) - low + 1)
    keys, code = distinct(column["part"] * len(numbers) + position, parts * len(numbers))
    return pd.DataFrame(
        {
            "part": keys // len(numbers),
            "step": numbers[keys % len(numbers)] + low,
            **{name: sums(code, column[name], len(keys)) for name in ADDED},
            "is_eager": any_of(code, column["is_eager"], len(keys)),
        },
        copy=False,
    )


def distinct(keys: Int64, size: int) -> tuple[Int64, Int64]:
    """(the distinct ones of these keys from 0 to `size`, in order; for each key its position among them)."""
    if size > _DENSE * len(keys) + 1024:
        found, position = np.unique(keys, return_inverse=True)
        return found, position
    is_used = np.zeros(size, np.bool_)
    is_used[keys] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[keys]


def sums(code: Int64, values: Int64, size: int) -> Int64:
    """The sum of the values of each code."""
    out = np.zeros(size, np.int64)
    if len(code) < _FEW:
        np.add.at(out, code, values)
    else:
        _add(code, values, out)
    return out


@compiled
def _add(code: Array, values: Array, out: Array) -> None:
    for i in range(code.size):
        out[code[i]] += values[i]


def largest(code: Int64, values: Int64, size: int) -> Int64:
    """The largest of the values of each code."""
    out = np.full(size, np.iinfo(np.int64).min)
    if len(code) < _FEW:
        np.maximum.at(out, code, values)
    else:
        _take_largest(code, values, out)
    return out


@compiled
def _take_largest(code: Array, values: Array, out: Array) -> None:
    for i in range(code.size):
        out[code[i]] = max(out[code[i]], values[i])


def any_of(code: Int64, flags: Bools, size: int) -> Bools:
    """Whether any of the flags of each code is set."""
    out = np.zeros(size, np.bool_)
    out[code[flags]] = True
    return out


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
