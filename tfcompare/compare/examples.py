"""How many examples a step handles, by the settings of the input pipelines."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfcompare.run import Run

_BATCH_SIZE = re.compile(r"\bbatch_size=(\d{1,9})\b")
_ONCE_A_STEP = (0.5, 1.5)
"""A pipeline with this many calls per step provides each step's batch."""


def examples_per_step(run: Run, host: str | None = None) -> float:
    """Examples per step according to the input pipelines, over all hosts or on one; NaN if unknown for any of them.

    A host's are the batch size of its only pipeline with one call per step, by its outermost batching iterator.
    """
    iterators, pipelines, steps = (run.table(name, host=host) for name in ("tf_data", "tf_data_pipelines", "steps"))
    count = pipelines["host"].map(steps["host"].value_counts()).astype("float64").fillna(0)
    low, high = (count * share for share in _ONCE_A_STEP)
    asked = pipelines[~pipelines["feeds_device"].astype(bool) & pipelines["calls"].between(low, high)]
    hosts = run.host_names if host is None else (host,)
    if sorted(asked["host"]) != sorted(hosts):
        return math.nan
    first = iterators[iterators["execution"] == 0].merge(asked[["host", "pipeline"]])
    batching = first.assign(size=first["settings"].str.extract(_BATCH_SIZE, expand=False)).dropna(subset="size")
    depth = batching["long_name"].str.count("::")
    outermost = batching.loc[depth.sort_values(kind="stable").index].drop_duplicates("host")
    return float(outermost["size"].astype("int64").sum()) if len(outermost) == len(hosts) else math.nan


def differing_examples(
    baseline: Run, candidate: Run, hosts: tuple[str | None, str | None] = (None, None)
) -> tuple[float, float] | None:
    """The examples per step of both runs, over all hosts or on one each, where they are known and differ."""
    ours, theirs = (examples_per_step(run, host) for run, host in zip((baseline, candidate), hosts, strict=True))
    return (ours, theirs) if ours > 0 and theirs > 0 and ours != theirs else None
