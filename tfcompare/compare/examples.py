"""How many examples a step handles, by the settings of the input pipelines."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run

_BATCH_SIZE = re.compile(r"\bbatch_size=(\d{1,9})\b")
_ONCE_A_STEP = (0.5, 1.5)
"""A pipeline with this many calls per step provides each step's batch."""


def examples_per_step(run: Run, host: str | None = None) -> float:
    """Examples per step according to the input pipelines, over all hosts or on one; NaN if unknown for any of them."""
    tables = [run.table(name, host=host) for name in ("tf_data", "tf_data_pipelines", "steps")]
    hosts = run.host_names if host is None else (host,)
    return sum(_batch_size(*(table[table["host"] == name] for table in tables)) for name in hosts)


def differing_examples(
    baseline: Run, candidate: Run, hosts: tuple[str | None, str | None] = (None, None)
) -> tuple[float, float] | None:
    """The examples per step of both runs, over all hosts or on one each, where they are known and differ."""
    ours, theirs = (examples_per_step(run, host) for run, host in zip((baseline, candidate), hosts, strict=True))
    return (ours, theirs) if ours > 0 and theirs > 0 and ours != theirs else None


def _batch_size(iterators: pd.DataFrame, pipelines: pd.DataFrame, steps: pd.DataFrame) -> float:
    """The batch size of a host's only pipeline with one call per step, by its outermost batching iterator; or NaN."""
    asked = pipelines[~pipelines["feeds_device"].astype(bool)]
    low, high = (len(steps) * share for share in _ONCE_A_STEP)
    names = asked.loc[asked["calls"].between(low, high), "pipeline"]
    if len(names) != 1:
        return math.nan
    of_pipeline = iterators[(iterators["pipeline"] == names.iloc[0]) & (iterators["execution"] == 0)]
    sizes = of_pipeline["settings"].str.extract(_BATCH_SIZE, expand=False)
    outermost = of_pipeline["long_name"].str.count("::").where(sizes.notna())
    return math.nan if outermost.isna().all() else float(sizes.loc[outermost.idxmin()])
