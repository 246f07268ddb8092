"""What a slow host does longer than the others, and what is different about it: the part of the step, the op, all ops
alike, how often they run, its device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.frames.ops.op_names import UNKNOWN
from tfcompare.tables.hosts import WAITING_PARTS
from tfcompare.views.steps.figures import gaps_of_steps

if TYPE_CHECKING:
    from tfcompare.run import Run

MOST_COMPARED = 8
"""The ops of a slow host are compared with those of so many others; with more, of hosts spread evenly over the run."""
WORTH_NAMING = 0.5
"""An op is named as the cause if it explains at least this share of the part's excess."""

INPUT = "input_us"
DEVICE_PARTS = ("device_compute_us", "device_to_device_us", "output_us")
"""Parts of a step in which a device works, so that its model and clock matter."""
ALIKE, ALIKE_FROM, FEWEST_ALIKE = 1.15, 1.05, 3
"""All ops of a part are longer alike if the shortest of their ratios is at least the second, and the longest at most
the first number times the shortest, for at least so many ops: clocks differ by some per cent, and so do single ops."""
MOST_OF = (0.05, 0.95)
"""Between which shares of their time the ratios of ops count: those of the shortest ops are anything."""
MORE_OFTEN = 1.1
"""An op runs more often than on the others from this ratio on: the ends of a profile cut off less."""


@dataclass(frozen=True)
class Cause:
    """The part in which a slow host spends most of its excess over the others, and the op in it.

    `op` is an op, or an iterator of the input pipeline if the part is `input_us`; `inner` the op in that iterator's
    function that takes longest. If no op explains the excess, `op` is empty, and `gap` are the ops before and after the
    host's usual gap ("" at the step's begin or end); or `alike` are the ratios between which all its ops take longer.
    `often`: how many times as often as on the others the op runs, or all ops that are `alike`; infinite if it runs on
    none of those that were compared, 1 if it is not clearly more often.
    `device`: what differs between its device and those of the others, as (its own, theirs); empty if nothing does.
    """

    part: str
    op: str = ""
    inner: str = ""
    gap: tuple[str, str] | None = None
    alike: tuple[float, float] | None = None
    often: float = 1.0
    device: tuple[str, str] = ("", "")


def cause_of(run: Run, rows: pd.DataFrame, name: str, *, by_host: bool) -> Cause | None:
    """The cause of a slow host's or device's excess; None if no part other than `WAITING_PARTS` is longer.

    `rows` is the result of `hosts.steps_by`, without other hosts that are slow. Ops are known for hosts, not for single
    devices.
    """
    counted = rows[rows["included"].astype(bool)]
    parts = [part for part in schema.STEP_PARTS if part not in WAITING_PARTS]
    means = counted.groupby("name")[parts].mean()
    excess = means.loc[name] - means.drop(index=name).median()
    part = str(excess.idxmax())
    more_us = float(excess.to_numpy(np.float64).max())
    if more_us <= 0:
        return None
    if not by_host:
        return Cause(part)
    times = {host: _op_times(run, rows, host, part) for host in _compared(rows, name)}
    own = times.pop(name)
    others = pd.DataFrame(times).fillna(0.0).median(axis=1)
    device = _device(run, name, list(times)) if part in DEVICE_PARTS else ("", "")
    if part != INPUT and (alike := _alike(own, others)):
        often = _often(run, rows, list(own.index), name, list(times))
        return Cause(part, alike=alike, often=often, device=device)
    longer = own.sub(others, fill_value=0.0)
    if longer.empty or float(longer.max()) < WORTH_NAMING * more_us:
        return Cause(part, gap=_usual_gap(run, counted[counted["name"] == name]), device=device)
    op = str(longer.idxmax())
    inner = _longest_within(run, rows, name, op) if part == INPUT else ""
    often = 1.0 if part == INPUT else _often(run, rows, [op], name, list(times))
    return Cause(part, op, inner, often=often, device=device)


def _alike(own: pd.Series, others: pd.Series) -> tuple[float, float] | None:
    """Between which ratios all ops take longer than on the others; None if some do not, or by far more than others."""
    usual = others.reindex(own.index).fillna(0.0)
    ratios = (own / usual.where(usual > 0)).fillna(np.inf).sort_values()
    weights = own[ratios.index].cumsum() / own.sum()
    low, high = (float(ratios.iloc[int(np.searchsorted(weights, share))]) for share in MOST_OF) if len(own) else (0, 0)
    return (low, high) if len(own) >= FEWEST_ALIKE and low >= ALIKE_FROM and high <= ALIKE * low < np.inf else None


def _often(run: Run, rows: pd.DataFrame, ops: list[str], name: str, others: list[str]) -> float:
    """How many times as often per step these ops run on a host as on the others, as `Cause.often`."""
    own, *usual = (_count(run, rows, host, ops) for host in (name, *others))
    if own > 0 and max(usual) == 0:
        return np.inf
    middle = float(np.median(usual))
    return own / middle if middle > 0 and own >= MORE_OFTEN * middle else 1.0


def _count(run: Run, rows: pd.DataFrame, host: str, ops: list[str]) -> float:
    included, steps = _included_steps(rows, host), run.table("op_steps", host=host)
    mine = steps[steps["op_name"].isin(ops) & steps["step"].isin(included)]
    return float(mine["occurrences"].sum()) / max(len(included), 1)


def _device(run: Run, name: str, others: list[str]) -> tuple[str, str]:
    """What a host's device is and those of the others, where they differ: the model, else the clock that it says."""
    origins = {host.host: host.origin for host in run.hosts}
    own, theirs = origins[name], [origins[host] for host in others]
    models, clocks = {one.device_name for one in theirs}, {one.clock_mhz for one in theirs}
    if own.device_name not in models and "" not in {own.device_name, *models}:
        return own.device_name, " or ".join(sorted(models))
    if own.clock_mhz not in clocks and 0 not in {own.clock_mhz, *clocks}:
        return f"{own.clock_mhz:,.0f} MHz", " or ".join(f"{one:,.0f} MHz" for one in sorted(clocks))
    return "", ""


def collective_of(run: Run, rows: pd.DataFrame, name: str) -> str:
    """The type, or name, of the op in which the others wait longest, in the part of the step in which they wait most
    beyond what the host does; empty if no op is recorded there."""
    host = str(rows.loc[rows["name"] == name, "host"].iloc[0])
    others = [other for other in _compared(rows, name) if other != host] or [host]
    means = rows[rows["included"].astype(bool)].groupby("name")[list(WAITING_PARTS)].mean()
    part = str((means.drop(index=name).median() - means.loc[name]).idxmax())
    waits = pd.concat([_shares(run, rows, other, (part,)) for other in others])
    if waits.empty:
        return ""
    ops = waits["op_type"].where(waits["op_type"] != UNKNOWN, waits["op_name"])
    return str(waits.groupby(ops.astype("str"))["wall_time_us"].sum().idxmax())


def _compared(rows: pd.DataFrame, name: str) -> list[str]:
    """The hosts whose ops are compared: the slow one first."""
    others = sorted(set(rows["host"]) - {name})
    if len(others) > MOST_COMPARED:
        others = [others[i * len(others) // MOST_COMPARED] for i in range(MOST_COMPARED)]
    return [name, *others] if name in set(rows["host"]) else others


def _shares(run: Run, rows: pd.DataFrame, host: str, parts: tuple[str, ...]) -> pd.DataFrame:
    """What `RunTables.op_shares` has in these parts of the included steps, summed."""
    shares = run.tables.op_shares(host).of_steps(_included_steps(rows, host)).sums("wall_time_us")
    return shares[shares["step_part"].isin(parts)]


def _included_steps(rows: pd.DataFrame, host: str) -> Any:
    """The numbers of the included steps of a host."""
    return rows.loc[(rows["host"] == host) & rows["included"].astype(bool), "step"].unique()


def _op_times(run: Run, rows: pd.DataFrame, host: str, part: str) -> pd.Series:
    """The mean time per included step of each op in a part; of input, of each iterator with the ops that it calls."""
    shares = _shares(run, rows, host, (part,))
    steps = len(_included_steps(rows, host))
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
