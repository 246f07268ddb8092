"""Instructions of XLA programs on a host's threads, as ops: their names and times."""

from __future__ import annotations

from tests.frames.tables import host_ops, lines, run_of
from tests.hlo.builder import F32, computation, instruction, parameter, program
from tests.xspace_builder import Event, chunk, event, line, meta, plane, space

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


def host(*threads: list[Event], devices: bytes = b"") -> bytes:
    stored = event(meta("step(7)", "", {"Hlo Proto": PROGRAM}), 0, 0)
    lanes = [line(f"thread {number}", *events, id=number) for number, events in enumerate(threads)]
    return space(plane("/host:CPU", *lanes), plane("/host:metadata", line("m", stored))) + devices


def test_an_instruction_counts_for_the_op_that_it_came_from() -> None:
    """A fusion without an op counts for the last one in it; what has none is named after the instruction."""
    events = [ran("conv.1", 0, 10), ran("max_fusion", 10, 20), ran("copy_fusion", 30, 5), ran("conv.1", 40, 10)]
    assert host_ops(run_of(host(events))) == lines("""
        Conv2D  first/Conv2D 2  20  20
        Relu    second/Relu  1  20  20
        IDLE    IDLE         0  5   5
        Unknown copy_fusion  1  5   5
    """)


def test_the_mark_of_an_end_adds_nothing() -> None:
    """A thread writes it after it ran what follows."""
    run = run_of(host([ran("conv.1", 0, 10), ran("max_fusion", 10, 20), event("end: conv.1", 70, 0)]))
    assert host_ops(run) == ["Relu second/Relu 1 20 20", "Conv2D first/Conv2D 1 10 10", "IDLE IDLE 0 0 0"]
    assert run.table("hlo_ops").set_index("hlo_op")["self_time_us"].to_dict() == {"conv.1": 10, "max_fusion": 20}


def test_a_compiled_function_shares_in_the_wall_time_only_while_no_instruction_runs() -> None:
    """From 10 to 60 µs, one thread or the other runs an instruction; from 20 to 30 µs both do."""
    step, function = event("train", 0, 120, _r=1, step_num=1), event(f"{FUNCTION}:{FUNCTION}", 5, 100)
    handed_over, taken = event("schedule", 6, 1, _pt=1, _p=5), event("run", 18, 45, _ct=1, _c=5)
    run = run_of(host([step, function, handed_over, ran("conv.1", 10, 20)], [taken, ran("max_fusion", 20, 40)]))
    ops = run.table("op_stats").set_index("op_name").drop("IDLE")
    assert ops["self_time_us"].to_dict() == {FUNCTION: 80, "second/Relu": 40, "first/Conv2D": 20}
    assert ops["wall_time_us"].to_dict() == {FUNCTION: 50, "second/Relu": 35, "first/Conv2D": 15}


def test_with_devices_events_of_the_host_that_name_an_instruction_are_no_ops() -> None:
    gpu = space(plane("/device:GPU:0", line("Stream #1(Kernel)", event("k", 0, 5), id=1)))
    assert host_ops(run_of(host([ran("conv.1", 0, 10)], devices=gpu))) == ["IDLE IDLE 0 0 0"]


def test_an_instruction_that_is_done_late_has_no_rate() -> None:
    """Its event is not all of its time. A mark belongs to the last start before it."""
    marks = [event("end: conv.1", 500, 0), event("end: max_fusion", 132, 0), event("end: max_fusion", 340, 0)]
    run = run_of(host([ran("conv.1", 0, 10), ran("max_fusion", 20, 100), ran("max_fusion", 200, 120)], marks))
    rates = run.table("hlo_ops").set_index("hlo_op")[["flops_per_s", "bandwidth_bytes_per_s"]]
    assert rates.loc["conv.1"].isna().all() and rates.loc["max_fusion"].notna().all()
    assert run.table("hlo_ops")["operational_intensity"].notna().all()
