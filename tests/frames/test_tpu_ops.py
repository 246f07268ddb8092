"""Ops on TPU cores, by hand."""

from __future__ import annotations

from tests.frames.tables import device_ops, lines, run_with
from tests.xspace_builder import U64, Event, Meta, aggregated, event, line, meta, plane


def op(name: str, tf_op: str = "", display: str = "", program: int = 5, symbol: int = 9) -> Meta:
    return meta(name, display, program_id=U64(program), symbol_id=U64(symbol), **({"tf_op": tf_op} if tf_op else {}))


def at(what: Meta, start: float, duration: float) -> Event:
    """An event on the device's own clock, its host-clock span being of no use."""
    own = {"device_offset_ps": U64(start * 1e6), "device_duration_ps": U64(duration * 1e6)}
    return event(what, 1000 - start, 77, own)


def core(*ops: Event) -> list[str]:
    """The ops of a core with these events."""
    return device_ops(run_with(plane("/device:TPU:0", line("XLA Ops", *ops, id=3))))


A_OP = event(op("%a.1", "a:A"), 0, 10)


def test_ops_nest_on_the_devices_own_clock() -> None:
    loop, body = op("%while.1", "jit(f)/while:", symbol=1), op("%fusion.2", "model/dense/MatMul:MatMul", symbol=2)
    bare = op("%copy.3 = f32[8]{0} copy(…)", display="copy.3", symbol=3)
    unnamed = op("%copy.4", symbol=4)
    ops = [at(loop, 0, 100), at(body, 10, 20), at(body, 40, 20), at(bare, 70, 5), at(unnamed, 110, 10)]
    others = [line("Steps", at(meta("1"), 0, 150), id=2), line("XLA Modules", at(meta("jit_f(1)"), 0, 500), id=3)]
    run = run_with(plane("/device:TPU:0", line("XLA Ops", *ops, id=1), *others))
    assert device_ops(run) == lines("""
        while    jit(f)/while        1  100  55
        IDLE     IDLE                0  40   40
        MatMul   model/dense/MatMul  2  40   40
        Unknown  %copy.4             1  10   10
        Unknown  copy.3              1  5    5
    """)


def test_lines_of_units_overlays_marks_and_counters_hold_no_ops() -> None:
    """Whatever their events have in common with ops; nor do they lengthen the time in which the device was idle."""
    ops = [event(op("%a.1", "a:A"), 0, 10), event(op("%b.2", "b:B", symbol=8), 20, 10)]
    others = [event(op("%a.1", "a:A"), 0, 10), event(op("%c.3", "c:C", symbol=7), 40, 10)]
    names = ("Tensor Core", "TC Overlay", "XLA TraceMe", "_counters_")
    more = [line(name, *others, id=10 + i) for i, name in enumerate(names)]
    with_others, alone = (
        run_with(plane("/device:TPU:0", line("XLA Ops", *ops, id=3), *further)) for further in (more, [])
    )
    assert device_ops(alone) == ["IDLE IDLE 0 10 10", "A a 1 10 10", "B b 1 10 10"]
    assert device_ops(with_others) == device_ops(alone)
    assert with_others.table("hlo_ops").equals(alone.table("hlo_ops"))


def test_without_a_clock_of_its_own_the_files_counts() -> None:
    half = event(op("%a.1", "a:A"), 0, 10, device_offset_ps=500_000_000)
    run = run_with(plane("/device:TPU:0", line("Framework Ops", half, event(op("%b.2", "b:B"), 15, 5))))
    assert device_ops(run) == ["A a 1 10 10", "IDLE IDLE 0 5 5", "B b 1 5 5"]


def test_device_times_that_cannot_be_are_not_used() -> None:
    odd = [
        event(op("%a.1", "a:A"), 0, 10, device_offset_ps=U64((1 << 64) - 1000), device_duration_ps=U64(1 << 63)),
        event(op("%a.1", "a:A"), 20, 10, device_offset_ps=1 << 62, device_duration_ps=5),
        event(op("%a.1", "a:A"), 30, 10, device_offset_ps=-(1 << 63), device_duration_ps=5),
        event(op("%a.1", "a:A"), 40, 10, device_offset_ps=5, device_duration_ps=-5),
    ]
    assert core(*odd) == ["A a 4 40 40", "IDLE IDLE 0 10 10"]


def test_events_without_program_or_symbol_are_left_out() -> None:
    others = [
        event(meta("%b.2", "", tf_op="b:B", symbol_id=3), 10, 5),
        event(meta("%c.3", "", tf_op="c:C", program_id=5), 20, 5),
        event(op("%d.4", "d:D", symbol=0), 30, 5),
        event(op("%e.5", "e:E", program=0), 40, 1),
        event("%f.6", 50, 5),
    ]
    assert core(A_OP, *others) == ["IDLE IDLE 0 30 30", "A a 1 10 10", "E e 1 1 1"]


def test_aggregated_events_count_as_often_as_they_say() -> None:
    assert core(aggregated(op("%a.1", "a:A"), 12, 30)) == ["A a 12 30 30", "IDLE IDLE 0 0 0"]


def test_instructions_of_one_op_are_its_parts() -> None:
    """An op that two instructions make up ran as often as the one that ran most; cores add up first."""
    parts = [op("%a.1", "a:A", symbol=1), op("%a.2", "a:A", symbol=2)]
    cores = [
        plane(f"/device:TPU:{core}", line("Sparse Core Ops", *[event(parts[i % 2], 10 * i, 5) for i in range(5)]))
        for core in range(2)
    ]
    assert device_ops(run_with(*cores)) == ["A a 6 50 50", "IDLE IDLE 0 40 40"]


def test_gpus_beside_tpus_are_not_looked_at() -> None:
    gpu = plane("/device:GPU:0", line("Stream", event("k", 0, 99, tf_op="other:B")))
    run = run_with(gpu, plane("/device:TPU:0", line("XLA Ops", A_OP)))
    assert device_ops(run) == ["A a 1 10 10", "IDLE IDLE 0 0 0"]
    assert run.info.device_type == "TPU"
