"""Small frames of steps that wait for input, and diffs of input ops, for tests."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from tests.views import chart_samples as samples
from tfcompare import schema
from tfcompare.compare.diff import SideRows, diff_table
from tfcompare.schema.input import INPUT_PIPELINE, TF_DATA_PIPELINES

MARKED = SimpleNamespace(has_steps=True, has_step_times=True, step_source="step markers")
UNMARKED = SimpleNamespace(has_steps=False, has_step_times=False, step_source="whole profile")

NAIVE = """
Iterator::Root::BatchV2::Map                  preprocessing      20  900  700
Iterator::Root::BatchV2                       preprocessing      10 1000  100
Iterator::Root::BatchV2::Map::TFRecord        reading_on_demand  20  200  200
"""
BETTER = """
Iterator::Root::Prefetch                      preprocessing      10   50   50
Iterator::Root::Prefetch::BatchV2::Map        preprocessing      20  500  400
Iterator::Root::Prefetch::BatchV2::Map::TFRecord reading_in_advance 20  50   50
"""


def steps(*waiting: tuple[float, float], other_us: float = 0.0, host: str = "localhost") -> pd.DataFrame:
    """A `steps` frame from (step time, waiting for input) of each step; the rest but `other_us` is host compute."""
    frame = samples.steps([duration for duration, _ in waiting], host)
    inputs = [wait for _, wait in waiting]
    rest = frame["duration_us"] - inputs - other_us
    return frame.assign(input_us=inputs, other_us=other_us, host_compute_us=rest)


def input_ops(text: str, host: str = "localhost") -> pd.DataFrame:
    """An `input_pipeline` frame from lines of `op_name category occurrences total_time_us self_time_us`."""
    rows = [line.split() for line in text.strip().splitlines()] if text.strip() else []
    frame = pd.DataFrame(rows, columns=["op_name", "category", "occurrences", "total_time_us", "self_time_us"])
    frame["category"] = frame["category"].str.replace("_", " ")
    return INPUT_PIPELINE.conform(frame.assign(host=host))


def input_diff(baseline: str = NAIVE, candidate: str = BETTER, *, steps: int | None = None) -> pd.DataFrame:
    """The diff of two such frames, with sums per step if there are any `steps`."""
    sides = [SideRows(input_ops(text), steps) for text in (baseline, candidate)]
    return diff_table(INPUT_PIPELINE, "after", *sides, identical=False)


def pipelines(*rows: tuple[int, int, float, bool]) -> pd.DataFrame:
    """A `tf_data_pipelines` frame from (calls, slow calls, longest call in µs, whether it feeds a device)."""
    columns = ["calls", "slow_calls", "max_latency_us", "feeds_device"]
    frame = pd.DataFrame(rows, columns=columns)
    for column in TF_DATA_PIPELINES.columns:
        if column.name not in frame:
            frame[column.name] = 0 if column.is_number else ""
    return schema.TF_DATA_PIPELINES.conform(frame)
