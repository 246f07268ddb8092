"""Detects the straggler of a run: the host with the longest steps, not counting the time waiting for other hosts.

In synchronous training, every host's step ends when the slowest host is done, because the others wait for it in a
collective or at a barrier. Step times therefore do not show which host is slow; step times without that do.

Its steps stand for the run. Whether it is slow at all is tested by `views/hosts/figures.py`.
"""

from __future__ import annotations

import pandas as pd

from tfcompare.tables.hosts import WAITING_PARTS
from tfcompare.tables.step_times import common_step_ids


def own_time_us(steps: pd.DataFrame) -> pd.Series:
    """The duration of each step of `schema.STEPS` without `WAITING_PARTS`."""
    return steps["duration_us"] - steps[list(WAITING_PARTS)].sum(axis=1)


def straggler(steps: pd.DataFrame) -> str | None:
    """The host with the longest mean step without collectives and waits; None for fewer than two hosts with included
    steps.

    `steps` is the table of all hosts. Whether it is longer by more than chance is another question: see
    `stats.host_significance`.
    """
    if steps["host"].nunique() < 2:
        return None
    counted = steps.assign(place=common_step_ids(steps), own_us=own_time_us(steps))
    counted = counted[counted["included"].astype(bool)]
    by_host = counted.pivot(index="place", columns="host", values="own_us").dropna()
    if by_host.empty or len(by_host.columns) < 2:
        return None
    return str(by_host.mean().idxmax())


def steps_of_straggler(steps: pd.DataFrame) -> pd.DataFrame:
    """The steps of the straggler, in order, or of the first host if there is none.

    `steps` is the table of all hosts, or of one.
    """
    host = straggler(steps) or steps["host"].min()
    return steps.loc[steps["host"] == host].reset_index(drop=True)
