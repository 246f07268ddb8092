"""The input ops of a pair by category, their shares, and the advice."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from tests.input_runs import BETTER, NAIVE, input_diff
from tests.laws import mostly_thorough
from tests.profiles import EACH_KIND, loaded_run
from tfcompare import compare
from tfcompare.schema import SIDES
from tfcompare.schema.input import ENQUEUING, IN_ADVANCE, INPUT_CATEGORIES, ON_DEMAND, OTHER_INPUT, PREPROCESSING
from tfcompare.views.advice.input_advice import ADVICE, OTHER_PREPARING, PARALLEL_ALREADY, input_category_advice
from tfcompare.views.input.ops import category_times, dominant, host_input_time_us, longest_op, with_shares

ENQUEUED = "infeed enqueuing_to_the_device 5 30 30\nstage other 1 10 10"


def times(categories: pd.DataFrame, role: str) -> dict[str, float]:
    return dict(zip(categories["category"], categories[f"self_time_us_{role}"], strict=True))


def test_time_by_category_in_the_order_of_the_guide():
    categories = category_times(input_diff())
    assert categories["category"].tolist() == [ON_DEMAND, IN_ADVANCE, PREPROCESSING, ENQUEUING]
    assert times(categories, "baseline") == {ON_DEMAND: 200, IN_ADVANCE: 0, PREPROCESSING: 800, ENQUEUING: 0}
    assert times(categories, "candidate") == {ON_DEMAND: 0, IN_ADVANCE: 50, PREPROCESSING: 450, ENQUEUING: 0}
    assert categories["share_baseline"].tolist() == [0.2, 0.0, 0.8, 0.0]


def test_other_is_shown_where_there_is_any():
    categories = category_times(input_diff(NAIVE, ENQUEUED))
    assert categories["category"].tolist() == list(INPUT_CATEGORIES)
    assert times(categories, "candidate")[OTHER_INPUT] == 10


def test_a_side_without_input_ops_has_no_times_instead_of_zeros():
    categories = category_times(input_diff(NAIVE, ""))
    assert categories["self_time_us_candidate"].isna().all()
    assert math.isnan(host_input_time_us(categories, "candidate"))
    assert host_input_time_us(categories, "baseline") == 1000
    assert dominant(categories, "candidate") is None


def test_per_step_figures_are_per_step():
    assert host_input_time_us(category_times(input_diff(steps=10)), "baseline") == 100


def test_swapped_sides_are_the_mirror_image():
    ours, theirs = category_times(input_diff(NAIVE, BETTER)), category_times(input_diff(BETTER, NAIVE))
    for figure in ("self_time_us", "share"):
        assert ours[f"{figure}_baseline"].tolist() == theirs[f"{figure}_candidate"].tolist()
        assert ours[f"{figure}_candidate"].tolist() == theirs[f"{figure}_baseline"].tolist()


def test_what_most_time_goes_to_and_what_to_try():
    assert dominant(category_times(input_diff()), "baseline") == (PREPROCESSING, 0.8)
    assert dominant(category_times(input_diff(NAIVE, ENQUEUED)), "candidate") == (ENQUEUING, 0.75)
    assert set(ADVICE) == set(INPUT_CATEGORIES)


def test_the_longest_op_is_named_as_its_side_names_it():
    diff = input_diff()
    assert longest_op(diff, "baseline", PREPROCESSING) == "Iterator::Root::BatchV2::Map"
    assert longest_op(diff, "candidate", PREPROCESSING) == "Iterator::Root::Prefetch::BatchV2::Map"
    assert longest_op(diff, "candidate", IN_ADVANCE).endswith("::TFRecord")


def test_what_runs_in_parallel_already_is_not_told_to():
    assert input_category_advice(PREPROCESSING, "Iterator::Root::Prefetch::ParallelMapV2") == PARALLEL_ALREADY
    assert input_category_advice(PREPROCESSING, "Iterator::Root::ParallelMapV2::Map") == ADVICE[PREPROCESSING]
    assert input_category_advice(ON_DEMAND, "Iterator::Root::ParallelBatch") == ADVICE[ON_DEMAND]
    assert (
        input_category_advice(PREPROCESSING, "Iterator::Root::Prefetch::ForeverRepeat[0]::TensorSlice")
        == OTHER_PREPARING
    )


def test_shares_are_of_the_self_time_of_a_side():
    rows = with_shares(input_diff()).set_index("op_name")
    name = "Iterator::Root::BatchV2"
    assert rows.loc[name, "input_self_share_baseline"] == pytest.approx(0.1)
    assert rows.loc[name, "input_total_share_baseline"] == pytest.approx(1.0)


def test_ops_that_took_no_time_have_no_share():
    rows = with_shares(input_diff("a preprocessing 1 0 0", "a preprocessing 1 0 0"))
    assert rows[[f"input_self_share_{role}" for role in SIDES]].to_numpy().tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("name", mostly_thorough(EACH_KIND, "filters_16_8", "jax_conv_08"))
def test_on_every_profile_shares_and_categories_add_up_to_the_whole(name):
    run = loaded_run(name)
    diff = compare(run, run, per="run").table("input_pipeline")
    rows, categories, whole = with_shares(diff), category_times(diff), run.table("input_pipeline")["self_time_us"].sum()
    for role in SIDES:
        assert rows[f"input_self_share_{role}"].sum() == pytest.approx(1.0 if whole else 0.0)
        assert categories[f"self_time_us_{role}"].sum() == pytest.approx(whole)
    assert categories["self_time_us_baseline"].equals(categories["self_time_us_candidate"]), "beside itself, no change"
