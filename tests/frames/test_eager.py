"""Which ops ran eagerly: by what stands above them, on their thread and across threads."""

from __future__ import annotations

import pytest

from tests.frames.tables import eager, host, run_with, threads
from tests.xspace_builder import U64, Event, event, line, plane


def flags(*events: Event) -> dict[str, bool]:
    """Whether each op of a thread with these events ran eagerly."""
    return eager(run_with(host(*events)))


def test_the_nearest_execution_decides() -> None:
    python = [
        event("EagerExecute", 0, 30, is_func=0),
        event("eager:A", 1, 2),
        event("EagerExecute", 5, 20, is_func=1),
        event("in_function:B", 6, 2),
        event("EagerExecute", 9, 10, is_func=0),
        event("eager_again:C", 10, 2),
        event("EagerExecute", 100, 30),
        event("not_told:D", 101, 2),
        event("nothing_above:E", 200, 2),
    ]
    found = eager(run_with(threads(python, [event("elsewhere:F", 0, 30)])))
    assert [op for op, ran_eagerly in found.items() if ran_eagerly] == ["eager", "eager_again"]
    assert set(found) == {"eager", "eager_again", "in_function", "not_told", "nothing_above", "elsewhere"}


EXECUTION, OP = event("EagerExecute", 0, 30, is_func=0), event("op:A", 1, 2)
SMALL = {
    "an op that was eager once": ([EXECUTION, OP, event("op:A", 50, 2)], True),
    "a loop that the host drives": ([EXECUTION, OP, event("WhileOp-StartBody", 50, 5)], False),
    # `_a` marks asynchronous events: what lies within them in time need not be theirs.
    "a context of its own": ([event("EagerExecute", 0, 30, is_func=0, _a=1), OP], False),
    **{
        f"{type(flag).__name__} {flag}": ([event("EagerExecute", 0, 30, is_func=flag), OP], False)
        for flag in (1, U64(1), "0")
    },
    **{
        f"{type(flag).__name__} {flag}": ([event("EagerExecute", 0, 30, is_func=flag), OP], True)
        for flag in (0, U64(0))
    },
}


@pytest.mark.parametrize("events, expected", SMALL.values(), ids=SMALL)
def test_whether_one_op_ran_eagerly(events: list[Event], expected: bool) -> None:
    assert flags(*events) == {"op": expected}


@pytest.mark.parametrize(("is_func", "expected"), [(0, True), (1, False)])
def test_work_handed_to_another_thread(is_func: int, expected: bool) -> None:
    """A producer names its consumers by type and id; a region of the thread pool holds what runs between its ends."""
    id_ = U64(1 << 63)
    python = [event("EagerExecute", 0, 30, is_func=is_func), event("Schedule", 2, 5, _pt=3, _p=id_)]
    pool = [
        event("before:A", 90, 5),
        event("ThreadpoolListener::StartRegion", 100, 0, _ct=3, _c=id_),
        event("inside:B", 101, 5),
        event("inside_too:C", 110, 5),
        event("ThreadpoolListener::StopRegion", 120, 0),
        event("after:D", 121, 5),
    ]
    consumer = [event("Run", 50, 10, _ct=3, _c=id_), event("called:E", 51, 2)]
    unrelated = [event("Run", 50, 10, _ct=4, _c=id_), event("other_type:F", 51, 2)]
    unrelated_too = [event("Run", 50, 10, _ct=3, _c=2), event("other_id:G", 51, 2)]
    found = eager(run_with(threads(python, pool, consumer, unrelated, unrelated_too)))
    led_to = dict.fromkeys(("inside", "inside_too", "called"), expected)
    assert found == dict.fromkeys(("before", "after", "other_type", "other_id"), False) | led_to


@pytest.mark.parametrize("function", ["Run", "RunWithBorrowedArgs", "RunInstantiated", "RunAsync"])
def test_functions_that_tf_data_captured_are_functions(function: str) -> None:
    found = flags(
        event("EagerExecute", 0, 90, is_func=0),
        event("get_next:IteratorGetNext", 1, 80),
        event("Iterator::Root::Map", 2, 70),
        event(f"InstantiatedCapturedFunction::{function}", 3, 60),
        event("mapped:Mul", 4, 10),
    )
    assert found == {"get_next": True, "Iterator::Root::Map": False, "mapped": False}


def test_the_eager_execution_of_an_op_is_an_op_and_that_of_a_function_or_of_taking_input_is_none() -> None:
    run = run_with(
        host(
            event("train", 0, 400, step_num=1, _r=1),
            event("TFE_Py_FastPathExecute_C", 1, 98),
            event("EagerExecute", 2, 95, is_func=0),
            event("EagerLocalExecute: MatMul", 3, 90),
            event("EagerExecute", 100, 95, is_func=1),
            event("EagerLocalExecute: __inference_train_step_7", 101, 90),
            event("in_function:Mul", 102, 40),
            event("EagerExecute", 200, 95, is_func=0),
            event("EagerLocalExecute: IteratorGetNext", 201, 90),
            event("EagerLocalExecute: Sum", 300, 50),
            event("train", 500, 100, step_num=2, _r=1),
        )
    )
    assert eager(run) == {"EagerLocalExecute: MatMul": True, "in_function": False}
    row = run.table("op_stats").set_index("op_name").loc["EagerLocalExecute: MatMul"]
    assert row[["op_type", "occurrences", "self_time_us", "wall_time_us"]].tolist() == ["MatMul", 1, 90.0, 90.0]


@pytest.mark.parametrize("kind", [int, U64])
def test_what_a_grouped_file_has_stored_is_used(kind: type[int]) -> None:
    found = flags(
        event("EagerExecute", 0, 90, is_func=0, group_id=1),
        event("stored:A", 1, 2, group_id=1, is_eager=kind(1)),
        event("stored_not:B", 5, 2, group_id=1, is_eager=kind(0)),
        event("not_stored:C", 10, 2, group_id=1),
    )
    assert found == {"stored": True, "stored_not": False, "not_stored": False}


def test_kernels_are_as_eager_as_their_launch() -> None:
    python = host(
        event("EagerExecute", 0, 30, is_func=0),
        event("cuLaunchKernel", 1, 2, correlation_id=7),
        event("EagerExecute", 50, 30, is_func=1),
        event("cuLaunchKernel", 51, 2, correlation_id=U64(8)),
    )
    kernels = [
        event("k1", 100, 5, tf_op="eager:A", correlation_id=U64(7)),
        event("k2", 110, 5, tf_op="in_function:B", correlation_id=8),
        event("k3", 120, 5, tf_op="no_launch:C", correlation_id=9),
        event("k4", 130, 5, tf_op="unlinked:D"),
    ]
    found = eager(run_with(python, plane("/device:GPU:0", line("Stream #1", *kernels))))
    assert found == {"eager": True, "in_function": False, "no_launch": False, "unlinked": False}


def test_an_executor_leads_to_the_iterator_that_it_waits_for() -> None:
    python = [event("EagerExecute", 0, 30, is_func=0), event("ExecutorState::Process", 1, 20, id=5, iter_num=0)]
    other = [
        event("IteratorGetNextOp::DoCompute", 50, 20, id=5, iter_num=0),
        event("waited_for:A", 51, 2),
        event("IteratorGetNextOp::DoCompute", 80, 20, id=5, iter_num=1),
        event("other_iteration:B", 81, 2),
    ]
    assert eager(run_with(threads(python, other))) == {"waited_for": True, "other_iteration": False}
