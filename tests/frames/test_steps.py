"""Steps by hand, from each of their sources, and what ran in them."""

from __future__ import annotations

from itertools import accumulate
from statistics import median

import pytest

from tests.frames.tables import host, lines, marked, op_steps, ops, rows, run_of, run_with, source, steps, threads
from tests.xspace_builder import U64, Event, event, line, meta, plane, space

TWO_STEPS = ["a 7 0 100 counted", "a 8 100 120 counted"]


def test_ops_and_what_is_in_no_step() -> None:
    run = run_with(host(*marked("train", [(0, 100), (100, 120)], _r=1), event("op:A", 500, 3)))
    assert op_steps(run) == ["op 7 1 5", "op 8 1 5"]
    assert ops(run)[1:] == ["Host A op 3 13 13"]


OPS = [event("op:A", at, 5) for at in (5, 65, 110, 190, 210)]
SOURCES = {
    "flagged markers": (marked("train", [(0, 100), (100, 120)], _r=1), "step markers", TWO_STEPS),
    "markers without the flag as Keras 3 writes them": (
        marked("Profiled batch", [(0, 100), (100, 120)]),
        "unflagged step markers (step_num)",
        TWO_STEPS,
    ),
    "flagged markers go before unflagged ones": (
        [*marked("train", [(0, 100)], _r=1), *marked("inner", [(10, 20), (40, 20)])],
        "step markers",
        TWO_STEPS[:1],
    ),
    "trace contexts": (
        [event("TraceContext", 100 * i, 80, graph_type="train", step_num=i) for i in (1, 2)],
        "step markers",
        ["a 1 100 80 counted", "a 2 200 80 counted"],
    ),
    **{
        f"the old name {name}": (
            [event(name, 0, 50), event(name[:-1] + "8", 60, 50)],
            "old-style step markers (train N)",
            ["a 7 0 50 counted", "a 8 60 50 counted"],
        )
        for name in ("train 7", "test_7", "eval 7", "predict 7")
    },
    "names that are no old markers": (
        [event("train", 0, 50), event("training 7", 60, 5), event("train 7b", 70, 5)],
        "whole profile",
        [],
    ),
}


@pytest.mark.parametrize("markers, of, expected", SOURCES.values(), ids=SOURCES)
def test_steps_of_markers(markers: list[Event], of: str, expected: list[str]) -> None:
    run = run_with(host(*markers, *OPS))
    assert (source(run), steps(run)) == (of, expected)


def test_a_trace_context_within_a_marker_is_a_step_of_its_own() -> None:
    context = [event("TraceContext", 20, 60, step_num=9), event("inner:B", 30, 5)]
    run = run_with(host(*marked("train", [(0, 100)], _r=1), *context))
    assert steps(run) == ["a 7 0 100 counted", "a 9 20 60 counted"]
    assert op_steps(run) == ["op 7 1 5", "inner 9 1 5"]


@pytest.mark.parametrize("name", ["train 7", "test_7", "eval 7", "predict 7"])
def test_old_names(name: str) -> None:
    markers = [event(name, 0, 50), event(name[:-1] + "8", 60, 50)]
    run = run_with(host(*markers, event("op:A", 5, 5), event("op:A", 65, 5)))
    assert source(run) == "old-style step markers (train N)"
    assert steps(run) == ["a 7 0 50 counted", "a 8 60 50 counted"]


def test_names_that_are_no_old_markers() -> None:
    others = [event("train", 0, 50), event("training 7", 60, 5), event("train 7b", 70, 5)]
    run = run_with(host(*others, event("op:A", 5, 5)))
    assert (source(run), steps(run)) == ("whole profile", [])


def test_a_steps_line_of_two_devices() -> None:
    """Steps are those of the device that takes longer in all; a kernel is in the step of its own device at its time."""
    kernels = [event("k", t, 2, tf_op="op:A") for t in (1, 12, 21)]
    first = line("Steps", event("41", 0, 10), event("42", 10, 10), id=-559038737)
    second = line("anything", event("41", 0, 15), event("42", 15, 4), id=0xDEADBEEF)
    devices = [
        plane(f"/device:GPU:{i}", of_steps, line("Stream", *kernels)) for i, of_steps in enumerate((first, second))
    ]
    run = run_with(*devices, host(*marked("train", [(0, 5)], _r=1)))
    assert source(run) == "device Steps line"
    assert steps(run) == ["a 41 0 10 counted", "a 42 10 10 counted"]
    assert op_steps(run) == ["op 41 3 6", "op 42 1 2", "op 41 1 5"]


def test_a_steps_line_whose_names_are_no_numbers_is_counted_through() -> None:
    cores = [
        plane(f"/device:TPU:{i}", line("Steps", event("warm up", 5 * i, 5), event("step", 20, 5 + i))) for i in range(2)
    ]
    assert steps(run_with(*cores)) == ["a 0 5 5 counted", "a 1 20 6 counted"]


def test_the_xla_module_that_repeats_on_each_core() -> None:
    def core(number: int, shift: float, length: float) -> bytes:
        modules = [event(f"jit_step({number})", 100 * i + shift, length) for i in range(5)]
        other = [event("jit_init(9)", 50, 30), event("jit_small(8)", 590, 1)]
        op = meta("%a.1", "", program_id=1, symbol_id=1, tf_op="op:A")
        run = line("XLA Ops", *[event(op, 100 * i + shift, 2) for i in range(5)], event(op, 95, 1))
        return plane(f"/device:TPU:{number}", line("XLA Modules", *modules, *other), run)

    run = run_with(core(0, 0, 40), core(1, 10, 30))
    assert source(run) == "XLA module jit_step"
    assert steps(run) == [f"a {i} {100 * i} 40 counted" for i in range(5)]
    assert op_steps(run) == [f"op {i} 2 4" for i in range(5)]


@pytest.mark.parametrize(
    "modules",
    [
        [event("jit_step(1)", 100 * i, 40) for i in range(4)],
        [*(event("jit_step(1)", 100 * i, 4) for i in range(5)), event("jit_init(9)", 500, 50)],
        [],
    ],
    ids=["too few", "too little of the time", "none"],
)
def test_modules_that_mark_no_steps(modules: list[Event]) -> None:
    run = run_with(plane("/device:TPU:0", line("XLA Modules", *modules, event("x", 0, 0))))
    assert source(run) == "whole profile"


def test_without_any_marker_the_whole_profile_is_one() -> None:
    run = run_with(host(event("op:A", 0, 5), event("op:A", 20, 5)))
    assert (source(run), steps(run), run.info.step_count, run.info.has_steps) == ("whole profile", [], 1, False)
    assert run.info.duration_ms == pytest.approx(0.025)
    assert op_steps(run) == ["op 0 2 10"]


@pytest.mark.parametrize("kind", [int, U64])
def test_stored_groups(kind: type[int]) -> None:
    """Files that were grouped before they were written: of the events with a step's name, the longest is its marker."""
    run = run_with(
        host(
            event("root", 0, 100, group_id=kind(5), step_name="31"),
            event("within", 0, 120, group_id=kind(5), step_name="31"),
            event("op:A", 20, 5, group_id=kind(5)),
            event("op:A", 300, 7, group_id=kind(5)),
            event("root", 200, 50, group_id=kind(9), step_name="32"),
            event("op:A", 210, 9, group_id=kind(9)),
            event("op:A", 110, 11),
        )
    )
    assert source(run) == "stored groups"
    assert steps(run) == ["a 31 0 120 counted", "a 32 200 50 counted"]
    assert op_steps(run) == ["op 31 3 23", "op 32 1 9"]


def context(number: int, kind: str) -> Event:
    return event("TraceContext", 100 * number, 90, step_num=number, graph_type=kind)


def stored(number: int, name: str) -> list[Event]:
    at = 100 * number
    return [event("fit", at, 90, group_id=number, step_name=name), event("op:A", at + 20, 5, group_id=number)]


@pytest.mark.parametrize(
    ("markers", "names"),
    [
        ([*marked("fit", [(0, 90)], _r=1), *marked("validate", [(100, 90)], _r=1)], ["fit", "validate"]),
        ([event("train 7", 0, 90), event("test_8", 100, 90)], ["train", "test"]),
        ([event("phase_1", 100 * i, 90, _r=1, step_num=i) for i in (0, 1)], ["phase_1", "phase_1"]),
        (
            [event("resnet50", 0, 90, _r=1, step_num=1), event("resnet34", 100, 90, _r=1, step_num=2)],
            ["resnet50", "resnet34"],
        ),
        ([context(0, "train"), context(1, "test")], ["train", "test"]),
        ([*stored(0, "31"), *stored(1, "test 32")], ["fit", "test"]),
    ],
    ids=["as they are", "old names", "a number that two share", "a number in a word", "contexts", "stored groups"],
)
def test_markers_are_named_without_the_number_of_the_step(markers: list[Event], names: list[str]) -> None:
    run = run_with(host(*markers, event("op:A", 5, 5), event("op:A", 110, 5)))
    assert run.table("steps")["marker"].tolist() == names


@pytest.mark.parametrize(("count", "set_aside"), [(1, []), (5, []), (6, [0, 5]), (7, [0, 6])])
def test_the_first_and_the_last_of_more_than_five_are_set_aside(count: int, set_aside: list[int]) -> None:
    run = run_with(host(*marked("train", [(100 * i, 90 + i) for i in range(count)], _r=1)))
    included = run.table("steps")["included"].tolist()
    assert [i for i, counts in enumerate(included) if not counts] == set_aside
    assert (run.info.step_count, run.info.steps_included) == (count, count - len(set_aside))
    durations = [90 + i for i in range(count) if i not in set_aside]
    assert run.info.step_time_ms_mean == pytest.approx(sum(durations) / len(durations) / 1000)
    assert run.info.step_time_ms_median == pytest.approx(median(durations) / 1000)


def test_a_step_in_which_nothing_was_computed_is_none() -> None:
    idle = [event("train", 200, 50, _r=1, step_num=9), event("IteratorGetNextOp::DoCompute", 201, 40)]
    run = run_with(host(*marked("train", [(0, 100), (100, 90)], _r=1), *idle))
    assert steps(run) == ["a 7 0 100 counted", "a 8 100 90 counted"]


def tracing(at: float) -> list[Event]:
    """A function is traced within the marker of a step, and what it calls as well."""
    called = [event("PjitFunction(tanh)", at + 10, 20), event("ParseArguments", at + 11, 2)]
    python = [event("$partial_eval.py:12 bind", at + 40, 30), event("PythonRefManager::CollectGarbage", at + 50, 1)]
    return [event("body", at, 90, _r=1, step_num=3), *called, *python]


def test_a_step_that_is_only_traced_is_none() -> None:
    """The program runs later, as one whole: no marker is there again."""
    ran = event("op:A", 400, 50)
    run = run_with(host(*tracing(0), ran))
    assert (source(run), steps(run)) == ("whole profile", [])
    assert run.why_untimed.startswith("no op or program runs within the step markers")
    assert run.why_untimed in run.info.warnings
    assert steps(run_with(host(*tracing(0), *marked("train", [(300, 200)], _r=1), ran))) == ["a 7 300 200 counted"]


def test_a_function_of_tensorflow_that_is_only_traced_is_no_step() -> None:
    called = [event("inner", 10, 40, tf_function_call="traced-nonXla"), event("tf.function-graph_building", 12, 30)]
    marker = event("train", 0, 90, _r=1, step_num=3)
    assert steps(run_with(host(marker, *called, event("op:A", 400, 50)))) == []
    assert steps(run_with(host(marker, *called, event("op:A", 60, 20)))) == ["a 3 0 90 counted"]


def test_calls_without_programs_are_steps_where_no_program_was_recorded() -> None:
    run = run_with(host(*tracing(0)))
    assert (steps(run), run.why_untimed) == (["a 3 0 90 counted"], "")
    python = event("$loader.py:5 wait", 10, 60)
    assert steps(run_with(host(*marked("train", [(0, 100)], _r=1), python))), "programs of another thread may run in it"


def test_a_host_without_steps_does_not_leave_the_run_without() -> None:
    """One host trains, the other one only traces."""
    training = space(host(*marked("train", [(0, 100), (100, 120)], _r=1), event("op:A", 5, 5), event("op:A", 110, 5)))
    run = run_of(training, space(host(*tracing(0), event("op:A", 400, 50))))
    assert run.info.step_count == 2 and run.info.has_steps and run.why_untimed == ""
    assert [remark.partition(":")[0] for remark in run.remarks] == ["b"]


def test_a_marker_within_one_of_its_level_is_none() -> None:
    inner = [event("train", 10, 20, _r=1, step_num=99), event("op:A", 11, 5)]
    assert steps(run_with(host(*marked("train", [(0, 100)], _r=1), *inner))) == TWO_STEPS[:1]


def test_a_step_is_as_long_as_its_longest_marker() -> None:
    """Events in the step that are named as markers are, too: here one on another thread, which outlasts it."""
    python = [*marked("train", [(0, 100), (200, 50)], _r=1), event("Schedule", 10, 1, _pt=1, _p=1)]
    run = run_with(threads(python, [event("train_function", 20, 130, _ct=1, _c=1), event("late:B", 140, 5)]))
    assert steps(run) == ["a 7 20 130 counted", "a 8 200 50 counted"]
    assert op_steps(run) == ["op 7 1 5", "op 8 1 5", "late 7 1 5"]


@pytest.mark.parametrize("numbers", [[3, 4, 3], [-5, -4]], ids=["that two steps share", "below zero"])
def test_odd_numbers_give_way_to_positions(numbers: list[int]) -> None:
    markers = [event("train", 100 * i, 90, _r=1, step_num=n) for i, n in enumerate(numbers)]
    run = run_with(host(*markers, *[event("op:A", 100 * i + 1, 5) for i in range(len(numbers))]))
    assert run.table("steps")["step"].tolist() == list(range(len(numbers)))


def test_work_on_other_threads_and_devices_belongs_to_the_step_that_led_to_it() -> None:
    """By what led to it first, wherever it ran; by when it began where nothing did. On the device the first step lasts
    from 150 to 156, which the second waits for."""
    python = [
        event("train", 0, 100, _r=1, step_num=1),
        event("Schedule", 10, 1, _pt=1, _p=1),
        event("cuLaunchKernel", 20, 1, correlation_id=5),
        event("train", 100, 100, _r=1, step_num=2),
        event("op:A", 110, 1),
        event("cuLaunchKernel", 112, 1, correlation_id=6),
    ]
    kernels = [
        event("k", 150, 6, tf_op="late_kernel:D", correlation_id=5),
        event("k", 160, 7, tf_op="unlinked_kernel:E"),
        event("k", 170, 5, tf_op="own_kernel:G", correlation_id=6),
        event("k", 300, 8, tf_op="after_all:F"),
    ]
    on_host = threads(python, [event("late:B", 120, 3, _ct=1, _c=1), event("unlinked:C", 130, 4)])
    run = run_with(on_host, plane("/device:GPU:0", line("Stream", *kernels)))
    assert sorted(op_steps(run)) == lines("""
        late             1  1  3
        late_kernel      1  1  6
        op               2  1  1
        own_kernel       2  1  5
        unlinked         2  1  4
        unlinked_kernel  2  1  7
    """)


def test_functions_begin_groups_of_their_own() -> None:
    """A function run outside of the marker's thread is its own root: what it leads to is in no step but by time."""
    other = [event("FunctionRun", 90, 50, id=3), event("early:B", 95, 2), event("late:C", 120, 2)]
    run = run_with(threads(marked("train", [(0, 100)], _r=1), other))
    assert sorted(op_steps(run)) == ["early 7 1 2", "op 7 1 5"]


@pytest.mark.parametrize(
    ("started", "expected"), [([event("InstantiatedCapturedFunction::Run", 500, 1, id=3)], 7), ([], None)]
)
def test_functions_of_tf_data_begin_none(started: list[Event], expected: int | None) -> None:
    """An op that both a function and a step led to belongs to the function, which came first, unless that is tf.data's:
    known by the id of the run that started it."""
    handed = {"_pt": 1, "_p": 1}
    python = [*marked("train", [(100, 100)], _r=1), event("Schedule", 120, 1, handed)]
    of_tf_data = [event("FunctionRun", 0, 50, id=3), event("Schedule", 10, 1, handed), *started]
    run = run_with(threads(python, of_tf_data, [event("both:B", 300, 5, _ct=1, _c=1)]))
    assert (f"both {expected} 1 5" in op_steps(run)) == (expected is not None)


def test_the_steps_of_several_hosts() -> None:
    one = space(host(*marked("train", [(0, 100), (100, 80), (200, 60)], _r=1)))
    two = space(host(*marked("train", [(50, 90), (150, 95)], _r=1)))
    run = run_of(one, two)
    assert steps(run) == lines("""
        a  7  0    100  counted
        a  8  100  80   counted
        a  9  200  60   set aside
        b  7  50   90   counted
        b  8  150  95   counted
    """)
    assert rows(run.steps, "step", "duration_us", "included") == ["7 100 counted", "8 95 counted", "9 60 set aside"]
    assert steps(run_of(two, one))[:2] == ["a 7 50 90 counted", "a 8 150 95 counted"]
    assert rows(run_of(two, one).steps, "step", "duration_us") == rows(run.steps, "step", "duration_us")


def test_hosts_that_number_their_steps_otherwise_are_put_side_by_side_by_position() -> None:
    one = space(host(*marked("train", [(0, 100), (100, 80)], _r=1)))
    two = space(host(*[event("train", 100 * i, 90, _r=1, step_num=500 + i) for i in range(2)], event("op:A", 1, 1)))
    three = space(host(*marked("train", [(10, 70)], _r=1)))
    assert rows(run_of(one, two).steps, "step", "duration_us") == ["0 100", "1 80"]
    assert rows(run_of(one, three).steps, "step", "duration_us") == ["7 100", "8 80"]


def test_a_step_counts_where_every_host_counts_it() -> None:
    times = [(100.0 * i, 90.0 + i) for i in range(7)]
    run = run_of(*(space(host(*marked("train", some, _r=1))) for some in (times, times[:6])))
    assert run.steps["included"].tolist() == [False, True, True, True, True, False, False]


def test_devices_that_do_not_wait_for_one_another_have_the_steps_of_the_slowest_in_all() -> None:
    """Nearly every step takes 90 on one of them, but none of them takes 90 on average. The third lacks the last."""
    took = [[90, 50] * 3, [40, 90] * 3, [90, 40, 40, 90, 40]]
    starts = [list(accumulate(of[:-1], initial=0)) for of in took]
    cores = [
        plane(f"/device:TPU:{i}", line("XLA Modules", *(event("jit_step(1)", *span) for span in zip(*of, strict=True))))
        for i, of in enumerate(zip(starts, took, strict=True))
    ]
    found = run_with(*cores).table("steps")
    assert found["start_us"].to_list() == starts[0]
    assert found["duration_us"].to_list() == took[0]


def test_a_step_that_the_slowest_device_lacks_is_that_of_the_others() -> None:
    slow = plane("/device:TPU:0", line("Steps", *(event(str(i), 100 * i, 60) for i in range(3))))
    fast = plane("/device:TPU:1", line("Steps", *(event(str(i), 100 * i, 55) for i in range(5))))
    assert [row.split()[1:4] for row in steps(run_with(slow, fast))] == [
        [str(i), str(100 * i), "60" if i < 3 else "55"] for i in range(5)
    ]
