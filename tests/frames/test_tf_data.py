"""`tf_data` and `tf_data_pipelines` by hand, on tiny XSpaces."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.frames.tables import host
from tests.frames.tf_data_calls import ROOT, A, B, C, D, Found, call, cells, consume, found_in, of_threads, produce
from tests.xspace_builder import U64, Event, Plane, Ref, Value, event, line, plane, space
from tfcompare.schema.input import TF_DATA, TF_DATA_PIPELINES
from tfcompare.xspace import parse


def test_a_call_longer_than_50_us_is_slow() -> None:
    durations = [50, 50.001, 10, 200]
    found = of_threads([call("Root", 1000 * i, d, ROOT) for i, d in enumerate(durations)])
    row = found.pipelines.iloc[0]
    assert (row["calls"], row["slow_calls"]) == (4, 2)
    assert (row["min_latency_us"], row["mean_latency_us"], row["max_latency_us"]) == (10, pytest.approx(77.50025), 200)
    assert found.executions["execution"].to_list() == [0, 1, 2, 3]
    assert found.executions["total_duration_us"].to_list() == [200, 50.001, 50, 10]


def test_pipelines_are_numbered_by_their_first_call() -> None:
    found = of_threads(
        [call("Root", 10, 5, 20), call("Root", 30, 5, 10)], [call("Root", 0, 2, 30), call("Root", 50, 90, 20)]
    )
    assert cells(found.pipelines, "pipeline,calls,max_latency_us") == ["Host:0,1,2.0", "Host:1,2,90.0", "Host:2,1,5.0"]
    assert cells(found.executions, "pipeline,execution,iterator_id") == [
        "Host:0,0,30",
        "Host:1,0,20",
        "Host:1,1,20",
        "Host:2,0,10",
    ]


@pytest.mark.parametrize(
    ("device", "generator", "above"),
    [
        ([call("Prefetch", 0, 90, A)], "Prefetch::Generator", A),  # TensorFlow 2.0 to 2.4
        ([call("Root", 0, 90, A), call("Root::Prefetch", 1, 80, B, A)], "Root::Prefetch::Generator", B),  # 2.21
    ],
)
def test_a_pipeline_that_only_takes_elements_to_a_device_is_not_to_blame(
    device: list[Event], generator: str, above: int
) -> None:
    found = of_threads(
        [*device, consume("Prefetch", 70, 1)],
        [produce("Prefetch", 5, 60, 1), call(generator, 6, 50, C, above)],
        [call("Root", 10, 45, ROOT), call("Root::Map", 11, 40, D, ROOT)],
    )
    assert cells(found.pipelines, "pipeline,feeds_device,bottleneck") == [
        "Device:0,True,",
        "Host:0,False,Iterator::Root::Map",
    ]
    assert found.executions.query("is_bottleneck")["pipeline"].to_list() == ["Host:0"]
    assert "Generator" in set(found.executions["iterator"])


def many(executions: int, most_rows: int) -> Found:
    """Executions of two iterators each, the last one the slowest, and one of another pipeline."""
    roots = [call("Root", 1000 * i, 100 + i, ROOT) for i in range(executions)]
    maps = [call("Root::Map", 1000 * i + 1, 90, A, ROOT) for i in range(executions)]
    return of_threads([*roots, *maps, call("Root", 10**6, 1, B)], most_rows=most_rows)


def test_beyond_so_many_rows_the_slowest_executions_are_kept_and_that_is_said() -> None:
    found = many(150, most_rows=8)
    assert cells(found.pipelines, "pipeline,calls,slow_calls,executions_kept,max_latency_us") == [
        "Host:0,150,150,3,249.0",
        "Host:1,1,0,1,1.0",
    ]
    assert found.executions.query("iterator == 'Root'")["total_duration_us"].to_list() == [249, 248, 247, 1]
    assert found.remarks == ["tf.data, pipeline Host:0: of 150 executions the slowest 3 are shown"]
    whole = many(1500, most_rows=3001)
    assert (len(whole.executions), whole.remarks) == (3001, [])


def test_a_bound_that_leaves_no_execution_leaves_the_pipelines() -> None:
    found = many(3, most_rows=0)
    assert found.executions.empty
    assert cells(found.pipelines, "calls,bottleneck") == ["3,", "1,"]
    assert found.remarks == ["tf.data, 2 pipelines: of 4 executions the slowest 0 are shown"]


def test_what_newer_profiles_tell_besides() -> None:
    prefetch = {"name": Ref("PrefetchDataset:9"), "shapes": "[64,256] [64]", "types": Ref("float int64")}
    tuned: dict[str, Value] = {"autotune": "true", "buffer_size": 256, "ratio": 0.5, "weight": U64(1 << 63)}
    found = of_threads(
        [
            event("IteratorGetNextOp::DoCompute", 0, 100, element_size=66048),
            call("Root", 1, 98, ROOT, algorithm=Ref("DEFAULT"), ram_usage_megabytes="1 out of 2"),
            call("Root::Prefetch", 2, 30, A, ROOT, parallelism="unavailable", **prefetch, **tuned),
            call("Root::Prefetch", 40, 30, A, ROOT, parallelism=2, buffer_limit=4, buffered_elements=3),
            call("Root::Prefetch", 80, 10, A, ROOT, parallelism=1, buffer_limit=8, buffered_elements=3),
            call("Root::Shuffle", 92, 1, B, ROOT, buffer_size=9),
        ]
    )
    told = found.executions.set_index("iterator").loc[:, "parallelism":]  # type: ignore[misc]
    assert told.to_csv(lineterminator="\n").strip() == (
        "iterator,parallelism,buffer_limit,buffered_elements,element_size_bytes,autotune,dataset,shapes,types,settings\n"
        "Root,,,,66048,,,,,algorithm=DEFAULT\n"
        'Prefetch,2,8,2.0,,true,PrefetchDataset:9,"[64,256] [64]",float int64,'
        '"buffer_size=256, ratio=0.5, weight=9223372036854775808"\n'
        "Shuffle,,,0.0,,,,,,buffer_size=9"
    )


def test_a_buffer_of_which_nothing_is_told_is_unknown_where_tf_data_does_not_model_the_pipeline() -> None:
    found = of_threads([call("Root", 0, 9, ROOT), call("Root::Prefetch", 1, 5, A, ROOT, buffer_limit=2)])
    assert found.executions["buffered_elements"].isna().all()
    assert found.executions["buffer_limit"].to_list() == [pd.NA, 2]


def test_texts_are_bounded() -> None:
    long = call("Root::" + "x" * 3000, 1, 5, A, ROOT, note=Ref("y" * 5000))
    executions = of_threads([call("Root", 0, 9, ROOT, shapes="[1]" * 5000), long]).executions
    assert executions[["long_name", "shapes", "settings"]].map(len).max().to_list() == [500, 301, 301]
    assert executions["long_name"].iloc[1].startswith("Iterator::Root::xxx")
    assert executions["long_name"].iloc[1].endswith("xxx")


def test_only_the_hosts_own_threads_count() -> None:
    data = space(
        plane("/host:CPU", line("a", call("Root", 0, 9, ROOT)), line("Steps", call("Root", 0, 9, ROOT), id=0xDEADBEEF)),
        plane("/device:GPU:0", line("b", call("Root", 0, 9, ROOT))),
    )
    assert found_in(parse(data)).pipelines["calls"].to_list() == [1]


@pytest.mark.parametrize(
    "only",
    [
        host(event("MatMul:MatMul", 0, 9)),
        host(call("Root::Map", 0, 9, A), event("Iterator::Root", 0, 9)),
        plane("/device:GPU:0", line("a", call("Root", 0, 9, ROOT))),
        host(),
    ],
)
def test_without_calls_of_a_pipeline_both_tables_are_empty(only: Plane) -> None:
    found = found_in(parse(space(only)))
    pd.testing.assert_frame_equal(found.pipelines, TF_DATA_PIPELINES.empty())
    pd.testing.assert_frame_equal(found.executions, TF_DATA.empty())
    assert found.remarks == []
