"""Verdicts on the mean call to pipelines of tf.data: how long a program waits for an element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.matching.matching import with_hosts_of
from tfcompare.compare.stats.estimates import Floats
from tfcompare.compare.stats.verdict import Verdict

if TYPE_CHECKING:
    from tfcompare.compare.comparison import Comparison
    from tfcompare.run import Run


@dataclass(frozen=True)
class CallVerdict:
    """A verdict on the mean call, in µs, of a pipeline by its host and its name on either side.

    `feeds_device`: it only hands elements to a device, on a side.
    """

    host: str
    baseline: str
    candidate: str
    baseline_us: float
    candidate_us: float
    feeds_device: bool
    verdict: Verdict

    @property
    def name(self) -> str:
        """The pipeline's name, the candidate's too where that is another."""
        return self.baseline if self.baseline == self.candidate else f"{self.baseline}, candidate's {self.candidate}"


def on_calls(comparison: Comparison, candidate: Run, pipelines: pd.DataFrame) -> list[CallVerdict]:
    """A verdict for each matched row of the diff of `tf_data_pipelines`, in their order.

    It rests on the two runs alone, also where there are replicates: these may number their pipelines otherwise.
    """
    ours = calls_by_pipeline(comparison.baseline, comparison.host_of(comparison.baseline))
    theirs = calls_by_pipeline(candidate, comparison.host_of(candidate))
    own_host = _own_hosts(comparison, candidate)
    found = []
    for row in pipelines[pipelines["status"] == MATCHED].to_dict("records"):
        host, name, counterpart = (str(row[key]) for key in ("host", "pipeline", "pipeline_candidate"))
        calls = ours.get((host, name), np.zeros(0)), theirs.get((own_host[host], counterpart), np.zeros(0))
        means = float(row["mean_latency_us_baseline"]), float(row["mean_latency_us_candidate"])
        feeds_device = bool(row["feeds_device_baseline"]) or bool(row["feeds_device_candidate"])
        verdict = comparison.time_verdict(candidate, ([calls[0]], [calls[1]]), "calls")
        found.append(CallVerdict(host, name, counterpart, *means, feeds_device, verdict))
    return found


def on_slowest_calls(comparison: Comparison, candidate: Run) -> CallVerdict | None:
    """The verdict on the mean call to each side's slowest pipeline, whatever its name; None without calls on a side.

    It rests on all captures of a side; name and mean are those of the run itself. Pipelines that only hand elements
    to a device are left out.
    """
    sides = [_slowest(comparison, run) for run in (comparison.baseline, candidate)]
    if any(side[0] is None for side in sides):
        return None
    ((host, ours), _), ((_, theirs), _) = (side[0] for side in sides if side[0] is not None)
    series = [[np.zeros(0) if found is None else found[1] for found in side] for side in sides]
    verdict = comparison.time_verdict(candidate, (series[0], series[1]), "calls")
    before, after = (float(side[0].mean()) for side in series)
    return CallVerdict(host, ours, theirs, before, after, False, verdict)


def _slowest(comparison: Comparison, run: Run) -> list[tuple[tuple[str, str], Floats] | None]:
    """The slowest pipeline of each capture of a run, the one that is shown first, and its calls."""
    found: list[tuple[tuple[str, str], Floats] | None] = []
    captures = comparison.captures(run)
    for capture, host in zip(captures.runs, captures.hosts, strict=True):
        calls = calls_by_pipeline(capture, host)
        slowest = slowest_pipeline(calls)
        found.append(None if slowest is None else (slowest, calls[slowest]))
    return found


def _own_hosts(comparison: Comparison, candidate: Run) -> dict[str, str]:
    """The candidate's own name of each of its hosts with pipelines, by the one that diffs have."""
    ours, theirs = (
        run.table("tf_data_pipelines", host=comparison.host_of(run)) for run in (comparison.baseline, candidate)
    )
    return dict(zip(with_hosts_of(ours, theirs)["host"], theirs["host"], strict=True))


def calls_by_pipeline(run: Run, host: str | None) -> dict[tuple[str, str], Floats]:
    """For each (host, pipeline) of a run, how long each of its calls took, in µs and in the order of time."""
    calls = run.table("tf_data_calls", host=host)
    latencies = calls["latency_us"].to_numpy(np.float64)
    groups: dict[Any, Any] = calls.groupby(["host", "pipeline"]).indices
    return {(str(at), str(name)): latencies[positions] for (at, name), positions in groups.items()}


def slowest_pipeline(calls: dict[tuple[str, str], Floats]) -> tuple[str, str] | None:
    """The (host, pipeline) whose mean call is the longest, of those in which the program asks for elements."""
    asked = {key: latencies for key, latencies in calls.items() if key[1].startswith("Host:")}
    return max(asked, key=lambda key: asked[key].mean(), default=None)
