"""Op time in its smallest parts: per device, op and kernel, and step. `op_stats` and `op_steps` are sums of these.

A part is one op as one kernel (or HLO instruction of one program) ran it. xprof sums each part over devices and hosts
first, then groups parts by op: times add up, occurrences are those of the part that ran most often, since an op made of
three kernels that ran five times ran five times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

COLUMNS = {
    "device": "str",
    "host_or_device": "str",
    "op_type": "str",
    "op_name": "str",
    "part": "str",
    "step": "int64",
    "occurrences": "int64",
    "total_time_ps": "int64",
    "self_time_ps": "int64",
    "is_eager": "bool",
}
"""`device` is the plane's name; `step` the number of the step, `NO_STEP` outside of all."""

NO_STEP = -1

KEYS = ["device", "host_or_device", "op_type", "op_name", "part"]


@dataclass(frozen=True, eq=False)
class OpEvents:
    """Events that ran an op, all on one plane: `part` is a row of `parts` (columns op_type, op_name, part), `step` the
    position of its step, −1 outside of all."""

    device: str
    host_or_device: str
    parts: pd.DataFrame
    part: Int64
    step: Int64
    occurrences: Int64
    total_ps: Int64
    self_ps: Int64
    is_eager: Bools
    idle_ps: int

    def frame(self, step_numbers: Int64) -> pd.DataFrame:
        """One row for each part in each step, columns as `COLUMNS`; `step_numbers`: the number at each position."""
        width = len(step_numbers) + 1
        cell = self.part * width + self.step + 1
        cells, code = np.unique(cell, return_inverse=True)
        parts = self.parts.iloc[cells // width].reset_index(drop=True)
        rows: pd.DataFrame = parts.assign(
            device=self.device,
            host_or_device=self.host_or_device,
            step=np.append(NO_STEP, step_numbers)[cells % width],
            occurrences=_sums(code, self.occurrences, len(cells)),
            total_time_ps=_sums(code, self.total_ps, len(cells)),
            self_time_ps=_sums(code, self.self_ps, len(cells)),
            is_eager=np.bincount(code, weights=self.is_eager, minlength=len(cells)) > 0,
        )
        return rows[list(COLUMNS)].astype(COLUMNS)


def empty_frame() -> pd.DataFrame:
    """No parts, with the columns of `COLUMNS`."""
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in COLUMNS.items()})


def _sums(code: Int64, values: Int64, size: int) -> Int64:
    out = np.zeros(size, np.int64)
    np.add.at(out, code, values)
    return out
