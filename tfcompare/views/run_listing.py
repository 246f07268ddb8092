"""The list of runs, one row per run, with details of the runs that have been read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from tfcompare.errors import TfcompareError
from tfcompare.sources.logdir.found_run import RunSummary
from tfcompare.text import text_of
from tfcompare.views.steps.figures import steps_per_s

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.run import Run
    from tfcompare.sources.logdir import FoundRun

READ = "read"
UNREAD = "not read yet"
UNREADABLE = "unreadable"

COLUMNS = {
    "run": "str",
    "name": "str",
    "state": "str",
    "recorded": "datetime64[us, UTC]",
    "recorded_source": "str",
    "hosts": "int64",
    "device": "str",
    "device_name": "str",
    "steps": "Int64",
    "step_time_ms_median": "float64",
    "step_times_ms": "object",
    "step_time_ms_mean": "float64",
    "step_time_ms_low": "float64",
    "step_time_ms_high": "float64",
    "size_bytes": "int64",
    "remarks": "str",
    "tags": "str",
    "path": "str",
}
"""The listing's columns and their dtypes. Columns that require reading a run are missing for unread runs."""


def listing(found: Iterable[FoundRun], read: Mapping[str, Run | TfcompareError]) -> pd.DataFrame:
    """One row for each found run, in the order given; `read` maps run ids to the run or to the error of reading it.

    `state` is `read`, `not read yet` or `unreadable`; `remarks` holds problems and remarks, separated by `; `;
    `tags` the metadata (`commit=abc123, nightly`). `step_time_ms_low` and `_high` are the confidence interval of the
    step time from the run's own steps, without the variation between captures.
    """
    import pandas as pd

    rows = [_row(run, read.get(run.id)) for run in found]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _row(found: FoundRun, outcome: Run | TfcompareError | None) -> dict[str, object]:
    row: dict[str, object] = {
        "run": found.id,
        "name": found.name,
        "state": UNREAD if found.is_readable else UNREADABLE,
        "recorded": found.recorded,
        "recorded_source": found.recorded_source,
        "hosts": len(found.host_names),
        "size_bytes": found.size_bytes,
        "remarks": "; ".join(found.problems),
        "tags": ", ".join(found.metadata.texts),
        "path": text_of(str(found.path)),
    }
    if isinstance(outcome, TfcompareError):
        return row | {"state": UNREADABLE, "remarks": "; ".join(dict.fromkeys([*found.problems, str(outcome)]))}
    if outcome is None:
        return row if found.summary is None else row | {"state": READ} | asdict(found.summary)
    return row | _facts_of(outcome)


def summary_of(run: Run) -> RunSummary:
    """The details that the listing shows of a run that was read."""
    throughput = zip(("steps_per_s", "steps_per_s_low", "steps_per_s_high"), steps_per_s(run), strict=True)
    row = _facts_of(run) | {name: value if math.isfinite(value) else None for name, value in throughput}
    return RunSummary(**{field.name: row[field.name] for field in fields(RunSummary)})


def _facts_of(run: Run) -> dict[str, Any]:
    info = run.info
    times = step_times_ms(run) if info.has_step_times else None
    mean, low, high = _step_time(run) if times else (None, None, None)
    return {
        "state": READ,
        "recorded": info.start_time,
        "recorded_source": info.start_time_source,
        "hosts": info.hosts,
        "device": device_text(info.device_type, info.device_count),
        "device_name": info.device_name,
        "steps": info.step_count if info.has_steps else None,
        "step_time_ms_median": info.step_time_ms_median if info.has_step_times else None,
        "step_times_ms": times,
        "step_time_ms_mean": mean,
        "step_time_ms_low": low,
        "step_time_ms_high": high,
        "remarks": "; ".join(run.remarks),
    }


def _step_time(run: Run) -> tuple[float, float | None, float | None]:
    """(the step time in ms, its confidence interval from these steps alone; None if they are too few)."""
    from tfcompare.compare.side import StepsOf
    from tfcompare.compare.stats.estimates import FEWEST_STEPS, estimates, levels

    times = StepsOf.of(run.steps).times("duration_us")
    found = levels([estimates(times)], 0.0)
    mean, low, high = (float(us[0]) / 1e3 for us in (found.location, found.low, found.high))
    is_known = times.steps >= FEWEST_STEPS and math.isfinite(low) and math.isfinite(high)
    return (mean, low, high) if is_known else (mean, None, None)


def device_text(device_type: str, device_count: int) -> str:
    """A short description of a run's devices: `CPU`, `8 × GPU`."""
    return f"{device_count} × {device_type}" if device_count > 1 else device_type


def step_times_ms(run: Run) -> list[float]:
    """The durations of the included steps, in order, each on its slowest host."""
    return [float(us) / 1e3 for us in run.steps.loc[run.steps["included"], "duration_us"]]
