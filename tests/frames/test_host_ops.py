"""Ops on host threads, by hand."""

from __future__ import annotations

import pytest

from tests.frames.tables import host_ops, lines, ops, run_of
from tests.xspace_builder import Event, event, line, plane, space


def host(*events: Event, at_us: float = 0) -> bytes:
    return space(plane("/host:CPU", line("python", *events, at_us=at_us)))


def test_self_time_is_what_the_ops_within_leave() -> None:
    run = run_of(
        host(
            event("outer:While", 0, 100),
            event("first:Add", 10, 20),
            event("second:Mul", 40, 50),
            event("inner:Sub", 50, 10),
            event("not an op", 51, 5),
            event("apart:Neg", 120, 5),
        )
    )
    assert host_ops(run) == lines("""
        Mul   second  1  50   40
        While outer   1  100  30
        IDLE  IDLE    0  20   20
        Add   first   1  20   20
        Sub   inner   1  10   10
        Neg   apart   1  5    5
    """)


def test_identical_spans_nest_in_file_order() -> None:
    assert host_ops(run_of(host(event("a:A", 0, 10), event("b:B", 0, 10), event("c:C", 0, 10)))) == lines("""
        C     c     1  10  10
        IDLE  IDLE  0  0   0
        A     a     1  10  0
        B     b     1  10  0
    """)


def test_touching_spans_do_not_nest() -> None:
    run = run_of(host(event("a:A", 0, 10), event("b:B", 10, 10), event("nothing:N", 20, 0), event("c:C", 20, 5)))
    assert host_ops(run) == lines("""
        A     a       1  10  10
        B     b       1  10  10
        C     c       1  5   5
        IDLE  IDLE    0  0   0
        N     nothing 1  0   0
    """)


def test_nothing_is_lost_where_spans_overlap_in_part() -> None:
    """xprof loses ops here; ours all count in full, and there is no idle time below the sum of them."""
    run = run_of(host(event("a:A", 0, 10), event("b:B", 5, 10), event("c:C", 6, 2), event("d:D", 12, 8)))
    assert host_ops(run) == lines("""
        A     a     1  10  10
        B     b     1  10  8
        D     d     1  8   8
        C     c     1  2   2
        IDLE  IDLE  0  0   0
    """)


def test_what_two_children_cover_together_is_taken_off_once() -> None:
    """Taken off twice, the 80 µs that b and c share would leave a with −80."""
    run = run_of(host(event("a:A", 0, 100), event("b:B", 0, 90), event("c:C", 10, 90)))
    assert host_ops(run) == lines("""
        B     b     1  90  90
        C     c     1  90  90
        IDLE  IDLE  0  0   0
        A     a     1  100 0
    """)


def test_events_may_stand_in_any_order() -> None:
    events = [event("inner:Sub", 50, 10), event("outer:While", 0, 100), event("second:Mul", 40, 50)]
    assert (
        host_ops(run_of(host(*events)))
        == host_ops(run_of(host(*reversed(events))))
        == lines("""
        While outer  1 100 50
        Mul   second 1 50  40
        Sub   inner  1 10  10
        IDLE  IDLE   0 0   0
    """)
    )


def test_ops_add_up_by_name_over_threads_and_idle_time_is_that_of_each_thread() -> None:
    run = run_of(
        space(
            plane(
                "/host:CPU",
                line("one", event("a:A", 0, 10), event("a:A", 30, 10), at_us=100),
                line("two", event("b:B", 5, 1), event("a:A", 8, 2), at_us=900),
                line("without ops", event("python code", 0, 1000), at_us=5),
            )
        )
    )
    assert host_ops(run) == lines("""
        IDLE  IDLE  0  22  22
        A     a     3  22  22
        B     b     1  1   1
    """)


@pytest.mark.parametrize("first", ["A", "B"])
def test_an_op_is_known_by_its_name_and_has_the_first_type_by_alphabet(first: str) -> None:
    second = "AB".replace(first, "")
    assert host_ops(run_of(host(event(f"a:{first}", 0, 10), event(f"a:{second}", 10, 5)))) == lines("""
        A     a     2  15  15
        IDLE  IDLE  0  0   0
    """)


def test_iterators_of_tf_data() -> None:
    run = run_of(
        host(
            event("Iterator::Root::Map", 0, 10, id=1),
            event("Iterator::Root::Map::Range", 2, 5, id=2, parent_id=1),
            event("Iterator::Root::Map", 20, 10, id=1),
        )
    )
    assert host_ops(run) == lines("""
        Dataset  Iterator::Root::Map         2  20  15
        IDLE     IDLE                        0  10  10
        Dataset  Iterator::Root::Map::Range  1  5   5
    """)


def test_stages_of_an_input_pipeline() -> None:
    """Events that a program marks as such, whatever their name; a stage without a category is none."""
    run = run_of(
        host(
            event("decode", 0, 10, _ipl_stage_id=1, _ipl_stage_cat="Preprocessing"),
            event("decode", 10, 10, _ipl_stage_id=2, _ipl_stage_cat="Preprocessing"),
            event("read:ReadFile", 20, 10, _ipl_stage_id=3, _ipl_stage_cat="Advanced file read"),
            event("other", 40, 10, _ipl_stage_id=4),
        )
    )
    assert host_ops(run) == lines("""
        Preprocessing       decode 2  20  20
        Advanced file read  read:ReadFile  1  10  10
        IDLE                IDLE   0  0   0
    """)


def test_an_allocation_is_no_occurrence_of_the_op_that_it_is_for() -> None:
    """xprof counts every host event whose `tf_op` stat names an op."""
    allocation = event("MemoryAllocation", 2, 0, tf_op="a:A", allocation_bytes=512)
    later = event("MemoryAllocation", 90, 0, tf_op="unseen:B", allocation_bytes=512)
    assert host_ops(run_of(host(event("a:A", 0, 10), allocation, later))) == lines("""
        A     a     1  10  10
        IDLE  IDLE  0  0   0
    """)


def test_derived_lines_are_left_out_by_their_id() -> None:
    derived = [line("python", event("b:B", 0, 10), id=i) for i in (-559038737, -559038332, 0xDEADBEEF, 0x5_DEADBEEF)]
    recorded = [line("Steps", event("a:A", 0, 10), id=i) for i in (-559038738, -559038331, 7)]
    assert host_ops(run_of(space(plane("/host:CPU", *derived, *recorded)))) == lines("""
        A     a     3  30  30
        IDLE  IDLE  0  0   0
    """)


def test_the_first_host_plane_of_exactly_that_name_counts() -> None:
    planes = [plane(name, line("t", event("a:A", 0, 10))) for name in ("/host:CPU", "/host:CPU", "/host:python-tracer")]
    assert host_ops(run_of(space(*planes))) == lines("""
        A     a     1  10  10
        IDLE  IDLE  0  0   0
    """)


def test_a_host_without_ops_has_no_idle_time() -> None:
    assert ops(run_of(host(event("python code", 0, 1000)))) == lines("Host IDLE IDLE 0 0 0")


def test_a_file_without_host_and_devices_has_no_ops() -> None:
    run = run_of(space(plane("Task Environment", stats={"profile_start_time": 5})))
    assert ops(run) == []
    assert run.remarks == ("the profile holds no events",)


def test_hosts_add_up_by_name() -> None:
    one = host(event("a:A", 0, 10), event("b:B", 20, 5))
    two = host(event("b:C", 0, 7), event("a:A", 0, 20), event("other:D", 50, 1))
    assert ops(run_of(one, two)) == lines("""
        Host IDLE  IDLE   0  40  40
        Host A     a      2  30  23
        Host B     b      2  12  12
        Host D     other  1  1   1
    """)
    assert ops(run_of(one, two), host="b") == lines("""
        Host IDLE  IDLE   0  30  30
        Host A     a      1  20  13
        Host C     b      1  7   7
        Host D     other  1  1   1
    """)
