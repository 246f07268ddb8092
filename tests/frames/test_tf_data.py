"""`tf_data` and `tf_data_pipelines`, and which call of tf.data led to which, on tiny XSpaces."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames.tables import host
from tests.frames.tf_data_calls import ROOT, A, B, C, D, E, Found, call, cells, consume, found_in, of_threads, produce
from tests.laws import law
from tests.xspace_builder import U64, Event, Plane, Ref, Value, event, line, plane, space
from tfcompare.frames.tf_data.tf_data_executions import MOST_ROWS
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


TIMES = "execution,iterator,parent_id,calls,start_us,total_duration_us,self_time_us,on_critical_path,is_bottleneck"


def test_time_is_taken_off_for_what_lies_directly_within() -> None:
    found = of_threads(
        [
            call("Root", 0, 100, ROOT),
            call("Root::Batch", 5, 90, A, ROOT),
            call("Root::Batch::Map", 10, 40, B, A),
            call("Root::Batch::Map::Range", 12, 1, C, B),
            call("Root::Batch::Map", 55, 25, B, A),
            call("Root::Batch::Map::Range", 56, 2, C, B),
        ]
    )
    assert cells(found.executions, TIMES) == [
        "0,Root,,1,0.0,100.0,10.0,True,False",
        "0,Batch,1,1,5.0,90.0,25.0,True,False",
        "0,Map,2,2,10.0,65.0,62.0,True,True",
        "0,Range,3,2,12.0,3.0,3.0,True,False",
    ]
    latencies = "calls,slow_calls,min_latency_us,mean_latency_us,max_latency_us"
    assert cells(found.pipelines, f"pipeline,{latencies},bottleneck,bottleneck_self_time_us") == [
        "Host:0,1,1,100.0,100.0,100.0,Iterator::Root::Batch::Map,62.0"
    ]
    names = ["Root", "Root::Batch", "Root::Batch::Map", "Root::Batch::Map::Range"]
    assert list(found.executions["long_name"]) == [f"Iterator::{name}" for name in names]


def ahead(*, made: tuple[float, float], taken: tuple[float, float], element: int = 7) -> Found:
    """A prefetch: its element is made by a Map on a thread of its own in one span, and taken in another."""
    return of_threads(
        [
            call("Root", taken[0], taken[1], ROOT),
            call("Root::Prefetch", taken[0] + 2, taken[1] - 4, A, ROOT),
            consume("Prefetch", taken[0] + taken[1] - 4, element),
        ],
        [produce("Prefetch", made[0], made[1], 7), call("Root::Prefetch::Map", made[0], made[1] - 2, B, A)],
    )


def test_what_was_made_while_the_program_waited_is_on_the_critical_path() -> None:
    assert cells(ahead(made=(90, 60), taken=(100, 60)).executions, TIMES) == [
        "0,Root,,1,100.0,60.0,4.0,True,False",
        "0,Prefetch,1,1,102.0,56.0,10.0,True,False",
        "0,Map,2,1,90.0,58.0,58.0,True,True",
    ]


def test_what_was_made_ahead_of_time_is_not() -> None:
    assert cells(ahead(made=(0, 60), taken=(100, 20)).executions, TIMES) == [
        "0,Root,,1,100.0,20.0,4.0,True,False",
        "0,Prefetch,1,1,102.0,16.0,16.0,True,True",
        "0,Map,2,1,0.0,58.0,58.0,False,False",
    ]


def test_what_nobody_took_is_in_no_execution() -> None:
    assert list(ahead(made=(0, 60), taken=(100, 20), element=8).executions["iterator"]) == ["Root", "Prefetch"]


@pytest.mark.parametrize(
    "broken",
    [
        [event("PrefetchProduce", 0, 60), call("Root::Prefetch::Map", 1, 50, B, A)],  # no element
        [produce("Prefetch", 0, 60, 7), call("Root::Prefetch::Map", 1, 50, B)],  # no parent
        [produce("Prefetch", 0, 60, 7), call("Root::Prefetch::Map", 1, 50, B, 99)],  # a parent that there is not
        [produce("Prefetch", 0, 60, 7), event("Iterator::Root::Prefetch::Map", 1, 50, parent_id=A)],  # no id
        [produce("Prefetch", 0, 60, 7), event("MapFunction", 1, 55), call("Root::Prefetch::Map", 2, 50, B, A)],
        [produce("Mystery", 0, 60, 7), call("Root::Prefetch::Map", 1, 50, B, A)],  # a stage that there is not
        [call("Root::Prefetch::Map", 1, 50, B, A)],  # no producer
    ],
)
def test_a_broken_link_is_no_link(broken: list[Event]) -> None:
    taken = [call("Root", 100, 20, ROOT), call("Root::Prefetch", 101, 18, A, ROOT), consume("Prefetch", 110, 7)]
    found = of_threads(taken, broken)
    assert cells(found.executions, "iterator,self_time_us") == ["Root,2.0", "Prefetch,18.0"]


def test_a_call_that_another_event_lies_around_was_led_to_by_that() -> None:
    found = of_threads([call("Root", 0, 100, ROOT), event("Function", 10, 80), call("Root::Map", 20, 60, A, ROOT)])
    assert cells(found.executions, "iterator,self_time_us") == ["Root,100.0"]


def test_ids_are_unsigned_and_told_apart_beyond_the_signed_range() -> None:
    high, higher = (1 << 63) + 1, (1 << 64) - 1
    found = of_threads(
        [
            call("Root", 0, 100, ROOT),
            call("Root::Batch", 5, 90, U64(high), ROOT),
            call("Root::Batch::Map", 10, 40, U64(higher), U64(high)),
            call("Root::Batch::Map", 60, 10, -1, high - (1 << 64)),  # the same ids, written as signed
        ]
    )
    assert cells(found.executions, "iterator,iterator_id,parent_id,calls") == [
        "Root,1,,1",
        "Batch,9223372036854775809,1,1",
        "Map,18446744073709551615,9223372036854775809,2",
    ]


def test_the_bottleneck_is_found_on_the_right_branch_of_a_zip() -> None:
    """Both branches work ahead on threads of their own; the left one's element was there before the call."""
    found = of_threads(
        [
            call("Root", 100, 80, ROOT),
            call("Root::Zip", 101, 78, A, ROOT),
            call("Root::Zip[0]::ParallelMap", 102, 3, B, A),
            consume("ParallelMap", 103, 1),
            call("Root::Zip[1]::ParallelMap", 110, 60, C, A),
            consume("ParallelMap", 165, 1),
        ],
        [produce("ParallelMap", 0, 99, 1), call("Root::Zip[0]::ParallelMap::Range", 0, 98, D, B)],
        [produce("ParallelMap", 111, 52, 1), call("Root::Zip[1]::ParallelMap::Range", 112, 50, E, C)],
    )
    assert found.pipelines["bottleneck"].item() == "Iterator::Root::Zip[1]::ParallelMap::Range"
    names = found.executions["long_name"].str.removeprefix("Iterator::Root")
    assert cells(found.executions.assign(name=names), "name,self_time_us,on_critical_path") == [
        ",2.0,True",
        "::Zip,15.0,True",
        "::Zip[0]::ParallelMap,3.0,True",
        "::Zip[0]::ParallelMap::Range,98.0,False",
        "::Zip[1]::ParallelMap,10.0,True",
        "::Zip[1]::ParallelMap::Range,50.0,True",
    ]


def test_time_that_parallel_calls_cover_is_taken_off_once() -> None:
    found = of_threads(
        [call("Root", 0, 100, ROOT), call("Root::MapAndBatch", 0, 100, A, ROOT), consume("MapAndBatch", 95, 1)],
        [produce("MapAndBatch", 10, 60, 1), call("Root::MapAndBatch::Map", 10, 60, B, A)],
        [produce("MapAndBatch", 30, 60, 1), call("Root::MapAndBatch::Map", 30, 60, B, A)],
    )
    assert cells(found.executions, "iterator,calls,total_duration_us,self_time_us") == [
        "Root,1,100.0,0.0",
        "MapAndBatch,1,100.0,20.0",
        "Map,2,120.0,120.0",
    ]


def test_all_that_a_batch_made_ahead_is_made_of_belongs_to_it() -> None:
    elements = [call("Root::ParallelBatch::Map", 10 + 20 * i, 18, B, A) for i in range(4)]
    found = of_threads(
        [call("Root", 0, 100, ROOT), call("Root::ParallelBatch", 0, 100, A, ROOT), consume("ParallelBatch", 95, 1)],
        [produce("ParallelBatch", 8, 84, 1), *elements],
    )
    assert found.pipelines["bottleneck"].item() == "Iterator::Root::ParallelBatch::Map"
    assert found.executions["calls"].to_list() == [1, 1, 4]


def test_ids_that_are_used_again_lead_to_the_call_that_followed() -> None:
    """A new iterator may get the id of one that is gone, and counts its elements anew."""
    found = of_threads(
        [
            *[call("Root", 0, 10, ROOT), call("Root::Prefetch", 1, 8, A, ROOT), consume("Prefetch", 7, 0)],
            *[call("Root", 100, 50, ROOT), call("Root::Prefetch", 101, 48, A, ROOT), consume("Prefetch", 140, 0)],
        ],
        [
            *[produce("Prefetch", 1, 5, 0), call("Root::Prefetch::Map", 2, 3, B, A)],
            *[produce("Prefetch", 101, 38, 0), call("Root::Prefetch::Map", 102, 36, B, A)],
        ],
    )
    maps = found.executions.query("iterator == 'Map'")
    assert cells(maps, "execution,calls,total_duration_us") == ["0,1,36.0", "1,1,3.0"]


def test_iterators_that_share_an_id_form_a_tree_all_the_same() -> None:
    found = of_threads(
        [call("Root", 0, 90, ROOT), call("Root::A", 1, 80, A), call("Root::A::B", 2, 70, B), call("Root::A", 3, 60, A)]
    )
    assert cells(found.executions, "iterator,parent_id,calls") == ["Root,,1", "A,1,2", "B,2,1"]


def test_a_pipeline_within_another_is_one_of_its_own() -> None:
    found = of_threads([call("Root", 0, 90, ROOT), call("Map", 10, 50, A), call("Map::Range", 20, 5, B, A)])
    assert cells(found.executions, "pipeline,iterator,self_time_us") == [
        "Host:0,Root,40.0",
        "Host:1,Map,45.0",
        "Host:1,Range,5.0",
    ]


# What holds of any calls, however absurd


NAMES = ("Iterator::Root", "Iterator::Root::Prefetch", "Iterator::Root::Prefetch::Map", "Iterator::Prefetch::Generator")
OTHERS = ("PrefetchProduce", "PrefetchConsume", "ParallelMapProduce", "ParallelMapConsume", "Function")
NUMBERS = st.sampled_from([1, 2, 3, -1, 0, U64(1), U64(2**64 - 1), U64(2**63), "none", 0.5])
EVENTS = st.builds(
    lambda name, start, duration, stats: event(name, start, duration, stats),
    st.sampled_from(NAMES * 2 + OTHERS),
    st.integers(0, 20),
    st.integers(0, 20),
    st.dictionaries(st.sampled_from(["id", "parent_id", "element_id", "parallelism"]), NUMBERS),
)


@law(40)
@given(threads=st.lists(st.lists(EVENTS, max_size=8), max_size=3), most_rows=st.sampled_from([0, 3, MOST_ROWS]))
def test_whatever_the_calls_are(threads: list[list[Event]], most_rows: int) -> None:
    found = of_threads(*threads, most_rows=most_rows)
    asked = [e for thread in threads for e in thread if e.name == "Iterator::Root" and has_number(e, "id")]
    check_pipelines(found, len(asked))
    assert len(found.executions) <= most_rows
    assert found.executions["calls"].sum() <= sum(map(len, threads))
    for _, execution in found.executions.groupby(["pipeline", "execution"]):
        check_execution(execution)


def has_number(event: Event, stat: str) -> bool:
    value: Value = dict(event.stats).get(stat, "none")
    return isinstance(value, int)


def check_pipelines(found: Found, calls: int) -> None:
    pipelines, executions = found.pipelines, found.executions
    for table, frame in ((TF_DATA_PIPELINES, pipelines), (TF_DATA, executions)):
        assert not frame[list(table.keys)].duplicated().any()
        assert {c: str(t) for c, t in frame.dtypes.items()} == {c.name: c.dtype for c in table.columns}
    assert pipelines["calls"].sum() == calls
    assert (pipelines["slow_calls"] <= pipelines["calls"]).all()
    assert (pipelines["min_latency_us"] <= pipelines["max_latency_us"]).all()
    kept = executions.groupby("pipeline")["execution"].nunique().reindex(pipelines["pipeline"], fill_value=0)
    assert kept.to_list() == pipelines["executions_kept"].to_list()
    assert bool(found.remarks) == (pipelines["executions_kept"] < pipelines["calls"]).any()


def check_execution(rows: pd.DataFrame) -> None:
    above = dict(zip(rows["iterator_id"], rows["parent_id"], strict=True))
    assert list(above.values()).count("") == 1
    for iterator in above:
        for _ in above:  # the way up ends at the pipeline's own iterator
            iterator = above[iterator] or iterator
        assert above[iterator] == ""
    assert rows["self_time_us"].between(0, rows["total_duration_us"]).all()
    blocking = rows[rows["on_critical_path"]]
    bottleneck = rows[rows["is_bottleneck"]]
    if rows["pipeline"].iloc[0].startswith("Host") and blocking["self_time_us"].max() > 0:
        assert bottleneck["self_time_us"].item() == pytest.approx(blocking["self_time_us"].max())
        assert bottleneck["on_critical_path"].all()
    else:
        assert bottleneck.empty
