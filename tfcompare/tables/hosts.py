"""`hosts`: each step on each device of each host, and how far it is from the others'."""

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
