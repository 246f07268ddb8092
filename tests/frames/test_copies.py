"""`copies`: by hand on tiny profiles of every dialect, and counted another way on real ones."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from tests.frames.tables import host, host_frame
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
    frame = table(gpu(event(name, 0, 1, memcpy_details=details), stream=stream))
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
    (found,) = table(gpu(*events)).drop(columns=["host", "device"]).to_numpy().tolist()
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
