"""How wide the numbers are that devices compute with: every sign by hand, and nothing where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frames.tables import host, run_with
from tests.hlo.builder import BF16, F32, computation, instruction, metadata, program
from tests.profiles import EACH_KIND, loaded_run
from tests.xspace_builder import Event, Value, event, line, meta, plane
from tfcompare import schema
from tfcompare.frames.ops.precision import SIXTEEN_BIT, THIRTY_TWO_BIT, UNKNOWN_PRECISION, hlo_precision, name_precision

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
