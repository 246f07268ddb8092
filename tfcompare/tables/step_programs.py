"""Which compiled program each step is of: its kind, where a loop has steps of several programs."""

from __future__ import annotations

import re

import pandas as pd

from tfcompare.tables.step_cells import StepCells

_PROGRAM = re.compile(r"p?jit\(([^()]+)\)/")


def step_programs(ops: StepCells) -> pd.Series:
    """The compiled program that takes most of the op time of each step, by the step's number; steps without are left
    out. JAX names its programs in every op, as in `jit(train_step)/dot_general`."""
    found = ops.keys["op_name"].str.extract(_PROGRAM.pattern, expand=False)
    cells = ops.cells.assign(program=found.to_numpy()[ops.cells["row"].to_numpy()]).dropna(subset=["program"])
    if cells.empty:
        return pd.Series(dtype="str")
    times = cells.groupby(["step", "program"], sort=True)["time_us"].sum().reset_index()
    longest = times.loc[times.groupby("step")["time_us"].idxmax()]
    return longest.set_index("step")["program"].astype("str")
