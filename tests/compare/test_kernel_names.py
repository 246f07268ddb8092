"""Kernel names are taken apart as compilers put them together, and read as a person says them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.profiles import loaded_run
from tfcompare.compare.matching.kernel_names import (
    MOST_SHOWN,
    KernelName,
    canonical_kernel,
    is_instruction,
    kernel_label,
    kernel_labels,
    kernel_name,
    split_top_level,
)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Im2Col", ("", "Im2Col", "", "")),
        ("void ns::f<int, g<float> >(float const*, int)", ("void", "ns::f", "<int, g<float> >", "(float const*, int)")),
        ("void (anonymous namespace)::f(int)", ("void", "(anonymous namespace)::f", "", "(int)")),
        ("f<8>(int) const", ("", "f", "<8>", "(int)")),
        ("std::pair<int, int> make<3>(int) [clone .kd]", ("std::pair<int, int>", "make", "<3>", "(int)")),
        ("void k<S::operator<(int)>(int)", ("void", "k", "<S::operator<(int)>", "(int)")),
        ("Cijk_Ailk_Bljk_MT64x64.kd", ("", "Cijk_Ailk_Bljk_MT64x64", "", "")),
        ("broken<(", ("", "broken<(", "", "")),
        ("", ("", "", "", "")),
        ("()", ("", "()", "", "")),
    ],
)
def test_the_parts_of_a_name(name: str, parts: tuple[str, str, str, str]) -> None:
    assert kernel_name(name) == KernelName(*parts)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void ns::f<int>(float*)", "ns::f<int>(float*, long)"),
        ("input_transpose_fusion_1", "input_transpose_fusion"),
        ("fusion.12", "fusion_3"),
        ("Cijk_MT64.kd", "Cijk_MT64"),
    ],
)
def test_another_spelling_of_one_kernel_has_the_same_canonical_name(one: str, other: str) -> None:
    assert canonical_kernel(one) == canonical_kernel(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void gemm<128, 64>(float*)", "void gemm<64, 64>(float*)"),
        ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nt"),
        ("maxwell_scudnn_128x32_3", "maxwell_scudnn_128x32_4"),
    ],
)
def test_variants_of_a_kernel_stay_apart(one: str, other: str) -> None:
    assert canonical_kernel(one) != canonical_kernel(other)


@pytest.mark.parametrize(
    "name", ["fusion_3", "loop_add_fusion", "gemm_fusion_dot_50", "triton_softmax_34", "wrapped_add"]
)
def test_kernels_that_xla_names_after_instructions(name: str) -> None:
    assert is_instruction(name)


@pytest.mark.parametrize("name", ["void fusion_3<int>(float*)", "maxwell_scudnn_128x32_3", "Cijk_MT64x64", "redzone"])
def test_kernels_whose_name_is_the_same_in_every_program(name: str) -> None:
    assert not is_instruction(name)


@law(60)
@given(st.text(alphabet="ab<>(){}[]:: ->,*", max_size=60))
def test_any_text_has_parts_that_hold_all_but_its_spaces_and_suffixes(name: str) -> None:
    parts = kernel_name(name)
    assert "".join(parts).replace(" ", "") == name.replace(" ", "")


MAP = "Eigen::TensorMap<Eigen::Tensor<{}, 1, 1, long>, 16, Eigen::MakePointer>"


def eigen(result: str, term: str) -> str:
    assign = f"Eigen::TensorAssignOp<{MAP.format(result)}, {term} const>"
    evaluator = f"Eigen::TensorEvaluator<{assign} const, Eigen::GpuDevice>"
    return f"void Eigen::internal::EigenMetaKernel<{evaluator}, long>({evaluator}, long)"


def unary(functor: str, of: str) -> str:
    return f"Eigen::TensorCwiseUnaryOp<{functor}, {MAP.format(of + ' const')} const>"


PRODUCT = "Eigen::internal::scalar_product_op<Eigen::half, Eigen::half>"
GREATER = "Eigen::internal::greater_equal<Eigen::half>"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("void tensorflow::BiasNHWCKernel<float>(int, float const*)", "BiasNHWCKernel<float>"),
        ("void (anonymous namespace)::softmax<float, 10, true>(float*)", "softmax<float, 10, true>"),
        ("ns::k<ns::a<ns::b<int> >, (ns::Mode)2>(float*)", "k<a<b<int>>, 2>"),
        ("void cub::Reduce<cub::Policy<float, cub::Sum>::Policy600, float*>(float*)", "Reduce<Policy600, float*>"),
        (
            "void cutlass::Kernel<cutlass_80_s1688gemm_128x64>(cutlass_80_s1688gemm_128x64::Params)",
            "cutlass_80_s1688gemm_128x64",
        ),
        ("loop_convert_fusion.kd", "loop_convert_fusion"),
        (
            "Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_1LDSB0_WG64_4_1_WGM1.kd",
            "Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1…_WGM1",
        ),
        ("Relu_GPU_DT_FLOAT_DT_FLOAT_kernel", "Relu_GPU_DT_FLOAT_DT_FLOAT_kernel"),
        (
            eigen("Eigen::half", f"Eigen::TensorConversionOp<Eigen::half, {MAP.format('float const')} const>"),
            "Eigen half(float)",
        ),
        (eigen("float", unary("Eigen::internal::scalar_inverse_op<float>", "float")), "Eigen inverse(float)"),
        (
            eigen("bool", unary(f"Eigen::internal::scalar_right<bool, Eigen::half, {GREATER}, false>", "Eigen::half")),
            "Eigen greater_equal(half, scalar) → bool",
        ),
        (
            eigen(
                "Eigen::half",
                unary(f"Eigen::internal::scalar_left<Eigen::half, Eigen::half, {PRODUCT}, false>", "Eigen::half"),
            ),
            "Eigen product(scalar, half)",
        ),
        (
            eigen(
                "bool",
                "Eigen::TensorCwiseBinaryOp<Eigen::internal::scalar_cmp_op<float const, float const, 6>, "
                f"{MAP.format('float const')} const, {MAP.format('float const')} const>",
            ),
            "Eigen float >= float → bool",
        ),
        (
            eigen(
                "float",
                "Eigen::TensorReductionOp<Eigen::internal::SumReducer<float>, Eigen::array<long, 1> const, "
                "Eigen::TensorMap<Eigen::Tensor<float const, 2, 1, long>, 16> const>",
            ),
            "Eigen SumReducer(float[2D])",
        ),
        ("broken<(", "broken<("),
        ("", ""),
    ],
)
def test_a_kernel_reads_as_what_it_does(name: str, label: str) -> None:
    assert kernel_label(name) == label


def test_different_kernels_have_different_labels() -> None:
    names = ["void f<a::x>(int)", "void f<b::x>(int)", "f", "void f<a::x>(int)"]
    assert kernel_labels(names) == {"void f<a::x>(int)": "f<x>", "void f<b::x>(int)": "f<x> (2)", "f": "f"}


def test_labels_are_short_and_apart() -> None:
    names = loaded_run("jax_conv_08").table("kernel_stats")["kernel_name"].unique().tolist()
    labels = kernel_labels(names)
    assert len(set(labels.values())) == len(names)
    assert max(map(len, labels.values())) <= 60
    long = kernel_label("igemm_fwd_gtcx_nhwc_fp32_bx0_ex0_bt128x64x16_wt32x32x2_ws1x1_wr2x1_tb1x4x1x1")
    assert long.startswith("igemm_fwd_gtcx_nhwc_fp32") and len(long) == MOST_SHOWN


@pytest.mark.parametrize(
    "name",
    [
        "f" + "<a" * 3_000 + ">" * 3_000 + "()",
        "void Eigen::internal::EigenMetaKernel<" + "TensorBroadcastingOp<" * 450 + ">" * 450 + ">()",
        eigen("x", unary("scalar_left<a, b, " * 400 + "c" + ">" * 400, "float")),
        "a::" * 50_000 + "f<int>()",
    ],
)
def test_a_hostile_name_has_a_label(name: str) -> None:
    assert kernel_label(name)


@law(60)
@given(st.text(alphabet="abTensorOp<>(){}[]:: ->,*1", max_size=80))
def test_any_text_has_a_label(name: str) -> None:
    assert isinstance(kernel_label(name), str)
    assert isinstance(kernel_label(f"void Eigen::internal::EigenMetaKernel<{name}>()"), str)


@pytest.mark.parametrize(
    ("text", "separator", "pieces"),
    [
        ("a, b<c, d>, e", ",", ["a", " b<c, d>", " e"]),
        ("a::b<c::d>::e", "::", ["a", "b<c::d>", "e"]),
        ("a<b,c", ",", ["a<b,c"]),
        ("", ",", [""]),
        ("a:::b", "::", ["a", ":b"]),
    ],
)
def test_a_name_is_split_outside_of_brackets(text: str, separator: str, pieces: list[str]) -> None:
    assert split_top_level(text, separator) == pieces


def test_two_spellings_of_one_kernel_are_not_numbered_as_two() -> None:
    labels = kernel_labels(
        ["input_transpose_fusion", "input_transpose_fusion.kd", "void ns::f<int>(int)", "ns::f<int>(long)"]
    )
    assert list(labels.values()) == ["input_transpose_fusion"] * 2 + ["f<int>"] * 2
