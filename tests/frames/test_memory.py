"""Memory by hand, on tiny XSpaces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.frames import memory_oracle as oracle
from tests.frames.memory_oracle import HOST, WHAT, events_of, walk, xprof_memory, xprof_timeline
from tests.frames.tables import host, marked, threads
from tests.xspace_builder import U64, Event, Ref, event, line, plane, space
from tfcompare.frames.memory_events import UNEXPLAINED
from tfcompare.schema.memory import MEMORY_PEAK, MEMORY_SUMMARY, MEMORY_TIMELINE
from tfcompare.tables.memory_timeline import memory_timeline
from tfcompare.xspace import parse


def allocate(at_us: float, heap: int, address: int = 0x100, **stats: object) -> Event:
    """An allocation after which the heap holds `heap` bytes."""
    return event("MemoryAllocation", at_us, 0, **_memory(heap, address) | stats)  # type: ignore[arg-type]


def free(at_us: float, heap: int, address: int = 0x100, **stats: object) -> Event:
    """A deallocation that leaves `heap` bytes."""
    return event("MemoryDeallocation", at_us, 0, **_memory(heap, address) | stats)  # type: ignore[arg-type]


def _memory(heap: int, address: int) -> dict[str, object]:
    return {"allocator_name": "gpu", "bytes_allocated": heap, "bytes_available": 1000 - heap, "addr": address}


def tiny(*events: Event) -> bytes:
    return space(host(*events))


def timeline_of(data: bytes) -> pd.DataFrame:
    return memory_timeline(events_of(parse(data)), HOST)


def summary_of(data: bytes) -> pd.DataFrame:
    return oracle.summary_of(events_of(parse(data)))


def peak_of(data: bytes) -> pd.DataFrame:
    return oracle.peak_of(events_of(parse(data)))


TABLES = {summary_of: MEMORY_SUMMARY, timeline_of: MEMORY_TIMELINE, peak_of: MEMORY_PEAK}


def as_text(frame: pd.DataFrame, columns: list[str]) -> list[str]:
    return frame[columns].to_csv(index=False, header=False).splitlines()


OUTPUT = {"region_type": "output", "data_type": 1, "shape": "[3]", "allocation_bytes": 100, "peak_bytes_in_use": 700}
LATER = {"bytes_reserved": 50, "peak_bytes_in_use": 700, "fragmentation": 0.125}
OF_300 = {"requested_bytes": 300, "allocation_bytes": 300, **LATER}
SEVEN_EVENTS = tiny(
    allocate(1, 300, 0xA, tf_op="conv", requested_bytes=90, fragmentation=0.5, **OUTPUT),
    allocate(2, 400, 0xB, tf_op="conv", requested_bytes=80, fragmentation=0.25, **OUTPUT),
    free(3, 300, 0xA, requested_bytes=90, allocation_bytes=100, peak_bytes_in_use=700, fragmentation=0.5),
    allocate(4, 600, 0xA, tf_op="matmul", region_type="temp", data_type=103, shape="[]", **OF_300),
    allocate(5, 600, 0xC, tf_op="empty", requested_bytes=0, allocation_bytes=0, **LATER),
    free(6, 300, 0xA, allocation_bytes=300, bytes_reserved=50, peak_bytes_in_use=710, fragmentation=0.5),
    free(7, 200, 0xB, allocation_bytes=100, bytes_reserved=50, peak_bytes_in_use=650, fragmentation=0.5),
)


def test_a_summary_by_hand() -> None:
    """The capacity is what is reserved, in the heap and free at the peak."""
    row = summary_of(SEVEN_EVENTS).iloc[0]
    numbers = {"allocations": 4, "deallocations": 3, "capacity_bytes": 50 + 600 + 400, "peak_heap_bytes": 710}
    at_peak = {"peak_bytes": 650, "peak_time_us": 5.0, "stack_bytes": 50, "heap_bytes": 600, "free_bytes": 400}
    assert row.to_dict() == {"host": HOST, "memory_id": "gpu", "fragmentation": 0.125, **numbers, **at_peak}


def test_a_timeline_by_hand() -> None:
    columns = ["time_us", "event", *WHAT, "requested_bytes", "allocation_bytes", "in_use_bytes", "step"]
    assert as_text(timeline_of(SEVEN_EVENTS), columns) == [
        "1.0,allocation,conv,output,float,[3],90,100,300,",
        "2.0,allocation,conv,output,float,[3],80,100,400,",
        "3.0,deallocation,conv,output,float,[3],90,100,300,",
        "4.0,allocation,matmul,temp,int32_ref,[],300,300,650,",
        "5.0,allocation,empty,,,,0,0,650,",
        "6.0,deallocation,matmul,temp,int32_ref,[],300,300,350,",
        "7.0,deallocation,conv,output,float,[3],80,100,250,",
    ]


def test_a_peak_by_hand() -> None:
    """Of the heap's 600 bytes 400 are live, of which `empty` has none; what is left was there before."""
    peak = peak_of(SEVEN_EVENTS)
    assert as_text(peak, ["memory_id", *WHAT, "requested_bytes", "allocation_bytes", "occurrences"]) == [
        "gpu,matmul,temp,int32_ref,[],300,300,1",
        "gpu,unused preallocated device memory,persist/dynamic,INVALID,unknown,200,200,1",
        "gpu,conv,output,float,[3],80,100,1",
        "gpu,stack,stack,INVALID,unknown,50,50,1",
        "gpu,empty,,,,0,0,1",
    ]


def test_allocations_alike_in_all_but_size_are_one_row() -> None:
    data = tiny(
        allocate(1, 10, 0xA, tf_op="conv", requested_bytes=9, allocation_bytes=10),
        allocate(2, 30, 0xB, tf_op="conv", requested_bytes=15, allocation_bytes=20),
    )
    row = peak_of(data).iloc[0]
    assert (row["op_name"], row["requested_bytes"], row["allocation_bytes"], row["occurrences"]) == ("conv", 24, 30, 2)


def test_the_peak_is_the_last_in_the_file_of_the_largest() -> None:
    first, second = [allocate(1, 20, 0xA), allocate(9, 20, 0xB)], [allocate(2, 10, 0xC), allocate(5, 20, 0xD)]
    data = space(threads(first, second))
    assert summary_of(data)["peak_time_us"].to_list() == [5.0]
    assert peak_of(data)["occurrences"].to_list() == [1, 3]  # unexplained, and at 0xA, 0xC, 0xD


def test_time_counts_from_the_first_line_on_and_orders_events_of_all_lines() -> None:
    late = line("late", free(1, 0, 0xA, allocation_bytes=5), at_us=100)
    early = line("early", allocate(50, 5, 0xA, tf_op="conv", allocation_bytes=5), at_us=0)
    timeline = timeline_of(space(plane("/host:CPU", late, early)))
    assert timeline["time_us"].to_list() == [50.0, 101.0]
    assert timeline["op_name"].to_list() == ["conv", "conv"]


def test_steps_are_told_by_their_number() -> None:
    memory = [allocate(12, 10, 0xA), free(35, 0, 0xA), allocate(42, 10, 0xA)]
    data = tiny(*marked("train", [(10, 20), (40, 20)], _r=1), *memory)
    assert timeline_of(data)["step"].to_list() == [7, pd.NA, 8]


def test_addresses_are_unsigned_and_counted_apart_for_each_memory() -> None:
    top = 2**64 - 256
    data = tiny(
        allocate(1, 10, U64(top), tf_op="gpu op", allocation_bytes=10),
        allocate(2, 10, U64(top), allocator_name="host", tf_op="host op", allocation_bytes=10),
        free(3, 0, U64(top)),
        free(4, 0, U64(top), allocator_name="host"),
    )
    timeline = timeline_of(data)
    assert timeline[["memory_id", "op_name"]].to_numpy().tolist() == [["gpu", "gpu op"]] * 2 + [["host", "host op"]] * 2
    assert timeline["allocation_bytes"].to_list() == [10, 10, 10, 10]


def test_an_address_taken_anew_without_a_free_belongs_to_the_later_allocation() -> None:
    data = tiny(
        allocate(1, 10, 0xA, tf_op="first", allocation_bytes=10),
        allocate(2, 20, 0xA, tf_op="second", allocation_bytes=20),
        free(3, 0, 0xA),
        free(4, 0, 0xA, tf_op="own"),
    )
    assert timeline_of(data)["op_name"].to_list() == ["first", "second", "second", "own"]
    assert timeline_of(data)["allocation_bytes"].to_list() == [10, 20, 20, pd.NA]
    assert peak_of(data)["op_name"].to_list() == ["second"]


def test_memory_without_a_name_is_known_by_its_number() -> None:
    stats = {"bytes_allocated": 1, "addr": 1}
    data = tiny(
        event("MemoryAllocation", 1, 0, stats, index_on_host=3),
        event("MemoryAllocation", 2, 0, stats, device_ordinal=1),
        event("MemoryAllocation", 3, 0, stats, index_on_host=1, allocator_name=Ref("named")),
        event("MemoryAllocation", 4, 0, stats, allocator_name="3"),
        event("MemoryAllocation", 5, 0, stats),
    )
    summary = summary_of(data)
    assert summary[["memory_id", "allocations"]].to_numpy().tolist() == [["", 1], ["1", 1], ["3", 2], ["named", 1]]


def test_numbers_may_be_recorded_as_doubles_or_integers() -> None:
    data = tiny(allocate(1, 10, fragmentation=1, bytes_reserved=5.0), allocate(2, 9, fragmentation=0.5), allocate(3, 8))
    timeline = timeline_of(data)
    assert timeline["fragmentation"].fillna(-1).to_list() == [1.0, 0.5, -1.0]
    assert timeline["stack_bytes"].to_list() == [5, 0, 0]


def test_a_fragmentation_that_is_no_share_is_not_recorded() -> None:
    values = (1e308, -1e308, float("inf"), float("nan"), -1, 2, 1.0)
    timeline = timeline_of(tiny(*(allocate(at, 10, fragmentation=value) for at, value in enumerate(values))))
    assert timeline["fragmentation"].fillna(-1).to_list() == [-1.0] * 6 + [1.0]


def test_events_that_tell_nothing_are_kept() -> None:
    data = tiny(event("MemoryAllocation", 1, 0), event("MemoryDeallocation", 2, 0))
    columns = ["memory_id", "event", *WHAT, "requested_bytes", "allocation_bytes", "in_use_bytes"]
    assert as_text(timeline_of(data), columns) == [",allocation,,,,,,,0", ",deallocation,,,,,,,0"]
    assert summary_of(data)[["allocations", "deallocations", "peak_bytes"]].to_numpy().tolist() == [[1, 1, 0]]
    assert peak_of(data).empty


def test_what_no_memory_can_hold_is_cut() -> None:
    huge = 2**63 - 1
    data = tiny(
        allocate(1, huge, 1, bytes_reserved=huge, allocation_bytes=huge, peak_bytes_in_use=U64(2**64 - 1)),
        allocate(2, huge, 2, bytes_reserved=float("inf"), allocation_bytes=float("nan"), data_type=-(2**63)),
        allocate(3, -5, 3, bytes_available=-huge, fragmentation=float("nan"), data_type=huge),
    )
    assert summary_of(data)["peak_bytes"].to_list() == [2**61]
    assert len(timeline_of(data)) == 3
    assert peak_of(data)["occurrences"].sum() >= 2


def test_first_characters_lost_on_windows_are_restored_where_only_one_fits() -> None:
    names = {"\0PU_12_bfc": "GPU_12_bfc", "\0pu_host_bfc": "gpu_host_bfc", "\0pu": "cpu", "\0klcpu": "mklcpu"} | {
        "GPU_12_bfc": "GPU_12_bfc",
        "\0ml": "ml",
        "\0": "",
    }
    data = tiny(*(allocate(time, 10, allocator_name=Ref(name)) for time, name in enumerate(names)))
    summary = summary_of(data)
    assert summary["memory_id"].to_list() == sorted({*names.values()})
    assert summary.set_index("memory_id")["allocations"]["GPU_12_bfc"] == 2, "one memory, whichever system names it"
    assert "\0" not in summary.to_csv() + peak_of(data).to_csv()


@pytest.mark.parametrize(
    ("recorded", "shape"),
    [
        ("\x00]", "[]"),
        ("\x00640]", "[640]"),
        ("\x007,40]", "[7,40]"),
        ("\x007", "[7,…]"),
        ("[7", "[7,…]"),
        ("[7,40]", "[7,40]"),
        ("[?,40]", "[?,40]"),
        ("f32[7,40]{1,0}", "f32[7,40]{1,0}"),
        ("<unknown>", "<unknown>"),
        ("(null)", ""),
    ],
)
def test_shapes_without_their_bracket_are_mended_and_cut_ones_marked(recorded: str, shape: str) -> None:
    peak = peak_of(tiny(allocate(1, 10, tf_op="conv", shape=recorded, allocation_bytes=10)))
    assert peak["shape"].fillna("").to_list() == [shape]


def test_data_types_are_named_as_xprof_does(tmp_path: Path) -> None:
    """xprof does not know the three newest ones yet."""
    numbers = [*range(35), *range(100, 135), -1]
    data = tiny(*(allocate(time, heap=1, data_type=number) for time, number in enumerate(numbers)))
    (tmp_path / "host.xplane.pb").write_bytes(data)
    ours = memory_timeline(events_of(parse(data)), HOST)["data_type"]
    xprof = xprof_timeline(xprof_memory(tmp_path / "host.xplane.pb"))["data_type"]
    newer = ["int2", "uint2", "float4_e2m1fn"]
    assert ours[ours != xprof].to_list() == [*newer, *(f"{name}_ref" for name in newer)]


def test_only_the_hosts_own_plane_counts() -> None:
    device = plane("/device:GPU:0", line("Stream #1", allocate(1, 10)))
    for data in (space(device, threads([])), space(device)):
        for make, table in TABLES.items():
            pd.testing.assert_frame_equal(make(data), table.empty())


@pytest.mark.parametrize("seed", range(10))
def test_a_plain_walk_finds_the_same_live_memory(seed: int) -> None:
    data = random_memory(np.random.default_rng(seed))
    expected = {
        (memory_id, op, sum(size for o, size in live if o == op), sum(o == op for o, _ in live))
        for memory_id, live in walk(parse(data)).items()
        for op in {op for op, _ in live}
    }
    peak = peak_of(data)
    ours = peak.loc[peak["op_name"] != UNEXPLAINED, ["memory_id", "op_name", "allocation_bytes", "occurrences"]]
    assert set(ours.itertuples(index=False, name=None)) == expected


def random_memory(rng: np.random.Generator) -> bytes:
    """Events of two memories on three threads, in no order, with addresses taken twice and freed without need."""

    def one() -> Event:
        make = allocate if rng.random() < 0.6 else free
        at_us, heap, address, op, size, memory = (int(rng.integers(0, n)) for n in (40, 9, 5, 3, 5, 2))
        return make(at_us, heap, address, tf_op=f"op {op}", allocation_bytes=size, allocator_name=f"memory {memory}")

    threads = [line(f"thread {i}", *(one() for _ in range(30)), at_us=int(rng.integers(0, 20))) for i in range(3)]
    return space(plane("/host:CPU", *threads))


def test_frames_are_as_declared() -> None:
    for make, table in TABLES.items():
        frame = make(SEVEN_EVENTS)
        assert {c: str(t) for c, t in frame.dtypes.items()} == {c.name: c.dtype for c in table.columns}
        assert not frame[list(table.keys)].duplicated().any()
