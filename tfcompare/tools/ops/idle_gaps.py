"""The longest gap of most steps of a run, in which none of its ops runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfcompare.markdown import as_code
from tfcompare.schema import DEVICE

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run

MOST_STEPS = 0.5
"""The share of the steps whose longest gap is between the same two ops, for it to be named."""
_NAME_LETTERS = 80


@dataclass(frozen=True)
class Gap:
    """The longest idle gap of most steps: `length_us` is the mean of these; an op is empty at the step's edge."""

    on_device: bool
    op_before: str
    op_after: str
    length_us: float

    @property
    def before(self) -> str:
        """What it comes before, in Markdown."""
        return f"before {as_code(self.op_after, _NAME_LETTERS)}" if self.op_after else "until the end of the step"

    @property
    def place(self) -> str:
        """What it comes after and before, in Markdown."""
        after = f"after {as_code(self.op_before, _NAME_LETTERS)}" if self.op_before else "from the start of the step"
        return f"{after}, {self.before}"


def gaps_of_steps(run: Run, steps: pd.DataFrame) -> pd.DataFrame:
    """The rows of `idle_gaps` on these steps of a run, which are those of one host."""
    host = str(steps["host"].iloc[0]) if len(steps) else None
    gaps = run.table("idle_gaps", host=host)
    return gaps[gaps["step"].isin(steps["step"])]


def usual_gap(run: Run, steps: pd.DataFrame) -> Gap | None:
    """The gap between the two ops that enclose the longest gap of most steps; None where they change from step to step.

    `steps` are the steps that count on one host.
    """
    gaps = gaps_of_steps(run, steps)
    if gaps.empty:
        return None
    same = gaps.groupby(["op_before", "op_after"])["duration_us"].agg(["size", "mean"])
    same = same.sort_values("size", ascending=False, kind="stable")
    first = same.iloc[0]
    if first["size"] < MOST_STEPS * len(gaps):
        return None
    before, after = (str(name) for name in same.index[0])
    return Gap(bool((gaps["host_or_device"] == DEVICE).any()), before, after, float(first["mean"]))
