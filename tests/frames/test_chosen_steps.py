"""Steps that begin with a host event one names, and which events are likely to be meant."""

from __future__ import annotations

import pytest

from tests.frames.tables import host, marked, rows, run_of, run_with, source, steps
from tests.xspace_builder import event, line, plane, space
from tfcompare.errors import NoSuchMarker


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
