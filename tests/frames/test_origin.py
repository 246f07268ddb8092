"""What a profile tells of the software and devices that it was recorded with, and of how the profiler was set."""

from __future__ import annotations

import pytest

from tests.profiles import loaded_run
from tests.xspace_builder import Stats, event, integer, line, plane, space
from tfcompare.frames.origin import Origin, origin_of
from tfcompare.frames.recorded import recording_of
from tfcompare.xspace import parse


def read(profile: bytes) -> Origin:
    parsed = parse(profile)
    return origin_of(parsed, recording_of(parsed))


def origin(**stats: dict[str, str | bytes]) -> Origin:
    names = {"metadata": "/host:metadata", "environment": "Task Environment"}
    host = plane("/host:CPU", line("python", event("x", 0, 1)))
    return read(space(host, *(plane(names[which], stats=one) for which, one in stats.items())))


def test_versions_are_sorted_and_those_of_cuda_read_like_its_own() -> None:
    stats = (
        {"jaxlib_version": "0.11.2", "jax_version": "0.11.2", "cpu_version": "cpu", "gpu_version": "cuda 12040"}
        | {"cuda_version": "12040", "cuda_runtime_version": "12040", "cuda_driver_version": "13010"}
        | {"tpu_version": "libtpu 0.0.21, built\non Nov 3", "process_id": "7"}
    )
    assert origin(metadata=stats).versions == (
        ("cuda", "12.4"),
        ("cuda driver", "13.1"),
        ("jax", "0.11.2"),
        ("jaxlib", "0.11.2"),
        ("tpu", "libtpu 0.0.21, built on Nov 3"),
    )


@pytest.mark.parametrize("version", ["", "x", "1" * 5000, "٣٠٠٠", "-1"])
def test_a_strange_version_is_shown_as_it_is(version: str) -> None:
    (found,) = origin(metadata={"cuda_version": version}).versions or (("cuda", ""),)
    assert found[1].removesuffix(" …") == version[:300]


def test_the_levels_of_tracers_are_read_and_those_that_are_absent_are_zero() -> None:
    options = integer(1, 1) + integer(2, 2) + integer(4, 1) + integer(7, 1)
    levels = (("host tracer", "2"), ("device tracer", "0"), ("Python tracer", "1"))
    assert origin(environment={"profile_options": options}).profiler_options == levels


@pytest.mark.parametrize("options", [b"\x10", b"\xff\xff", "text"])
def test_damaged_options_are_none_and_a_profile_without_them_has_none(options: bytes | str) -> None:
    assert origin(environment={"profile_options": options}).profiler_options == ()
    assert origin() == origin(metadata={}, environment={})
    assert origin().versions == origin().profiler_options == ()


def test_run_info_lists_them() -> None:
    info = loaded_run("jax_filters_16_8").info
    assert info.versions == "jax 0.10.2, jaxlib 0.10.2"
    assert info.profiler_options == "host tracer 2, device tracer 1, Python tracer 0"


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
    major, minor = capability
    stats = {"device_vendor": vendor, "compute_cap_major": major, "compute_cap_minor": minor}
    stats |= {"core_count": units, "memory_size": round(gigabytes * 1e9)}
    gpu = plane("/device:GPU:0", line("Stream #1", event("kernel", 0, 1)), stats=stats)
    assert read(space(gpu)).device_name == name


def test_a_gpu_that_says_its_name_is_called_by_it() -> None:
    stats: Stats = {"gpu_device_name": "NVIDIA H100 80GB HBM3"}
    gpu = plane("/device:GPU:0", line("Stream #1", event("k", 0, 1)), stats=stats)
    assert read(space(gpu)).device_name == "NVIDIA H100 80GB HBM3"
