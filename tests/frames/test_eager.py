"""Which ops ran eagerly: by what stands above them, on their thread and across threads."""

from __future__ import annotations

import pytest

from tests.frames.tables import eager, run_of
from tests.xspace_builder import U64, event, line, plane, space


def test_the_nearest_execution_decides() -> None:
    run = run_of(
        space(
            plane(
                "/host:CPU",
                line(
                    "python",
                    event("EagerExecute", 0, 30, is_func=0),
                    event("eager:A", 1, 2),
                    event("EagerExecute", 5, 20, is_func=1),
                    event("in_function:B", 6, 2),
                    event("EagerExecute", 9, 10, is_func=0),
                    event("eager_again:C", 10, 2),
                    event("EagerExecute", 100, 30),
                    event("not_told:D", 101, 2),
                    event("nothing_above:E", 200, 2),
                ),
                line("other thread", event("elsewhere:F", 0, 30)),
            )
        )
    )
    assert eager(run) == {
        "eager": True,
        "in_function": False,
        "eager_again": True,
        "not_told": False,
        "nothing_above": False,
        "elsewhere": False,
    }


@pytest.mark.parametrize(
    ("is_func", "expected"), [(0, True), (U64(0), True), (1, False), (U64(1), False), ("0", False)]
)
def test_the_flag_of_an_execution_may_be_signed_or_not(is_func: int | str, expected: bool) -> None:
    events = [event("EagerExecute", 0, 30, is_func=is_func), event("op:A", 1, 2)]
    assert eager(run_of(space(plane("/host:CPU", line("python", *events))))) == {"op": expected}


@pytest.mark.parametrize(("is_func", "expected"), [(0, True), (1, False)])
def test_work_handed_to_another_thread(is_func: int, expected: bool) -> None:
    """A producer names its consumers by type and id; a region of the thread pool holds what runs between its ends."""
    run = run_of(
        space(
            plane(
                "/host:CPU",
                line(
                    "python",
                    event("EagerExecute", 0, 30, is_func=is_func),
                    event("Schedule", 2, 5, _pt=3, _p=U64(1 << 63)),
                ),
                line(
                    "pool",
                    event("before:A", 90, 5),
                    event("ThreadpoolListener::StartRegion", 100, 0, _ct=3, _c=U64(1 << 63)),
                    event("inside:B", 101, 5),
                    event("inside_too:C", 110, 5),
                    event("ThreadpoolListener::StopRegion", 120, 0),
                    event("after:D", 121, 5),
                ),
                line("consumer", event("Run", 50, 10, _ct=3, _c=U64(1 << 63)), event("called:E", 51, 2)),
                line("unrelated", event("Run", 50, 10, _ct=4, _c=U64(1 << 63)), event("other_type:F", 51, 2)),
                line("unrelated too", event("Run", 50, 10, _ct=3, _c=2), event("other_id:G", 51, 2)),
            )
        )
    )
    assert eager(run) == {
        "before": False,
        "inside": expected,
        "inside_too": expected,
        "after": False,
        "called": expected,
        "other_type": False,
        "other_id": False,
    }


@pytest.mark.parametrize("function", ["Run", "RunWithBorrowedArgs", "RunInstantiated", "RunAsync"])
def test_functions_that_tf_data_captured_are_functions(function: str) -> None:
    run = run_of(
        space(
            plane(
                "/host:CPU",
                line(
                    "python",
                    event("EagerExecute", 0, 90, is_func=0),
                    event("get_next:IteratorGetNext", 1, 80),
                    event("Iterator::Root::Map", 2, 70),
                    event(f"InstantiatedCapturedFunction::{function}", 3, 60),
                    event("mapped:Mul", 4, 10),
                ),
            )
        )
    )
    assert eager(run) == {"get_next": True, "Iterator::Root::Map": False, "mapped": False}


def test_the_eager_execution_of_an_op_is_an_op_and_that_of_a_function_or_of_taking_input_is_none() -> None:
    run = run_of(
        space(
            plane(
                "/host:CPU",
                line(
                    "python",
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
                ),
            )
        )
    )
    assert eager(run) == {"EagerLocalExecute: MatMul": True, "in_function": False}
    stats = run.table("op_stats").set_index("op_name")
    assert stats.loc["EagerLocalExecute: MatMul", ["op_type", "occurrences"]].tolist() == ["MatMul", 1]
    assert stats.loc["EagerLocalExecute: MatMul", ["self_time_us", "wall_time_us"]].tolist() == [90.0, 90.0]


@pytest.mark.parametrize("kind", [int, U64])
def test_what_a_grouped_file_has_stored_is_used(kind: type[int]) -> None:
    run = run_of(
        space(
            plane(
                "/host:CPU",
                line(
                    "python",
                    event("EagerExecute", 0, 90, is_func=0, group_id=1),
                    event("stored:A", 1, 2, group_id=1, is_eager=kind(1)),
                    event("stored_not:B", 5, 2, group_id=1, is_eager=kind(0)),
                    event("not_stored:C", 10, 2, group_id=1),
                ),
            )
        )
    )
    assert eager(run) == {"stored": True, "stored_not": False, "not_stored": False}


def test_kernels_are_as_eager_as_their_launch() -> None:
    run = run_of(
        space(
            plane(
                "/host:CPU",
                line(
                    "python",
                    event("EagerExecute", 0, 30, is_func=0),
                    event("cuLaunchKernel", 1, 2, correlation_id=7),
                    event("EagerExecute", 50, 30, is_func=1),
                    event("cuLaunchKernel", 51, 2, correlation_id=U64(8)),
                ),
            ),
            plane(
                "/device:GPU:0",
                line(
                    "Stream #1",
                    event("k1", 100, 5, tf_op="eager:A", correlation_id=U64(7)),
                    event("k2", 110, 5, tf_op="in_function:B", correlation_id=8),
                    event("k3", 120, 5, tf_op="no_launch:C", correlation_id=9),
                    event("k4", 130, 5, tf_op="unlinked:D"),
                ),
            ),
        )
    )
    assert eager(run) == {"eager": True, "in_function": False, "no_launch": False, "unlinked": False}


def test_an_executor_leads_to_the_iterator_that_it_waits_for() -> None:
    run = run_of(
        space(
            plane(
                "/host:CPU",
                line(
                    "python",
                    event("EagerExecute", 0, 30, is_func=0),
                    event("ExecutorState::Process", 1, 20, id=5, iter_num=0),
                ),
                line(
                    "other",
                    event("IteratorGetNextOp::DoCompute", 50, 20, id=5, iter_num=0),
                    event("waited_for:A", 51, 2),
                    event("IteratorGetNextOp::DoCompute", 80, 20, id=5, iter_num=1),
                    event("other_iteration:B", 81, 2),
                ),
            )
        )
    )
    assert eager(run) == {"waited_for": True, "other_iteration": False}


def test_loops_that_the_host_drives_switch_this_off() -> None:
    events = [event("EagerExecute", 0, 30, is_func=0), event("op:A", 1, 2)]
    assert eager(run_of(space(plane("/host:CPU", line("t", *events))))) == {"op": True}
    events.append(event("WhileOp-StartBody", 50, 5))
    assert eager(run_of(space(plane("/host:CPU", line("t", *events))))) == {"op": False}


def test_an_op_is_eager_if_it_ever_was() -> None:
    events = [event("EagerExecute", 0, 30, is_func=0), event("op:A", 1, 2), event("op:A", 50, 2)]
    assert eager(run_of(space(plane("/host:CPU", line("t", *events))))) == {"op": True}


def test_events_with_a_context_of_their_own_are_not_nested_by_time() -> None:
    """`_a` marks asynchronous events: what lies within them in time need not be theirs."""
    events = [event("EagerExecute", 0, 30, is_func=0, _a=1), event("op:A", 1, 2)]
    assert eager(run_of(space(plane("/host:CPU", line("t", *events))))) == {"op": False}
