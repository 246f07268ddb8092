"""The sentences and figures on top of the op stats page: sums of one side, by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from tests.compare import compare_runs
from tests.views import chart_samples as samples
from tests.views.chart_samples import FAST, OPS, SLOW
from tfcompare.comparison import compare
from tfcompare.schema import DEVICE, HOST
from tfcompare.text import middle_ellipsis
from tfcompare.views.ops.figures import (
    NAME_LENGTH,
    NO_OPS,
    figures,
    largest_bar,
    matched_time,
    scoped_time,
    sentence,
    sentence_alone,
    side_by_side,
    time_shares,
)

ROWS = side_by_side(samples.diff(), idle=False)
LONGEST = OPS[0][1]


def test_the_sentence_gives_the_sums_and_the_largest_change():
    ours, theirs = (sum(op[side] for op in OPS) for side in (2, 3))
    assert (ours, theirs) == (316_800.0, 16_895.0)
    assert sentence(ROWS, "step").startswith("Self time on the host per step fell from 317 ms to 16.9 ms (−94.7 %).")
    assert sentence(ROWS, "step").endswith(f"Largest change: `{middle_ellipsis(LONGEST, NAME_LENGTH)}` (−116 ms).")


def test_the_sentence_is_about_the_device_if_any_op_ran_there():
    diff = samples.diff(samples.op_stats(SLOW, place=DEVICE), samples.op_stats(FAST, place=DEVICE))
    assert sentence(side_by_side(diff, idle=False), "step").startswith("Self time on the device per step fell")


def test_a_larger_change_on_the_host_is_told_beside_that_on_the_device():
    on_device = samples.op_stats(SLOW, place=DEVICE)
    slow, fast = (pd.concat([samples.op_stats(of, place=HOST), on_device], ignore_index=True) for of in (SLOW, FAST))
    fast.loc[fast["host_or_device"] == DEVICE, "self_time_us"] -= 1.0
    text = sentence(side_by_side(samples.diff(slow, fast), idle=False), "step")
    assert text.startswith("Self time on the device per step fell")
    assert text.endswith(f" Larger on the host: `{middle_ellipsis(LONGEST, NAME_LENGTH)}` (−116 ms).")
    slow_device = samples.diff(samples.op_stats(SLOW, place=DEVICE), samples.op_stats(FAST, place=DEVICE))
    assert "on the host" not in sentence(side_by_side(slow_device, idle=False), "step")


def test_a_run_alone_is_described_by_its_longest_op():
    text = sentence_alone(ROWS, "step")
    assert text.startswith("Self time on the host per step: 317 ms. Longest op: `")
    assert text.endswith("` (37.9 %).")


def test_without_ops_the_sentence_says_so():
    assert sentence(ROWS.iloc[:0], "step") == sentence_alone(ROWS.iloc[:0], "step") == NO_OPS


def test_the_figures_are_sums_and_counts_of_each_side():
    diff = samples.diff(samples.op_stats(SLOW), samples.op_stats(FAST, without="Prefetch"))
    found = {f.label: (f.baseline, f.candidate) for f in figures(side_by_side(diff, idle=False), lambda _: "step")}
    assert found["Self time on host per step"] == pytest.approx((316_800.0, 14_895.0))
    assert found["Ops"] == (12, 11)
    assert "Self time on device per step" not in found


def test_matched_time_has_no_baseline():
    figure = matched_time(0.9, 0.8)
    assert math.isnan(figure.baseline) and figure.candidate == 0.9
    assert "80.0 % under the same name" in figure.meaning


@pytest.mark.parametrize(("sides", "expected"), [(1, 4_000.0), (2, 120_000.0)])
def test_the_largest_bar_is_that_of_the_sides_shown(sides, expected):
    rows = side_by_side(samples.diff(samples.op_stats(FAST), samples.op_stats(SLOW)), idle=False)
    times = time_shares(rows, "op_name", count=20)
    assert largest_bar([times], "self_time_us", sides, as_shares=False) == expected
    assert largest_bar([], "self_time_us", sides, as_shares=False) == 0.0
    assert largest_bar([times], "self_time_us", 1, as_shares=True) == pytest.approx(4_000 / 16_895)


def test_the_share_of_time_in_ops_with_a_scope():
    before = compare_runs.ops("Host MatMul dense/MatMul 1 60\nHost Add add 1 40")
    after = compare_runs.ops("Host MatMul dense/MatMul 1 30\nHost Relu dense/Relu 1 15\nHost Add sum 1 5")
    diff = compare(compare_runs.run("a", before), compare_runs.run("b", after), per="run").table("op_stats")
    assert scoped_time(diff, is_single=False) == (
        "Ops with a name scope: 60.0 % of self time in the baseline, 90.0 % in the candidate."
    )
    assert scoped_time(diff, is_single=True) == "Ops with a name scope: 60.0 % of self time."
    assert scoped_time(diff[diff["status"] == "removed"], is_single=False) == ""
