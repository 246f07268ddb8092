"""Detects the straggler of a run: the host with the longest steps, not counting the time waiting for other hosts.

In synchronous training, every host's step ends when the slowest host is done, because the others wait for it in a
collective. Step times therefore do not show which host is slow; step times without collectives do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfcompare.frames.steps.step_times import common_step_ids
from tfcompare.units import format_time_us

if TYPE_CHECKING:
    import pandas as pd

COLLECTIVE_PARTS = ("host_collectives_us", "device_collectives_us")
"""The parts of a step in which a host exchanges data with other hosts or waits for them."""

CONSISTENT = 0.75
"""A straggler is consistent if it is the slowest host in at least this share of the steps."""


@dataclass(frozen=True)
class Straggler:
    """The host with the longest mean step without collectives, over the included steps.

    `excess_us`: the excess over the median of the other hosts; `slowest_share`: the share of steps in which it was the
    slowest. Both refer to steps without collectives.
    """

    host: str
    excess_us: float
    slowest_share: float

    @property
    def is_consistent(self) -> bool:
        """Whether this host is the slowest in at least `CONSISTENT` of the steps."""
        return self.slowest_share >= CONSISTENT and self.excess_us > 0


def own_time_us(steps: pd.DataFrame) -> pd.Series:
    """The duration of each step of `schema.STEPS` without the time in collectives."""
    return steps["duration_us"] - steps[list(COLLECTIVE_PARTS)].sum(axis=1)


def straggler(steps: pd.DataFrame) -> Straggler | None:
    """The straggler of a run; None for fewer than two hosts with included steps.

    `steps` is the table of all hosts.
    """
    if steps["host"].nunique() < 2:
        return None
    counted = steps.assign(place=common_step_ids(steps), own_us=own_time_us(steps))
    counted = counted[counted["included"].astype(bool)]
    by_host = counted.pivot(index="place", columns="host", values="own_us").dropna()
    if by_host.empty or len(by_host.columns) < 2:
        return None
    means = by_host.mean()
    host = str(means.idxmax())
    others = by_host.drop(columns=host)
    return Straggler(
        host=host,
        excess_us=float(means[host] - others.mean().median()),
        slowest_share=float((by_host[host] > others.max(axis=1)).mean()),
    )


def steps_of_straggler(steps: pd.DataFrame) -> pd.DataFrame:
    """The steps of the straggler, in order, or of the first host if there is none.

    `steps` is the table of all hosts, or of one.
    """
    found = straggler(steps)
    host = steps["host"].min() if found is None else found.host
    return steps.loc[steps["host"] == host].reset_index(drop=True)


def in_words(candidate: Straggler, baseline: Straggler | None) -> str:
    """A Markdown sentence on the candidate's slowest host and whether it was also the baseline's."""
    if not candidate.is_consistent:
        return f"No host is the slowest in most steps; parts and ops below are those of {_code(candidate.host)}."
    sentence = f"Slowest host: {_code(candidate.host)}, {_more(candidate)} per step"
    if baseline is None:
        return f"{sentence}."
    if not baseline.is_consistent:
        return f"{sentence}; no host of the baseline is the slowest in most steps."
    same = "also " if baseline.host == candidate.host else f"{_code(baseline.host)}, "
    return f"{sentence} (baseline: {same}{_more(baseline)})."


def _more(found: Straggler) -> str:
    return f"{format_time_us(found.excess_us)} more than the others"


def _code(host: str) -> str:
    return f"`{host.replace('`', chr(39))}`"
