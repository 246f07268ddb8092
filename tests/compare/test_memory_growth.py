"""Memory that grows with every step is found, with the op whose allocations stay live; noise is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import theilslopes

from tests.memory_runs import allocate, free, loaded, step, work
from tests.profiles import EACH_KIND, loaded_run
from tests.xspace_builder import Event
from tfcompare import compare
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.memory_growth import Growth, growth_of, theil_sen
from tfcompare.compare.pairs import pair_with
from tfcompare.run import Run
from tfcompare.views.answer import memory_growth
from tfcompare.views.blocks import Text
from tfcompare.views.steps.attribution import attribution_of
from tfcompare.views.steps.dashboard import dashboard

STEPS = 12


def run_of(logdir: Path, kept: list[int]) -> Run:
    """A run whose step n keeps `kept[n]` bytes of the op `leak`, and takes 300 more for as long as it lasts."""
    events: list[Event] = []
    held = 0
    for number, size in enumerate(kept):
        at = 100.0 * number
        events += [step(number, at, 90), work(at + 5)]
        if size > 0:
            held += size
            events.append(allocate(at + 10, held, size, 0x1000 + number, tf_op="leak", shape="[5]"))
        elif size < 0:
            held += size
            events.append(free(at + 10, held, -size, 0x1000 + number - 1))
        events += [allocate(at + 20, held + 300, 300, 0x9000), free(at + 30, held, 300, 0x9000)]
    return loaded(logdir, *events)


def found(run: Run) -> Growth:
    growth = growth_of(run)
    assert growth is not None
    return growth


def test_a_leak_of_5_bytes_in_every_step_is_5_bytes_per_step(tmp_path: Path) -> None:
    growth = found(run_of(tmp_path, [5] * STEPS))
    assert (growth.bytes_per_step, growth.low, growth.high) == (5, 5, 5)
    assert (growth.memory_id, growth.steps, growth.is_growth) == ("gpu", STEPS - 2, True)
    assert (growth.op_name, growth.shape) == ("leak", "[5]")


def test_a_cache_that_fills_up_in_the_first_steps_is_no_growth(tmp_path: Path) -> None:
    growth = found(run_of(tmp_path, [40, 40, 40, *[0] * (STEPS - 3)]))
    assert (growth.bytes_per_step, growth.is_growth) == (0, False)


def test_a_level_that_goes_up_and_down_is_no_growth(tmp_path: Path) -> None:
    assert not found(run_of(tmp_path, [50, -50] * (STEPS // 2))).is_growth


def test_too_few_steps_or_no_memory_have_none(tmp_path: Path) -> None:
    assert growth_of(run_of(tmp_path / "few", [5, 5, 5])) is None
    assert (
        growth_of(loaded(tmp_path / "none", *(e for n in range(9) for e in (step(n, 9.0 * n, 8), work(9.0 * n)))))
        is None
    )


CHOSEN = ("h100_16_8_command_buffers", "gpu_filters_16_8")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in CHOSEN else pytest.mark.thorough) for name in EACH_KIND]
)
def test_no_profile_at_hand_is_said_to_grow(name: str) -> None:
    growth = growth_of(loaded_run(name))
    assert growth is None or not growth.is_growth
    assert growth is None or growth.low <= growth.bytes_per_step <= growth.high


def test_the_answer_tells_of_it_once_and_the_check_fails(tmp_path: Path) -> None:
    steady, leaking = run_of(tmp_path / "a", [5, *[0] * (STEPS - 1)]), run_of(tmp_path / "b", [5] * STEPS)
    comparison = compare(steady, leaking)
    told, other = memory_growth(pair_with(comparison))
    assert isinstance(told, Text) and isinstance(other, Text)
    assert told.text == (
        "Memory grows by **5 B per step** in B (95 % confidence interval 5 B to 5 B, over 10 steps of `gpu`): "
        "`leak` `[5]` stays live."
    )
    assert other.text == "In A, no growth is certain."
    figures = {one.label: one for one in dashboard(pair_with(comparison), attribution_of(pair_with(comparison)).parts)}
    growth = figures["Memory growth per step"]
    assert (growth.baseline, growth.candidate, growth.unit) == (0, 5, "bytes")
    alone = compare(steady, steady)
    assert not {"Memory growth per step"} & {
        one.label for one in dashboard(pair_with(alone), attribution_of(pair_with(alone)).parts)
    }
    assert not list(memory_growth(pair_with(alone)))
    outcomes = {
        text: check(comparison, [parse_condition(text)]).found[0].outcome
        for text in ("memory_growth>4B", "memory_growth>6B")
    }
    assert outcomes == {"memory_growth>4B": "failed", "memory_growth>6B": "passed"}
    mirrored = check(compare(leaking, steady), [parse_condition("memory_growth>0B")]).found[0]
    assert (mirrored.measured.baseline, mirrored.measured.candidate, mirrored.outcome) == (5, 0, "passed")


@pytest.mark.parametrize("count", [5, 6, 17, 100])
@pytest.mark.parametrize("most", [2, 5, 10**9])
def test_the_slope_and_its_interval_are_those_of_scipy_to_the_digit(count: int, most: int) -> None:
    random = np.random.default_rng(count)
    for _ in range(20):
        steps = np.sort(random.choice(3 * count, count, replace=False)).astype(np.int64)
        levels = random.integers(0, most, count).astype(np.float64)
        levels[-1] = most
        theirs = theilslopes(levels, steps)
        assert theil_sen(levels, steps) == (theirs.slope, theirs.low_slope, theirs.high_slope)
