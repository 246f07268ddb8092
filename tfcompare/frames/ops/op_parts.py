"""Op time in its smallest parts, by device, op, kernel and step. `op_stats` and `op_steps` are sums of these.

A part is one op as run by one kernel (or HLO instruction of one program). All its numbers add up: over steps, devices
and hosts, and over the parts of an op. Of parts that are one occurrence together, one has it (`op_counts`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.combinations import any_of, distinct, largest, sums
from tfcompare.frames.ops.op_counts import op_occurrences

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NO_STEP = -1

_TEXTS = ["device", "host_or_device", "op_type", "op_name", "part"]
ORDER_COLUMNS = ["earliest", "latest"]
"""First and last position of a part in the order in which the parts of a step start; −1 outside all steps."""

SUMMED = ["occurrences", "total_time_ps", "self_time_ps"]


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
    shapes (`op_evidence.with_shapes`). `cells` has the columns part (a row of `parts`), step (its number, `NO_STEP`
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


def frame_bytes(frame: pd.DataFrame) -> int:
    """Memory used by a frame and its texts, in bytes."""
    return int(frame.memory_usage(deep=True).sum())


@dataclass(frozen=True, eq=False)
class OpEvents:
    """The op events of one plane, sorted as by `nesting.order_by_start`.

    `rows` are their rows in the XSpace, `part` is a row of `parts` (columns op_type, op_name, part, program; the last
    is empty outside of XLA programs), `step` the position of the step, −1 outside all steps. `occurrences` is how many
    events each stands for, `executions` how many executions of its instruction or kernel begin with it.
    """

    device: str
    host_or_device: str
    rows: Int32
    parts: pd.DataFrame
    part: Int32 | Int64
    step: Int32
    start_ps: Int64
    occurrences: Int64
    executions: Int64
    total_ps: Int64
    self_ps: Int64
    is_eager: Bools
    idle_ps: int

    def op_parts(self, step_numbers: Int64) -> OpParts:
        """The parts that have events, by step, without wall times.

        `step_numbers` is the number of the step at each position.
        """
        width = len(step_numbers) + 1
        key = self.part.astype(np.int64)  # part and step as one number, computed in place to save memory
        key *= width
        key += self.step
        key += 1
        cells, code = distinct(key, len(self.parts) * width)
        del key
        used, part = distinct(cells // width, len(self.parts))
        parts = self.parts.iloc[used].assign(device=self.device, host_or_device=self.host_or_device)
        parts = parts[_TEXTS].astype("str").reset_index(drop=True)
        begin = -largest(code, -self.start_ps, len(cells))
        occurrences = op_occurrences(self.parts, self.part, self.executions)
        return OpParts(
            parts.assign(**_order_in_step(part, cells % width, begin, len(parts))),
            pd.DataFrame(
                {
                    "part": part,
                    "step": np.append(NO_STEP, step_numbers)[cells % width],
                    "occurrences": sums(code, occurrences, len(cells)),
                    "total_time_ps": sums(code, self.total_ps, len(cells)),
                    "self_time_ps": sums(code, self.self_ps, len(cells)),
                    "is_eager": any_of(code, self.is_eager, len(cells)),
                },
                copy=False,
            ),
        )


def _order_in_step(part: Int64, step: Int64, begin: Int64, size: int) -> dict[str, Int64]:
    """The columns `ORDER_COLUMNS` of `size` parts, from when each part began in each step.

    Step 0 stands for outside all steps, and is used only if there is no other step.
    """
    inside = np.flatnonzero((step > 0) | (not step.any()))
    order = inside[np.lexsort((begin[inside], step[inside]))]
    of_step = step[order]
    rank = np.arange(len(order)) - np.searchsorted(of_step, of_step)
    latest = largest(part[order], rank, size)
    earliest = -largest(part[order], -rank, size)
    return dict(zip(ORDER_COLUMNS, (np.where(latest < 0, -1, earliest), np.maximum(latest, -1)), strict=True))


def concat_parts(several: Iterable[OpParts]) -> OpParts:
    """The parts of several planes of one host."""
    every = list(several)
    if len(every) == 1:
        return every[0]
    first = np.cumsum([0, *(len(p.parts) for p in every)])
    dtypes = dict.fromkeys(_TEXTS, "str") | dict.fromkeys(ORDER_COLUMNS, "int64")
    nothing = pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in dtypes.items()})
    cells = [p.cells.assign(part=p.cells["part"] + offset) for p, offset in zip(every, first, strict=False)]
    return OpParts(
        pd.concat([nothing, *(p.parts for p in every)], ignore_index=True),
        pd.concat(cells, ignore_index=True) if cells else _NO_CELLS,
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
