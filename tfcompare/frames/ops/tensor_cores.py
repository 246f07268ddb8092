"""Whether a kernel uses tensor cores (AMD: matrix cores), and whether its op could, judged by their names.

Profiles do not record this. The names are those that xprof 2.24.2 uses, and those of newer NVIDIA libraries that it
does not know: on an H100 with cuBLAS 13, a bfloat16 matrix product at 80 % of the peak was no tensor core kernel to it.
"""

from __future__ import annotations

import re

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
