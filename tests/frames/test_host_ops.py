"""Ops on a host's threads, and instructions of XLA programs there: their names and times."""

from __future__ import annotations

import pytest

from tests.frames.tables import host_ops, lines, ops, run_of, run_with, threads
from tests.hlo.builder import F32, computation, instruction, parameter, program
from tests.xspace_builder import Event, Plane, chunk, event, line, meta, plane, space


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


OVERLAPS = {
    "identical spans nest in file order": ({"a": (0, 10), "b": (0, 10), "c": (0, 10)}, {"a": 0, "b": 0, "c": 10}),
    "touching spans do not nest": (
        {"a": (0, 10), "b": (10, 10), "n": (20, 0), "c": (20, 5)},
        {"a": 10, "b": 10, "n": 0, "c": 5},
    ),
    # xprof loses ops here; ours all count in full, and there is no idle time below the sum of them.
    "spans that overlap in part": (
        {"a": (0, 10), "b": (5, 10), "c": (6, 2), "d": (12, 8)},
        {"a": 10, "b": 8, "c": 2, "d": 8},
    ),
    # Taken off twice, the 80 µs that b and c share would leave a with −80.
    "children that share time": ({"a": (0, 100), "b": (0, 90), "c": (10, 90)}, {"a": 0, "b": 90, "c": 90}),
}


@pytest.mark.parametrize("spans, expected", OVERLAPS.values(), ids=OVERLAPS)
def test_self_times_of_spans_that_touch_or_overlap(spans: dict[str, tuple[int, int]], expected: dict[str, int]) -> None:
    run = run_of(host(*(event(f"{name}:Op", *span) for name, span in spans.items())))
    rows = run.table("op_stats").set_index("op_name")
    assert rows["self_time_us"].to_dict() == expected | {"IDLE": 0}
    assert rows["total_time_us"].to_dict() == {name: length for name, (_, length) in spans.items()} | {"IDLE": 0}


def test_ops_add_up_by_name_over_threads_and_idle_time_is_that_of_each_thread() -> None:
    one = line("one", event("a:A", 0, 10), event("a:A", 30, 10), at_us=100)
    two = line("two", event("b:B", 5, 1), event("a:A", 8, 2), at_us=900)
    without_ops = line("three", event("python code", 0, 1000), at_us=5)
    run = run_with(plane("/host:CPU", one, two, without_ops))
    assert host_ops(run) == ["IDLE IDLE 0 22 22", "A a 3 22 22", "B b 1 1 1"]


@pytest.mark.parametrize("first", ["A", "B"])
def test_an_op_is_known_by_its_name_and_has_the_first_type_by_alphabet(first: str) -> None:
    second = "AB".replace(first, "")
    assert host_ops(run_of(host(event(f"a:{first}", 0, 10), event(f"a:{second}", 10, 5)))) == [
        "A a 2 15 15",
        "IDLE IDLE 0 0 0",
    ]


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
    assert host_ops(run) == [
        "Preprocessing decode 2 20 20",
        "Advanced file read read:ReadFile 1 10 10",
        "IDLE IDLE 0 0 0",
    ]


RECORDED = [line("Steps", event("a:A", 0, 10), id=i) for i in (-559038738, -559038331, 7)]
DERIVED = [line("python", event("b:B", 0, 10), id=i) for i in (-559038737, -559038332, 0xDEADBEEF, 0x5_DEADBEEF)]
ONE_OP = {
    # xprof counts every host event whose `tf_op` stat names an op.
    "an allocation is no occurrence of the op that it is for": (
        [
            threads(
                [
                    event("a:A", 0, 10),
                    event("MemoryAllocation", 2, 0, tf_op="a:A", allocation_bytes=512),
                    event("MemoryAllocation", 90, 0, tf_op="unseen:B", allocation_bytes=512),
                ]
            )
        ],
        ["A a 1 10 10", "IDLE IDLE 0 0 0"],
    ),
    "derived lines are left out by their id": (
        [plane("/host:CPU", *DERIVED, *RECORDED)],
        ["A a 3 30 30", "IDLE IDLE 0 0 0"],
    ),
    "the first plane of exactly that name counts": (
        [plane(name, RECORDED[0]) for name in ("/host:CPU", "/host:CPU", "/host:python-tracer")],
        ["A a 1 10 10", "IDLE IDLE 0 0 0"],
    ),
    "a host without ops has no idle time": ([threads([event("python code", 0, 1000)])], ["IDLE IDLE 0 0 0"]),
}


@pytest.mark.parametrize("planes, expected", ONE_OP.values(), ids=ONE_OP)
def test_what_is_no_op(planes: list[Plane], expected: list[str]) -> None:
    assert host_ops(run_with(*planes)) == expected


def test_a_file_without_host_and_devices_has_no_ops() -> None:
    run = run_with(plane("Task Environment", stats={"profile_start_time": 5}))
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


SHAPE = F32[64, 64]
FUNCTION = "__inference_step_7"


def named(op_type: str, op_name: str) -> bytes:
    """The metadata of an instruction."""
    return chunk(7, chunk(1, op_type) + chunk(2, op_name))


PROGRAM = program(
    computation(
        1,
        parameter("p", SHAPE),
        instruction("mul", "multiply", SHAPE, "p", "p", others=named("Mul", "first/mul")),
        instruction("max", "maximum", SHAPE, "mul", "p", others=named("Relu", "second/Relu")),
        instruction("copy", "copy", SHAPE, "max"),
    ),
    computation(2, parameter("q", SHAPE), instruction("copy.1", "copy", SHAPE, "q")),
    computation(
        3,
        parameter("r", SHAPE),
        instruction("conv.1", "negate", SHAPE, "r", others=named("Conv2D", "first/Conv2D")),
        instruction("max_fusion", "fusion", SHAPE, "conv.1", calls=(1,)),
        instruction("copy_fusion", "fusion", SHAPE, "max_fusion", calls=(2,)),
    ),
    name="step",
)


def ran(name: str, start_us: float, duration_us: float) -> Event:
    return event(name, start_us, duration_us, {"hlo_op": name, "hlo_module": "step", "program_id": 7})


def host_of_threads(*threads: list[Event], devices: bytes = b"") -> bytes:
    stored = event(meta("step(7)", "", {"Hlo Proto": PROGRAM}), 0, 0)
    lanes = [line(f"thread {number}", *events, id=number) for number, events in enumerate(threads)]
    return space(plane("/host:CPU", *lanes), plane("/host:metadata", line("m", stored))) + devices


def test_an_instruction_counts_for_the_op_that_it_came_from() -> None:
    """A fusion without an op counts for the last one in it; what has none is named after the instruction."""
    events = [ran("conv.1", 0, 10), ran("max_fusion", 10, 20), ran("copy_fusion", 30, 5), ran("conv.1", 40, 10)]
    assert host_ops(run_of(host_of_threads(events))) == lines("""
        Conv2D  first/Conv2D 2  20  20
        Relu    second/Relu  1  20  20
        IDLE    IDLE         0  5   5
        Unknown copy_fusion  1  5   5
    """)


def test_the_mark_of_an_end_adds_nothing() -> None:
    """A thread writes it after it ran what follows."""
    run = run_of(host_of_threads([ran("conv.1", 0, 10), ran("max_fusion", 10, 20), event("end: conv.1", 70, 0)]))
    assert host_ops(run) == ["Relu second/Relu 1 20 20", "Conv2D first/Conv2D 1 10 10", "IDLE IDLE 0 0 0"]
    assert run.table("hlo_ops").set_index("hlo_op")["self_time_us"].to_dict() == {"conv.1": 10, "max_fusion": 20}


def test_a_compiled_function_shares_in_the_wall_time_only_while_no_instruction_runs() -> None:
    """From 10 to 60 µs, one thread or the other runs an instruction; from 20 to 30 µs both do."""
    step, function = event("train", 0, 120, _r=1, step_num=1), event(f"{FUNCTION}:{FUNCTION}", 5, 100)
    handed_over, taken = event("schedule", 6, 1, _pt=1, _p=5), event("run", 18, 45, _ct=1, _c=5)
    run = run_of(
        host_of_threads([step, function, handed_over, ran("conv.1", 10, 20)], [taken, ran("max_fusion", 20, 40)])
    )
    ops = run.table("op_stats").set_index("op_name").drop("IDLE")
    assert ops["self_time_us"].to_dict() == {FUNCTION: 80, "second/Relu": 40, "first/Conv2D": 20}
    assert ops["wall_time_us"].to_dict() == {FUNCTION: 50, "second/Relu": 35, "first/Conv2D": 15}


def test_with_devices_events_of_the_host_that_name_an_instruction_are_no_ops() -> None:
    gpu = space(plane("/device:GPU:0", line("Stream #1(Kernel)", event("k", 0, 5), id=1)))
    assert host_ops(run_of(host_of_threads([ran("conv.1", 0, 10)], devices=gpu))) == ["IDLE IDLE 0 0 0"]


def test_an_instruction_that_is_done_late_has_no_rate() -> None:
    """Its event is not all of its time. A mark belongs to the last start before it."""
    marks = [event("end: conv.1", 500, 0), event("end: max_fusion", 132, 0), event("end: max_fusion", 340, 0)]
    run = run_of(
        host_of_threads([ran("conv.1", 0, 10), ran("max_fusion", 20, 100), ran("max_fusion", 200, 120)], marks)
    )
    rates = run.table("hlo_ops").set_index("hlo_op")[["flops_per_s", "bandwidth_bytes_per_s"]]
    assert rates.loc["conv.1"].isna().all() and rates.loc["max_fusion"].notna().all()
    assert run.table("hlo_ops")["operational_intensity"].notna().all()
