"""How wide the numbers are that devices compute with, and whether kernels use tensor cores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.frames.tables import gpu, host, kernel, kernel_stats, run_with, stream, xprof_kernels
from tests.hlo.builder import BF16, F32, computation, instruction, metadata, program
from tests.profiles import EACH_KIND, loaded_run
from tests.xspace_builder import Event, Value, event, line, meta, plane, space
from tfcompare import schema
from tfcompare.frames.ops.kernel_stats import is_eligible, uses_tensor_cores
from tfcompare.frames.ops.precision import SIXTEEN_BIT, THIRTY_TWO_BIT, UNKNOWN_PRECISION, hlo_precision, name_precision
from tfcompare.xspace import read

COLUMNS = ["device_compute_us", *schema.STEP_PRECISIONS]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("volta_fp16_s884gemm_fp16_128x64", SIXTEEN_BIT),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn", SIXTEEN_BIT),
        ("void Fill<PhiloxRandom, Eigen::half>(unsigned long long const*)", SIXTEEN_BIT),
        ("Mul_GPU_DT_HALF_DT_HALF_kernel", SIXTEEN_BIT),
        ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_1LDSB0", SIXTEEN_BIT),
        ("SwapDimension1And2InTensor3UsingTiles<unsigned short, 256>", SIXTEEN_BIT),
        ("Cijk_Ailk_Bljk_SB_MT128x64x16_BS1_HSx", THIRTY_TWO_BIT),
        ("Mul_GPU_DT_FLOAT_DT_FLOAT_kernel", THIRTY_TWO_BIT),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn", THIRTY_TWO_BIT),
        ("void ResizeBilinear<float, HalfPixelScaler>", THIRTY_TWO_BIT),
        ("resize_half_pixel_centers", UNKNOWN_PRECISION),
        ("SwapDimension1And2InTensor3UsingTiles<unsigned int, 256>", THIRTY_TWO_BIT),
        ("loop_convert_fusion.kd", UNKNOWN_PRECISION),
    ],
)
def test_a_kernel_by_its_name(name: str, expected: int) -> None:
    assert name_precision(name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%fusion.1 = bf16[8,128]{1,0:T(8,128)} fusion(bf16[8] %p)", SIXTEEN_BIT),
        ("%dot = f32[8] dot(bf16[8] %a, bf16[8] %b)", SIXTEEN_BIT),
        ("%dot = f32[8] dot(f8e4m3fn[8] %a, f8e4m3fn[8] %b)", SIXTEEN_BIT),
        ("%add = f32[5,1024]{1,0} add(f32[5,1024] %a, f32[] %b)", THIRTY_TWO_BIT),
        ("%not = pred[8] not(pred[8] %bf16)", UNKNOWN_PRECISION),
        ("fusion.12", UNKNOWN_PRECISION),
    ],
)
def test_an_instruction_by_its_types(text: str, expected: int) -> None:
    assert hlo_precision(text) == expected


def on_gpu(*kernels: Event, program: bytes = b"") -> list[list[float]]:
    """Device compute and its widths, of a step from 0 to 100."""
    on_host = host(event("train", 0, 100, _r=1, step_num=1), event("op:Op", 0, 1))
    run = run_with(on_host, plane("/device:GPU:0", line("Stream", *kernels)), metadata({"jit_f(7)": program}))
    return run.table("steps")[COLUMNS].to_numpy().tolist()


def test_the_widths_are_parts_of_what_the_device_computes_and_16_bits_go_first() -> None:
    found = on_gpu(event("hgemm", 10, 20), event("sgemm", 20, 30), event("fusion", 40, 20))
    assert found == [[50.0, 20.0, 20.0]], "10 µs are of a kernel that tells nothing"


def test_what_an_op_takes_goes_before_the_name_of_its_kernel() -> None:
    def kernel(name: str, start: float, shape: Value) -> Event:
        return event(name, start, 10, shape=shape)

    found = on_gpu(
        kernel("cast<Eigen::half>", 0, "(float[4,8])"),
        kernel("fusion", 20, "(half[4,8];half[])"),
        kernel("mul_float", 40, "(bfloat16[4])"),
        kernel("sgemm", 60, "()"),
    )
    assert found == [[40.0, 20.0, 20.0]]


def test_where_no_kernel_tells_there_is_no_figure_and_not_zero() -> None:
    ((compute, *widths),) = on_gpu(event("loop_fusion", 0, 10), event("Memset", 20, 10))
    assert compute == 20.0
    assert np.isnan(widths).all()
    assert on_gpu(event("sgemm", 0, 10)) == [[10.0, 0.0, 10.0]], "all of it is known not to be 16 bits wide"


def test_instructions_of_a_tpu() -> None:
    def op(name: str, start: float, length: float, **told: Value) -> Event:
        return event(meta(name, "", {"program_id": 1, "symbol_id": 1, **told}), start, length)

    ops = [
        op("%fusion.1 = bf16[8]{0} fusion(f32[8] %p)", 0, 10),
        op("%fusion.2 = f32[8]{0} fusion(f32[8] %p)", 10, 30),
        op("fusion.3", 40, 5, shape_with_layout="bf16[8]{0}"),
        op("fusion.4", 50, 7),
        op("%all-reduce.1 = bf16[8]{0} all-reduce(bf16[8] %p)", 60, 10),
    ]
    tpu = plane("/device:TPU:0", line("Steps", event("1", 0, 100)), line("XLA Ops", *ops))
    assert run_with(tpu).table("steps")[COLUMNS].to_numpy().tolist() == [[52.0, 15.0, 30.0]]


@pytest.mark.parametrize("name", EACH_KIND)
def test_the_widths_never_exceed_what_is_computed(name: str) -> None:
    steps = loaded_run(name).table("steps")
    told = steps[list(schema.STEP_PRECISIONS)]
    assert told.isna().all(axis=1).equals(told.isna().any(axis=1)), "both are told, or neither"
    assert (told.sum(axis=1) <= steps["device_compute_us"] * (1 + 1e-12)).all()
    assert (told.fillna(0.0) >= 0).all(axis=None)


def test_a_kernel_of_xla_by_the_types_of_its_instruction() -> None:
    instructions = [instruction("fusion.1", "fusion", BF16[8]), instruction("fusion.2", "fusion", F32[8])]
    kernels = [
        event("fusion", 0, 10, hlo_op="fusion.1", program_id=7),
        event("fusion", 20, 20, hlo_op="fusion.2", program_id=7),
        event("sgemm", 50, 5, hlo_op="gone.3", program_id=7),
        event("fusion", 60, 7, hlo_op="gone.3", program_id=7),
    ]
    assert on_gpu(*kernels, program=program(computation(1, *instructions))) == [[42.0, 10.0, 25.0]]


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
