"""The numbers on top of the overview."""

from __future__ import annotations

import dataclasses
import math

import pandas as pd
import pytest

from tests.charts import chart_samples as samples
from tests.charts.chart_samples import FAST, OPS
from tests.profiles import loaded_run
from tfcompare import schema
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.frames.steps.steps import WHOLE_PROFILE
from tfcompare.run import RunInfo
from tfcompare.tools.environment import environment
from tfcompare.tools.key_figures import NEITHER_TOLD, KeyFigure, better_by, key_figures
from tfcompare.units import MISSING


@pytest.fixture(scope="module")
def info() -> RunInfo:
    return loaded_run("filters_16_8").info


def figures(
    diff: pd.DataFrame, step_us=(2000.0, 1000.0), sixteen_bit=NEITHER_TOLD, eager=(0.0, 0.28)
) -> dict[str, KeyFigure]:
    return {figure.label: figure for figure in key_figures(diff, step_us, sixteen_bit, eager)}


def test_figures_are_sums_over_the_diff():
    found = figures(samples.diff())
    assert list(found) == [
        "Step time",
        "Host op time per step",
        "Host IDLE",
        "Eager ops on host",
        "Time with a counterpart",
    ]
    assert found["Step time"].candidate == 1000.0
    assert found["Host op time per step"].baseline == pytest.approx(sum(op[2] for op in OPS))
    assert found["Host op time per step"].candidate == pytest.approx(sum(op[3] for op in OPS))
    assert found["Host IDLE"].baseline == pytest.approx(4e6 / 20 / (4e6 / 20 + sum(op[2] for op in OPS)))
    assert (found["Eager ops on host"].baseline, found["Eager ops on host"].candidate) == (0.0, 0.28)
    assert found["Time with a counterpart"].candidate == 1.0
    assert not found["Time with a counterpart"].has_baseline


def test_the_step_time_is_judged_where_a_verdict_is_and_nothing_else():
    found = figures(samples.diff())
    assert {figure.judgement for figure in found.values()} == {"neither"}
    for word, judgement in {"faster": "better", "unclear": "neither", "same": "neither", "untested": "neither"}.items():
        better = better_by(Verdict(word, "for this test"))
        judged = key_figures(samples.diff(), (2000.0, 1000.0), step_time=better)
        assert [figure.judgement for figure in judged] == [judgement, *["neither"] * 3]
    (worse, *_) = key_figures(samples.diff(), (1000.0, 2000.0), step_time=better_by(Verdict("slower", "for this test")))
    assert worse.judgement == "worse"


def test_time_matched_counts_both_sides():
    found = figures(samples.diff(candidate=samples.op_stats(FAST, without="conv2d_1/Conv2D")))
    whole = sum(op[2] for op in OPS) + sum(op[3] for op in OPS if "conv2d_1/Conv2D" not in op[1])
    alone = sum(op[2] for op in OPS if "conv2d_1/Conv2D" in op[1])
    assert found["Time with a counterpart"].candidate == pytest.approx(1 - alone / whole)


def test_a_side_without_device_has_no_device_time():
    both = pd.concat([samples.op_stats(), samples.op_stats(place=schema.DEVICE)], ignore_index=True)
    found = figures(samples.diff(baseline=both))
    assert math.isnan(found["Device op time per step"].candidate)
    assert found["Device op time per step"].judgement == "neither"
    assert "Device IDLE" in found


def test_without_steps_there_is_no_step_time():
    assert "Step time" not in figures(samples.diff(), (1000.0, math.nan))


def test_the_width_of_numbers_is_shown_where_a_side_tells_it_and_is_not_judged():
    found = figures(samples.diff(), sixteen_bit=(0.0, 0.75))["16-bit compute"]
    assert (found.baseline, found.candidate, found.unit, found.judgement) == (0.0, 0.75, "share", "neither")
    assert math.isnan(figures(samples.diff(), sixteen_bit=(math.nan, 0.5))["16-bit compute"].baseline)
    assert "16-bit compute" not in figures(samples.diff())


def test_without_ops_only_the_step_time_is_left():
    none = samples.diff(schema.OP_STATS.empty(), schema.OP_STATS.empty())
    assert list(figures(none, eager=NEITHER_TOLD)) == ["Step time"]


def test_what_should_agree_and_does_not_is_marked(info):
    other = dataclasses.replace(info, device_type="GPU", device_count=8, size_bytes=1, duration_ms=1.0)
    assert not any(fact.differs for fact in environment([info, info]))
    assert {fact.label for fact in environment([info, other]) if fact.differs} == {"Device type", "Devices"}


def test_a_run_that_marks_no_steps_has_none_of_them(info):
    unmarked = dataclasses.replace(info, step_source=WHOLE_PROFILE, step_count=1, steps_included=1)
    facts = {fact.name: fact.values for fact in environment([info, unmarked])}
    assert (facts["step_count"], facts["steps_included"]) == (("22", MISSING), ("20", MISSING))
    assert "step_count" not in {fact.name for fact in environment([unmarked, unmarked])}


def test_the_environment_is_told_in_the_readers_time_zone(info):
    facts = {fact.name: fact for fact in environment([info, info], "Europe/Vienna")}
    assert facts["start_time"].values[0].endswith(("CET", "CEST"))
    assert facts["step_count"].values == ("22", "22")
    assert "device_name" not in facts, "what no run knows is left out"
    assert environment([info])[-1].label == "Size"
