"""Kernel names as a person reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import loaded_run
from tfcompare.compare.matching.kernel_labels import MOST_SHOWN, kernel_label, kernel_labels
from tfcompare.compare.matching.kernel_names import split_top_level

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
        ("void cutlass::Kernel<cutlass_80_s1688gemm_128x64>(cutlass_80_s1688gemm_128x64::Params)",
         "cutlass_80_s1688gemm_128x64"),
        ("loop_convert_fusion.kd", "loop_convert_fusion"),
        ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_1LDSB0_WG64_4_1_WGM1.kd",
         "Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1…_WGM1"),
        ("Relu_GPU_DT_FLOAT_DT_FLOAT_kernel", "Relu_GPU_DT_FLOAT_DT_FLOAT_kernel"),
        (eigen("Eigen::half", f"Eigen::TensorConversionOp<Eigen::half, {MAP.format('float const')} const>"),
         "Eigen half(float)"),
        (eigen("float", unary("Eigen::internal::scalar_inverse_op<float>", "float")), "Eigen inverse(float)"),
        (eigen("bool", unary(f"Eigen::internal::scalar_right<bool, Eigen::half, {GREATER}, false>", "Eigen::half")),
         "Eigen greater_equal(half, scalar) → bool"),
        (eigen("Eigen::half", unary(f"Eigen::internal::scalar_left<Eigen::half, Eigen::half, {PRODUCT}, false>",
                                    "Eigen::half")), "Eigen product(scalar, half)"),
        (eigen("bool", "Eigen::TensorCwiseBinaryOp<Eigen::internal::scalar_cmp_op<float const, float const, 6>, "
               f"{MAP.format('float const')} const, {MAP.format('float const')} const>"),
         "Eigen float >= float → bool"),
        (eigen("float", "Eigen::TensorReductionOp<Eigen::internal::SumReducer<float>, Eigen::array<long, 1> const, "
               "Eigen::TensorMap<Eigen::Tensor<float const, 2, 1, long>, 16> const>"),
         "Eigen SumReducer(float[2D])"),
        ("broken<(", "broken<("),
        ("", ""),
    ],
)  # fmt: skip
def test_a_kernel_reads_as_what_it_does(name: str, label: str) -> None:
    assert kernel_label(name) == label


def test_different_kernels_have_different_labels() -> None:
    names = ["void f<a::x>(int)", "void f<b::x>(int)", "f", "void f<a::x>(int)"]
    assert kernel_labels(names) == {"void f<a::x>(int)": "f<x>", "void f<b::x>(int)": "f<x> (2)", "f": "f"}


def test_a_long_label_keeps_its_beginning() -> None:
    label = kernel_label("igemm_fwd_gtcx_nhwc_fp32_bx0_ex0_bt128x64x16_wt32x32x2_ws1x1_wr2x1_tb1x4x1x1")
    assert label.startswith("igemm_fwd_gtcx_nhwc_fp32")
    assert len(label) == MOST_SHOWN


@pytest.mark.parametrize("name", ["tf_gpu", "jax_conv_08", "filters_512_128_simulated", "filters_16_8_simulated"])
def test_labels_of_real_kernels_are_short_and_apart(name: str) -> None:
    names = loaded_run(name).table("kernel_stats")["kernel_name"].unique().tolist()
    labels = kernel_labels(names)
    assert len(set(labels.values())) == len(names)
    assert max(map(len, labels.values())) <= 60


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


@given(st.text(alphabet="ab<>(),:", max_size=40))
def test_the_pieces_make_up_the_whole(text: str) -> None:
    assert ",".join(split_top_level(text, ",")) == text


def test_two_spellings_of_one_kernel_are_not_numbered_as_two() -> None:
    labels = kernel_labels(
        ["input_transpose_fusion", "input_transpose_fusion.kd", "void ns::f<int>(int)", "ns::f<int>(long)"]
    )
    assert list(labels.values()) == ["input_transpose_fusion"] * 2 + ["f<int>"] * 2
