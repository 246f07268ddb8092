"""Detects the straggler of a run: the host with the longest steps, not counting the time waiting for other hosts.

In synchronous training, every host's step ends when the slowest host is done, because the others wait for it in a
collective or at a barrier. Step times therefore do not show which host is slow; step times without that do.

Its steps stand for the run. Whether it is slow at all is tested by `tools/hosts/slowest_host.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.step_time_verdict import step_time_us
from tfcompare.tables.hosts import WAITING_PARTS
from tfcompare.tables.step_times import common_step_ids

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare.pair import Pair
    from tfcompare.run import Run


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


def attributed_hosts(pair: Pair) -> tuple[str, str]:
    """The hosts of baseline and candidate whose steps are attributed: the chosen host and its counterpart.

    Without a chosen one, the straggler of the run with the longer mean step and the same host of the other run: by
    name, else by position, else that run's own straggler. So it does not depend on which run is the baseline.
    """
    baseline, candidate = pair.runs
    if pair.host is not None:
        return pair.host, pair.sides[1].host or candidate.host_names[0]
    counterparts = host_counterparts(baseline.host_names, candidate.host_names)
    if step_time_us(pair.sides[0]) > step_time_us(pair.sides[1]):
        ours = _straggler_or_first(baseline)
        return ours, counterparts.get(ours) or _straggler_or_first(candidate)
    theirs = _straggler_or_first(candidate)
    of_theirs = {host: ours for ours, host in counterparts.items()}
    return of_theirs.get(theirs) or _straggler_or_first(baseline), theirs


def mean_step_us(run: Run, host: str | None = None) -> float:
    """The mean included step of a run, each as long as on its slowest host, or of one host; NaN without steps."""
    steps = run.steps_on(host)
    return float(steps.loc[steps["included"].astype(bool), "duration_us"].mean())


def _straggler_or_first(run: Run) -> str:
    steps = run.table("steps")
    if (found := straggler(steps)) is not None:
        return found
    return str(steps["host"].min()) if len(steps) else run.host_names[0]
