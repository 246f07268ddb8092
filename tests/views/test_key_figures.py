"""The numbers on top of the pages: sums over a diff, which direction is better, and what a card says of a change."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from tests.views import chart_samples as samples
from tests.views.advice.advice_facts import STEP_US, facts
from tests.views.chart_samples import OPS
from tfcompare import schema
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.views.key_figures import (
    MOST_FIRST,
    Better,
    KeyFigure,
    Unit,
    before_text,
    better_by,
    change_text,
    first_of,
    in_pairs,
    op_times,
)
from tfcompare.views.steps.dashboard import gap_matters, matters
from tfcompare.views.steps.figures import Gap


def test_op_times_are_sums_over_the_diff():
    (found,) = op_times(samples.diff(), lambda _: "step")
    assert (found.label, found.unit, found.judgement) == ("Host op time per step", "µs", "neither")
    assert found.baseline == pytest.approx(sum(op[2] for op in OPS))
    assert found.candidate == pytest.approx(sum(op[3] for op in OPS))
    assert op_times(samples.diff(schema.OP_STATS.empty(), schema.OP_STATS.empty()), lambda _: "step") == []


def test_a_side_without_device_has_no_device_time():
    both = pd.concat([samples.op_stats(), samples.op_stats(place=schema.DEVICE)], ignore_index=True)
    device, _ = op_times(samples.diff(baseline=both), lambda _: "step")
    assert device.label == "Device op time per step"
    assert math.isnan(device.candidate)
    assert device.judgement == "neither"


@pytest.mark.parametrize(
    ("word", "candidate", "judgement"),
    [
        ("faster", 1000.0, "better"),
        ("slower", 3000.0, "worse"),
        ("faster", 2000.0, "same"),
        ("unclear", 1000.0, "neither"),
        ("same", 1000.0, "neither"),
        ("untested", 1000.0, "neither"),
    ],
)
def test_a_time_is_judged_where_a_verdict_claims_a_change(word: str, candidate: float, judgement: str):
    better = better_by(Verdict(word, "for this test"))
    assert KeyFigure("Step time", "µs", 2000.0, candidate, better, "").judgement == judgement


@pytest.mark.parametrize(
    ("baseline", "candidate", "judgement"),
    [(1000.0, 1001.0, "same"), (1000.0, 2000.0, "worse"), (1000.0, 500.0, "better"), (math.nan, 500.0, "neither")],
)
def test_sizes_are_the_same_where_they_are_nearly(baseline: float, candidate: float, judgement: str):
    assert KeyFigure("Peak memory", "bytes", baseline, candidate, "lower", "").judgement == judgement


@pytest.mark.parametrize(
    ("unit", "before", "after", "said"),
    [
        ("share", 0.25, 0.372, "+12.2 pp"),
        ("share", 0.0025, 0.001, "−0.15 pp"),
        ("share", 0.0113, 0.0112, "−0.01 pp"),
        ("share", 0.0113, 0.01134, "unchanged"),
        ("share", 0.5, 0.5, "unchanged"),
        ("share", 0.000301, 0.000278, "−0.002 pp"),
        ("share", 0.000301, 0.000302, "unchanged"),
        ("share", 0.0, 0.00003, "+0.003 pp"),
        ("ms", 10.0, 5.0, "−50.0 %"),
        ("ms", 5.0, 24.9, "+398 %"),
        ("steps/s", 4.7, 91.8, "19.5×"),
        ("ms", math.nan, 5.0, ""),
        ("ms", 0.0, 5.0, ""),
    ],
)
def test_a_change_is_told_with_digits_that_show_it(unit, before, after, said):
    assert change_text(KeyFigure("x", unit, before, after, "lower", "x")) == said


@pytest.mark.parametrize(
    ("unit", "before", "said"),
    [
        ("share", 0.658, "from 65.8"),
        ("share", 0.00381, "from 0.38"),
        ("share", 0.000906, "from 0.0906"),
        ("share", 0.00003, "from < 0.01"),
        ("share", 0.0, "from 0"),
        ("ms", 213.0, "from 213"),
    ],
)
def test_the_value_before_fits_beside_the_change(unit, before, said):
    assert before_text(KeyFigure("x", unit, before, before / 2, "lower", "x")) == said


def test_the_first_figures_fit_in_a_row_with_what_leads_to_the_others():
    figures = [KeyFigure(str(i), "", 1.0, 2.0, "neither", "") for i in range(MOST_FIRST + 1)]
    assert first_of(figures[:-1]) == figures[:-1], "all of them, so nothing leads to others"
    assert first_of(figures) == figures[: MOST_FIRST - 1]
    without_second = [replace(one, matters=one.label != "1") for one in figures[:3]]
    assert [one.label for one in first_of(without_second)] == ["0", "2"]


def test_no_figure_is_alone_in_a_row_of_two_but_a_single_one():
    figures = [KeyFigure(str(i), "", 1.0, 2.0, "neither", "") for i in range(5)]
    assert [len(in_pairs(figures[:count])) for count in range(6)] == [0, 1, 2, 2, 4, 4]


@pytest.mark.parametrize(
    ("label", "unit", "sides", "better", "expected"),
    [
        ("Step time", "µs", (1000.0, 1000.0), "neither", True),
        ("Input wait", "µs", (0.0, 0.0), "neither", False),
        ("Input wait", "µs", (0.0, 49.0), "neither", False),
        ("Input wait", "µs", (0.0, 50.0), "neither", True),
        ("Input wait", "µs", (math.nan, 50.0), "neither", True),
        ("Input wait", "µs", (10.0, 20.0), "lower", True),
        ("Throughput", "steps/s", (1000.0, 999.0), "neither", False),
        ("Throughput", "steps/s", (1000.0, 900.0), "neither", True),
        ("Examples", "examples/s", (1000.0, 1000.0), "neither", True),
        ("FLOP utilization", "share", (5e-6, 9e-3), "neither", False),
        ("FLOP utilization", "share", (0.2, 9e-3), "neither", True),
        ("Peak memory", "bytes", (1e9, 1e9), "lower", False),
        ("Peak memory", "bytes", (1e9, 2e9), "lower", True),
    ],
)
def test_a_figure_matters_by_its_part_of_the_step_or_where_its_change_is_judged(
    label: str, unit: Unit, sides: tuple[float, float], better: Better, expected: bool
):
    figure = KeyFigure(label, unit, *sides, better, "")
    assert matters(figure, (1000.0, 1000.0), weighs_memory=False) == expected


def test_memory_matters_though_it_did_not_change_where_it_is_weighed_and_all_times_do_without_steps():
    same = KeyFigure("Peak memory", "bytes", 1e9, 1e9, "lower", "")
    assert matters(same, (1000.0, 1000.0), weighs_memory=True)
    assert matters(
        KeyFigure("Device op time", "µs", 1.0, 1.0, "neither", ""), (math.nan, math.nan), weighs_memory=False
    )


@pytest.mark.parametrize(
    ("shares", "is_first"),
    [
        ((0.8,), True),
        ((0.01,), False),
        ((0.8, 0.8), False),
        ((0.8, 0.7), True),
        ((0.01, 0.2), True),
        ((0.0, 0.2), True),
    ],
)
def test_an_idle_gap_is_shown_first_where_it_changed_or_of_a_run_alone_is_long(
    shares: tuple[float, ...], is_first: bool
) -> None:
    sides = [facts(gap=Gap(True, "", "mul", share * STEP_US) if share else None) for share in shares]
    assert gap_matters(sides) == is_first
    assert len(sides) == 1 or gap_matters(sides[::-1]) == is_first, "swapped"
