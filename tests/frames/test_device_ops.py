"""Ops on GPU streams and TPU cores, on tiny XSpaces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.frames.tables import device_ops, lines, ops, run_of, run_with, threads
from tests.hlo.builder import metadata
from tests.xspace.fuzz_inputs import hlo_proto
from tests.xspace_builder import U64, Event, Line, Meta, Plane, Ref, aggregated, event, line, meta, plane, space
from tfcompare.run import Run


def gpu(*events: Event, number: int = 0, at_us: float = 0) -> Plane:
    return plane(f"/device:GPU:{number}", line("Stream #13(Compute)", *events, id=13, at_us=at_us))


def test_what_names_the_op_of_a_kernel() -> None:
    run = run_with(
        gpu(
            event("k", 0, 1, tf_op="by/tf_op:A", annotation="not:B"),
            event("k", 1, 2, tf_op=Ref("by/ref:A"), name="not:C"),
            event("k", 3, 3, {"level 0": "by/level:Level#shape=(4)#::#edge=x#"}, annotation="not:D"),
            event("k", 6, 4, annotation="by/annotation:Note#id=3#"),
            event("k", 10, 5, tf_op=""),
            event("MemcpyH2D", 15, 6, tf_op="no op but a name"),
            event("Memset 4", 21, 7, annotation="prose"),
            event("jax", 28, 8, tf_op="jit(f)/dot_general:"),
        )
    )
    assert device_ops(run) == lines("""
        dot_general  jit(f)/dot_general  1  8  8
        Unknown      Memset 4            1  7  7
        Unknown      no op but a name    1  6  6
        Unknown      k                   1  5  5
        Note         by/annotation       1  4  4
        Level        by/level            1  3  3
        A            by/ref              1  2  2
        A            by/tf_op            1  1  1
        IDLE         IDLE                0  0  0
    """)


def test_kernels_of_all_devices_and_hosts_add_up_before_the_largest_is_taken() -> None:
    one = space(gpu(event("k1", 0, 1, tf_op="op:A")), gpu(event("k1", 0, 2, tf_op="op:A"), number=1))
    two = space(gpu(event("k1", 0, 4, tf_op="op:A"), event("k2", 4, 8, tf_op="op:A"), number=1))
    run = run_of(one, two)
    assert device_ops(run)[0] == "A op 3 15 15"
    assert device_ops(run, device="/device:GPU:1")[0] == "A op 2 14 14"
    assert device_ops(run, host="a", device="/device:GPU:0")[0] == "A op 1 1 1"


def test_idle_time_is_that_of_each_device_on_one_clock() -> None:
    """From the first start to the last end over all streams, whose own starts count; xprof leaves those out."""
    run = run_with(
        plane(
            "/device:GPU:0",
            line("Stream #1", event("k", 5, 10, tf_op="op:A"), at_us=100),
            line("Stream #2", event("k", 0, 10, tf_op="op:A"), at_us=150),
            line("Stream #3", event("MemcpyH2D", 0, 1, hlo_op="of a program that is not there"), at_us=170),
        ),
        gpu(event("k", 0, 10, tf_op="op:A"), event("k", 5, 10, tf_op="op:A"), number=1),
    )
    assert device_ops(run) == ["IDLE IDLE 0 46 46", "A op 4 40 40"]


def test_instructions_of_programs_that_the_profile_holds() -> None:
    program = hlo_proto(
        ("dot.1", "MatMul", "model/dense/MatMul"), ("copy.2", "", ""), ("odd.3", "", "no op at all?:(x)")
    )
    other = hlo_proto(("dot.1", "", "jit(f)/dot_general"))
    run = run_with(
        gpu(
            event("gemm", 0, 1, hlo_op="dot.1", program_id=7, tf_op="not:This"),
            event("gemm2", 1, 2, hlo_op="main::dot.1", program_id=7),
            event("copy", 3, 4, hlo_op=Ref("copy.2"), program_id=7),
            event("gemm", 7, 8, hlo_op="dot.1", program_id=8),
            event("odd", 15, 16, hlo_op="odd.3", program_id=7),
            event("gone", 31, 32, hlo_op="gone.9", program_id=7),
            event("gone", 63, 64, hlo_op="dot.1", program_id=9),
        ),
        plane(
            "/host:metadata",
            line(
                "", *(event(meta(name, "", hlo_proto=it), 0, 0) for name, it in (("jit_f", program), ("jit_g", other)))
            ),
            ids={"jit_f": 7, "jit_g": 8},
        ),
        plane("elsewhere", line("", event(meta("jit_h", "", hlo_proto=other), 0, 0)), ids={"jit_h": 9}),
    )
    assert device_ops(run) == lines("""
        IDLE         IDLE                0  96  96
        Unknown      odd.3               1  16  16
        dot_general  jit(f)/dot_general  1  8   8
        Unknown      copy.2              1  4   4
        MatMul       model/dense/MatMul  1  3   3
    """)


def compiled(*programs: int) -> Plane:
    """Programs of these ids, each of which has two instructions of one op."""
    proto = hlo_proto(("dot.1", "", "jit(f)/dot_general"), ("dot.2", "", "jit(f)/dot_general"))
    return metadata({f"jit_f({number})": proto for number in programs})


def executed(program: int, at: float) -> list[Event]:
    """One execution of such a program: a kernel that runs twice, another one, and the second instruction."""
    kernels = ("clear", "dot.1"), ("clear", "dot.1"), ("gemm", "dot.1"), ("gemm", "dot.2")
    return [event(k, at + 10 * i, 10, hlo_op=op, program_id=program) for i, (k, op) in enumerate(kernels)]


def occurrences_of_dot(run: Run) -> int:
    return int(run.table("op_stats").set_index("op_name").loc["jit(f)/dot_general", "occurrences"])


@pytest.mark.parametrize(
    "ran, count",
    [([7], 1), ([7] * 5, 5), ([*range(7, 37)], 30), ([7, 8] * 30, 60)],
    ids=["once", "one program", "compiled anew each time", "two programs"],
)
def test_an_op_ran_as_often_as_its_programs_together(ran: list[int], count: int) -> None:
    events = [one for i, number in enumerate(ran) for one in executed(number, 100 * i)]
    assert occurrences_of_dot(run_with(gpu(*events), compiled(*sorted({*ran})))) == count


def test_two_calls_that_are_the_op_itself_are_its_occurrences() -> None:
    """As two layers that call one kernel library: the name of an instruction is that of the op."""
    proto = hlo_proto(("attend.12", "", "jit(f)/attend"), ("attend.18", "", "jit(f)/attend"))
    kernels = [("main", "attend.12"), ("clear", "attend.12"), ("main", "attend.18"), ("clear", "attend.18")] * 5
    events = [event(k, 10 * i, 10, hlo_op=op, program_id=7) for i, (k, op) in enumerate(kernels)]
    ops = run_with(gpu(*events), metadata({"jit_f(7)": proto})).table("op_stats").set_index("op_name")
    assert ops.loc["jit(f)/attend", "occurrences"] == 10


def test_occurrences_of_devices_and_hosts_add_up() -> None:
    one = space(gpu(*executed(7, 0)), gpu(*executed(7, 0), *executed(7, 100), number=1), compiled(7))
    assert occurrences_of_dot(run_of(one)) == 3
    assert occurrences_of_dot(run_of(one, one)) == 6


def test_occurrences_of_steps_and_outside_of_them_add_up_to_those_of_the_op() -> None:
    """Eight steps of one to eight executions, of which the fifth step's are of another program; two before them."""
    host, kernels = [], [*executed(7, 100), *executed(7, 200)]
    for step in range(8):
        at = 1000 * (step + 1)
        host += [event("train", at, 900, _r=1, step_num=step), event("launch", at + 5, 5, correlation_id=step)]
        for i in range(step + 1):
            kernels += [
                replace(one, stats=(*one.stats, ("correlation_id", step)))
                for one in executed(8 if step == 4 else 7, at + 50 + 100 * i)
            ]
    run = run_with(threads(host), gpu(*kernels), compiled(7, 8))
    of_steps = run.table("op_steps").set_index("step")["occurrences"]
    assert of_steps.to_dict() == {step: step + 1 for step in range(8)}
    assert occurrences_of_dot(run) == of_steps.sum() + 2
    included = run.steps.loc[run.steps["included"].astype(bool), "step"]
    inside = run.tables.in_steps("op_stats").set_index("op_name").loc["jit(f)/dot_general", "occurrences"]
    assert inside == of_steps[included].sum() == sum(range(2, 8))


@pytest.mark.parametrize(
    "others",
    [
        [line("TensorFlow Ops", event("op:A", 0, 10), id=-559038737 + i) for i in range(3)],
        [line("_counters_", *(event("sm__cycles", 100 * i, 50, value=i) for i in range(5)), id=99)],
    ],
    ids=["derived lines", "samples of counters"],
)
def test_what_is_no_op_and_no_kernel(others: list[Line]) -> None:
    named_so = line("TensorFlow Ops", event("k", 0, 10, tf_op="op:A"), id=14)
    assert device_ops(run_with(plane("/device:GPU:0", named_so, *others))) == ["A op 1 10 10", "IDLE IDLE 0 0 0"]


def test_device_before_host_and_devices_without_events_are_none() -> None:
    run = run_with(
        threads([event("op:A", 0, 5)]),
        gpu(event("k", 0, 1, tf_op="op:A")),
        plane("/device:GPU:1"),
        plane("/device:CUSTOM:0", line("x", event("k", 0, 50, tf_op="other:B"))),
    )
    assert ops(run) == lines("""
        Device  A     op    1  1  1
        Device  IDLE  IDLE  0  0  0
        Host    A     op    1  5  5
        Host    IDLE  IDLE  0  0  0
    """)
    assert (run.devices, run.info.device_type, run.info.device_count) == (("/device:GPU:0",), "GPU", 1)


def test_many_devices_of_one_name_each_have_their_own_ops() -> None:
    """A damaged profile may have hundreds."""
    devices, kernels = 60, 40
    step = event("train", 0, 2 * kernels, _r=1, step_num=7)
    call = event("cudaLaunchKernel", 0, 0.5, correlation_id=5)
    launched = [event(f"k{i}", 2 * i + 1, 1, tf_op=f"l{i}/MatMul:MatMul", correlation_id=5) for i in range(kernels)]
    run = run_with(threads([step, call]), *[gpu(*launched)] * devices)
    found = run.table("op_stats").query("op_type == 'MatMul'")
    assert sorted(found["op_name"]) == sorted(f"l{i}/MatMul" for i in range(kernels))
    assert set(found["occurrences"]) == set(found["self_time_us"]) == {devices}
    assert run.table("steps")["device_compute_us"].tolist() == [kernels]
    assert len(run.hosts[0].tables["op_parts"]) == devices * kernels


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
