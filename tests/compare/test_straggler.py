"""Which host holds the others up, and whether it takes longer than they do."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tfcompare import schema
from tfcompare.compare.stats.host_significance import group_of, slowest, slowest_group
from tfcompare.compare.stats.verdict import Spread
from tfcompare.tables.hosts import steps_of_straggler, straggler


def steps(**hosts: list[tuple[float, float]]) -> pd.DataFrame:
    """For each host (step time, time in device collectives) of each step."""
    rows = [
        {"host": host, "step": number, "duration_us": duration, "device_collectives_us": waiting}
        for host, of_host in hosts.items()
        for number, (duration, waiting) in enumerate(of_host)
    ]
    frame = schema.STEPS.empty().reindex(range(len(rows))).drop(columns=["host", "step"])
    numbers = frame.select_dtypes("number").columns
    frame[numbers] = 0.0
    return frame.assign(included=True, **pd.DataFrame(rows).to_dict("list"))


def test_the_straggler_waits_for_nobody() -> None:
    table = steps(a=[(10_000, 8_000)] * 4, b=[(10_000, 0)] * 4, c=[(10_000, 7_000)] * 4)
    assert straggler(table) == "b"
    assert steps_of_straggler(table)["host"].unique().tolist() == ["b"]


def test_one_host_has_no_straggler_and_its_own_steps() -> None:
    table = steps(a=[(10, 0), (12, 0)])
    assert straggler(table) is None
    assert steps_of_straggler(table)["duration_us"].tolist() == [10, 12]
    assert steps_of_straggler(schema.STEPS.empty()).empty


@pytest.mark.parametrize("missing", ["a", "b"])
def test_steps_that_one_host_lacks_are_not_compared(missing: str) -> None:
    table = steps(a=[(10, 0), (10, 0), (90, 0)], b=[(20, 0), (20, 0), (0, 0)])
    assert straggler(table) == "a"
    assert straggler(table[~((table["host"] == missing) & (table["step"] == 2))]) == "b"


def test_the_slowest_host_is_counted_step_by_step() -> None:
    times = np.full((4, 20), 10_000.0)
    times[1] = 15_000.0
    times[2, ::5] = 16_000.0
    found = slowest(times)
    assert (found.position, found.slowest_steps, found.steps) == (1, 16, 20)
    assert found.excess == pytest.approx(5_000)
    assert found.stands_out


def test_nobody_stands_out_who_takes_turns_is_as_fast_or_was_hardly_measured() -> None:
    turns = np.full((2, 20), 10_000.0)
    turns[0, ::2] = 20_000.0
    turns[1, 1::2] = 20_100.0
    equal, few, no_time = (
        np.full((16, 20), 10.0),
        np.array([[10.0] * 8, [20.0] * 8]),
        np.array([[0.0] * 20, [20.0] * 20]),
    )
    assert not any(slowest(times).stands_out for times in (turns, equal, few, no_time))
    assert (slowest(equal).excess, slowest(equal).p) == (0, 1)
    assert (slowest(few).position, slowest(few).excess, slowest(few).slowest_steps) == (1, 10, 8)
    assert math.isnan(slowest(few).p)
    assert slowest(no_time).excess == 20


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


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_the_order_of_hosts_and_steps_does_not_matter(scale: float) -> None:
    rng = np.random.default_rng(3)
    times = 30_000 * scale * np.exp(0.02 * rng.standard_normal((5, 20)))
    times[3] *= 1.2
    ours, theirs = slowest(times), slowest(times[::-1])
    assert (ours.position, theirs.position) == (3, 1)
    assert (ours.excess, ours.low, ours.p) == pytest.approx((theirs.excess, theirs.low, theirs.p))
