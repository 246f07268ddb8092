"""Peaks of devices, held against their data sheets."""

from __future__ import annotations

import math

import pytest

from tfcompare.hlo.peaks import Peaks, peaks_of
from tfcompare.hlo.shapes import mask_of

BF16, F32, F64, F8, S32 = 16, 11, 12, 20, 4


@pytest.mark.parametrize(
    ("vendor", "capability", "units", "mhz", "teraflops"),
    [
        ("Nvidia", (7, 0), 80, 1530, (125, 15.7)),  # V100 SXM2
        ("Nvidia", (7, 0), 80, 1380, (112, 14)),  # V100 PCIe
        ("Nvidia", (7, 5), 40, 1590, (65, 8.1)),  # T4
        ("Nvidia", (8, 0), 108, 1410, (312, 156)),  # A100
        ("Nvidia", (8, 6), 72, 1695, (125, 62.5)),  # A10
        ("Nvidia", (8, 9), 58, 2040, (121, 60)),  # L4
        ("Nvidia", (9, 0), 132, 1830, (989, 495)),  # H100 SXM
        ("AMD", (9, 4), 304, 2100, (1307.4, 163.4)),  # MI300X
        ("AMD", (9, 5), 256, 2400, (2516.6, 157.3)),  # MI355X
    ],
)
def test_gpus_reach_the_figures_of_their_data_sheets(
    vendor: str, capability: tuple[int, int], units: int, mhz: int, teraflops: tuple[float, float]
) -> None:
    stats = {"device_vendor": vendor, "compute_cap_major": capability[0], "compute_cap_minor": capability[1]}
    stats |= {"core_count": units, "clock_rate": mhz * 1000, "memory_bandwidth": 900 * 10**9, "memory_size": 16 * 10**9}
    found = peaks_of(stats)
    assert (found.flops_16_bit / 1e12, found.flops_32_bit / 1e12) == pytest.approx(teraflops, rel=0.02)
    assert found.bandwidth == (900e9 if vendor == "Nvidia" else 8.0e12 if capability == (9, 5) else 5.3e12)


def test_a_missing_minor_capability_is_zero() -> None:
    stats = {"device_vendor": "Nvidia", "compute_cap_major": 9, "core_count": 132, "clock_rate": 1_830_000}
    assert peaks_of(stats).flops_16_bit == pytest.approx(989e12, rel=0.01)
    assert math.isnan(peaks_of(stats).bandwidth)


def test_the_peak_depends_on_the_operands() -> None:
    peaks = Peaks(100.0, 10.0, 1.0)
    assert [peaks.flops(mask_of(types)) for types in ({BF16}, {F32}, {BF16, F32, S32})] == [100, 10, 100]
    assert all(math.isnan(peaks.flops(mask_of(types))) for types in ({F64}, {F8, BF16}, {S32}, set()))


@pytest.mark.parametrize("stats", [{}, {"device_vendor": "Nvidia", "compute_cap_major": 6}, {"device_vendor": 5}])
def test_an_unknown_device_has_no_peaks(stats: dict[str, object]) -> None:
    assert all(math.isnan(peak) for peak in peaks_of(stats))
