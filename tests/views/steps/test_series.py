"""A run's steps as one series, and the link to a long step beside a usual one."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from tests.frames.tables import run_of
from tests.views import chart_samples as samples
from tests.views.flat import step_links
from tests.xspace_builder import Event, event, line, plane, space
from tfcompare import schema
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import compare
from tfcompare.tables.step_times import StepCells, on_slowest_host, run_steps
from tfcompare.views.steps.figures import op_by_step, sixteen_bit_share, with_host

OP = pd.DataFrame([{"host_or_device": "Host", "op_type": "MatMul", "op_name": "dense/MatMul"}])


def op_cells(*rows: tuple[str, int, float]) -> StepCells:
    """The step cells of MatMuls from op names, steps and self times."""
    frame = pd.DataFrame(rows, columns=["op_name", "step", "time_us"])
    row, names = pd.factorize(frame["op_name"])
    keys = pd.DataFrame({"host": "all", "host_or_device": "Host", "op_type": "MatMul", "op_name": names})
    return StepCells(keys, frame.assign(row=row, occurrences=1))


def test_each_step_names_the_host_that_took_longest():
    steps = pd.concat([samples.steps([10.0, 30.0, 10.0], "b"), samples.steps([20.0, 20.0, 10.0], "a")])
    series = with_host(run_steps(steps), steps)
    assert series["duration_us"].tolist() == [20.0, 30.0, 10.0]
    assert series["host"].tolist() == ["a", "b", "a"]


def test_a_run_has_the_parts_of_each_step_from_the_host_that_took_longest():
    slow_second = samples.steps([10.0, 30.0, 10.0], "b").assign(input_us=[1.0, 2.0, 3.0], included=[True, True, False])
    slow_first = samples.steps([20.0, 20.0, 10.0], "a").assign(input_us=[4.0, 5.0, 6.0])
    series = on_slowest_host(pd.concat([slow_second, slow_first]))
    assert list(series.columns) == schema.STEPS.column_names
    assert series["duration_us"].tolist() == [20.0, 30.0, 10.0]
    assert series["input_us"].tolist() == [4.0, 2.0, 6.0], "the first host by name where several took equally long"
    assert series["included"].tolist() == [True, True, False], "a step counts where all hosts count it"


def test_hosts_that_number_their_steps_differently_stand_side_by_side_by_position():
    ours, theirs = samples.steps([10.0, 30.0], "a"), samples.steps([20.0, 20.0], "b").assign(step=[700, 701])
    series = on_slowest_host(pd.concat([ours, theirs]))
    assert series["host"].tolist() == ["b", "a"]
    assert series["step"].tolist() == [0, 1]


def test_the_steps_of_one_host_are_themselves_and_no_steps_are_none():
    steps = samples.steps([10.0, 30.0, 10.0])
    assert on_slowest_host(steps).equals(steps)
    assert on_slowest_host(steps.iloc[:0]).empty


def test_the_share_of_16_bits_is_of_what_is_known_and_of_nothing_less_than_half():
    def share(sixteen: float, thirty_two: float) -> float:
        steps = samples.steps([100.0, 100.0])
        return sixteen_bit_share(
            steps.assign(device_compute_us=50.0, device_compute_16_bit_us=sixteen, device_compute_32_bit_us=thirty_two)
        )

    assert share(30.0, 10.0) == 0.75
    assert share(0.0, 25.0) == 0.0
    assert math.isnan(share(10.0, 14.0))
    assert math.isnan(share(math.nan, math.nan))
    assert math.isnan(sixteen_bit_share(samples.steps([])))


def test_an_op_has_zero_in_steps_in_which_it_did_not_run():
    steps = samples.steps([1e3] * 4)
    cells = op_cells(
        ("dense/MatMul", 10, 5.0), ("dense/MatMul", 12, 7.0), ("dense/MatMul", 12, 1.0), ("other", 11, 9.0)
    )
    series = op_by_step(cells, steps, OP)
    assert series["self_time_us"].tolist() == [5.0, 0.0, 8.0, 0.0]
    assert series["occurrences"].tolist() == [1, 0, 2, 0]
    assert series["step"].tolist() == steps["step"].tolist()


def test_an_op_that_no_step_holds_is_zero_throughout():
    assert op_by_step(op_cells(), samples.steps([1e3] * 2), OP)["self_time_us"].tolist() == [0.0, 0.0]


STEPS, LONG = 12, 7


def host(first_step: int, longer_us: float) -> bytes:
    """Steps of 1,000 µs, but for the one at position `LONG`, which is longer; they are numbered from `first_step`."""
    events, at_us = list[Event](), 0.0
    for position in range(1, STEPS + 1):
        length_us = 1_000 + (longer_us if position == LONG else 10 * (position % 3))
        events.append(event("train", at_us, length_us, _r=1, step_num=first_step + position - 1))
        events.append(event("layer:MatMul", at_us + 10, length_us - 20))
        at_us += length_us + 10
    return space(plane("/host:CPU", line("python", *events)))


@pytest.mark.parametrize("first_step", [1, 100])
def test_it_leads_to_the_step_of_the_host_however_hosts_number_theirs(first_step: int) -> None:
    run = run_of(host(1, 3_000), host(first_step, 4_000))
    (pair,) = pairs_of(compare(run, run))
    (link,) = [one for one in step_links(pair) if "usual" in one.label]
    assert link.label.startswith(f"Show step {LONG} beside step ")
    usual, longest = (int(link.parameters[key]) for key in ("step_a", "step_b"))
    assert longest == first_step + LONG - 1
    assert link.label == f"Show step {LONG} beside step {usual - first_step + 1}, a usual one, in timeline"
    steps = run.table("steps", host="b").set_index("step")["duration_us"]
    assert steps[longest] == 5_000
    assert 1_000 <= steps[usual] <= 1_020
