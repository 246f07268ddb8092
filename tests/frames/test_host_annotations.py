"""`host_annotations`, and the time that they add to the parts of steps: small profiles whose truth is known."""

from __future__ import annotations

import pytest

from tests.frames.tables import rows, run_of, run_with
from tests.xspace_builder import Event, event, line, plane, space
from tfcompare.frames import host_annotations
from tfcompare.frames.host_annotations import gets_input
from tfcompare.run import Run
from tfcompare.schema.ops import ANNOTATION, FUNCTION

TIMES = ("kind", "name", "occurrences", "total_time_us", "self_time_us", "wall_time_us")


def step(number: int, at: float, length: float, **stats: int) -> Event:
    return event("train", at, length, _r=1, step_num=number, **stats)


def host(*events: Event, others: tuple[list[Event], ...] = ()) -> Run:
    """A program with these events on its main thread, and others on threads of a pool."""
    pool = [line(f"tf_Compute/{i}", *each, id=i) for i, each in enumerate(others, 2)]
    return run_with(plane("/host:CPU", line("python", *events, id=1), *pool))


def told(run: Run, *columns: str) -> list[str]:
    return [" ".join(row.split()) for row in rows(run.table("host_annotations"), *(columns or TIMES))]


def shares(run: Run) -> dict[tuple[str, str], float]:
    """The time of each annotation in each part of the steps."""
    found = run.tables.annotation_shares(run.host_names[0]).frame()
    return found.groupby(["name", "step_part"])["wall_time_us"].sum().to_dict()


def test_the_innermost_annotation_has_the_time_in_which_no_op_runs() -> None:
    run = host(
        step(0, 0, 100),
        event("fetch", 5, 60),
        event("decode", 10, 20),
        event("m/MatMul:MatMul", 40, 15),
        event("b/Add:Add", 70, 20),
    )
    assert told(run) == ["annotation fetch 1 60 25 25", "annotation decode 1 20 20 20"]
    assert shares(run) == {("decode", "host_compute_us"): 20, ("fetch", "host_compute_us"): 25}


def test_an_op_on_another_thread_comes_before_the_annotation_on_the_thread_of_the_step() -> None:
    run = host(
        step(0, 0, 100),
        event("call", 0, 80, {"_pt": 1, "_p": 7}),
        others=([event("m/MatMul:MatMul", 10, 30, {"_ct": 1, "_c": 7})],),
    )
    assert told(run, "name", "self_time_us", "wall_time_us") == ["call 80 50"]
    ops = run.tables.op_shares(run.host_names[0]).frame()
    assert ops["wall_time_us"].tolist() == [30]


def test_a_function_is_part_of_the_annotation_around_it_and_names_time_outside_of_annotations() -> None:
    run = host(
        step(0, 0, 100),
        event("$train.py:10 step", 0, 90),
        event("load_batch", 10, 40),
        event("$loader.py:12 decode", 15, 30),
        event("m/MatMul:MatMul", 50, 20),
    )
    assert told(run) == [
        "Python function train.py step 1 90 30 30",
        "annotation load_batch 1 40 40 40",
        "Python function loader.py decode 1 30 30 0",
    ]


def test_a_function_that_gets_input_has_the_time_of_those_within_it() -> None:
    run = host(
        step(0, 0, 100),
        event("$dataloader.py:701 __next__", 0, 60),
        event("$dataloader.py:757 _next_data", 2, 56),
        event("$threading.py:589 wait", 5, 50),
        event("m/MatMul:MatMul", 60, 20),
    )
    assert shares(run) == {("dataloader.py __next__", "host_compute_us"): 60}
    assert told(run, "name", "self_time_us")[-1] == "threading.py wait 50"


def test_the_line_of_a_function_is_no_part_of_its_name() -> None:
    run = host(step(0, 0, 100), event("$a.py:1 f", 0, 10), event("$a.py:2 f", 20, 10), event("$builtins len", 40, 1))
    assert told(run, "name", "occurrences") == ["a.py f 2", "builtins len 1"]


def test_what_the_runtime_records_is_no_annotation_nor_what_is_within_it() -> None:
    run = host(
        step(0, 0, 100),
        event("PjitFunction(f)", 0, 50),
        event("PjRtCpuLoadedExecutable::Execute", 5, 40),
        event("loop_add_fusion", 10, 5),
        event("m/MatMul:MatMul", 60, 10),
    )
    assert told(run) == []


def test_threads_that_run_python_are_known_by_their_events_or_names() -> None:
    run = run_with(
        plane(
            "/host:CPU",
            line("main/1", step(0, 0, 100), event("m/MatMul:MatMul", 60, 10), id=1),
            line("main/2", event("background", 0, 30), id=2),
            line("loader", event("$loader.py:1 run", 0, 50), event("read", 10, 20), id=3),
            line("pjrt-tasks/4", event("Linearize", 0, 90), id=4),
        )
    )
    assert told(run, "name", "self_time_us", "wall_time_us") == ["loader.py run 30 0", "background 30 0", "read 20 0"]


def test_only_what_is_on_the_thread_of_the_marker_adds_to_the_step() -> None:
    run = run_with(
        plane(
            "/host:CPU",
            line("python", step(0, 0, 100), event("wait", 0, 40), event("m/MatMul:MatMul", 60, 10), id=1),
            line("python", event("background", 0, 90), id=2),
        )
    )
    assert shares(run) == {("wait", "host_compute_us"): 40}


def test_a_device_at_work_explains_the_time_in_which_the_host_loads() -> None:
    kernel = event("gemm", 10, 30, correlation_id=1, tf_op="m/MatMul:MatMul")
    run = run_of(
        space(
            plane(
                "/host:CPU",
                line(
                    "python",
                    step(0, 0, 100),
                    event("m/MatMul:MatMul", 0, 8),
                    event("cuLaunchKernel", 2, 4, correlation_id=1),
                    event("load_batch", 20, 50),
                ),
            ),
            plane("/device:GPU:0", line("Stream #7(Compute)", kernel)),
        )
    )
    assert shares(run) == {("load_batch", "host_compute_us"): 30}


def test_without_steps_the_wall_time_is_missing() -> None:
    run = host(event("PjitFunction(f)", 0, 5), event("load_batch", 10, 20))
    assert told(run) == ["annotation load_batch 1 20 20 nan"]


def test_of_a_chosen_marker_the_marker_is_no_annotation() -> None:
    events = [one for i in range(3) for one in (event("loop", 100 * i, 90), event("load_batch", 100 * i + 10, 20))]
    run = run_with(plane("/host:CPU", line("python", *events, event("m/MatMul:MatMul", 50, 10))), step_marker="loop")
    assert told(run, "name", "occurrences") == ["load_batch 3"]


def test_the_longest_names_are_kept_and_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_annotations, "MOST_NAMES", 2)
    run = host(
        step(0, 0, 100), *(event(f"batch {i}", 10 * i, 1 + i) for i in range(5)), event("m/MatMul:MatMul", 90, 5)
    )
    assert told(run, "name") == ["batch 4", "batch 3"]
    assert run.remarks == ("annotations and Python functions beyond the 2 longest are left out: 3",)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        *(
            (ANNOTATION, name, True)
            for name in (
                "load_batch",
                "LoadBatch",
                "next(iterator)",
                "data",
                "get next batch",
                "input_pipeline",
                "dataloader",
                "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                "PrefetchIterator",
                "wait_for_data",
            )
        ),
        *(
            (ANNOTATION, name, False)
            for name in (
                *("forward", "train_on_batch", "load_checkpoint", "save data shard", "sample_token", "123"),
                *("get_batch_norm_stats", "BatchNormalization.get_data", "make_data_parallel", "get_data_sharding"),
                *("prefetch weights", "load_input_params", "get_batch_size", "get_input_mask"),
            )
        ),
        *(
            (FUNCTION, name, True)
            for name in (
                *("loader.py __next__", "dataloader.py _try_get_data", "main.py load_batch", "main.py batches"),
                *("iterator_ops.py __next__", "data_loader.py __next__", "my_dataset.py _next_data"),
                "main.py get_batch",
            )
        ),
        *(
            (FUNCTION, name, False)
            for name in (
                "main.py train",
                "builtins next",
                "threading.py wait",
                "data.py save",
                "std.py __next__",
                "train.py __next__",
                "layer.py _get_input_masks",
                "functional.py _get_input_data",
                "nn.py get_batch_norm",
            )
        ),
    ],
)
def test_what_gets_input_is_known_by_its_name(kind: str, name: str, expected: bool) -> None:
    assert gets_input(kind, name) is expected


def test_what_runs_between_steps_on_the_thread_of_their_markers_is_known() -> None:
    steps = [
        one
        for number in range(3)
        for one in (
            event("next(iterator)", 100 * number, 30),
            step(number, 100 * number + 40, 50),
            event("m/MatMul:MatMul", 100 * number + 45, 20),
        )
    ]
    loop = event("$train.py:3 main", 0, 300)
    other = line("python", event("load_batch", 0, 300), id=2)
    run = run_with(plane("/host:CPU", line("python", loop, *steps, id=1), other))
    assert rows(run.tables.annotation_shares("a").frame(), "name", "step", "step_part", "wall_time_us") == [
        "train.py main -1  40",
        "next(iterator) -1  60",
    ]
    assert told(run, "name", "wall_time_us")[:2] == ["train.py main 0", "load_batch 0"]


def test_where_steps_are_those_of_the_device_the_program_may_load_between_them() -> None:
    on_host = [
        one
        for at in (0, 100, 200)
        for one in (
            step(at, at, 50),
            event("load_batch", at, 30),
            event("m/MatMul:MatMul", at + 35, 12),
            event("cuLaunchKernel", at + 40, 4, correlation_id=at + 1),
        )
    ]
    kernels = [event("gemm", at + 45, 50, correlation_id=at + 1) for at in (0, 100, 200)]
    run = run_with(
        plane("/host:CPU", line("python", *on_host)), plane("/device:GPU:0", line("Stream #7(Compute)", *kernels))
    )
    assert run.table("steps")["duration_us"].tolist() == [50, 50, 50]
    assert rows(run.tables.annotation_shares("a").frame(), "name", "step", "step_part", "wall_time_us") == [
        "load_batch -1  60"
    ]
