"""What a slow host does longer than the others: the part of the step, and the op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.tables.hosts import COLLECTIVE_PARTS
from tfcompare.tools.idle_gaps import gaps_of_steps

if TYPE_CHECKING:
    from tfcompare.run import Run

MOST_COMPARED = 8
"""The ops of a slow host are compared with those of so many others; with more, of hosts spread evenly over the run."""
WORTH_NAMING = 0.5
"""An op is named as the cause if it explains at least this share of the part's excess."""

INPUT = "input_us"
_OP = ["host_or_device", "op_type", "op_name"]


@dataclass(frozen=True)
class Cause:
    """The part in which a slow host spends most of its excess, in µs per step more than the others, and the op in it.

    `op` is an op, or an iterator of the input pipeline if the part is `input_us`; `inner` the op in that iterator's
    function that takes longest. If no op explains the excess, `op` is empty, and `gap` are the ops before and after the
    host's usual gap ("" at the step's begin or end).
    """

    part: str
    excess_us: float
    op: str
    op_excess_us: float
    inner: str = ""
    gap: tuple[str, str] | None = None


def cause_of(run: Run, rows: pd.DataFrame, name: str, *, by_host: bool) -> Cause | None:
    """The cause of a slow host's or device's excess; None if no part other than collectives is longer.

    `rows` is the result of `hosts.steps_by`. Ops are known for hosts, not for single devices.
    """
    counted = rows[rows["included"].astype(bool)]
    parts = [part for part in schema.STEP_PARTS if part not in COLLECTIVE_PARTS]
    means = counted.groupby("name")[parts].mean()
    excess = means.loc[name] - means.drop(index=name).median()
    part = str(excess.idxmax())
    more_us = float(excess.to_numpy(np.float64).max())
    if more_us <= 0:
        return None
    if not by_host:
        return Cause(part, more_us, "", 0.0)
    times = {host: _op_times(run, rows, host, part) for host in _compared(rows, name)}
    own = times.pop(name)
    others = pd.DataFrame(times).fillna(0.0).median(axis=1)
    longer = own.sub(others, fill_value=0.0)
    if longer.empty or float(longer.max()) < WORTH_NAMING * more_us:
        return Cause(part, more_us, "", 0.0, gap=_usual_gap(run, counted[counted["name"] == name]))
    op = longer.idxmax()
    inner = _longest_within(run, rows, name, str(op)) if part == INPUT else ""
    return Cause(part, more_us, str(op), float(longer.max()), inner)


def collective_of(run: Run, rows: pd.DataFrame, name: str) -> str:
    """The type of the op in which the others spend most of their time in collectives; empty if none is recorded."""
    host = str(rows.loc[rows["name"] == name, "host"].iloc[0])
    others = [other for other in _compared(rows, name) if other != host] or [host]
    waits = pd.concat([_shares(run, rows, other, COLLECTIVE_PARTS) for other in others])
    if waits.empty:
        return ""
    return str(waits.groupby("op_type")["wall_time_us"].sum().idxmax())


def _compared(rows: pd.DataFrame, name: str) -> list[str]:
    """The hosts whose ops are compared: the slow one first."""
    others = sorted(set(rows["host"]) - {name})
    if len(others) > MOST_COMPARED:
        others = [others[i * len(others) // MOST_COMPARED] for i in range(MOST_COMPARED)]
    return [name, *others] if name in set(rows["host"]) else others


def _shares(run: Run, rows: pd.DataFrame, host: str, parts: tuple[str, ...]) -> pd.DataFrame:
    """The rows of `Run.op_shares` in these parts of the included steps."""
    included = rows.loc[(rows["host"] == host) & rows["included"].astype(bool), "step"].unique()
    shares = run.op_shares(host)
    return shares[shares["step_part"].isin(parts) & shares["step"].isin(included)]


def _op_times(run: Run, rows: pd.DataFrame, host: str, part: str) -> pd.Series:
    """The mean time per included step of each op in a part; of input, of each iterator with the ops that it calls."""
    shares = _shares(run, rows, host, (part,))
    steps = rows.loc[(rows["host"] == host) & rows["included"].astype(bool), "step"].nunique()
    key = shares["op_name"]
    if part == INPUT:
        key = shares["stage"].astype("str").where(shares["stage"].astype("str") != "", key)
    times: pd.Series = shares.groupby(key.astype("str"))["wall_time_us"].sum() / max(steps, 1)
    return times


def _longest_within(run: Run, rows: pd.DataFrame, host: str, iterator: str) -> str:
    """The op in an iterator's function that takes longest while the step waits; empty if there is none."""
    shares = _shares(run, rows, host, (INPUT,))
    within = shares[shares["stage"].astype("str") == iterator]
    if within.empty:
        return ""
    return str(within.groupby(within["op_name"].astype("str"))["wall_time_us"].sum().idxmax())


def _usual_gap(run: Run, steps: pd.DataFrame) -> tuple[str, str] | None:
    """The ops before and after the gaps in which the host's included steps lose most time without any op running."""
    gaps = gaps_of_steps(run, steps)
    if gaps.empty:
        return None
    total = gaps.groupby(["op_before", "op_after"], as_index=False)["duration_us"].sum()
    longest = total.loc[total["duration_us"].idxmax()]
    return str(longest["op_before"]), str(longest["op_after"])
