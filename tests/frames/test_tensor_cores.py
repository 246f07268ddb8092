"""Whether kernels use tensor cores: by the names that xprof goes by, and where xprof knows no vendor."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests.frames.tables import gpu, kernel, kernel_stats, stream, xprof_kernels
from tests.xspace_builder import space
from tfcompare.frames.ops.kernel_stats import is_eligible, uses_tensor_cores
from tfcompare.xspace import read

TENSOR_CORE_KERNELS = {
    "Nvidia": [
        *("volta_h884gemm_64x64_nn", "volta_fp16_s884cudnn_fp16", "turing_fp16_s1688cudnn_fp16", "sm75_h1688x"),
        *("sm80_xmma_gemm_f16f16", "sm80_xmma_implicit_gemm_x", "sm80_xmma_sparse_gemm_x", "sm80_xmma_sparse_conv_x"),
        *("ampere_fp16_s16816gemm_fp16", "turing_int8_i8816cudnn", "ampere_int8_i16832gemm"),
        *("cutlass_tensorop_c1688gemm", "maxwell_hmma_x", "first_layer_wgrad_kernel_x", "dgrad_1x1_stride_2x2_x"),
        *("conv1x1_x", "conv2d_c1_k1_x", "direct_group_x", "xmma_warp_specialized_implicit_gemm_x"),
    ],
    "AMD": [
        *("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN", "Custom_Cijk_Alik", "kernel_gemm_xdl_cshuffle"),
        *("mfma_x", "wmma_x", "gemm_fusion_dot_3", "igemm_fwd_gtcx_nhwc", "moe_gemm_x", "moe_mxgemm_x"),
        *("miopenSp3AsmConvRageRxS", "aiter::fmha", "attn_fwd.kd", "FMHA_FWD_x", "bwd_kernel_dk_dv"),
        *("ck_tile::TileFmhaShape<a>", "ck_tile::TileFmhaBwdShape<a>", "ck_tile::TileGemmShape<a>"),
        *("ck_tile::TileFlatmmShape<a>", "ck_tile::TileSageAttnShape<a>"),
    ],
}
PLAIN_KERNELS = [
    "sgemm_32x32x32_NN",
    "Cijk_Ailk_Bljk_SB_MT64x64x8_SN_1LDSB0",
    "loop_add_fusion",
    "MFMA",
    "ck_tile::TileFmhaShape",
    "aiter::fmha_bwd_odo_bf16",
    "aiter::topksoftmax_4x128",
    "ck_tile::FmhaBwdDqAccPrezeroKernel<TileFmhaBwdShape<a>>",
]
ELIGIBLE_OPS = [
    *("net/Conv2D", "net/Conv2DBackpropFilter", "net/Conv2DBackpropInput", "Conv3D", "a/DepthwiseConv2dNative"),
    *("a/DepthwiseConv2dNativeBackpropFilter", "a/DepthwiseConv2dNativeBackpropInput", "a/MatMul", "a/BatchMatMulV2_3"),
    *("a/_FusedMatMul", "a/CudnnRNN", "a/CudnnRNNV3_1", "a/CudnnRNNBackpropV2", "a/XlaDot", "a/XlaDotV2"),
    *("jit(f)/dot_general", "jit(f)/conv_general_dilated_1"),
]
PLAIN_OPS = ["MatMul", "a/MatMul_1", "a/Conv2D_1", "a/Relu", "a/einsum/Einsum", "jit(f)/dot", "a/MatMul/b"]
EQUATIONS = ["ab,bc->ac", "...a,ab->...b", "ab->ba", "a,b,c->abc", "ab,bc"]
KERNELS = [name for names in TENSOR_CORE_KERNELS.values() for name in names] + PLAIN_KERNELS
FLAGS = ["is_op_tensor_core_eligible", "is_kernel_using_tensor_core"]


def every_name() -> bytes:
    """A device for each vendor and one for none with every kernel, and one with a kernel for each op and equation."""
    planes = []
    for device, vendor in enumerate([*TENSOR_CORE_KERNELS, ""]):
        kernels = [kernel(f"{name}@{vendor}", 4 * i, 1, tf_op="a/Relu:Relu") for i, name in enumerate(KERNELS)]
        planes.append(stream(*kernels, device=device, stats={"device_vendor": vendor} if vendor else None))
    ops = [kernel(f"op {i}", 4 * i, 1, tf_op=f"{op}:X") for i, op in enumerate(ELIGIBLE_OPS + PLAIN_OPS)]
    sums = [kernel(f"sum {e}", 4 * i, 1, tf_op="a/Einsum:Einsum", equation=e) for i, e in enumerate(EQUATIONS)]
    return space(*planes, stream(*ops, *sums, device=9, stats={"device_vendor": "Nvidia"}))


def test_flags_are_xprofs_and_without_a_vendor_the_names_still_tell(tmp_path: Path) -> None:
    file = tmp_path / "h.xplane.pb"
    file.write_bytes(every_name())
    xprof = xprof_kernels(file).set_index("kernel_name")[FLAGS]
    ours = kernel_stats(read(file).space, "h").set_index("kernel_name").loc[xprof.index, FLAGS]
    has_vendor = ~xprof.index.str.endswith("@")
    pd.testing.assert_frame_equal(ours[has_vendor], xprof[has_vendor])
    for vendor, names in TENSOR_CORE_KERNELS.items():
        assert ours.loc[[f"{name}@{vendor}" for name in names], "is_kernel_using_tensor_core"].all()
    without = [f"{name}@" for name in KERNELS]
    assert not xprof.loc[without, "is_kernel_using_tensor_core"].any()
    is_used = ours.loc[without, "is_kernel_using_tensor_core"].to_list()
    assert is_used == [True] * (len(KERNELS) - len(PLAIN_KERNELS)) + [False] * len(PLAIN_KERNELS)


def test_names_that_xprof_does_not_know() -> None:
    """As an H100 recorded them with cuBLAS 13 and cuDNN 9: the first ran at 80 % of the peak of its tensor cores."""
    for name in (
        "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT",
        "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x64x32_warpgroupsize1x1x1_g1",
        "sm80_xmma_fprop_implicit_gemm_indexed_wo_smem_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tensor16x8x8_alignc4",
        "void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm>",
    ):
        assert uses_tensor_cores(name, "Nvidia")
        assert not uses_tensor_cores(name, "AMD")
    plain_float32 = "sm80_xmma_gemm_cf32cf32_f32f32_cf32_tn_n_tilesize32x32x8_stage3_warpsize2x2x1_ffma_aligna8_alignc8"
    assert not uses_tensor_cores(plain_float32, "Nvidia")
    assert uses_tensor_cores("volta_h884gemm", "NVIDIA") and not uses_tensor_cores("volta_h884gemm", "Intel")


def test_an_op_is_eligible_by_name_or_by_an_equation_of_two_operands() -> None:
    assert [op for op in ELIGIBLE_OPS + PLAIN_OPS if is_eligible(op, "")] == ELIGIBLE_OPS
    assert is_eligible("einsum", "ab,bc->ac")
    assert not is_eligible("einsum", "ab->ba")


def test_what_uses_tensor_cores_could_use_them_though_xprof_says_so_of_named_ops_only() -> None:
    frame = kernel_stats(gpu(stream(kernel("volta_h884gemm", 0, 1))), "h")
    assert frame["is_op_tensor_core_eligible"].to_list() == [True]
