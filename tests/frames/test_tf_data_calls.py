"""Which call of tf.data led to which, and whose time it is: by hand, on tiny XSpaces."""

from __future__ import annotations

import pytest

from tests.frames.tf_data_calls import ROOT, A, B, C, D, E, Found, as_text, call, consume, of_threads, produce
from tests.xspace_builder import U64, Event, event

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
    assert as_text(found.executions, TIMES) == (
        f"{TIMES}\n"
        "0,Root,,1,0.0,100.0,10.0,True,False\n"
        "0,Batch,1,1,5.0,90.0,25.0,True,False\n"
        "0,Map,2,2,10.0,65.0,62.0,True,True\n"
        "0,Range,3,2,12.0,3.0,3.0,True,False"
    )
    columns = (
        "pipeline,calls,slow_calls,min_latency_us,mean_latency_us,max_latency_us,bottleneck,bottleneck_self_time_us"
    )
    assert as_text(found.pipelines, columns) == (
        f"{columns}\nHost:0,1,1,100.0,100.0,100.0,Iterator::Root::Batch::Map,62.0"
    )
    assert list(found.executions["long_name"]) == [
        "Iterator::Root",
        "Iterator::Root::Batch",
        "Iterator::Root::Batch::Map",
        "Iterator::Root::Batch::Map::Range",
    ]


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
    found = ahead(made=(90, 60), taken=(100, 60))
    assert as_text(found.executions, TIMES) == (
        f"{TIMES}\n"
        "0,Root,,1,100.0,60.0,4.0,True,False\n"
        "0,Prefetch,1,1,102.0,56.0,10.0,True,False\n"
        "0,Map,2,1,90.0,58.0,58.0,True,True"
    )


def test_what_was_made_ahead_of_time_is_not() -> None:
    found = ahead(made=(0, 60), taken=(100, 20))
    assert as_text(found.executions, TIMES) == (
        f"{TIMES}\n"
        "0,Root,,1,100.0,20.0,4.0,True,False\n"
        "0,Prefetch,1,1,102.0,16.0,16.0,True,True\n"
        "0,Map,2,1,0.0,58.0,58.0,False,False"
    )


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
    assert as_text(found.executions, "iterator,self_time_us") == "iterator,self_time_us\nRoot,2.0\nPrefetch,18.0"


def test_a_call_that_another_event_lies_around_was_led_to_by_that() -> None:
    found = of_threads([call("Root", 0, 100, ROOT), event("Function", 10, 80), call("Root::Map", 20, 60, A, ROOT)])
    assert as_text(found.executions, "iterator,self_time_us") == "iterator,self_time_us\nRoot,100.0"


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
    assert as_text(found.executions, "iterator,iterator_id,parent_id,calls") == (
        "iterator,iterator_id,parent_id,calls\n"
        "Root,1,,1\n"
        "Batch,9223372036854775809,1,1\n"
        "Map,18446744073709551615,9223372036854775809,2"
    )


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
    long_name = found.pipelines["bottleneck"].item()
    assert long_name == "Iterator::Root::Zip[1]::ParallelMap::Range"
    assert as_text(found.executions, "long_name,self_time_us,on_critical_path") == (
        "long_name,self_time_us,on_critical_path\n"
        "Iterator::Root,2.0,True\n"
        "Iterator::Root::Zip,15.0,True\n"
        "Iterator::Root::Zip[0]::ParallelMap,3.0,True\n"
        "Iterator::Root::Zip[0]::ParallelMap::Range,98.0,False\n"
        "Iterator::Root::Zip[1]::ParallelMap,10.0,True\n"
        "Iterator::Root::Zip[1]::ParallelMap::Range,50.0,True"
    )


def test_time_that_parallel_calls_cover_is_taken_off_once() -> None:
    found = of_threads(
        [call("Root", 0, 100, ROOT), call("Root::MapAndBatch", 0, 100, A, ROOT), consume("MapAndBatch", 95, 1)],
        [produce("MapAndBatch", 10, 60, 1), call("Root::MapAndBatch::Map", 10, 60, B, A)],
        [produce("MapAndBatch", 30, 60, 1), call("Root::MapAndBatch::Map", 30, 60, B, A)],
    )
    assert as_text(found.executions, "iterator,calls,total_duration_us,self_time_us") == (
        "iterator,calls,total_duration_us,self_time_us\nRoot,1,100.0,0.0\nMapAndBatch,1,100.0,20.0\nMap,2,120.0,120.0"
    )


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
    assert as_text(maps, "execution,calls,total_duration_us") == "execution,calls,total_duration_us\n0,1,36.0\n1,1,3.0"


def test_a_circle_of_links_ends() -> None:
    """Each of two calls took what was made within the other."""
    found = of_threads(
        [call("Root", 0, 5, ROOT)],
        [produce("Prefetch", 10, 80, 1), call("Root::A", 11, 70, A, B), consume("Prefetch", 20, 1)],
        [produce("Prefetch", 10, 80, 1), call("Root::B", 11, 70, B, A), consume("Prefetch", 20, 1)],
        [produce("Prefetch", 10, 80, 2), call("Root::C", 11, 70, C, C), consume("Prefetch", 20, 2)],
    )
    assert found.executions["iterator"].to_list() == ["Root"]


def test_a_pipeline_made_by_its_own_call_ends() -> None:
    found = of_threads([produce("Prefetch", 0, 90, 1), call("Root", 1, 80, ROOT, ROOT), consume("Prefetch", 20, 1)])
    assert as_text(found.executions, "iterator,parent_id,calls") == "iterator,parent_id,calls\nRoot,,1"


def test_iterators_that_share_an_id_form_a_tree_all_the_same() -> None:
    found = of_threads(
        [call("Root", 0, 90, ROOT), call("Root::A", 1, 80, A), call("Root::A::B", 2, 70, B), call("Root::A", 3, 60, A)]
    )
    assert as_text(found.executions, "iterator,parent_id,calls") == "iterator,parent_id,calls\nRoot,,1\nA,1,2\nB,2,1"


def test_a_pipeline_within_another_is_one_of_its_own() -> None:
    found = of_threads([call("Root", 0, 90, ROOT), call("Map", 10, 50, A), call("Map::Range", 20, 5, B, A)])
    columns = "pipeline,iterator,self_time_us"
    assert as_text(found.executions, columns) == f"{columns}\nHost:0,Root,40.0\nHost:1,Map,45.0\nHost:1,Range,5.0"
