"""Throughput and time between steps: of the time from the first step's start to the last one's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.xspace_builder import event, line, plane, space
from tfcompare import load
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.pairs import pair_with, pairs_of
from tfcompare.compare.side import window_of
from tfcompare.comparison import compare
from tfcompare.run import Run
from tfcompare.tables.step_times import Window, window
from tfcompare.views import answer
from tfcompare.views.steps.figures import window_figures
from tfcompare.views.steps.words import time_between_steps


def of(*steps: tuple[float, float]) -> Window | None:
    return window(pd.DataFrame(steps, columns=["start_us", "duration_us"]))


def known(*steps: tuple[float, float]) -> Window:
    found = of(*steps)
    assert found is not None
    return found


def test_fewer_than_two_steps_have_no_window() -> None:
    assert of() is of((5, 3)) is None


@pytest.mark.parametrize("count", [2, 3, 50])
def test_neither_figure_depends_on_how_many_steps_there_are(count: int) -> None:
    found = known(*((7.0 + 4000 * i, 1000.0) for i in range(count)))
    assert (found.steps_per_s, found.between_us, found.share) == pytest.approx((250, 3000, 0.75))


def test_steps_over_one_another_leave_no_time_between_until_all_have_ended() -> None:
    found = known((0, 900), (400, 100), (1000, 500), (1300, 500), (2000, 9000))
    assert found.gaps_us.tolist() == [0, 100, 0, 200]
    assert found.steps_per_s == pytest.approx(4 / 2000 * 1e6)


def test_steps_that_go_on_after_the_next_has_begun_are_said_to_overlap() -> None:
    apart, over = known((0, 900), (1000, 995), (2000, 900)), known((0, 1500), (1000, 1500), (2000, 1500))
    assert over.steps_per_s * 1500 / 1e6 == pytest.approx(1.5), "step time × throughput"
    assert time_between_steps(apart, apart, has_changed=False) == ""
    said = "Steps overlap: each goes on after the next has begun, for 500 µs (50.0 %) in the "
    assert time_between_steps(apart, over, has_changed=False) == f"{said}candidate."
    assert time_between_steps(over, None, has_changed=False) == f"{said}baseline."


def test_steps_of_a_kind_count_up_to_the_start_of_the_next_step_of_any() -> None:
    steps = pd.DataFrame({"start_us": [0, 10, 30, 40, 70], "duration_us": [8.0, 20, 5, 25, 99]})
    found = window(steps, pd.Series([True, False, True, False, True]))
    assert found is not None
    assert (found.periods_us.tolist(), found.gaps_us.tolist()) == ([10, 10], [2, 5])


def test_unknown_lengths_leave_throughput_known_and_time_between_steps_unknown() -> None:
    found = known((0, np.nan), (50, np.nan), (100, np.nan))
    assert found.steps_per_s == pytest.approx(20_000)
    assert np.isnan(found.between_us) and np.isnan(found.share)


def loop(folder: Path, steps: int, *, step_us: float = 700, every_us: float = 2000) -> Run:
    """Steps of one length at equal distances, in a host's thread."""
    starts = [300 + every_us * i for i in range(steps)]
    events = [
        each
        for i, start in enumerate(starts)
        for each in (event("train", start, step_us, _r=1, step_num=i), event("m:MatMul", start + 1, step_us - 2))
    ]
    place = folder / "plugins" / "profile" / "run"
    place.mkdir(parents=True)
    (place / "vm.xplane.pb").write_bytes(space(plane("/host:CPU", line("python", *events))))
    return replace(load(folder), id=str(folder))


def test_captures_of_one_program_have_one_throughput_whatever_their_length(tmp_path: Path) -> None:
    """Steps that are excluded as the first and last are in the window: nothing lies between those beside them."""
    short, long = loop(tmp_path / "short", 12), loop(tmp_path / "long", 60)
    comparison = compare(long, short)
    figures = {figure.label: figure for figure in window_figures(pair_with(comparison, short.id))}
    for label, value in (("Throughput", 500), ("Between steps, per step", 1300)):
        assert (figures[label].baseline, figures[label].candidate) == pytest.approx((value, value))
    conditions = ("throughput<-0.1%", "throughput>+0.1%", "time_between_steps>+0.1%", "time_between_steps<-0.1%")
    assert {one.outcome for one in check(comparison, list(map(parse_condition, conditions))).found} == {"passed"}


def test_a_range_of_steps_has_the_throughput_of_the_whole(tmp_path: Path) -> None:
    loop(tmp_path / "a", 20)
    for steps in ("3:4", "3:14"):
        found = window_of(load(tmp_path / "a", steps=steps))
        assert found is not None and found.steps_per_s == pytest.approx(500)
    assert window_of(load(tmp_path / "a", steps="3:3")) is None


def headline_of(*sides: list[Run]) -> str:
    """The first sentence on two sides of captures."""
    ours, theirs = sides
    comparison = compare(ours[0], theirs[0], repeats={side[0].id: side[1:] for side in sides})
    (pair,) = pairs_of(comparison)
    return answer.headline(pair)


@pytest.mark.parametrize("captures", [1, 3])
def test_a_loop_that_became_slower_between_equal_steps_leads_the_headline(tmp_path: Path, captures: int) -> None:
    fast, slow = (
        [loop(tmp_path / name / str(i), 30, step_us=700 + i, every_us=every) for i in range(captures)]
        for name, every in (("fast", 750), ("slow", 2250))
    )
    there, back = headline_of(fast, slow), headline_of(slow, fast)
    assert "'s loop is 3.00× slower than " in there
    assert ": 2.25 ms vs 750 µs from step to step (1.55 ms vs " in there
    assert "'s loop is 3.00× faster than " in back
    assert " vs 1.55 ms between steps); " in back
    (failed,) = check(compare(fast[0], slow[0]), [parse_condition("throughput<-5%")]).found
    assert failed.outcome == "failed"


def test_steps_that_became_faster_in_a_loop_that_did_not_do_not_lead_the_headline(tmp_path: Path) -> None:
    long, short = ([loop(tmp_path / str(us), 30, step_us=us)] for us in (1950, 150))
    assert " has 1.85 ms between its steps, " in headline_of(long, short)
    both = [loop(tmp_path / "both", 30, step_us=150, every_us=200)]
    assert headline_of(long, both).startswith("`B` is 13× faster than ")
