"""The numbers on top of the overview."""

from __future__ import annotations

import dataclasses
import math

import pandas as pd
import pytest

from tests.charts import chart_samples as samples
from tests.charts.chart_samples import FAST, OPS
from tests.profiles import run_path
from tfcompare import schema
from tfcompare.environment import differences, environment
from tfcompare.key_figures import KeyFigure, key_figures
from tfcompare.run import RunInfo, load


@pytest.fixture(scope="module")
def info() -> RunInfo:
    return load(run_path("filters_16_8")).info


def figures(info: RunInfo, diff: pd.DataFrame) -> dict[str, KeyFigure]:
    slower = dataclasses.replace(info, step_time_ms_median=2 * info.step_time_ms_median)
    return {figure.label: figure for figure in key_figures(slower, info, diff)}


def test_figures_are_sums_over_the_diff(info):
    found = figures(info, samples.diff())
    assert list(found) == [
        "Step time (median)",
        "Host op time per step",
        "Host IDLE",
        "Eager ops on host",
        "Time matched",
    ]
    assert found["Step time (median)"].candidate == info.step_time_ms_median
    assert found["Host op time per step"].baseline == pytest.approx(sum(op[2] for op in OPS))
    assert found["Host op time per step"].candidate == pytest.approx(sum(op[3] for op in OPS))
    assert found["Host IDLE"].baseline == pytest.approx(4e6 / 20 / (4e6 / 20 + sum(op[2] for op in OPS)))
    assert found["Eager ops on host"].candidate == pytest.approx(1100 / sum(op[3] for op in OPS))
    assert found["Time matched"].candidate == 1.0
    assert not found["Time matched"].has_baseline


def test_only_times_are_judged(info):
    found = figures(info, samples.diff())
    assert {label: figure.judgement for label, figure in found.items()} == {
        "Step time (median)": "better",
        "Host op time per step": "better",
        "Host IDLE": "neither",
        "Eager ops on host": "neither",
        "Time matched": "neither",
    }
    backwards = key_figures(info, info, samples.diff(samples.op_stats(FAST), samples.op_stats(samples.SLOW)))
    assert [figure.judgement for figure in backwards[:2]] == ["same", "worse"]


def test_time_matched_counts_both_sides(info):
    found = figures(info, samples.diff(candidate=samples.op_stats(FAST, without="conv2d_1/Conv2D")))
    whole = sum(op[2] for op in OPS) + sum(op[3] for op in OPS if "conv2d_1/Conv2D" not in op[1])
    alone = sum(op[2] for op in OPS if "conv2d_1/Conv2D" in op[1])
    assert found["Time matched"].candidate == pytest.approx(1 - alone / whole)


def test_a_side_without_device_has_no_device_time(info):
    both = pd.concat([samples.op_stats(), samples.op_stats(place=schema.DEVICE)], ignore_index=True)
    found = figures(info, samples.diff(baseline=both))
    assert math.isnan(found["Device op time per step"].candidate)
    assert found["Device op time per step"].judgement == "neither"
    assert "Device IDLE" in found


def test_without_steps_there_is_no_step_time(info):
    without = dataclasses.replace(info, step_source="whole profile")
    assert "Step time (median)" not in {f.label for f in key_figures(info, without, samples.diff())}


def test_without_ops_only_the_step_time_is_left(info):
    none = samples.diff(schema.OP_STATS.empty(), schema.OP_STATS.empty())
    assert [figure.label for figure in key_figures(info, info, none)] == ["Step time (median)"]


def test_what_should_agree_and_does_not_is_told(info):
    other = dataclasses.replace(info, device_type="GPU", device_count=8, size_bytes=1, duration_ms=1.0)
    assert differences(info, info) == []
    assert differences(info, other) == ["device type: CPU and GPU", "devices: 0 and 8"]


def test_the_environment_is_told_in_the_readers_time_zone(info):
    facts = {fact.name: fact for fact in environment([info, info], "Europe/Vienna")}
    assert facts["start_time"].values[0].endswith(("CET", "CEST"))
    assert facts["step_count"].values == ("22", "22")
    assert "device_name" not in facts, "what no run knows is left out"
    assert environment([info])[-1].label == "Size"
