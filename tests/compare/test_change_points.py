"""Change points of a series: where they are, how large, and what is none."""

from __future__ import annotations

import numpy as np
import pytest

from tfcompare.compare.stats.change_points import FEWEST_RUNS, change_points, change_points_of_family


def noisy(levels: list[tuple[int, float]], noise: float = 0.03, seed: int = 0) -> np.ndarray:
    """So many runs at each level."""
    values = np.concatenate([np.full(runs, level) for runs, level in levels])
    return values * np.exp(noise * np.random.default_rng(seed).standard_normal(len(values)))


def test_a_step_is_found_where_it_is_with_its_size() -> None:
    (point,) = change_points(noisy([(40, 10.0), (20, 12.0)]))
    assert (point.at, point.first, point.end) == (40, 0, 60)
    assert point.low < 1.2 < point.high
    assert point.high / point.low < 1.06
    assert point.p < 1e-6


def test_a_regression_that_was_reverted_has_two_change_points() -> None:
    points = change_points(noisy([(40, 10.0), (10, 12.0), (50, 10.0)]))
    assert [point.at for point in points] == [40, 50]
    assert points[0].ratio > 1 > points[1].ratio
    assert (points[0].end, points[1].first) == (50, 40)
    several = change_points(noisy([(20, 10.0), (20, 12.0), (20, 9.0), (20, 15.0)]))
    assert [point.at for point in several] == [20, 40, 60]


def test_scale_and_order_do_not_matter() -> None:
    values = noisy([(30, 10.0), (30, 12.0)])
    (point,), (larger,), (backwards,) = (change_points(v) for v in (values, 1e6 * values, values[::-1]))
    assert (larger.at, larger.ratio) == (point.at, pytest.approx(point.ratio))
    assert (backwards.at, backwards.ratio) == (30, pytest.approx(1 / point.ratio))


@pytest.mark.parametrize(("strays", "factor"), [([30, 59], 5), ([28, 30, 31], 2)])
def test_strays_are_no_change(strays: list[int], factor: int) -> None:
    values = noisy([(60, 10.0)])
    values[strays] *= factor
    assert change_points(values) == []


def test_short_and_constant_series_have_none() -> None:
    assert change_points(np.array([1.0, 1, 1, 9, 9])) == []
    assert change_points(np.full(50, 3.0)) == []
    assert change_points(np.zeros(0)) == []


def test_bytes_that_never_vary_change_at_once() -> None:
    values = np.array([1e6] * 10 + [1.1e6] * 4)
    (point,) = change_points(values)
    assert (point.at, point.ratio) == (10, pytest.approx(1.1))


def test_a_family_is_tested_together() -> None:
    rows = np.array([noisy([(60, 10.0)], seed=i) for i in range(100)])
    rows[7, 30:] *= 1.2
    found = change_points_of_family(rows)
    assert [i for i, points in enumerate(found) if points] == [7]
    assert found[7][0].at == 30
    assert change_points_of_family(rows[:, : FEWEST_RUNS - 1]) == [[]] * 100
