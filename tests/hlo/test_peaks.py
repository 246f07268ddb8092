"""Peaks of devices, held against their data sheets."""

from __future__ import annotations

import math

import pytest

from tfcompare.hlo.peaks import Peaks, peaks_of
from tfcompare.hlo.shapes import mask_of

BF16, F32, F64, F8, S32 = 16, 11, 12, 20, 4


V100, T4, A100, A10, L4, H100 = (
    ("Nvidia", 7, 0),
    ("Nvidia", 7, 5),
    ("Nvidia", 8, 0),
    ("Nvidia", 8, 6),
    ("Nvidia", 8, 9),
    ("Nvidia", 9, 0),
)
B200, B300, RTX_50, MI200, MI300, MI350 = (
    ("Nvidia", 10, 0),
    ("Nvidia", 10, 3),
    ("Nvidia", 12, 0),
    ("AMD", 9, 0),
    ("AMD", 9, 4),
    ("AMD", 9, 5),
)
OPERANDS = {"bf16": 16, "f32": 11, "fp8": 20, "int8": 2, "fp4": 32, "int4": 21}


@pytest.mark.parametrize(
    ("name", "capability", "units", "mhz", "tera"),
    [
        ("Tesla V100-SXM2", V100, 80, 1530, {"bf16": 125, "f32": 15.7}),
        ("Tesla V100-PCIE", V100, 80, 1380, {"bf16": 112, "f32": 14}),
        ("Tesla T4", T4, 40, 1590, {"bf16": 65, "f32": 8.1, "int8": 130, "int4": 260}),
        ("NVIDIA GeForce RTX 2080 Ti", T4, 68, 1545, {"bf16": 53.8, "f32": 13.4, "int8": 215, "int4": 430}),
        ("NVIDIA A100", A100, 108, 1410, {"bf16": 312, "f32": 156, "int8": 624, "int4": 1248}),
        ("NVIDIA A10", A10, 72, 1695, {"bf16": 125, "f32": 62.5, "int8": 250, "int4": 500}),
        ("NVIDIA GeForce RTX 3090", A10, 82, 1695, {"bf16": 71, "f32": 35.6, "int8": 284, "int4": 568}),
        ("NVIDIA L4", L4, 58, 2040, {"bf16": 121, "f32": 60, "fp8": 242, "int8": 242}),
        (
            "NVIDIA GeForce RTX 4090",
            L4,
            128,
            2520,
            {"bf16": 165.2, "f32": 82.6, "fp8": 330.3, "int8": 660.6, "int4": 1321.2},
        ),
        ("NVIDIA H100 80GB HBM3", H100, 132, 1830, {"bf16": 989, "f32": 495, "fp8": 1979, "int8": 1979}),
        ("NVIDIA B200", B200, 148, 1856, {"bf16": 2250, "f32": 1125, "fp8": 4500, "int8": 4500, "fp4": 9000}),
        ("NVIDIA B300 SXM6 AC", B300, 148, 1856, {"bf16": 2250, "f32": 1125, "fp8": 4500, "fp4": 13500}),
        (
            "NVIDIA GeForce RTX 5090",
            RTX_50,
            170,
            2407,
            {"bf16": 209.5, "f32": 104.8, "fp8": 419, "int8": 838, "fp4": 1676},
        ),
        (
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            RTX_50,
            188,
            2617,
            {"bf16": 503.8, "f32": 251.9, "fp8": 1007.6, "int8": 1007.6, "fp4": 2015.2},
        ),
        ("AMD Instinct MI210", MI200, 104, 1700, {"bf16": 181, "f32": 45.3, "int8": 181}),
        ("gfx90a", MI200, 110, 1700, {"bf16": 191.5, "f32": 47.9, "int8": 191.5}),
        ("gfx942", MI300, 304, 2100, {"bf16": 1307.4, "f32": 163.4, "fp8": 2614.9, "int8": 2614.9}),
        ("", MI350, 256, 2400, {"bf16": 2516.6, "f32": 157.3, "fp8": 5033.2, "int8": 5033.2, "fp4": 10066.3}),
    ],
)
def test_gpus_reach_the_figures_of_their_data_sheets(
    name: str, capability: tuple[str, int, int], units: int, mhz: int, tera: dict[str, float]
) -> None:
    found = peaks_of(device(capability, name, core_count=units, clock_rate=mhz * 1000, memory_size=64 * 10**9))
    assert {of: found.flops(mask_of({OPERANDS[of]})) / 1e12 for of in tera} == pytest.approx(tera, rel=0.02)
    bandwidths = {MI200: 1.6e12, MI300: 5.3e12, MI350: 8.0e12}
    assert found.bandwidth == bandwidths.get(capability, 900e9)


def device(capability: tuple[str, int, int], name: str = "", **stats: int) -> dict[str, object]:
    vendor, major, minor = capability
    found = {"device_vendor": vendor, "compute_cap_major": major, "compute_cap_minor": minor, "gpu_device_name": name}
    return found | {"core_count": 100, "clock_rate": 1_000_000, "memory_bandwidth": 900 * 10**9} | stats


@pytest.mark.parametrize(
    ("kind", "fp8", "int8"),
    [("TPU v5 Lite", 1, 2), ("TPU v6 Lite", 1, 2), ("TPU7x", 2, 1), ("TPU v4", 1, 1), ("", 1, 1)],
)
def test_some_tpus_are_twice_as_fast_with_8_bits(kind: str, fp8: int, int8: int) -> None:
    stats = {"peak_teraflops_per_second": 100.0, "peak_hbm_bw_gigabytes_per_second": 1.0, "device_type_string": kind}
    found = [peaks_of(stats).flops(mask_of({OPERANDS[of]})) for of in ("bf16", "f32", "fp8", "int8")]
    assert found == [1e14, 1e14, fp8 * 1e14, int8 * 1e14]


def test_where_the_capability_does_not_tell_the_board_its_name_does() -> None:
    boards = [(RTX_50, "NVIDIA RTX 1000 Blackwell"), (RTX_50, ""), (MI200, "gfx908"), (MI200, "")]
    assert all(all(map(math.isnan, peaks_of(device(*board)))) for board in boards)


def test_a_missing_minor_capability_is_zero() -> None:
    stats = {"device_vendor": "Nvidia", "compute_cap_major": 9, "core_count": 132, "clock_rate": 1_830_000}
    assert peaks_of(stats).flops_16_bit == pytest.approx(989e12, rel=0.01)
    assert math.isnan(peaks_of(stats).bandwidth)


def test_the_peak_depends_on_the_operands() -> None:
    peaks = Peaks(100.0, 10.0, 1.0, flops_fp8=200.0)
    known = {(BF16,): 100, (F32,): 10, (BF16, F32, S32): 100, (F8,): 200, (F8, BF16): 100, (F8, F32, S32): 10}
    assert {types: peaks.flops(mask_of(types)) for types in known} == known
    assert all(math.isnan(peaks.flops(mask_of(types))) for types in ({F64}, {S32}, {F64, F32}, set()))


@pytest.mark.parametrize("narrow", ["int8", "fp4", "int4"])
def test_narrow_types_without_a_peak_of_their_own_have_that_of_16_bits(narrow: str) -> None:
    assert Peaks(100.0, 10.0, 1.0, flops_fp8=200.0).flops(mask_of({OPERANDS[narrow]})) == 100


@pytest.mark.parametrize("stats", [{}, {"device_vendor": "Nvidia", "compute_cap_major": 6}, {"device_vendor": 5}])
def test_an_unknown_device_has_no_peaks(stats: dict[str, object]) -> None:
    assert all(math.isnan(peak) for peak in peaks_of(stats))
