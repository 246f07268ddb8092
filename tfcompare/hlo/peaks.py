"""What a device can do at most: floating-point operations and bytes per second."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import NamedTuple

from tfcompare.hlo.shapes import mask_of

_NAN = float("nan")
_HZ_PER_KHZ = 1e3
_64_BIT, _32_BIT, _16_BIT = mask_of({12, 18}), mask_of({11, 15}), mask_of({10, 16})
_FP8, _INT8 = mask_of({19, 20, 23, 24, 25, 28, 29, 33}), mask_of({2, 6})
_FP4, _INT4 = mask_of({32}), mask_of({21, 22})


class Peaks(NamedTuple):
    """FLOP/s by the type of operands, bytes/s of the device's main memory; NaN if unknown."""

    flops_16_bit: float = _NAN
    flops_32_bit: float = _NAN
    bandwidth: float = _NAN
    flops_fp8: float = _NAN
    flops_int8: float = _NAN
    flops_fp4: float = _NAN
    flops_int4: float = _NAN

    def flops(self, types: int) -> float:
        """The peak for operands of these element types (`shapes.mask_of`), of which the widest count, but 16-bit floats
        before 32-bit ones, in which their products are summed; NaN if none is known for them.

        Types of 8 and 4 bits without a peak of their own have that of 16 bits, as in xprof.
        """
        if types & _64_BIT:
            return _NAN
        if types & _16_BIT:
            return self.flops_16_bit
        if types & _32_BIT:
            return self.flops_32_bit
        own = ((_FP8, self.flops_fp8), (_INT8, self.flops_int8), (_FP4, self.flops_fp4), (_INT4, self.flops_int4))
        found = next((peak for narrow, peak in own if types & narrow), None)
        if found is None:
            return _NAN
        return self.flops_16_bit if isnan(found) else found


class _Rate(NamedTuple):
    """FLOPs per clock of one compute unit: dense matrix products that are summed in 32 bits, of 16-bit operands, of
    32-bit operands (TF32 where the device has it, since XLA uses it for `f32`), and of narrower ones."""

    flops_16_bit: float
    flops_32_bit: float
    fp8: float = _NAN
    int8: float = _NAN
    fp4: float = _NAN
    int4: float = _NAN


_ANY = ""
_GEFORCE = "geforce"  # its boards sum products of floats in 32 bits at half the rate of others
_CDNA2 = _Rate(1024, 256, int8=1024)

_RATES: dict[tuple[object, object, object], dict[str, _Rate]] = {
    # "NVIDIA Tesla V100 GPU Architecture", table 1: 125 and 15.7 TFLOPS
    ("Nvidia", 7, 0): {_ANY: _Rate(1024, 128)},
    # "NVIDIA Turing GPU Architecture", appendixes (T4): 65 and 8.1 TFLOPS, 130 and 260 TOPS; (RTX 2080 Ti): 53.8 TFLOPS
    ("Nvidia", 7, 5): {_GEFORCE: _Rate(512, 128, int8=2048, int4=4096), _ANY: _Rate(1024, 128, int8=2048, int4=4096)},
    # "NVIDIA A100 Tensor Core GPU Architecture", table 1: 312 and 156 TFLOPS, 624 and 1,248 TOPS
    ("Nvidia", 8, 0): {_ANY: _Rate(2048, 1024, int8=4096, int4=8192)},
    # "NVIDIA A10 datasheet": 125 and 62.5 TFLOPS, 250 and 500 TOPS; "NVIDIA Ampere GA102 GPU Architecture" (RTX 3090):
    # 71 and 35.6 TFLOPS, 284 and 568 TOPS
    ("Nvidia", 8, 6): {_GEFORCE: _Rate(512, 256, int8=2048, int4=4096), _ANY: _Rate(1024, 512, int8=2048, int4=4096)},
    # "NVIDIA L4 datasheet": 121, 60 and 242 TFLOPS dense, 242 TOPS; "NVIDIA Ada GPU Architecture" (RTX 4090): 165.2,
    # 82.6 and 330.3 TFLOPS, 660.6 and 1,321.2 TOPS
    ("Nvidia", 8, 9): {
        _GEFORCE: _Rate(512, 256, fp8=1024, int8=2048, int4=4096),
        _ANY: _Rate(1024, 512, fp8=2048, int8=2048, int4=4096),
    },
    # "NVIDIA H100 Tensor Core GPU Architecture", table 2: 989, 495 and 1,979 TFLOPS, 1,979 TOPS
    ("Nvidia", 9, 0): {_ANY: _Rate(4096, 2048, fp8=8192, int8=8192)},
    # "NVIDIA Blackwell datasheet" (B200): 2,250, 1,125, 4,500 and 9,000 TFLOPS dense, 4,500 TOPS
    ("Nvidia", 10, 0): {_ANY: _Rate(8192, 4096, fp8=16384, int8=16384, fp4=32768)},
    # "NVIDIA Blackwell Ultra datasheet" (HGX B300): 2,250, 1,125, 4,500 and 13,500 TFLOPS dense, 150 TOPS
    ("Nvidia", 10, 3): {_ANY: _Rate(8192, 4096, fp8=16384, int8=512, fp4=49152)},
    # "NVIDIA RTX Blackwell GPU Architecture", appendix (RTX 5090): 209.5, 104.8, 419 and 1,676 TFLOPS, 838 TOPS;
    # "NVIDIA RTX PRO Blackwell GPU Architecture" (RTX PRO 6000): 503.8, 251.9, 1,007.6 and 2,015.2 TFLOPS, 1,007.6 TOPS
    ("Nvidia", 12, 0): {
        _GEFORCE: _Rate(512, 256, fp8=1024, int8=2048, fp4=4096),
        "rtx pro 6000": _Rate(1024, 512, fp8=2048, int8=2048, fp4=4096),
    },
    # "NVIDIA DGX Spark" (GB10): 500 TFLOPS of FP4, half of those with sparsity; no others are published
    ("Nvidia", 12, 1): {_ANY: _Rate(_NAN, _NAN, fp4=4096)},
    # "AMD CDNA 2 Architecture", table 1 (MI250X): 383 and 95.7 TFLOPS, 383 TOPS, of two devices; MI100 has 9.0, too
    ("AMD", 9, 0): {"gfx90a": _CDNA2, "mi210": _CDNA2, "mi250": _CDNA2},
    # "AMD Instinct MI300X data sheet": 1,307.4, 163.4 and 2,614.9 TFLOPS, 2,614.9 TOPS
    ("AMD", 9, 4): {_ANY: _Rate(2048, 256, fp8=4096, int8=4096)},
    # "AMD Instinct MI355X data sheet": 2,516.6, 157.3, 5,033.2 and 10,066.3 TFLOPS, 5,033.2 TOPS
    ("AMD", 9, 5): {_ANY: _Rate(4096, 256, fp8=8192, int8=8192, fp4=16384)},
}
"""By vendor and compute capability, then by what the device's name contains: the first that fits. Times compute units
and clock they give the figures of the source, which are in the order of `_Rate`."""

_AMD_BANDWIDTHS: dict[tuple[object, object], tuple[tuple[float, float], ...]] = {
    (9, 0): ((0.0, 1.6e12),),  # MI210 data sheet; MI250X: 3.2e12 of two devices
    (9, 4): ((250e9, 6.0e12), (0.0, 5.3e12)),  # MI325X and MI300X data sheets
    (9, 5): ((0.0, 8.0e12),),  # MI355X data sheet
}
"""(least memory in bytes, bytes/s): AMD's profiler reports half the rate of double-pumped memory."""

_TPU_8_BIT: dict[str, tuple[float, float]] = {
    "tpu v5 lite": (_NAN, 2.0),  # "TPU v5e", Google Cloud: 197 TFLOPS of bf16, 393 TOPS
    "tpu v6 lite": (_NAN, 2.0),  # "TPU v6e", Google Cloud: 918 TFLOPS of bf16, 1,836 TOPS
    "tpu7x": (2.0, _NAN),  # "TPU7x", Google Cloud: 2,307 TFLOPS of bf16, 4,614 of FP8
}
"""The peaks of FP8 and of INT8 by that of bf16, which TPUs record."""


def peaks_of(stats: Mapping[str, object]) -> Peaks:
    """The peaks of a device, from the stats of its plane.

    TPUs record theirs. Those of GPUs follow from compute capability, compute units and clock, and from the name where
    boards of one capability differ; NVIDIA's profiler records the bandwidth.
    """
    teraflops = _number(stats, "peak_teraflops_per_second")
    gigabytes = _number(stats, "peak_hbm_bw_gigabytes_per_second")
    if teraflops > 0 and gigabytes > 0:
        recorded = teraflops * 1e12
        fp8, int8 = _TPU_8_BIT.get(_text(stats, "device_type_string"), (_NAN, _NAN))
        return Peaks(recorded, recorded, gigabytes * 1e9, flops_fp8=fp8 * recorded, flops_int8=int8 * recorded)
    capability = stats.get("compute_cap_major"), stats.get("compute_cap_minor", 0)
    vendor, name = stats.get("device_vendor"), _text(stats, "gpu_device_name")
    rates = _RATES.get((vendor, *capability), {})
    rate = next((found for part, found in rates.items() if part in name), None)
    if rate is None:
        return Peaks()
    clocks = _number(stats, "core_count") * _number(stats, "clock_rate") * _HZ_PER_KHZ
    bandwidth = _number(stats, "memory_bandwidth")
    if vendor == "AMD":
        memory = _number(stats, "memory_size")
        bandwidth = next((found for least, found in _AMD_BANDWIDTHS[capability] if memory > least), _NAN)
    of_16_bit, of_32_bit, *narrower = (per_clock * clocks for per_clock in rate)
    return Peaks(of_16_bit, of_32_bit, bandwidth, *narrower)


def _text(stats: Mapping[str, object], name: str) -> str:
    """The text in that stat in small letters, empty if there is none."""
    value = stats.get(name)
    return value.lower() if isinstance(value, str) else ""


def _number(stats: Mapping[str, object], name: str) -> float:
    """The positive number in that stat, NaN if there is none."""
    value = stats.get(name)
    is_number = isinstance(value, int | float) and 0 < value < 1e18
    return float(value) if is_number else _NAN  # type: ignore[arg-type]
