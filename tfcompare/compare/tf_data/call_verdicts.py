"""Verdicts on the element latency of tf.data pipelines: how long a program waits for an element per call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.matching.matching import with_hosts_of
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.run import Run
from tfcompare.schema.arrays import Floats

if TYPE_CHECKING:
    from tfcompare.compare.side import Side

Judge = Callable[[tuple[list[Times], list[Times]]], Verdict]
"""Gives the verdict on the mean call: takes the durations of all calls, for each capture of each side."""


@dataclass(frozen=True)
class CallVerdict:
    """A verdict on a pipeline's mean call in µs, with the pipeline's host and its name on either side.

    `feeds_device`: whether the pipeline only transfers elements to a device, on at least one side.
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
        """The pipeline's name, followed by the candidate's if that differs."""
        return self.baseline if self.baseline == self.candidate else f"{self.baseline}, candidate's {self.candidate}"


def on_calls(baseline: Side, candidate: Side, pipelines: pd.DataFrame, judge: Judge) -> list[CallVerdict]:
    """A verdict for each matched row of the diff of `tf_data_pipelines`, in the same order.

    Only the displayed captures are used, because replicates may number their pipelines differently.
    """
    sides = [(side.run, side.host) for side in (baseline, candidate)]
    ours, theirs = (_calls_by_pipeline(run, host) for run, host in sides)
    pipelines_of = [run.table("tf_data_pipelines", host=host) for run, host in sides]
    own_host = dict(zip(with_hosts_of(*pipelines_of)["host"], pipelines_of[1]["host"], strict=True))
    found = []
    for row in pipelines[pipelines["status"] == MATCHED].to_dict("records"):
        host, name, counterpart = (str(row[key]) for key in ("host", "pipeline", "pipeline_candidate"))
        calls = ours.get((host, name), np.zeros(0)), theirs.get((own_host[host], counterpart), np.zeros(0))
        means = float(row["mean_latency_us_baseline"]), float(row["mean_latency_us_candidate"])
        feeds_device = bool(row["feeds_device_baseline"]) or bool(row["feeds_device_candidate"])
        verdict = judge(([Times.of(calls[0])], [Times.of(calls[1])]))
        found.append(CallVerdict(host, name, counterpart, *means, feeds_device, verdict))
    return found


def on_slowest_calls(baseline: Side, candidate: Side, judge: Judge) -> CallVerdict | None:
    """The verdict on the mean call of each side's slowest pipeline, whatever its name; None if a side has no calls.

    All captures of a side are used; name and mean are those of the run itself. Pipelines that only transfer elements to
    a device are excluded.
    """
    sides = list(map(slowest_calls, (baseline, candidate)))
    if any(side[0] is None for side in sides):
        return None
    ((host, ours), _), ((_, theirs), _) = (side[0] for side in sides if side[0] is not None)
    series = [[np.zeros(0) if found is None else found[1] for found in side] for side in sides]
    verdict = judge((list(map(Times.of, series[0])), list(map(Times.of, series[1]))))
    before, after = (float(side[0].mean()) for side in series)
    return CallVerdict(host, ours, theirs, before, after, False, verdict)


def slowest_calls(side: Side) -> list[tuple[tuple[str, str], Floats] | None]:
    """The pipeline with the longest mean call of each capture of a side with its calls, the displayed capture first.

    It is among those from which the program requests elements; None for a capture without.
    """
    found: list[tuple[tuple[str, str], Floats] | None] = []
    for calls in side.each(_calls_by_pipeline):
        asked = {key: latencies for key, latencies in calls.items() if key[1].startswith("Host:")}
        found.append(max(asked.items(), key=lambda one: one[1].mean(), default=None))
    return found


def _calls_by_pipeline(run: Run, host: str | None) -> dict[tuple[str, str], Floats]:
    """The durations in µs of all calls of each (host, pipeline) of a run, in chronological order."""
    calls = run.table("tf_data_calls", host=host)
    latencies = calls["latency_us"].to_numpy(np.float64)
    groups: dict[Any, Any] = calls.groupby(["host", "pipeline"]).indices
    return {(str(at), str(name)): latencies[positions] for (at, name), positions in groups.items()}
