"""A metric of many runs in order: one row per run, with a confidence interval from the run's own steps.

The step time of runs in a store comes from its index, without opening anything. For other metrics a run's tables are
opened, and what was read is cached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.compare.side import StepsOf
from tfcompare.compare.stats.estimates import FEWEST_STEPS, Times, estimates, levels
from tfcompare.compare.steps.peak_memory import peak_bytes
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.frames.profile_reader import OnProgress
from tfcompare.run import Run, load
from tfcompare.schema.arrays import Floats
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.metadata import COMMIT
from tfcompare.sources.programs import device_of, device_words
from tfcompare.store.version import SUMMARY, versions
from tfcompare.tables.hosts import steps_of_straggler
from tfcompare.views.run_listing import device_text
from tfcompare.views.steps.figures import steps_per_s

STEP_TIME, THROUGHPUT, PEAK_MEMORY = "step_time", "throughput", "peak_memory"
OP, KERNEL, PART = "op:", "kernel:", "part:"
FORMS = (STEP_TIME, THROUGHPUT, "op:PATTERN", "kernel:PATTERN", "part:PART", PEAK_MEMORY)
"""The metrics as users write them."""
UNITS = {STEP_TIME: "µs", THROUGHPUT: "steps/s", PEAK_MEMORY: "bytes", OP: "µs", KERNEL: "µs", PART: "µs"}
COLUMNS = {
    "run": "str",
    "name": "str",
    "recorded": "datetime64[us, UTC]",
    "label": "str",
    "tags": "str",
    "device": "str",
    "value": "float64",
    "low": "float64",
    "high": "float64",
    "problem": "str",
    "versions": "str",
}
"""The columns of `series`."""
_MADE_OF = {
    STEP_TIME: ("steps", SUMMARY),
    THROUGHPUT: ("steps", SUMMARY),
    PEAK_MEMORY: ("memory_summary",),
    OP: ("steps", "op_parts", "op_cells"),
    KERNEL: ("steps", "kernel_stats", "kernel_cells"),
    PART: ("steps",),
}
"""The tables of hosts that the values come from, and the summary in the index."""
_PS_PER_US = 1e6
_CACHED = 1 << 16
_SHORT_COMMIT = 10
_OPENED_AT_ONCE = 4

Opener = Callable[[FoundRun], Run]
"""Loads a run; raises `TfcompareError`."""


@dataclass(frozen=True)
class Metric:
    """What a series shows of each run: `kind`, one of `UNITS`, and the `pattern` behind its colon."""

    kind: str
    pattern: str = ""

    @property
    def text(self) -> str:
        """The metric as users write it."""
        return f"{self.kind}{self.pattern}"

    @property
    def unit(self) -> str:
        """The unit of the values: `µs`, `bytes` or `steps/s`."""
        return UNITS[self.kind]

    @property
    def is_in_index(self) -> bool:
        """Whether no tables have to be opened."""
        return self.kind in (STEP_TIME, THROUGHPUT)

    @property
    def is_better_if_larger(self) -> bool:
        """Whether an increase is an improvement."""
        return self.kind == THROUGHPUT


@dataclass(frozen=True)
class Value:
    """A run's value with its confidence interval (NaN if there is none); `problem`: why there is no value.

    `device` is empty if the run cannot be read.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    problem: str = ""
    device: str = ""


def parse_metric(text: str) -> Metric:
    """The metric that users write as in `FORMS`. Raises `Unknown`."""
    name, colon, pattern = (part.strip() for part in text.partition(":"))
    kind = name + colon
    if kind not in UNITS or (colon and not pattern):
        raise Unknown("metric", text, list(FORMS))
    if kind == PART and pattern not in schema.STEP_PARTS:
        raise Unknown("part of the step", pattern, list(schema.STEP_PARTS))
    return Metric(kind, pattern)


def series(
    found: Iterable[FoundRun],
    metric: Metric,
    by: str = "",
    progress: OnProgress = lambda _done, _all: None,
    opener: Opener = load,
) -> pd.DataFrame:
    """One row per run, with the columns `COLUMNS`, in order of recording or of the metadata named `by`.

    `label` is the commit, or else the name; `value` is missing where `problem` says why. Metadata that are all numbers
    are ordered as numbers; with `by`, runs without it are left out. `versions` are those of the tables that the value
    comes from: `steps 1-ea916038, summary 1-66a6fb03`.
    """
    runs, now = ordered(found, by), versions()
    rows = []
    for run, value in zip(runs, _values(runs, metric, progress, opener), strict=True):
        label = run.metadata.get(by) if by else label_of(run)
        tags, device = ", ".join(run.metadata.texts), device_of(run) or value.device
        made_by = ", ".join(f"{table} {run.version_of(table) or now[table]}" for table in _MADE_OF[metric.kind])
        of_run = (value.value, value.low, value.high, value.problem)
        rows.append((run.id, run.name, run.recorded, label, tags, device, *of_run, made_by))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _values(runs: Sequence[FoundRun], metric: Metric, progress: OnProgress, opener: Opener) -> Iterator[Value]:
    """The values in order. Several runs are opened at once, since a store may be far away."""
    if metric.is_in_index and all(run.summary is not None for run in runs):
        yield from (value_of(run, metric, opener) for run in runs)
        return
    pool = ThreadPoolExecutor(_OPENED_AT_ONCE)
    try:
        for done, value in enumerate(pool.map(lambda run: value_of(run, metric, opener), runs)):
            progress(done, len(runs))
            yield value
    finally:
        pool.shutdown(cancel_futures=True)
    progress(len(runs), len(runs))


def on_last_device(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a series without those on another device than the last one whose device is known."""
    known = rows.loc[rows["device"] != "", "device"]
    return rows if known.empty else rows[rows["device"].isin([known.iloc[-1], ""])].reset_index(drop=True)


def label_of(run: FoundRun) -> str:
    """The run's commit, shortened, or else its name."""
    return run.metadata.get(COMMIT)[:_SHORT_COMMIT] or run.name


def ordered(found: Iterable[FoundRun], by: str = "") -> list[FoundRun]:
    """The readable runs in order of recording, or of the metadata named `by`."""
    runs = sorted((run for run in found if run.is_readable), key=lambda run: (run.recorded, run.id))
    if not by:
        return runs
    runs = [run for run in runs if run.metadata.get(by)]
    try:
        return sorted(runs, key=lambda run: float(run.metadata.get(by)))
    except ValueError:
        return sorted(runs, key=lambda run: run.metadata.get(by))


def value_of(run: FoundRun, metric: Metric, opener: Opener = load) -> Value:
    """The run's value; its tables are opened only if its summary does not have it."""
    facts = run.summary
    if metric.kind == STEP_TIME and facts is not None:
        times = (facts.step_time_ms_mean, facts.step_time_ms_low, facts.step_time_ms_high)
        return _step_time(*(math.nan if ms is None else ms * 1e3 for ms in times))
    if metric.kind == THROUGHPUT and facts is not None:
        per_s = (facts.steps_per_s, facts.steps_per_s_low, facts.steps_per_s_high)
        return _throughput(*(math.nan if value is None else value for value in per_s))
    return _read(run, run.stat_key, metric, opener)


def _step_time(mean: float, low: float, high: float) -> Value:
    if math.isnan(mean) or mean <= 0:
        return Value(problem="no steps are marked")
    return Value(mean, low, high)


def _throughput(per_s: float, low: float, high: float) -> Value:
    return Value(problem="fewer than two steps") if math.isnan(per_s) else Value(per_s, low, high)


@lru_cache(maxsize=_CACHED)
def _read(found: FoundRun, stat_key: str, metric: Metric, opener: Opener) -> Value:
    del stat_key  # identifies the content of the run's files
    try:
        run = opener(found)
        return replace(measured(run, metric), device=device_of_read(run))
    except TfcompareError as error:
        return Value(problem=str(error))


def device_of_read(run: Run) -> str:
    """The device of a loaded run, as `device_of` describes that of a found one."""
    return device_words(device_text(run.info.device_type, run.info.device_count), run.info.device_name)


def measured(run: Run, metric: Metric) -> Value:
    """The value of a loaded run."""
    if metric.kind == PEAK_MEMORY:
        peak = peak_bytes(run, None)
        return Value(problem="no memory is recorded") if math.isnan(peak) else Value(peak, peak, peak)
    if not run.info.has_steps:
        return Value(problem="no steps are marked")
    steps = StepsOf.of(run.steps)
    if metric.kind in (STEP_TIME, PART) and not run.info.has_step_times:
        return Value(problem=run.why_untimed)
    if metric.kind == STEP_TIME:
        value = _estimate_rows(steps.times("duration_us"))
        return _step_time(value.value, value.low, value.high)
    if metric.kind == THROUGHPUT:
        return _throughput(*steps_per_s(run))
    if metric.kind == PART:
        return _estimate_rows(StepsOf.of(steps_of_straggler(run.table("steps"))).times(metric.pattern))
    if metric.kind == KERNEL:
        chosen, cells = (
            _matching(run.tables.host_table("kernel_stats")["kernel_name"], metric.pattern),
            run.tables.host_table("kernel_cells"),
        )
        own = cells[chosen[cells["row"].to_numpy()]]
        found = _by_step(steps.numbers, own["step"], own["time_us"])
        return Value(problem="no kernel matches in any step") if found is None else _estimate_rows(steps.split(found))
    found = _op_times(run, metric.pattern, steps.numbers)
    return Value(problem="no op matches in any step") if found is None else _estimate_rows(steps.split(found))


def _estimate_rows(times: Times) -> Value:
    """The mean with the confidence interval from these steps alone."""
    if not times.included.size:
        return Value(problem="no step counts")
    found = levels([estimates(times)], 0.0)
    if times.steps < FEWEST_STEPS:
        return Value(float(found.location[0]))
    return Value(float(found.location[0]), float(found.low[0]), float(found.high[0]))


def _op_times(run: Run, pattern: str, steps: npt.NDArray[np.int64]) -> Floats | None:
    """The self time of the matching ops in each step, of all hosts and devices; None if there are none."""
    parts = run.tables.host_table("op_parts")
    chosen = _matching(parts["op_name"], pattern) | _matching(parts["op_type"], pattern)
    if not chosen.any():
        return None
    cells = run.tables.host_table("op_cells")
    own = cells[chosen[cells["part"].to_numpy()]]
    return _by_step(steps, own["step"], own["self_time_ps"] / _PS_PER_US)


def _matching(names: pd.Series, pattern: str) -> npt.NDArray[np.bool_]:
    codes, unique = pd.factorize(names)
    return np.array([name == pattern or fnmatchcase(name, pattern) for name in unique], np.bool_)[codes]


def _by_step(steps: npt.NDArray[np.int64], step: pd.Series, time_us: pd.Series) -> Floats | None:
    """The sum of the times of each of these steps; None if none belongs to one of them."""
    position = pd.Index(steps).get_indexer(pd.Index(step))
    inside = position >= 0
    total = np.bincount(position[inside], time_us.to_numpy(np.float64)[inside], len(steps)).astype(np.float64)
    return total if inside.any() else None
