"""How the hosts of a run differ: the table `hosts`, and the straggler, which has the longest steps without the waiting.

In synchronous training, every host's step ends when the slowest host is done, because the others wait for it in a
collective or at a barrier. Step times therefore do not show which host is slow; step times without that do.

The straggler's steps stand for the run. Whether it is slow at all is tested by `views/hosts/figures.py`.
"""

from __future__ import annotations

import pandas as pd

from tfcompare import schema
from tfcompare.tables.step_times import common_step_ids

WAITING_PARTS = ("host_collectives_us", "device_collectives_us", "device_waits_us")
"""The parts of a step in which a host exchanges data with other hosts or waits for them.

Device waits may be for the device's own copies. What a wait is for is not recorded, and a host that waits longer than
the others must not be called the slow one.
"""


def hosts_frame(steps: pd.DataFrame, device_steps: pd.DataFrame) -> pd.DataFrame:
    """The table `schema.HOSTS` of all hosts of a run.

    `steps` has the columns of `schema.STEPS`; `device_steps` has `host` and the columns of
    `device_steps.device_steps`. Both are of all hosts: the skew of a step is its distance from the median of its rows.
    """
    if steps.empty:
        return schema.HOSTS.empty()
    of_host = steps[["host", "step", "start_us", "included", "duration_us"]].assign(place=common_step_ids(steps))
    rows = device_steps.merge(of_host, on=["host", "step"], how="left", validate="many_to_one")
    rows["collectives_us"] = rows[list(WAITING_PARTS)].sum(axis=1)
    rows["busy_us"] = rows["duration_us"] - rows["collectives_us"]
    for name, of in (("skew_us", "duration_us"), ("busy_skew_us", "busy_us")):
        rows[name] = rows[of] - rows.groupby("place")[of].transform("median")
    return schema.HOSTS.conform(rows)


def own_time_us(steps: pd.DataFrame) -> pd.Series:
    """The duration of each step of `schema.STEPS` without `WAITING_PARTS`."""
    return steps["duration_us"] - steps[list(WAITING_PARTS)].sum(axis=1)


def straggler(steps: pd.DataFrame) -> str | None:
    """The host with the longest mean step without collectives and waits; None for fewer than two hosts with included
    steps. `steps` is the table of all hosts."""
    if steps["host"].nunique() < 2:
        return None
    counted = steps.assign(place=common_step_ids(steps), own_us=own_time_us(steps))
    counted = counted[counted["included"].astype(bool)]
    by_host = counted.pivot(index="place", columns="host", values="own_us").dropna()
    if by_host.empty or len(by_host.columns) < 2:
        return None
    return str(by_host.mean().idxmax())


def steps_of_straggler(steps: pd.DataFrame) -> pd.DataFrame:
    """The steps of the straggler, in order, or of the first host if there is none; `steps` are of all hosts or one."""
    if len(hosts := steps["host"].unique()) < 2:
        return steps
    host = straggler(steps) or min(hosts)
    return steps.loc[steps["host"] == host].reset_index(drop=True)
