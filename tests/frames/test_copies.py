"""`copies`: by hand on tiny profiles of every dialect, and counted another way on real ones."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from tests.frames.tables import host_frame
from tests.profiles import run_path
from tests.xspace_builder import Event, Plane, Ref, Stats, event, line, plane, space
from tfcompare.frames.ops.copies import copies
from tfcompare.frames.planes import device_planes, recorded_lines
from tfcompare.schema.kernels import COPIES
from tfcompare.xspace import XSpace, parse, read

NVIDIA_OLD = "size:{} dest:1 async:1"
NVIDIA = "kind_src:{} kind_dst:{} size:{} dest:0 async:1"


def gpu(*events: Event, stream: str = "Stream #7(MemcpyH2D,MemcpyD2H)", device: int = 0) -> Plane:
    return plane(f"/device:GPU:{device}", line(stream, *events, id=7))


def copies_of(profile: XSpace) -> pd.DataFrame:
    return host_frame("copies", copies(profile), "h")


def table(*planes: Plane) -> pd.DataFrame:
    return copies_of(parse(space(*planes)))


def kinds(frame: pd.DataFrame) -> list[str]:
    return frame["kind"].to_list()


def test_copies_add_up_by_device_and_kind() -> None:
    first = gpu(
        event("MemcpyH2D", 0, 2, memcpy_details="size:1000 dest:0 async:1"),
        event("MemcpyH2D", 3, 6, memcpy_details=Ref("size:7000 dest:0 async:0")),
        event("MemcpyD2H", 10, 1, memcpy_details="size:4 dest:0 async:1"),
    )
    second = gpu(event("MemcpyH2D", 0, 1, memcpy_details="size:50 dest:1 async:1"), device=1)
    assert table(first, second).to_numpy().tolist() == [
        ["h", "/device:GPU:0", "host to device", 2, 8000, 8.0, 1e9],
        ["h", "/device:GPU:0", "device to host", 1, 4, 1.0, 4e6],
        ["h", "/device:GPU:1", "host to device", 1, 50, 1.0, 5e7],
    ]


@pytest.mark.parametrize(
    ("name", "details", "stream", "kind"),
    [
        ("MemcpyH2D", NVIDIA_OLD.format(4), "Stream #1(MemcpyH2D)", "host to device"),
        ("MemcpyD2H", NVIDIA.format("device", "pinned", 4), "Stream #1", "device to host"),
        ("MemcpyD2D", NVIDIA.format("device", "device", 4), "Stream #1", "device to device"),
        ("MemcpyP2P", NVIDIA.format("device", "device", 4), "Stream #1", "peer to peer"),
        ("MEMCPYHtoD", NVIDIA_OLD.format(4), "Stream #1", "host to device"),
        ("Memcpy DtoH", NVIDIA_OLD.format(4), "Stream #1", "device to host"),
        ("MemcpyHtoH", NVIDIA_OLD.format(4), "Stream #1", "host to host"),
        ("CopyDeviceToDevice", "kind:Unknown size:4 dest:2 async:1", "Stream #8(MemcpyOther)", "device to device"),
        ("CopyHostToDevice", "kind:Unknown size:4 dest:2 async:1", "Stream #8(MemcpyOther)", "host to device"),
        ("MEMORY_COPY_DEVICE_TO_HOST", "kind:Unknown size:4 dest:2 async:1", "Stream #8", "device to host"),
        ("MemcpyOther", NVIDIA.format("pageable", "array", 4), "Stream #1(MemcpyOther)", "host to device"),
        ("MemcpyOther", NVIDIA.format("array", "pinned", 4), "Stream #1", "device to host"),
        ("MemcpyOther", NVIDIA.format("managed", "device", 4), "Stream #1(MemcpyOther)", "other"),
        ("MemcpyOther", NVIDIA_OLD.format(4), "Stream #1(MemcpyD2H)", "device to host"),
        ("MemcpyOther", NVIDIA_OLD.format(4), "Stream #1(MemcpyD2H,MemcpyH2D)", "other"),
    ],
)
def test_the_kind_is_told_by_name_else_memories_else_stream(name: str, details: str, stream: str, kind: str) -> None:
    frame = table(gpu(event(name, 0, 1, memcpy_details=details), stream=stream))
    assert kinds(frame) == [kind]
    assert frame["size_bytes"].to_list() == [4]


@pytest.mark.parametrize("stat", ["memset_details", "Memset_details"])
def test_setting_memory_is_a_kind_of_its_own(stat: str) -> None:
    frame = table(gpu(event("Memset", 0, 2, {stat: "kind:device num_bytes:4096 async:1"})))
    assert frame[["kind", "occurrences", "size_bytes"]].to_numpy().tolist() == [["memory set", 1, 4096]]


def test_a_copy_without_details_is_told_by_its_name_and_has_no_size() -> None:
    frame = table(gpu(event("MemcpyH2D", 0, 2)))
    assert kinds(frame) == ["host to device"]
    assert frame["size_bytes"].isna().all()
    assert frame["bandwidth_bytes_per_s"].isna().all()


def test_one_size_unknown_leaves_the_sum_unknown_and_the_bandwidth_to_the_others() -> None:
    known = event("MemcpyH2D", 0, 2, memcpy_details="size:2000 dest:0 async:1")
    frame = table(gpu(known, event("MemcpyH2D", 3, 5)))
    assert frame["occurrences"].to_list() == [2]
    assert frame["size_bytes"].isna().all()
    assert frame["bandwidth_bytes_per_s"].to_list() == [1e9]


@pytest.mark.parametrize("details", ["size:-4", "size:four", "size:4x", "oversize:4", "size:9999999999999999999", ""])
def test_a_size_that_is_no_number_of_bytes_is_unknown(details: str) -> None:
    assert table(gpu(event("MemcpyH2D", 0, 2, memcpy_details=details)))["size_bytes"].isna().all()


def test_a_copy_that_took_no_time_counts_but_has_no_bandwidth() -> None:
    frame = table(gpu(event("MemcpyH2D", 0, 0, memcpy_details="size:8 dest:0 async:1")))
    assert frame[["occurrences", "size_bytes", "duration_us"]].to_numpy().tolist() == [[1, 8, 0.0]]
    assert frame["bandwidth_bytes_per_s"].isna().all()


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
        plane("/host:CPU", line("thread", event("MemcpyH2D", 0, 1, details))),
    )
    assert frame.empty
    assert list(frame.columns) == COPIES.column_names


def test_the_order_of_events_does_not_matter() -> None:
    events = [event(name, 4 * i, 1, memcpy_details=f"size:{i} dest:0") for i, name in enumerate(["MemcpyH2D"] * 3)]
    events.append(event("MemcpyD2H", 20, 3, memcpy_details="size:1 dest:0"))
    pd.testing.assert_frame_equal(table(gpu(*events)), table(gpu(*events[::-1])))


# Real profiles


def counted_one_by_one(profile: XSpace) -> dict[tuple[str, str], list[float]]:
    """(count, bytes, microseconds) by device and event name, of all events on streams that have `memcpy_details`."""
    out: dict[tuple[str, str], list[float]] = {}
    details = profile.strings("memcpy_details")
    recorded = recorded_lines(profile)
    names = {plane.index: plane.name for plane in device_planes(profile)}
    for row, code in zip(details.owners.tolist(), details.codes.tolist(), strict=True):
        device = names.get(int(profile.planes_of(np.array([row]))[0]))
        if device is None or not recorded[profile.events.line[row]]:
            continue  # hosts record the call that asked for a copy, with the same details
        name = str(profile.metadata_names[profile.events.metadata[row]])
        sums = out.setdefault((device, name), [0, 0, 0])
        size = re.search(r"size:(\d+)", details.labels[code])
        assert size is not None
        sums[0] += 1
        sums[1] += int(size[1])
        sums[2] += int(profile.events.duration_ps[row])
    return {key: [count, size, ps / 1e6] for key, (count, size, ps) in out.items()}


@pytest.mark.parametrize(
    ("name", "of_event"),
    [
        ("tf_gpu", {"MemcpyH2D": "host to device", "MemcpyD2H": "device to host"}),
        ("jax_conv_legacy", {"CopyDeviceToDevice": "device to device"}),
    ],
)
def test_every_copy_of_a_real_profile_is_counted_once(name: str, of_event: dict[str, str]) -> None:
    profile = read(sorted(run_path(name).glob("*.xplane.pb"))[0]).space
    expected = {(device, of_event[copy]): sums for (device, copy), sums in counted_one_by_one(profile).items()}
    frame = copies_of(profile).set_index(["device", "kind"])
    found = frame[["occurrences", "size_bytes", "duration_us"]].astype("float64")
    assert {key: row.to_list() for key, row in found.iterrows()} == {
        key: pytest.approx(sums) for key, sums in expected.items()
    }
    assert {c: str(t) for c, t in copies_of(profile).dtypes.items()} == {c.name: c.dtype for c in COPIES.columns}


@pytest.mark.parametrize("name", ["jax_elementwise", "jax_conv_08", "jax_tpu", "tf_cpu_base", "filters_16_8"])
def test_profiles_whose_copies_are_kernels_or_that_have_no_gpu_have_no_rows(name: str) -> None:
    assert copies_of(read(sorted(run_path(name).rglob("*.xplane.pb"))[0]).space).empty
