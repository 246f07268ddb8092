"""Which steps are outlying, in words, and what made them long."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.charts import chart_samples as samples
from tests.profiles import SAMPLE_RUNS, loaded_run
from tfcompare.compare.stats.estimates import outlying_steps, typical
from tfcompare.tools.outliers import in_words, outlying, outlying_of

USUAL = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0]


def steps(*durations_us: float, **parts_us: list[float]) -> pd.DataFrame:
    """Steps numbered from 10; the first and the last are set aside, the rest of each is `other`."""
    frame = samples.steps(list(durations_us)).assign(**parts_us)
    given = frame[list(parts_us)].sum(axis=1) if parts_us else 0.0
    return frame.assign(other_us=frame["duration_us"] - given)


def test_what_is_set_aside_is_not_outlying_however_long() -> None:
    frame = steps(9000.0, *USUAL, 9000.0)
    assert not outlying_steps(frame).any()
    assert in_words(outlying_of(frame), "`a`") == ""


def test_the_outlying_steps_are_those_that_the_typical_step_does_not_take_as_they_are() -> None:
    frame = steps(100.0, *USUAL[:4], 400.0, *USUAL[4:], 20.0, 100.0)
    marked = outlying_steps(frame)
    assert np.flatnonzero(marked).tolist() == [5, 10]
    counted = frame.loc[frame["included"], "duration_us"].to_numpy()
    others = frame.loc[frame["included"] & ~marked, "duration_us"].to_numpy()
    edge = 2.5 * 1.4826 * np.median(np.abs(counted - np.median(counted)))
    moved = [*others, np.median(counted) + edge, np.median(counted) - edge]
    assert typical(counted[np.newaxis])[0] == pytest.approx(np.mean(moved))


def test_the_part_that_made_them_long_is_named_with_its_share() -> None:
    inputs = [5.0] * 10
    inputs[4], inputs[6] = 205.0, 85.0
    frame = steps(100.0, *USUAL[:3], 400.0, USUAL[3], 200.0, *USUAL[4:7], input_us=inputs)
    found = outlying_of(frame)
    assert (found.steps, found.counted, found.longer, found.part) == ((14, 16), 8, 2, "input_us")
    assert found.extra_us == pytest.approx(200.0)
    assert found.part_share == pytest.approx((200 + 80) / 400)
    assert in_words(found, "the candidate") == (
        "2 of 8 steps of the candidate are outliers: steps 14, 16 (positions 5, 7). They take 200 µs more than a usual "
        "step on average, 70.0 % of it input."
    )


def test_a_single_one_and_those_that_take_less_have_words_of_their_own() -> None:
    long = steps(100.0, *USUAL[:4], 400.0, *USUAL[4:], 100.0)
    assert in_words(outlying_of(long), "x") == (
        "1 of 9 steps of x is an outlier: step 15 (position 6). It takes 300 µs more than a usual step, all of it time "
        "that nothing explains."
    )
    short = steps(100.0, *USUAL[:4], 20.0, *USUAL[4:], 100.0)
    assert in_words(outlying_of(short), "x").endswith("step 15 (position 6). It takes less than usual.")
    both = steps(100.0, *USUAL[:4], 20.0, 400.0, *USUAL[4:], 100.0)
    assert "steps 15, 16 (positions 6, 7). 1 of them takes 300 µs more than" in in_words(outlying_of(both), "x")
    numbered_alike = both.assign(step=both["step"] - 9)
    assert "steps 6, 7. 1 of them takes" in in_words(outlying_of(numbered_alike), "x")


def test_many_are_not_all_named() -> None:
    frame = steps(100.0, *USUAL * 4, *[400.0] * 8, 100.0)
    assert "8 of 40 steps of x are outliers: steps 43, 44, 45, 46, 47, 48 and 2 more (positions 34, 35," in in_words(
        outlying_of(frame), "x"
    )


@pytest.mark.parametrize("name", SAMPLE_RUNS)
def test_of_real_runs_the_words_are_those_of_the_steps(name: str) -> None:
    run = loaded_run(name)
    found = outlying(run)
    marked = run.steps[outlying_steps(run.steps)]
    assert found.steps == tuple(marked["step"])
    assert found.counted == run.info.steps_included
    assert bool(in_words(found, "x")) == bool(len(marked))
