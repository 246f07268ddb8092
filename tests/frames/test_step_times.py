"""The steps of a run, from those of its hosts."""

from __future__ import annotations

import pandas as pd

from tests.frames.tables import host, run_of
from tests.xspace_builder import event, space
from tfcompare.run import Run
from tfcompare.tables.step_times import positions_in_run, run_steps

ONE_HOST = pd.DataFrame(
    {
        "host": "a",
        "step": [7, 5, 6, 4],
        "start_us": [30.0, 10.0, 20.0, 20.0],
        "duration_us": [3.0, 1.0, 2.0, 9.0],
        "included": [True, False, True, True],
        "stray": [False, False, False, True],
    }
)


def test_steps_are_in_order_of_their_start_and_number_and_a_host_with_the_same_steps_changes_nothing() -> None:
    for steps in (ONE_HOST, pd.concat([ONE_HOST, ONE_HOST.assign(host="b")], ignore_index=True)):
        assert run_steps(steps).to_dict("list") == {
            "step": [5, 4, 6, 7],
            "duration_us": [1.0, 9.0, 2.0, 3.0],
            "included": [False, True, True, True],
            "stray": [False, True, False, False],
        }


def test_positions_count_from_1_in_the_order_of_the_run_and_are_the_same_on_each_host() -> None:
    both = pd.concat([ONE_HOST, ONE_HOST.assign(host="b")], ignore_index=True)
    assert positions_in_run(both).tolist() == [4, 1, 3, 2] * 2
    later = ONE_HOST.sort_values("start_us").assign(host="b", step=[101, 102, 103, 104])
    assert positions_in_run(pd.concat([ONE_HOST.sort_values("start_us"), later])).tolist() == [1, 2, 3, 4] * 2
    assert positions_in_run(ONE_HOST.iloc[:0]).empty


def captured(*hosts: tuple[range, float]) -> Run:
    """Of each host the steps with these numbers, which take so many µs."""
    return run_of(
        *(
            space(
                host(
                    *(
                        e
                        for i in numbers
                        for e in (event("train", 1000.0 * i, took, _r=1, step_num=i), event("x:X", 1000.0 * i, took))
                    )
                )
            )
            for numbers, took in hosts
        )
    )


def test_steps_that_a_host_did_not_record_do_not_count() -> None:
    whole, ended = captured((range(20), 300), (range(20), 500)), captured((range(20), 300), (range(9), 500))
    assert (whole.info.step_time_ms_mean, ended.info.step_time_ms_mean) == (0.5, 0.5)
    assert (whole.info.steps_included, ended.info.steps_included) == (18, 7)


def test_hosts_that_do_other_work_each_count_with_all_of_their_steps() -> None:
    run = captured((range(20), 300), (range(4), 500))
    assert run.info.steps_included == 18
