"""The table of kernels, and which of them use tensor cores.

Profiles do not record this. The names are those that xprof 2.24.2 uses, and those of newer NVIDIA libraries that it
does not know: on an H100 with cuBLAS 13, a bfloat16 matrix product at 80 % of the peak was no tensor core kernel to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.grouping import any_of, cells_by_step, combinations, largest, smallest, sums
from tfcompare.frames.ops.kernel_details import KERNEL_DETAILS, is_kernel, parse_kernel_details
from tfcompare.frames.ops.launches import launched_on_devices
from tfcompare.frames.planes import device_rows
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

_VENDOR = "device_vendor"
_FLAGS = ["is_op_tensor_core_eligible", "is_kernel_using_tensor_core"]
_NVIDIA = re.compile(
    r"16816|c1688|h1688|s1688|h884|s884|i8816|i16832|hmma|xmma_gemm|xmma_implicit_gemm|xmma_sparse_conv|xmma_sparse_gemm"
    r"|xmma_warp_specialized_implicit_gemm|conv1x1|conv2d_c1_k1|dgrad_1x1_stride_2x2|direct_group"
    r"|first_layer_wgrad_kernel"
)
_NVIDIA_NEWER = re.compile(r"nvjet_|tensorop|warpgroupsize|_tensor\d+x\d+x\d+")
"""cuBLAS' products since Hopper, CUTLASS' tensor operations, and cuDNN's names that have an instruction's shape."""
_NVIDIA_FP32 = re.compile(r"_ffma_|_simt_")
"""NVIDIA kernels that multiply in plain float32, even if their name matches one of the above (`xmma_gemm…_ffma_`)."""
_AMD = re.compile(
    r"_xdl|mfma|wmma|_MI\d+x\d+x\d+|Custom_Cijk_|gemm_fusion|gtcx|moe_gemm|moe_mxgemm|miopenSp3AsmConvRage|aiter|attn_fwd"
    r"|FMHA_FWD|bwd_kernel_|Tile(Gemm|Fmha|FmhaBwd|Flatmm|SageAttn)Shape<",
    re.ASCII,
)
_AMD_HELPER = re.compile(r"_odo_|_dq_convert|_dq_shuffle|topksoftmax|DqAccPrezeroKernel")
"""AMD kernels that only prepare or convert data for those above, even if their name matches `_AMD`."""

_ELIGIBLE = re.compile(
    r"(Conv2D|Conv2DBackpropFilter|Conv2DBackpropInput|Conv3D|DepthwiseConv2dNative"
    r"|DepthwiseConv2dNativeBackpropFilter|DepthwiseConv2dNativeBackpropInput|/MatMul|FusedMatMul|/CudnnRNN|XlaDot|XlaDotV2)\Z"
    r"|BatchMatMul|CudnnRNNV|CudnnRNNForward|CudnnRNNBackprop|dot_general|conv_general_dilated"
)


class _Key(NamedTuple):
    """What identifies a row of `kernel_stats` of one host."""

    kernel_name: str
    op_name: str
    block_dim: str
    grid_dim: str
    registers_per_thread: int | None
    shared_memory_bytes: int | None


@dataclass(frozen=True, eq=False)
class Kernels:
    """`stats` is the table `kernel_stats`, longest total first; no rows if no GPU recorded a kernel.

    `cells` is `kernel_cells`, which breaks them down by step, without kernels outside all steps: row (in `stats`), step
    (its number), occurrences and time_us.
    """

    stats: pa.Table
    cells: pa.Table


def kernels_of(space: XSpace, steps: Steps) -> Kernels:
    """The kernels of one host.

    A kernel is an event on a recorded stream that has launch details and a duration, as in xprof.
    """
    rows = device_rows(space)
    rows = rows[is_kernel(space)[rows] & (space.events.duration_ps[rows] > 0)]
    if not len(rows):
        return Kernels(empty("kernel_stats"), empty("kernel_cells"))
    keys, flags, row = _rows(space, rows)
    duration_ps, count = space.events.duration_ps[rows], len(keys)
    occurrences, total_ps = np.bincount(row, minlength=count), sums(row, duration_ps, count)
    shown = [
        (-total, key.kernel_name, key.grid_dim, key.block_dim, key.op_name)
        for key, total in zip(keys, total_ps.tolist(), strict=True)
    ]
    order = np.array(sorted(range(count), key=shown.__getitem__), np.int64)
    stats = {
        **dict(zip(_Key._fields, zip(*(keys[i] for i in order.tolist()), strict=True), strict=True)),
        "occurrences": occurrences[order],
        "total_duration_us": total_ps[order] / PS_PER_US,
        "avg_duration_us": (total_ps / occurrences)[order] / PS_PER_US,
        "min_duration_us": smallest(row, duration_ps, count)[order] / PS_PER_US,
        "max_duration_us": largest(row, duration_ps, count)[order] / PS_PER_US,
        **{name: of_row[order] for name, of_row in flags.items()},
    }
    cell_row, numbers, inside, code = cells_by_step(np.argsort(order)[row], steps.of_event[rows], steps.number)
    cells = {
        "row": cell_row,
        "step": numbers,
        "occurrences": np.bincount(code, minlength=len(cell_row)),
        "time_us": sums(code, duration_ps[inside], len(cell_row)) / PS_PER_US,
    }
    return Kernels(host_table("kernel_stats", stats), host_table("kernel_cells", cells))


def _rows(space: XSpace, rows: Int32) -> tuple[list[_Key], dict[str, Bools], Int64]:
    """(the key of each row of the table, its flags by column, the row of each event)."""
    metadata = space.events.metadata[rows]
    details, equations = space.strings(KERNEL_DETAILS), space.strings("equation")
    launch, launched = launched_on_devices(space)
    columns = (metadata, launch[rows], details.spread()[rows], equations.spread()[rows])
    op_names = np.where(launched.has_op, launched.names, launched.xla_names).tolist()
    firsts, combination = combinations(*columns)
    parsed = [parse_kernel_details(label) for label in details.labels]
    vendors = [str(plane.stats.get(_VENDOR, "")) for plane in space.planes]
    is_kernel_using, is_op_eligible = cache(uses_tensor_cores), cache(is_eligible)
    keys: dict[_Key, int] = {}
    found = []
    for entry, of_launch, of_details, of_equation in zip(*(column[firsts].tolist() for column in columns), strict=True):
        kernel, op_name = str(space.metadata_names[entry]), op_names[of_launch]
        equation = equations.labels[of_equation] if of_equation >= 0 else ""
        is_used = is_kernel_using(kernel, vendors[space.metadata_plane[entry]])
        row = keys.setdefault(_Key(kernel, op_name, *parsed[of_details]), len(keys))
        found.append((row, is_used or is_op_eligible(op_name, equation), is_used))
    of_combination, *flags = np.array(found, np.int64).T
    flags_of_row = [any_of(of_combination, flag > 0, len(keys)) for flag in flags]
    return list(keys), dict(zip(_FLAGS, flags_of_row, strict=True)), of_combination[combination]


def uses_tensor_cores(kernel_name: str, vendor: str) -> bool:
    """Whether the kernel's name is one of a kernel that uses tensor cores.

    `vendor` is the device plane's; if it is empty, names of both vendors count.
    """
    vendor = vendor.casefold()
    if vendor in ("nvidia", "") and (_NVIDIA.search(kernel_name) or _NVIDIA_NEWER.search(kernel_name)):
        return not _NVIDIA_FP32.search(kernel_name)
    is_amd = vendor in ("amd", "") and _AMD.search(kernel_name) is not None
    return is_amd and not _AMD_HELPER.search(kernel_name)


def is_eligible(op_name: str, equation: str) -> bool:
    """Whether the op multiplies matrices, judged by its name or by an einsum `equation` of two operands."""
    if _ELIGIBLE.search(op_name):
        return True
    sides = equation.split("->")
    return len(sides) == 2 and len(sides[0].split(",")) == 2
