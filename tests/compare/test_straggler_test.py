"""Whether one of several hosts takes longer than the others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tfcompare.compare.stats.host_significance import group_of, slowest, slowest_group
from tfcompare.compare.stats.spread import Spread


def test_the_slowest_host_is_counted_step_by_step() -> None:
    times = np.full((4, 20), 10_000.0)
    times[1] = 15_000.0
    times[2, ::5] = 16_000.0
    found = slowest(times)
    assert (found.position, found.slowest_steps, found.steps) == (1, 16, 20)
    assert found.excess == pytest.approx(5_000)
    assert found.stands_out


def test_hosts_that_take_turns_do_not_stand_out() -> None:
    times = np.full((2, 20), 10_000.0)
    times[0, ::2] = 20_000.0
    times[1, 1::2] = 20_100.0
    assert not slowest(times).stands_out


def test_too_few_steps_are_not_tested() -> None:
    found = slowest(np.array([[10.0] * 8, [20.0] * 8]))
    assert (found.position, found.excess, found.slowest_steps) == (1, 10, 8)
    assert math.isnan(found.p)
    assert not found.stands_out


def test_a_host_without_any_time_is_not_tested() -> None:
    found = slowest(np.array([[0.0] * 20, [20.0] * 20]))
    assert found.excess == 20
    assert not found.stands_out


@pytest.mark.parametrize(("hosts", "named", "not_named"), [(64, 1.03, 1.015), (8, 1.03, 1.015), (7, 1.06, 1.04)])
def test_a_small_excess_is_not_named_however_sure_it_is(hosts: int, named: float, not_named: float) -> None:
    """From eight hosts on, how much they differ is measured, and less is worth naming."""
    times = np.full((hosts, 50), 10_000.0) + np.arange(50)
    for slower in (named, not_named):
        slow = times.copy()
        slow[3] *= slower
        found = slowest(slow, Spread(0.0001, "of this test"))
        assert (found.position, found.longer_steps) == (3, 50)
        assert found.p < 1e-6
        assert found.stands_out == (slower == named)


def test_a_host_stands_out_among_many_that_agree_whatever_spread_is_assumed() -> None:
    rng = np.random.default_rng(8)
    times = 30_000 * np.exp(0.005 * rng.standard_normal((200, 1)) + 0.005 * rng.standard_normal((200, 20)))
    assert not slowest(times).stands_out
    times[7] *= 1.04
    found = slowest(times)
    assert (found.position, found.stands_out) == (7, True)
    assert found.low <= 0.04 * 30_000 <= found.high


def test_a_group_is_named_where_all_of_its_hosts_are_slow() -> None:
    rng = np.random.default_rng(9)
    racks = [range(first, first + 4) for first in range(0, 16, 4)]
    times = 30_000 * np.exp(0.005 * rng.standard_normal((16, 1)) + 0.01 * rng.standard_normal((16, 20)))
    assert slowest_group(times, racks) is None
    slow = times.copy()
    slow[4:8] *= 1.1
    assert slowest_group(slow, racks) == 1
    assert slowest_group(slow[::-1], racks) == 2
    found = group_of(slow, racks[1], len(racks))
    assert found.low <= 0.1 * 30_000 <= found.high
    assert found.slowest_steps == 20
    slow[4:7] /= 1.1
    assert slowest_group(slow, racks) is None, "a single host of it is slow"
    slow[4:8] = 1.1 * times[4:8]
    slow[5] *= 1.4
    assert slowest_group(slow, racks) is None, "one of it is slower than the rest of it by far"


def test_short_times_need_a_larger_excess() -> None:
    times = np.full((3, 20), 1_000.0)
    times[1] *= 1.3
    assert not slowest(times).stands_out
    assert slowest(30 * times).stands_out


def test_equal_hosts_do_not_stand_out() -> None:
    found = slowest(np.full((16, 20), 10.0))
    assert (found.excess, found.p) == (0, 1)
    assert not found.stands_out


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_the_order_of_hosts_and_steps_does_not_matter(scale: float) -> None:
    rng = np.random.default_rng(3)
    times = 30_000 * scale * np.exp(0.02 * rng.standard_normal((5, 20)))
    times[3] *= 1.2
    ours, theirs = slowest(times), slowest(times[::-1])
    assert (ours.position, theirs.position) == (3, 1)
    assert (ours.excess, ours.low, ours.p) == pytest.approx((theirs.excess, theirs.low, theirs.p))
