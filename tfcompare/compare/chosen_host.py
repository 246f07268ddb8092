"""The host that a comparison is restricted to, in each of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.errors import Unknown

if TYPE_CHECKING:
    from tfcompare.run import Run


def counterparts_of_host(
    baseline: Run, candidates: tuple[Run, ...], host: str | None
) -> tuple[dict[str, str | None], list[str]]:
    """Each candidate's counterpart of the baseline's host, and a note for each that has another name."""
    if host is None:
        return {run.id: None for run in candidates}, []
    if host not in baseline.host_names:
        raise Unknown(f"host of {baseline.id}", host, sorted(baseline.host_names))
    hosts: dict[str, str | None] = {}
    notes = []
    for run in candidates:
        counterparts = host_counterparts(baseline.host_names, run.host_names)
        if host not in counterparts:
            raise Unknown(f"host of {run.id}", host, sorted(run.host_names))
        hosts[run.id] = counterparts[host]
        if counterparts[host] != host:
            notes.append(f"Host {host} of the baseline stands beside host {counterparts[host]} of {run.name}.")
    return hosts, notes
