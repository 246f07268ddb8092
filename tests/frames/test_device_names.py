"""What a device is called: its model where that is known, else what is recorded of it."""

from __future__ import annotations

import pytest

from tests.xspace_builder import event, line, plane, space
from tfcompare.frames.origin import origin_of
from tfcompare.xspace import parse


@pytest.mark.parametrize(
    ("vendor", "capability", "units", "gigabytes", "name"),
    [
        ("Nvidia", (7, 5), 40, 15.8, "NVIDIA Tesla T4, 15.8 GB"),
        ("Nvidia", (7, 5), 40, 8.4, "Nvidia, compute capability 7.5, 40 SMs, 8.4 GB"),
        ("Nvidia", (9, 0), 132, 85.0, "NVIDIA H100, 85.0 GB"),
        ("Nvidia", (9, 0), 132, 150.1, "Nvidia, compute capability 9.0, 132 SMs, 150.1 GB"),
        ("AMD", (7, 5), 40, 15.8, "AMD, compute capability 7.5, 40 compute units, 15.8 GB"),
    ],
)
def test_a_gpu_is_called_by_its_model_where_that_is_sure(
    vendor: str, capability: tuple[int, int], units: int, gigabytes: float, name: str
) -> None:
    stats = {
        "device_vendor": vendor, "compute_cap_major": capability[0], "compute_cap_minor": capability[1],
        "core_count": units, "memory_size": round(gigabytes * 1e9),
    }  # fmt: skip
    gpu = plane("/device:GPU:0", line("Stream #1", event("kernel", 0, 1)), stats=stats)
    assert origin_of(parse(space(gpu))).device_name == name


def test_a_gpu_that_says_its_name_is_called_by_it() -> None:
    gpu = plane(
        "/device:GPU:0", line("Stream #1", event("k", 0, 1)), stats={"gpu_device_name": "NVIDIA H100 80GB HBM3"}
    )
    assert origin_of(parse(space(gpu))).device_name == "NVIDIA H100 80GB HBM3"
