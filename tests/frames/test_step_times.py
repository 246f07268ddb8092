"""The steps of a run, from those of its hosts; steps that begin with a chosen host event."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.frames.tables import host, marked, rows, run_of, run_with, source, steps
from tests.xspace_builder import event, line, plane, space
from tfcompare.errors import NoSuchMarker
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
    for table in (ONE_HOST, pd.concat([ONE_HOST, ONE_HOST.assign(host="b")], ignore_index=True)):
        assert run_steps(table).to_dict("list") == {
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


def test_the_marker_that_the_user_names_goes_first() -> None:
    events = [*marked("train", [(0, 100), (100, 100)], _r=1), event("mine", 50, 100), event("op:B", 60, 5)]
    run = run_with(host(*events), step_marker="mine")
    assert (source(run), steps(run)) == ("chosen marker", ["a 0 50 100 counted"])


def test_a_step_that_begins_with_a_chosen_event_lasts_until_the_next_one() -> None:
    calls = [event("call", 100 * i, 5) for i in range(3)]
    beside = plane("/device:GPU:0", line("Stream #1", event("k", 140, 30), event("call", 300, 9)))
    after = [event("op:A", 50, 4), event("op:A", 103, 1), event("b:B", 160, 7), event("op:C", 290, 9)]
    run = run_with(host(*calls, *after), beside, step_marker="call")
    assert steps(run) == ["a 0 0 100 counted", "a 1 100 100 counted", "a 2 200 5 set aside"]
    on_host = run.table("op_steps").query("host_or_device == 'Host'").sort_values(["step", "op_name"])
    assert rows(on_host, "op_type", "step", "self_time_us") == ["A 0 4", "B 1 7", "A 1 1"]
    assert run.table("steps")["device_compute_us"].tolist() == [0, 30, 0]
    many = run_with(host(*(event("call", 100 * i, 5) for i in range(6))), step_marker="call")
    assert many.table("steps")["included"].tolist() == [False, True, True, True, True, False]


def test_a_chosen_event_begins_steps_wherever_it_is_nested() -> None:
    calls = [event("outer", 100 * i, 90) for i in range(2)]
    inner = [event("inner", at + nested, 40 - nested) for at in (10, 50, 110, 150) for nested in (0, 5)]
    run = run_with(host(event("FunctionRun", 0, 190), *calls, *inner, event("op:A", 20, 3)), step_marker="inner")
    assert run.table("steps")["start_us"].tolist() == [10, 50, 110, 150]


def test_steps_begin_with_events_of_every_host_or_of_none() -> None:
    with_it = space(host(*marked("mine", [(0, 100), (100, 120)])))
    without = space(host(*marked("train", [(0, 100), (100, 120)], _r=1)))
    on_device = space(host(event("op:A", 0, 5)), plane("/device:GPU:0", line("Stream #1", event("mine", 0, 5))))
    for other in (without, on_device):
        with pytest.raises(NoSuchMarker, match=r"b.xplane.pb: no event is named 'mine'"):
            run_of(with_it, other, step_marker="mine")
    with pytest.raises(NoSuchMarker, match=r"c.xplane.pb: no event is named 'mine'"):
        run_of(b"damaged", with_it, without, step_marker="mine")


def test_a_marker_that_no_event_has_is_answered_with_likely_ones() -> None:
    events = [made for i in range(3) for made in (event("mine", 20 * i, 9), event("op:A", 20 * i + 1, 1))]
    told = r"a.xplane.pb: no event is named 'their'; a step marker is the name of a host event, such as 'mine', 'op:A'$"
    with pytest.raises(NoSuchMarker, match=told):
        run_with(host(*events), step_marker="their")
    with pytest.raises(NoSuchMarker, match=r"is the name of a host event$"):
        run_with(host(event("mine", 0, 9)), step_marker="their")


def test_of_the_events_that_repeat_on_one_thread_the_longest_are_likely_markers() -> None:
    loop = line(
        "python",
        *(event("step", 100 * i, 80) for i in range(4)),
        *(event("forward", 100 * i, 30) for i in range(4)),
        *(event("instant", 100 * i, 0) for i in range(4)),
        *(event("twice", 100 * i, 90) for i in range(2)),
        *(event("x" * 201, 100 * i, 70) for i in range(4)),
        *(event("everywhere", 100 * i, 85) for i in range(4)),
    )
    beside = line("worker", event("everywhere", 0, 500), *(event("wait", 100 * i, 60) for i in range(4)))
    profile = space(plane("/host:CPU", loop, beside), plane("/host:other", line("x", event("elsewhere", 0, 5))))
    run = run_of(profile)
    assert run.likely_markers == ("step", "wait", "forward")
    chosen = run_of(profile, step_marker="step")
    assert (chosen.likely_markers, chosen.choice.marker) == (run.likely_markers, "step")
    assert chosen.content_id not in (run.content_id, run_of(profile, step_marker="forward").content_id)
    assert run_with(host(*marked("train", [(0, 9), (10, 9), (20, 9)], _r=1))).likely_markers == ()
    assert run_with(plane("/device:GPU:0", line("Stream #1", event("k", 0, 5)))).likely_markers == ()
