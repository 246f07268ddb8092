"""What a device can do at most: floating-point operations and bytes per second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tfcompare.hlo.shapes import FLOATING, mask_of

_NAN = float("nan")
_HZ_PER_KHZ = 1e3
_FLOATING, _SIXTEEN_BIT = mask_of(FLOATING), mask_of({10, 16})
_DOUBLE_OR_EIGHT_BIT = mask_of({12, 18, 19, 20, 23, 24, 25, 28, 29, 32, 33})


class Peaks(NamedTuple):
    """FLOP/s with 16-bit and with 32-bit operands, bytes/s of the device's main memory; NaN if unknown."""

    flops_16_bit: float = _NAN
    flops_32_bit: float = _NAN
    bandwidth: float = _NAN

    def flops(self, types: int) -> float:
        """The peak for operands of these element types (`shapes.mask_of`); NaN if none is known for them."""
        if not types & _FLOATING or types & _DOUBLE_OR_EIGHT_BIT:
            return _NAN
        return self.flops_16_bit if types & _SIXTEEN_BIT else self.flops_32_bit


class _Rate(NamedTuple):
    """FLOPs per clock of one compute unit: matrix products of dense 16-bit operands, and of 32-bit operands (TF32 where
    the device has it, since XLA uses it for `f32`)."""

    flops_16_bit: int
    flops_32_bit: int


_RATES: dict[tuple[object, object, object], _Rate] = {
    ("Nvidia", 7, 0): _Rate(1024, 128),  # "NVIDIA Tesla V100 GPU Architecture", table 1: 125 and 15.7 TFLOPS
    ("Nvidia", 7, 5): _Rate(1024, 128),  # "NVIDIA Turing GPU Architecture", appendix (T4): 65 and 8.1 TFLOPS
    ("Nvidia", 8, 0): _Rate(2048, 1024),  # "NVIDIA A100 Tensor Core GPU Architecture", table 1: 312 and 156 TFLOPS
    ("Nvidia", 8, 6): _Rate(1024, 512),  # "NVIDIA A10 datasheet": 125 and 62.5 TFLOPS; half of it on GeForce boards
    ("Nvidia", 8, 9): _Rate(1024, 512),  # "NVIDIA L4 datasheet": 121 and 60 TFLOPS dense; half of it on GeForce boards
    ("Nvidia", 9, 0): _Rate(4096, 2048),  # "NVIDIA H100 Tensor Core GPU Architecture", table 2: 989 and 495 TFLOPS
    ("Nvidia", 10, 0): _Rate(8192, 4096),  # "NVIDIA Blackwell datasheet" (B200): 2,250 and 1,125 TFLOPS dense
    ("AMD", 9, 4): _Rate(2048, 256),  # "AMD Instinct MI300X data sheet": 1,307.4 and 163.4 TFLOPS
    ("AMD", 9, 5): _Rate(4096, 256),  # "AMD Instinct MI355X data sheet": 2,516.6 and 157.3 TFLOPS
}
"""By vendor and compute capability. Times compute units and clock they give the figures of the source."""

_AMD_BANDWIDTHS: dict[tuple[object, object], tuple[tuple[float, float], ...]] = {
    (9, 4): ((250e9, 6.0e12), (0.0, 5.3e12)),  # MI325X and MI300X data sheets
    (9, 5): ((0.0, 8.0e12),),  # MI355X data sheet
}
"""(least memory in bytes, bytes/s): AMD's profiler reports half the rate of double-pumped memory."""


def peaks_of(stats: Mapping[str, object]) -> Peaks:
    """The peaks of a device, from the stats of its plane.

    TPUs record theirs. Those of GPUs follow from compute capability, compute units and clock; NVIDIA's profiler records
    the bandwidth.
    """
    teraflops = _number(stats, "peak_teraflops_per_second")
    gigabytes = _number(stats, "peak_hbm_bw_gigabytes_per_second")
    if teraflops > 0 and gigabytes > 0:
        return Peaks(teraflops * 1e12, teraflops * 1e12, gigabytes * 1e9)
    capability = stats.get("compute_cap_major"), stats.get("compute_cap_minor", 0)
    vendor = stats.get("device_vendor")
    rate = _RATES.get((vendor, *capability))
    if rate is None:
        return Peaks()
    clocks = _number(stats, "core_count") * _number(stats, "clock_rate") * _HZ_PER_KHZ
    bandwidth = _number(stats, "memory_bandwidth")
    if vendor == "AMD":
        memory = _number(stats, "memory_size")
        bandwidth = next((found for least, found in _AMD_BANDWIDTHS[capability] if memory > least), _NAN)
    return Peaks(rate.flops_16_bit * clocks, rate.flops_32_bit * clocks, bandwidth)


def _number(stats: Mapping[str, object], name: str) -> float:
    """The positive number in that stat, NaN if there is none."""
    value = stats.get(name)
    is_number = isinstance(value, int | float) and 0 < value < 1e18
    return float(value) if is_number else _NAN  # type: ignore[arg-type]
