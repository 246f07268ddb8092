"""How a kernel was launched, read from its `kernel_details` text.

NVIDIA: `regs:32 static_shared:0 dynamic_shared:16384 grid:1,1,1 block:64,1,1 occ_pct:25`, in files of 2020 and before
`regs:16 shm:0 grid:1,1,1 block:1024,1,1`; AMD: `grid:16,1,1 block:512,1,1 private_mem:0 group_mem:2112 occ_pct:0`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfcompare.xspace import XSpace
from tfcompare.xspace.space import once_per_space

KERNEL_DETAILS = "kernel_details"
_DECLARED = r"(?i)^(?:[^<(]|\(anonymous namespace\))*"
"""A kernel's name without its template arguments and parameters, which name what it is made of."""
COLLECTIVE_KERNEL = (
    rf"{_DECLARED}(nccl|rccl|nvshmem|all_?reduce|all_?gather|all_?to_?all|reduce_?scatter|cross_device_reduce"
    "|multi_?gpu_?barrier)"
)
"""Kernels in which devices exchange data: of libraries, of XLA (`AllReduceKernelImpl`, `MultiGpuBarrierKernelImpl`),
TensorRT-LLM, PyTorch (`multimem_all_reduce_kernel`) and vLLM (`cross_device_reduce_1stage`) …"""
LOCAL_KERNEL = rf"{_DECLARED}((block|warp|wave|thread|lane|cta)_?all_?(reduce|gather)|softmax|reduce_scatter_\w*fusion)"
"""… but those in which threads of one device do, or in which XLA fused a reduction with a scatter."""

_SEPARATOR = re.compile(r"[ \n]")
_NUMBER = re.compile(r"[0-9]{1,10}")
_MAX_NUMBER = 2**32 - 1
_SHARED_MEMORY = ("static_shared", "dynamic_shared", "shm", "group_mem")
_MAX_REGISTERS = 1024
_NO_DIM = "1,1,1"


class KernelDetails(NamedTuple):
    """How a kernel was launched. Missing values are None, or `1,1,1` for dimensions."""

    block_dim: str
    grid_dim: str
    registers_per_thread: int | None
    shared_memory_bytes: int | None


@once_per_space
def is_kernel(space: XSpace) -> npt.NDArray[np.bool_]:
    """Whether each event has launch details, which copies and memory sets lack."""
    details = space.strings(KERNEL_DETAILS)
    return np.array([*map(bool, details.labels), False])[details.spread()]


def parse_kernel_details(details: str) -> KernelDetails:
    """Parse the `kernel_details` text; the last of repeated keys wins."""
    tokens = [token.split(":") for token in _SEPARATOR.split(details)]
    values = {token[0]: token[1] for token in tokens if len(token) == 2}
    registers = _number(values.get("regs", ""))
    shared = [number for key in _SHARED_MEMORY if (number := _number(values.get(key, ""))) is not None]
    if registers is not None and registers > _MAX_REGISTERS:
        # Old AMD profilers wrote the halves of an address here, the lower as `regs`, the upper as `static_shared`.
        registers, shared = None, []
    return KernelDetails(
        block_dim=_dim(values.get("block", "")),
        grid_dim=_dim(values.get("grid", "")),
        registers_per_thread=registers,
        shared_memory_bytes=sum(shared) if shared else None,
    )


def _dim(text: str) -> str:
    numbers = [_number(part) for part in text.split(",")]
    return ",".join(map(str, numbers)) if len(numbers) == 3 and None not in numbers else _NO_DIM


def _number(text: str) -> int | None:
    number = int(text) if _NUMBER.fullmatch(text) else _MAX_NUMBER + 1
    return number if number <= _MAX_NUMBER else None
