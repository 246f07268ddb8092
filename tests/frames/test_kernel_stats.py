"""Kernels and copies of memory, on tiny XSpaces."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.frames.tables import gpu, host, host_frame, kernel, kernel_stats, stream, thorough_but, xprof_kernels
from tests.hlo.builder import metadata
from tests.profiles import run_path
from tests.xspace.fuzz_inputs import hlo_proto
from tests.xspace_builder import Event, Plane, Ref, Stats, Value, event, line, plane, space
from tfcompare.frames.ops.copies import copies
from tfcompare.frames.ops.kernel_details import KernelDetails, parse_kernel_details
from tfcompare.frames.planes import device_planes, recorded_lines
from tfcompare.schema.kernels import COPIES, KERNEL_STATS
from tfcompare.xspace import XSpace, parse, read

GPU_RUNS = ["tf_gpu", "jax_elementwise", "jax_conv_08", "jax_conv_legacy"]
OTHER_RUNS = ["tf_cpu_base", "jax_tpu", "filters_16_8"]
LAUNCH = ["kernel_name", "block_dim", "grid_dim"]
TIMES = ["total_duration_us", "avg_duration_us", "min_duration_us", "max_duration_us"]
TOLERANCE = 0.001
GARBAGE = 1024
"""More registers than any GPU has."""


def files_of(name: str) -> list[Path]:
    return sorted(run_path(name).rglob("*.xplane.pb"))


def our_kernels(name: str) -> pd.DataFrame:
    return pd.concat([kernel_stats(read(file).space, file.name) for file in files_of(name)], ignore_index=True)


def with_ops_of(ours: pd.DataFrame, xprof: pd.DataFrame) -> pd.DataFrame:
    """Our rows, those put together whose op xprof does not know."""
    key = [*LAUNCH, "op_name"]
    is_known = pd.MultiIndex.from_frame(ours[key]).isin(pd.MultiIndex.from_frame(xprof[key]))
    rows = ours.assign(op_name=ours["op_name"].where(is_known, ""), registers=ours["registers_per_thread"].fillna(0))
    out = rows.groupby(["host", *key, "registers"], as_index=False).agg(
        occurrences=("occurrences", "sum"),
        total_duration_us=("total_duration_us", "sum"),
        min_duration_us=("min_duration_us", "min"),
        max_duration_us=("max_duration_us", "max"),
        is_op_tensor_core_eligible=("is_op_tensor_core_eligible", "any"),
        is_kernel_using_tensor_core=("is_kernel_using_tensor_core", "any"),
    )
    return out.assign(avg_duration_us=out["total_duration_us"] / out["occurrences"])


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values([*LAUNCH, "op_name", "registers", "occurrences"], ignore_index=True)


@pytest.mark.parametrize("name", thorough_but(GPU_RUNS, "tf_gpu"))
def test_rows_are_xprofs(name: str) -> None:
    """Names, dimensions, registers, occurrences, times and flags; each host adds rows of its own."""
    xprof, ours = xprof_kernels(*files_of(name)), our_kernels(name)
    registers = xprof["registers_per_thread"].where(xprof["registers_per_thread"] <= GARBAGE, 0)
    expected, found = in_order(xprof.assign(registers=registers)), in_order(with_ops_of(ours, xprof))
    same = [*LAUNCH, "op_name", "registers", "occurrences", "is_kernel_using_tensor_core"]
    pd.testing.assert_frame_equal(found[same], expected[same], check_dtype=False)
    is_named = expected["op_name"] != ""
    eligible = found["is_op_tensor_core_eligible"]
    assert (eligible == expected["is_op_tensor_core_eligible"])[is_named].all()
    for time in TIMES:
        assert ((found[time] - expected[time]).abs() <= TOLERANCE * expected[time]).all()
    assert not ours[list(KERNEL_STATS.keys)].duplicated().any()
    assert {c: str(t) for c, t in ours.dtypes.items()} == {c.name: c.dtype for c in KERNEL_STATS.columns}
    assert ours.groupby("host")["total_duration_us"].apply(lambda times: times.is_monotonic_decreasing).all()
    if len(ours) == len(xprof) and ours["host"].nunique() == 1:
        assert ours["kernel_name"].to_list() == xprof["kernel_name"].to_list()


@pytest.mark.parametrize("name", OTHER_RUNS)
def test_a_profile_without_gpu_has_no_rows(name: str) -> None:
    ours = kernel_stats(read(files_of(name)[0]).space, "h")
    assert ours.empty
    assert list(ours.columns) == KERNEL_STATS.column_names


def test_runs_of_a_kernel_add_up_over_streams_and_devices() -> None:
    named: dict[str, Value] = {"tf_op": "net/dense/MatMul:MatMul"}
    first = plane(
        "/device:GPU:0",
        line("Stream #7(Compute)", kernel("gemm", 0, 3, **named), kernel("relu", 5, 4, tf_op="net/Relu:Relu"), id=7),
        line("Stream #8(Compute)", kernel("gemm", 1, 1.5, **named), id=8),
    )
    frame = kernel_stats(gpu(first, stream(kernel("gemm", 2, 6, **named), device=1)), "worker")
    columns = ["host", "kernel_name", "op_name", "occurrences", *TIMES]
    assert frame[columns].to_numpy().tolist() == [
        ["worker", "gemm", "net/dense/MatMul", 3, 10.5, 3.5, 1.5, 6.0],
        ["worker", "relu", "net/Relu", 1, 4.0, 4.0, 4.0, 4.0],
    ]


def test_a_kernel_launched_in_another_way_or_for_another_op_is_another_row() -> None:
    details = [
        "regs:17 grid:2,1,1 block:64,1,1",
        "regs:16 grid:3,1,1 block:64,1,1",
        "regs:16 grid:2,1,1 block:64,2,1",
        "regs:16 static_shared:8 dynamic_shared:8 grid:2,1,1 block:64,1,1",
        "regs:16 dynamic_shared:16 grid:2,1,1 block:64,1,1",
    ]
    others = [kernel("k", 10 + 2 * i, 1, text) for i, text in enumerate(details)]
    frame = kernel_stats(
        gpu(stream(kernel("k", 0, 1), kernel("k", 2, 1), kernel("k", 4, 1, tf_op="a:A"), *others)), "h"
    )
    assert sorted(frame["occurrences"]) == [1, 1, 1, 1, 2, 2]
    assert not frame[list(KERNEL_STATS.keys)].duplicated().any()


def test_what_tells_no_launch_took_no_time_or_was_derived_is_no_kernel_and_a_kernel_that_copies_is_one() -> None:
    names = ("k", "__amd_rocclr_copyBuffer", "__amd_rocclr_fillBuffer")
    kernels = [kernel(name, 10 * i, 1) for i, name in enumerate(names)]
    others = [kernel("none", 2, 0), kernel("empty", 3, 1, ""), event("MemcpyH2D", 5, 1)]
    streams = [line("Stream #7", *kernels, *others), line("TensorFlow Ops", kernel("derived", 0, 1), id=-559038734)]
    frame = kernel_stats(gpu(plane("/device:GPU:0", *streams), host(kernel("launch", 0, 1))), "h")
    assert sorted(frame["kernel_name"]) == sorted(names)


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        ({}, ""),
        ({"tf_op": "net/Relu:Relu"}, "net/Relu"),
        ({"tf_op": "net/Relu:Relu", "annotation": "net/Add:Add"}, "net/Relu"),
        ({"annotation": "net/Add:Add#shape=(float[2])#::net/Mul:Mul"}, "net/Add"),
        ({"annotation": "no op", "level 0": "net/Sub:Sub"}, "net/Sub"),
        ({"annotation": "no op"}, ""),
        ({"hlo_op": "dot.1", "program_id": 5, "tf_op": "XlaModule:", "name": "x"}, "jit(f)/dot_general"),
        ({"hlo_op": "call::fusion.2", "program_id": 5, "tf_op": "XlaModule:", "name": "jit(f)/add"}, "jit(f)/add"),
        ({"hlo_op": "fusion.2", "program_id": 5, "tf_op": "XlaModule:"}, ""),
        ({"hlo_op": "dot.1", "program_id": 6, "tf_op": "XlaModule:", "name": "jit(g)/dot"}, "jit(g)/dot"),
        ({"hlo_op": "dot.1", "program_id": 6, "tf_op": "XlaModule:"}, ""),
    ],
)
def test_the_op_is_named_by_the_first_that_knows_it(stats: dict[str, Value], expected: str) -> None:
    module = hlo_proto(("dot.1", "", "jit(f)/dot_general"), ("fusion.2", "", ""))
    frame = kernel_stats(gpu(metadata({"jit_f(5)": module}), stream(kernel("k", 0, 1, **stats))), "h")
    assert frame["op_name"].to_list() == [expected]


DETAILS = {
    "regs:16 shm:12 grid:160,1,1 block:1024,1,1": KernelDetails("1024,1,1", "160,1,1", 16, 12),
    "regs:32\nstatic_shared:1\ndynamic_shared:16384\ngrid:3,2,1\nblock:64,1,1\nocc_pct:25.0": KernelDetails(
        "64,1,1", "3,2,1", 32, 16385
    ),
    " grid:16,1,1 block:512,1,1 private_mem:4 group_mem:2112 occ_pct:0": KernelDetails("512,1,1", "16,1,1", None, 2112),
    "regs:2191500840 static_shared:32462 dynamic_shared:0 grid:16,1,1 block:512,1,1": KernelDetails(
        "512,1,1", "16,1,1", None, None
    ),
    "regs:255 grid:02,1,1": KernelDetails("1,1,1", "2,1,1", 255, None),
    "regs:16 regs:18": KernelDetails("1,1,1", "1,1,1", 18, None),
    "regs:-1 grid:1,2 block:1,2,3,4": KernelDetails("1,1,1", "1,1,1", None, None),
    "regs:1:2 grid:a,b,c block:-1,1,1": KernelDetails("1,1,1", "1,1,1", None, None),
    "regs:99999999999999999999999 static_shared:4294967296": KernelDetails("1,1,1", "1,1,1", None, None),
    "nothing of use": KernelDetails("1,1,1", "1,1,1", None, None),
}


@pytest.mark.parametrize("details", DETAILS)
def test_details_are_read_in_every_dialect(details: str) -> None:
    assert parse_kernel_details(details) == DETAILS[details]


def test_details_are_read_as_xprof_reads_them(tmp_path: Path) -> None:
    """But for `shm`, `group_mem` and garbage; what is not told is 0 in xprof."""
    file = tmp_path / "h.xplane.pb"
    file.write_bytes(space(stream(*(kernel(str(i), 4 * i, 1, details) for i, details in enumerate(DETAILS)))))
    xprof = xprof_kernels(file).set_index("kernel_name")
    ours = kernel_stats(read(file).space, "h").set_index("kernel_name").loc[xprof.index]
    assert ours["block_dim"].to_list() == xprof["block_dim"].to_list()
    assert ours["grid_dim"].to_list() == xprof["grid_dim"].to_list()
    is_like_xprof = [not re.search("shm|group_mem|2191500840", list(DETAILS)[int(name)]) for name in xprof.index]
    for column in ("registers_per_thread", "shared_memory_bytes"):
        assert ours.loc[is_like_xprof, column].fillna(0).to_list() == xprof.loc[is_like_xprof, column].to_list()


NVIDIA_OLD = "size:{} dest:1 async:1"
NVIDIA = "kind_src:{} kind_dst:{} size:{} dest:0 async:1"


def gpu_with(*events: Event, stream: str = "Stream #7(MemcpyH2D,MemcpyD2H)", device: int = 0) -> Plane:
    return plane(f"/device:GPU:{device}", line(stream, *events, id=7))


def copies_of(profile: XSpace) -> pd.DataFrame:
    return host_frame("copies", copies(profile), "h")


def table(*planes: Plane) -> pd.DataFrame:
    return copies_of(parse(space(*planes)))


def test_copies_add_up_by_device_and_kind() -> None:
    first = gpu_with(
        event("MemcpyH2D", 0, 2, memcpy_details="size:1000 dest:0 async:1"),
        event("MemcpyH2D", 3, 6, memcpy_details=Ref("size:7000 dest:0 async:0")),
        event("MemcpyD2H", 10, 1, memcpy_details="size:4 dest:0 async:1"),
    )
    second = gpu_with(event("MemcpyH2D", 0, 1, memcpy_details="size:50 dest:1 async:1"), device=1)
    assert table(first, second).to_numpy().tolist() == [
        ["h", "/device:GPU:0", "host to device", 2, 8000, 8.0, 1e9],
        ["h", "/device:GPU:0", "device to host", 1, 4, 1.0, 4e6],
        ["h", "/device:GPU:1", "host to device", 1, 50, 1.0, 5e7],
    ]


@pytest.mark.parametrize(
    ("name", "details", "stream", "kind"),
    [
        ("MemcpyH2D", NVIDIA_OLD.format(4), "Stream #1(MemcpyH2D)", "host to device"),
        ("MemcpyD2D", NVIDIA.format("device", "device", 4), "Stream #1", "device to device"),
        ("MemcpyP2P", NVIDIA.format("device", "device", 4), "Stream #1", "peer to peer"),
        ("Memcpy DtoH", NVIDIA_OLD.format(4), "Stream #1", "device to host"),
        ("MemcpyHtoH", NVIDIA_OLD.format(4), "Stream #1", "host to host"),
        ("CopyDeviceToDevice", "kind:Unknown size:4 dest:2 async:1", "Stream #8(MemcpyOther)", "device to device"),
        ("MEMORY_COPY_DEVICE_TO_HOST", "kind:Unknown size:4 dest:2 async:1", "Stream #8", "device to host"),
        ("MemcpyOther", NVIDIA.format("pageable", "array", 4), "Stream #1(MemcpyOther)", "host to device"),
        ("MemcpyOther", NVIDIA.format("array", "pinned", 4), "Stream #1", "device to host"),
        ("MemcpyOther", NVIDIA.format("managed", "device", 4), "Stream #1(MemcpyOther)", "other"),
        ("MemcpyOther", NVIDIA_OLD.format(4), "Stream #1(MemcpyD2H)", "device to host"),
        ("MemcpyOther", NVIDIA_OLD.format(4), "Stream #1(MemcpyD2H,MemcpyH2D)", "other"),
    ],
)
def test_the_kind_is_told_by_name_else_memories_else_stream(name: str, details: str, stream: str, kind: str) -> None:
    frame = table(gpu_with(event(name, 0, 1, memcpy_details=details), stream=stream))
    assert frame["kind"].to_list() == [kind]
    assert frame["size_bytes"].to_list() == [4]


KNOWN = event("MemcpyH2D", 0, 2, memcpy_details="size:2000 dest:0 async:1")
NO_SIZES = ["size:-4", "size:four", "size:4x", "oversize:4", "size:9999999999999999999", ""]
SIZES = {
    "setting memory is a kind of its own": (
        [
            event("Memset", 0, 2, {"memset_details": "kind:device num_bytes:4096 async:1"}),
            event("Memset", 2, 2, {"Memset_details": "kind:device num_bytes:4096 async:1"}),
        ],
        ["memory set", 2, 8192, 4.0, 2.048e9],
    ),
    "without details a copy has no size": ([event("MemcpyH2D", 0, 2)], ["host to device", 1, None, 2.0, None]),
    "one unknown size leaves the sum unknown and the bandwidth to the others": (
        [KNOWN, event("MemcpyH2D", 3, 5)],
        ["host to device", 2, None, 7.0, 1e9],
    ),
    "a copy that took no time has no bandwidth": (
        [event("MemcpyH2D", 0, 0, memcpy_details="size:8 dest:0 async:1")],
        ["host to device", 1, 8, 0.0, None],
    ),
    **{
        f"no number of bytes: {text}": (
            [event("MemcpyH2D", 0, 2, memcpy_details=text)],
            ["host to device", 1, None, 2.0, None],
        )
        for text in NO_SIZES
    },
}


@pytest.mark.parametrize("events, row", SIZES.values(), ids=SIZES)
def test_sizes_and_bandwidths(events: list[Event], row: list[object]) -> None:
    (found,) = table(gpu_with(*events)).drop(columns=["host", "device"]).to_numpy().tolist()
    assert [None if pd.isna(value) else value for value in found] == row


def test_kernels_derived_lines_and_hosts_have_no_copies() -> None:
    details: Stats = {"memcpy_details": "size:8 dest:0 async:1"}
    launch = "grid:1,1,1 block:512,1,1"
    frame = table(
        plane(
            "/device:GPU:0",
            line("Stream #1(MemcpyH2D)", event("__amd_rocclr_copyBuffer", 0, 1, kernel_details=launch), id=1),
            line("Stream #2", event("MemcpyD2D", 0, 1, {**details, "kernel_details": launch}), id=2),
            line("Stream #3(Compute)", event("copy_fusion", 0, 1), event("copy.2", 2, 1), id=3),
            line("TensorFlow Ops", event("MemcpyH2D", 0, 1, details), id=-559038734),
        ),
        host(event("MemcpyH2D", 0, 1, details)),
    )
    assert frame.empty
    assert list(frame.columns) == COPIES.column_names


# Real profiles


@pytest.mark.parametrize(
    ("name", "of_event"),
    [
        ("tf_gpu", {"MemcpyH2D": "host to device", "MemcpyD2H": "device to host"}),
        ("jax_conv_legacy", {"CopyDeviceToDevice": "device to device"}),
        *((name, {}) for name in ("jax_conv_08", "jax_tpu", "filters_16_8")),
    ],
)
def test_every_copy_of_a_real_profile_is_counted_once(name: str, of_event: dict[str, str]) -> None:
    """Count, bytes and picoseconds of all events of streams with `memcpy_details`. Some profiles know kernels only."""
    profile = read(sorted(run_path(name).rglob("*.xplane.pb"))[0]).space
    details, recorded = profile.strings("memcpy_details"), recorded_lines(profile)
    devices = {device.index: device.name for device in device_planes(profile)}
    expected: dict[tuple[str, str], list[float]] = {}
    for row, code in zip(details.owners.tolist(), details.codes.tolist(), strict=True):
        device = devices.get(int(profile.planes_of(np.array([row]))[0]))
        if device is None or not recorded[profile.events.line[row]]:
            continue  # hosts record the call that asked for a copy, with the same details
        copy = of_event[str(profile.metadata_names[profile.events.metadata[row]])]
        size = re.search(r"size:(\d+)", details.labels[code])
        assert size is not None
        sums = expected.setdefault((device, copy), [0, 0, 0.0])
        for i, value in enumerate((1, int(size[1]), int(profile.events.duration_ps[row]) / 1e6)):
            sums[i] += value
    frame = copies_of(profile)
    assert {c: str(t) for c, t in frame.dtypes.items()} == {c.name: c.dtype for c in COPIES.columns}
    found = frame.set_index(["device", "kind"])[["occurrences", "size_bytes", "duration_us"]].astype("float64")
    assert {key: row.to_list() for key, row in found.iterrows()} == {
        key: pytest.approx(sums) for key, sums in expected.items()
    }
